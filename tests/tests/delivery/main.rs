//! The real thing: Argo Rollouts and Flagger, unmodified and built from their modules, each bring one
//! version out and take one back over splitter, while requests run. Outside of everyday tests, as it
//! takes long to build: `cargo xtask test --delivery`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]
#![allow(clippy::print_stdout, reason = "it is a harness too")]

mod argo;
mod controller;
mod flagger;
#[path = "../cluster/prometheus.rs"]
#[allow(dead_code, reason = "the cluster tests need more of it")]
mod prometheus;
#[path = "../cluster/world.rs"]
#[allow(dead_code, reason = "the cluster tests need more of it")]
mod world;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use splitter_tests::cluster::enter_namespace;
use splitter_tests::cluster::runner::{NodeSettings, Runner};
use world::World;

/// For one step of a controller, which waits a while itself.
pub const PATIENCE: Duration = Duration::from_secs(240);

type Test = fn(&mut World);

const TESTS: &[(&str, Test)] = &[
    ("argo_promotes_and_aborts", argo::promotes_and_aborts),
    (
        "flagger_promotes_and_rolls_back",
        flagger::promotes_and_rolls_back,
    ),
];

fn main() -> ExitCode {
    let filters: Vec<String> = std::env::args()
        .skip(1)
        .filter(|it| !it.starts_with('-'))
        .collect();
    let is_wanted = |name: &str| filters.is_empty() || filters.iter().any(|it| name.contains(it));
    if !TESTS.iter().any(|(name, _)| is_wanted(name)) {
        return ExitCode::SUCCESS;
    }
    enter_namespace();
    let mut world = World::new();
    let images = [(
        "tests/echo".to_owned(),
        env!("CARGO_BIN_EXE_echo-pod").into(),
    )];
    let runner = Runner::start(
        &world.plane,
        NodeSettings {
            name: "runner-1",
            range: [10, 244, 7],
            images: BTreeMap::from(images),
        },
    );
    let mut failed = 0;
    for (name, test) in TESTS.iter().filter(|(name, _)| is_wanted(name)) {
        let began = Instant::now();
        let result = catch_unwind(AssertUnwindSafe(|| test(&mut world)));
        failed += usize::from(result.is_err());
        let shown = if result.is_ok() { "ok" } else { "FAILED" };
        println!("test {name} ... {shown} ({:.1?})", began.elapsed());
    }
    drop(runner);
    match failed {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}
