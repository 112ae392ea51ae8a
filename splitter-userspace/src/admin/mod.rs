//! Health, metrics and dumps over HTTP.
//!
//! One small server on the control runtime. It reads shared state and changes nothing; GET and
//! HEAD only.

mod dump;
mod pages;
mod readiness;
mod scrape;
mod server;

use std::sync::Arc;

use tokio::sync::watch;

use crate::model::Problem;
use crate::routing::{Live, WeightSource};
use crate::telemetry::{L4Stats, Registry};

pub use readiness::{Readiness, ReadyGuard};
pub use server::{HEADER_TIMEOUT, LIFETIME, Listener, MAX_CONNECTIONS, MAX_HEAD_BYTES, serve};

/// Everything that the pages are made of.
#[derive(Clone)]
pub struct AdminState {
    /// What was counted.
    pub registry: Registry,
    /// Whether this instance may be given traffic.
    pub readiness: Readiness,
    /// The routing state in use.
    pub live: watch::Receiver<Arc<Live>>,
    /// The faults in objects that came with it.
    pub problems: watch::Receiver<Arc<Vec<Problem>>>,
    /// The weights in use.
    pub weights: Arc<dyn WeightSource>,
    /// How connections reach the pools, shown in `/config_dump` as it is.
    pub steering: watch::Receiver<serde_json::Value>,
    /// What was counted where no HTTP is looked at.
    pub l4: L4Stats,
}
