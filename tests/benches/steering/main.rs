//! What steering costs and what it is good for, by whole processes over veth: each figure beside the
//! same one without steering, taken in turn in one run. Needs root.
//!
//! `SPLITTER_BENCH_ROUNDS` says how often each is taken, default 5; medians are shown.

#![allow(clippy::unwrap_used, reason = "a bench fails by panicking")]
#![allow(clippy::print_stdout, reason = "the figures are what it is for")]

mod forward;
mod isolation;
mod load;
mod rate;
mod weight;

use rustix::thread::{sched_getaffinity, sched_setaffinity};
use splitter_tests::bpf::Site;

fn main() {
    let rounds = std::env::var("SPLITTER_BENCH_ROUNDS").unwrap_or_else(|_| "5".to_owned());
    let rounds: usize = rounds.parse().unwrap();
    // A word on the command line chooses one of them.
    let chosen: Vec<_> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with('-'))
        .collect();
    let is_chosen = |name: &str| chosen.is_empty() || chosen.iter().any(|word| word == name);
    if is_chosen("weight") {
        weight::run(rounds);
    }
    if is_chosen("rate") {
        rate::run(rounds);
    }
    if is_chosen("forward") {
        forward::run(rounds);
    }
    if is_chosen("isolation") {
        isolation::run(rounds);
    }
}

/// A running splitter with this many workers a pool.
fn start(workers: usize, args: &str) -> Site {
    run(
        Site::new(env!("CARGO_BIN_EXE_splitter-here")),
        workers,
        args,
    )
}

/// The same with backends that keep to one CPU.
fn start_behind(cpu: usize, args: &str) -> Site {
    let before = sched_getaffinity(None).unwrap();
    // Threads begin where the thread that makes them is.
    load::keep_to(cpu);
    let site = Site::new(env!("CARGO_BIN_EXE_splitter-here"));
    sched_setaffinity(None, &before).unwrap();
    run(site, 2, args)
}

fn run(mut site: Site, workers: usize, args: &str) -> Site {
    site.nodes.whole_checksums();
    let args = site.run_args(&format!("--access-log off {args}"));
    let workers = format!("--workers {workers}");
    let command = site.command(&args.replace("--workers 2", &workers));
    site.start_as(command);
    site
}

/// The middle one.
fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}
