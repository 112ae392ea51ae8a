//! `cargo xtask bench`: what finding and deciding costs, and, if asked, what steering costs and does,
//! or what whole requests cost beside other proxies.

pub(crate) mod instructions;
mod peers;
mod results;
mod table;

use anyhow::Result;

use crate::process::{self, cargo};

#[derive(clap::Args)]
pub(crate) struct BenchArgs {
    /// Instead measure steering, as root: the kernel programs, connections per second with and
    /// without, floods from outside, and how soon a weight is followed
    #[arg(long, conflicts_with = "peers")]
    steering: bool,

    /// Instead measure a large cluster: the start, memory, and how soon a change counts
    #[arg(long, conflicts_with_all = ["peers", "steering"])]
    scale: bool,

    /// Instead count the instructions of requests, and compare them with what was recorded
    #[arg(long, conflicts_with_all = ["peers", "steering", "scale"])]
    instructions: bool,

    /// Record what was counted
    #[arg(long, requires = "instructions")]
    update: bool,

    /// Also run splitter beside other proxies, with the bench in --peer-bench
    #[arg(long)]
    peers: bool,

    /// A bench that runs proxies side by side: a folder with run.sh, and proxies/NAME.sh for each
    #[arg(long, env = "SPLITTER_PEER_BENCH", value_name = "DIR")]
    peer_bench: Option<std::path::PathBuf>,

    /// Instead of running anything, make the tables of docs/performance.md from what a run has left
    #[arg(long, value_name = "FILE", requires = "peers", conflicts_with = "run")]
    results: Option<std::path::PathBuf>,

    /// Arguments for the peer bench's run.sh instead of the usual ones
    #[arg(last = true, value_name = "ARGS", requires = "peers")]
    run: Vec<String>,
}

/// Runs the benches; they print their results.
///
/// # Errors
/// When one cannot be built or fails.
pub(crate) fn run(args: &BenchArgs) -> Result<()> {
    if args.steering {
        return tests(&["bpf", "steering"]);
    }
    if args.scale {
        return tests(&["scale"]);
    }
    if let Some(results) = &args.results {
        return peers::publish(results);
    }
    if args.instructions {
        return instructions::run(args.update);
    }
    let all = [
        "bench",
        "--locked",
        "--package",
        "splitter-userspace",
        "--bench",
        "*",
    ];
    process::run(&mut cargo(&all))?;
    if args.peers {
        peers::run(args.peer_bench.as_deref(), &args.run)?;
    }
    Ok(())
}

/// Runs these benches of whole processes.
fn tests(benches: &[&str]) -> Result<()> {
    let mut bench = cargo(&["bench", "--locked", "--package", "splitter-tests"]);
    for name in benches {
        bench.args(["--bench", name]);
    }
    process::run(bench.env("SPLITTER_BPF", "require"))
}
