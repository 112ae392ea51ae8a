//! What is counted and logged about requests: written by the workers, read by `admin`.

mod access_log;
mod l4;
mod metrics;
mod record;
mod side;

pub use access_log::{AccessLog, AccessLogError, BUFFER_BYTES, QUEUE_BUFFERS, WorkerLog};
pub use metrics::{
    CONNECT_FAILURES, CONNECT_HOOKS, CONNECTS, ConfigMetrics, ConnectionMetrics, ControllerLabels,
    Counter, ENDPOINT_EJECTIONS, Family, Gauge, HAND_OVERS, INTERFACE_CHANGES, INTERIM_ANSWERS,
    KEY_FETCHES, L4_XDP, L4_XDP_FAILURES, L4_XDP_STATE, LEADS, LIMIT_EVICTIONS, Labels, MAX_SERIES,
    MIRRORED, MetricKind, OBJECT_WRITES, OpenGuard, PIPES, READY_INSTANCES, Registry,
    SSL_CERTIFICATE_INFO, SSL_EXPIRE_TIME, STEER, STEERING_MODE, TLS_HANDSHAKES, Text,
    WATCH_FAILURES, WEIGHT_OVERRIDES, WorkerMetrics, XDP_BYTES, XDP_NOTICED, XDP_PACKETS,
};

pub(crate) use l4::labels as l4_labels;
pub use l4::{
    Forwarded, L4Counts, L4Cut, L4Forwarded, L4Guard, L4Refusal, L4Shown, L4Stats, L4VariantCounts,
};
pub(crate) use metrics::{L4_WEIGHT, PROBLEMS, VARIANT_WEIGHT};
pub use record::{Record, UpstreamRecord};
