//! Finding a Location, deciding its Variant, picking an Endpoint: pure, without I/O, clock or
//! random numbers of its own.
//!
//! The way of a request: [`normalize`] its host, [`Router::find`] its Location, [`decide`] the
//! Variant with the weights of the Location's slot and a draw from the worker's [`Blocks`],
//! [`resolve`] the Backend, and let the worker's [`Picker`] choose an Endpoint.

mod aim;
mod alike;
pub mod answer;
mod decide;
mod draw;
pub mod explain;
#[cfg(test)]
mod fixtures;
mod health;
mod host;
mod keyed;
mod l4;
mod live;
mod load;
mod maglev;
mod path;
mod pick;
mod reading;
mod resolve;
mod rewrite;
mod ring;
mod router;
mod seen;
mod session;
mod shown;
mod text;
mod wanted;

pub use aim::{Aim, Session};
pub use alike::key_text;
pub use decide::{Answer, Decision, Draw, Reason, ask, decide};
pub use draw::{Blocks, MAX_BLOCKS, SlotDraw};
pub use health::{FIRST_EJECTION_MS, FORGET_MS, Health, LONGEST_EJECTION_MS, MAX_EJECTED, Tick};
pub use host::{MAX_HOST, normalize};
pub use l4::{L4_TRIES, L4Choice, L4Live, L4Reason, L4Taken, l4_flow, l4_live};
pub use live::{Live, SlotId, WeightSource, same_structure};
pub use path::{canonical, is_plain};
pub use pick::{Picker, Rotation, pick};
pub use resolve::{Chosen, NoEndpoint, resolve};
pub use rewrite::{Unsendable, rewrite};
pub use router::{Found, Router};
pub use session::{Held, held, value};
pub use shown::Shown;
pub use wanted::{Scheme, Wanted};
