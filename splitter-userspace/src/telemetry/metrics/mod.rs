//! Counters written by the workers and read by the scraper, and the page made of them.
//!
//! ingress-nginx's families say what its own say: `namespace`, `ingress`, `service` and `path` are
//! the main Ingress's, `canary` is `<namespace>-<service>-<port>` of a canary that was chosen and
//! empty for everything else. What was really chosen, and why, is in `splitter_requests_total`.
//!
//! A series begins with the first request that it counts. So a query over a canary that got no
//! request in its interval finds nothing, with us as with ingress-nginx; Flagger then waits and
//! needs a load on the canary.

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
pub use families::{
    CONNECT_FAILURES, CONNECT_HOOKS, CONNECTS, ENDPOINT_EJECTIONS, HAND_OVERS, INTERFACE_CHANGES,
    INTERIM_ANSWERS, KEY_FETCHES, L4_XDP, L4_XDP_FAILURES, L4_XDP_STATE, LEADS, LIMIT_EVICTIONS,
    MIRRORED, OBJECT_WRITES, PIPES, READY_INSTANCES, SSL_CERTIFICATE_INFO, SSL_EXPIRE_TIME, STEER,
    STEERING_MODE, TLS_HANDSHAKES, WATCH_FAILURES, WEIGHT_OVERRIDES, XDP_BYTES, XDP_NOTICED,
    XDP_PACKETS,
};
pub(super) use families::{
    L4_BYTES, L4_CONNECTIONS, L4_CUT, L4_FALLBACKS, L4_OPEN, L4_PACKETS, L4_REFUSED, LOG_DROPPED,
};
pub(crate) use families::{L4_WEIGHT, PROBLEMS, VARIANT_WEIGHT};
pub use family::{Family, MetricKind};
pub use handle::{Counter, Gauge};
pub use registry::{ControllerLabels, MAX_SERIES, Registry};
pub(super) use shard::lock;
pub use text::{Labels, Text};
pub use worker::WorkerMetrics;
