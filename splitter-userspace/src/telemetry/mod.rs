//! What is counted and logged about requests: written by the workers, read by `admin`.

mod access_log;
mod metrics;
mod record;
mod side;

pub use access_log::{AccessLog, AccessLogError, BUFFER_BYTES, QUEUE_BUFFERS, WorkerLog};
pub use metrics::{
    ConfigMetrics, ConnectionMetrics, ControllerLabels, Counter, ENDPOINT_EJECTIONS, Family, Gauge,
    Labels, MAX_SERIES, MetricKind, OpenGuard, Registry, STEERING_MODE, Text, WorkerMetrics,
};

pub(crate) use metrics::{PROBLEMS, VARIANT_WEIGHT};
pub use record::{Record, UpstreamRecord};
