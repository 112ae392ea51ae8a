//! Finding a Location, deciding its Variant, picking an Endpoint: pure, without I/O, clock or
//! random numbers of its own.

mod decide;
mod stub;
pub use stub::*;
mod live;

pub use decide::{Decision, Draw, Reason};
pub use live::{Live, SlotId, WeightSource};
