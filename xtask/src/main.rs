//! What cargo cannot do: `cargo xtask setup`, `build`, `demo`, `deploy`, `test`, `verify`, `bench`.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "it talks to the person who runs it")]

mod bench;
mod build;
mod control_plane;
mod demo;
mod deploy;
mod process;
mod setup;
mod test;
mod verify;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Tasks of this repository")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Install what is missing to build and test, or say how
    Setup,
    /// Build the release binary with the kernel programs
    Build,
    /// Set up, send requests through a proxy and show how they were split
    Demo(demo::DemoArgs),
    /// Set up and run every test; needs root for those that load kernel programs
    Test(test::TestArgs),
    /// Make deploy/splitter.yaml from the chart
    Deploy,
    /// Measure what a decision costs and, with --peers, whole requests beside other proxies
    Bench(bench::BenchArgs),
    /// Check format, lints, imports, file sizes, licences and advisories
    Verify,
}

fn main() -> ExitCode {
    let result = match Cli::parse().task {
        Task::Setup => setup::run(),
        Task::Build => build::run(),
        Task::Demo(args) => demo::run(&args),
        Task::Test(args) => test::run(&args),
        Task::Deploy => deploy::run(),
        Task::Bench(args) => bench::run(&args),
        Task::Verify => verify::run(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
