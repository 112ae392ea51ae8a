//! The maps: where the weights live, what the kernel programs read, and how both are loaded.
//!
//! [`plan`] and [`diff`] are pure; [`apply`] and the loader do the I/O. The weights are read through
//! [`SlotTable`] alone, whether they lie in a BPF map or in the process's own memory.

mod ids;
mod memory;
mod object;
mod overrides;
mod plan;
mod slots;
mod stats;
mod tracker;

pub use object::object;
pub use overrides::{Override, overrides};
pub use plan::{
    NO_SLOT, SlotAllocator, SlotContent, SlotError, SlotOp, SlotPlan, apply, diff, plan,
};
pub use slots::SlotTable;
pub use stats::SplitStats;
pub use tracker::LiveTracker;
