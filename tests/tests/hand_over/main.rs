//! One splitter process after the other on a node, with clients that go on asking. Needs root, and
//! fails without.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod broken_off;
mod changes;
mod under_load;

use splitter_tests::bpf::Site;
use splitter_tests::bpf::load::{Habit, Load};
use splitter_tests::bpf::site::HOST;

fn site() -> Site {
    Site::new(env!("CARGO_BIN_EXE_splitter-here"))
}

/// What instances of these tests are started with.
fn args(site: &Site, more: &str) -> String {
    let hand_over = site.hand_over_args();
    // Clients on a busy machine are slow.
    let args = site.run_args(&format!("{hand_over} {more}"));
    args.replace("--drain-timeout 2s", "--drain-timeout 60s")
}

fn start(site: &mut Site, more: &str) {
    let args = args(site, more);
    let command = site.command(&args);
    site.start_as(command);
}

/// Clients outside and in the pod, with both habits.
fn load(site: &Site) -> Load {
    let mut load = Load::new();
    for habit in [Habit::Close, Habit::Keep] {
        load.client(&site.nodes.out, "203.0.113.1:80", HOST, habit);
        load.client(&site.nodes.pod, "10.244.0.1:80", HOST, habit);
    }
    load
}

/// Nothing went wrong, and it was not for want of requests.
fn nothing_lost(load: Load, at_least: u64) {
    let (answered, failures) = load.stop();
    assert!(failures.is_empty(), "{failures:#?}");
    assert!(answered >= at_least, "{answered}");
}

/// What `splitter status` says.
fn status(site: &Site) -> serde_json::Value {
    let status = site.output("status --json");
    let error = String::from_utf8_lossy(&status.stderr);
    assert!(status.status.success(), "{error}");
    serde_json::from_slice(&status.stdout).unwrap()
}
