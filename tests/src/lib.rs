//! Fixtures shared by the tests: a whole splitter in this process, backends that do as they are
//! told, and clients that speak raw bytes. Ports are chosen by the kernel; nothing sleeps.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a fixture that cannot do its part fails the test"
)]

pub mod backend;
pub mod bpf;
pub mod client;
pub mod cluster;
pub mod counting;
pub mod directory;
pub mod dns;
pub mod faults;
pub mod fuzz;
pub mod instance;
pub mod issuer;
pub mod jar;
pub mod manifests;
pub mod noise;
pub mod prometheus;
pub mod real;
pub mod telemetry;
pub mod tls;
pub mod tls_backend;
pub mod vm;

use std::time::{Duration, Instant};

/// How long a condition may take to come true before the test fails. Far more than it needs, as
/// machines are shared.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Waits until `condition` is true.
///
/// # Panics
/// When it is not within [`PATIENCE`].
#[track_caller]
pub fn eventually(what: &str, condition: impl FnMut() -> bool) {
    eventually_within(what, PATIENCE, condition);
}

/// The same for what takes others a while.
///
/// # Panics
/// When it is not within `patience`.
#[track_caller]
pub fn eventually_within(what: &str, patience: Duration, condition: impl FnMut() -> bool) {
    assert!(
        within(patience, condition),
        "{what}: not within {patience:?}"
    );
}

/// Whether `condition` comes true within `patience`.
fn within(patience: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let began = Instant::now();
    while !condition() {
        if began.elapsed() >= patience {
            return false;
        }
        // Not a wait for something to happen: only lets the others run between two looks.
        std::thread::park_timeout(Duration::from_millis(5));
    }
    true
}
