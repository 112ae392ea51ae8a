//! Observing and logging a request allocates nothing once its labels were met.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use http::header::{HeaderValue, USER_AGENT};
use splitter::config::{AccessLog as Target, LogFormat};
use splitter::routing::Reason;
use splitter::telemetry::{AccessLog, ControllerLabels, Registry};
use splitter_tests::counting::{Counting, allocations};
use splitter_tests::telemetry::{Request, decision, shop};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn requests() -> Vec<Request> {
    let mut canary = Request {
        decision: Some(decision(1, Reason::Cookie)),
        ..Request::default()
    };
    let agent = HeaderValue::from_static("curl/8 \"quoted\"");
    canary.headers.insert(USER_AGENT, agent);
    vec![
        Request::default(),
        canary,
        Request::refused("body-too-large", 413),
        Request::unmatched("empty.example"),
        Request::unmatched("stranger.example"),
    ]
}

#[test]
fn the_counter_counts() {
    assert!(allocations(|| drop(std::hint::black_box(vec![1u8]))) > 0);
}

#[test]
fn observing_allocates_nothing_in_steady_state() {
    let registry = Registry::new(&ControllerLabels::default());
    let mut worker = registry.worker("north-south");
    let (live, requests) = (shop(1), requests());
    for request in &requests {
        worker.observe(&request.record(&live));
    }
    worker.count_fault("bad-head");
    let count = allocations(|| {
        for _ in 0..1_000 {
            for request in &requests {
                worker.observe(&request.record(&live));
            }
            worker.count_fault("bad-head");
            drop((worker.connections().open(), worker.connections().request()));
        }
    });
    assert_eq!(count, 0);
}

#[test]
fn logging_allocates_nothing_between_two_buffers() {
    let registry = Registry::new(&ControllerLabels::default());
    let dir = tempfile::tempdir().unwrap();
    let (live, requests) = (shop(1), requests());
    for format in [LogFormat::Json, LogFormat::Text] {
        let target = Target::File(dir.path().join("log"));
        let log = AccessLog::start(&target, format, &registry).unwrap();
        let mut worker = log.worker();
        worker.write(&requests[0].record(&live));
        let count = allocations(|| {
            for request in &requests {
                worker.write(&request.record(&live));
            }
        });
        assert_eq!(count, 0, "{format:?}");
    }
}

#[test]
fn a_log_that_is_off_costs_nothing() {
    let (live, requests) = (shop(1), requests());
    let log = AccessLog::off();
    let count = allocations(|| {
        let mut worker = log.worker();
        worker.write(&requests[0].record(&live));
        worker.tick();
    });
    assert_eq!(count, 0);
}
