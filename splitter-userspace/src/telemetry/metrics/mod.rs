//! Counters written by the workers and read by the scraper, and the page made of them.

mod cache;
mod config;
mod connections;
mod families;
mod family;
mod handle;
mod labels;
mod named;
mod page;
mod process;
mod registry;
mod scope;
mod series;
mod shard;
mod text;
mod worker;

pub use config::ConfigMetrics;
pub use connections::{ConnectionMetrics, OpenGuard};
pub(super) use families::LOG_DROPPED;
pub use families::{ENDPOINT_EJECTIONS, STEERING_MODE};
pub(crate) use families::{PROBLEMS, VARIANT_WEIGHT};
pub use family::{Family, MetricKind};
pub use handle::{Counter, Gauge};
pub use registry::{ControllerLabels, MAX_SERIES, Registry};
pub(super) use shard::lock;
pub use text::{Labels, Text};
pub use worker::WorkerMetrics;
