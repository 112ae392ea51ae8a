//! What is counted and logged about requests: written by the workers, read by `admin`.

mod record;

pub use record::{Record, UpstreamRecord};
