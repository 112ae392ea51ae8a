use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::bench::instructions;
use crate::process::{self, cargo, root};
use crate::{control_plane, setup};

#[derive(Args)]
pub(crate) struct TestArgs {
    /// Run the tests on a real API server instead of all others. Takes Go some ten minutes the
    /// first time; SPLITTER_CONTROL_PLANE names a program that was built before
    #[arg(long)]
    cluster: bool,

    /// Run Argo Rollouts and Flagger over it instead, and oauth2-proxy behind splitter, all built from
    /// their modules: another fifteen minutes the first time
    #[arg(long, conflicts_with = "cluster")]
    delivery: bool,

    /// Arguments for `cargo test`, such as a filter
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    cargo: Vec<String>,
}

/// Sets up, then runs every test of the workspace and the host tests of the kernel programs; or the
/// tests on a real API server.
pub(crate) fn run(args: &TestArgs) -> Result<()> {
    setup::run()?;
    if args.cluster {
        return cluster(&["cluster"], Vec::new(), &args.cargo);
    }
    if args.delivery {
        let programs = control_plane::delivery()?;
        return cluster(&["delivery", "oauth2_proxy"], programs, &args.cargo);
    }
    let figures = root().join("target/figures");
    let _ = fs::remove_file(&figures);
    // One run shows all that fails.
    let mut test = cargo(&["test", "--workspace", "--locked", "--no-fail-fast"]);
    // Without the kernel programs the tests that load them would have nothing to test.
    let test = test.args(&args.cargo).env("SPLITTER_BPF", "require");
    let result = process::run(test.env("SPLITTER_FIGURES", &figures));
    show(&fs::read_to_string(&figures).unwrap_or_default());
    result?;
    if args.cargo.is_empty() && root().join(EBPF).is_file() {
        process::run(&mut cargo(&[
            "test",
            "--locked",
            "--lib",
            "--manifest-path",
            EBPF,
        ]))?;
    }
    if args.cargo.is_empty() {
        instructions::run(false)?;
    }
    Ok(())
}

/// Tests on a real API server, with what they need beside it.
fn cluster(names: &[&str], more: Vec<(&str, PathBuf)>, filters: &[String]) -> Result<()> {
    let program = control_plane::program()?;
    let prometheus = setup::cluster::prometheus()?;
    // The whole workspace, so that its crates are compiled as for the other tests.
    let mut test = cargo(&["test", "--workspace", "--locked"]);
    test.args(names.iter().flat_map(|name| ["--test", name]));
    test.args(["--features", "splitter-tests/cluster"])
        .env(control_plane::VARIABLE, program)
        .env("SPLITTER_PROMETHEUS", prometheus)
        .envs(more);
    if !filters.is_empty() {
        test.arg("--").args(filters);
    }
    process::run(&mut test)
}

/// Prints what tests have measured, such as the instructions that each kernel's verifier went through.
fn show(figures: &str) {
    let lines: BTreeSet<_> = figures.lines().collect();
    if !lines.is_empty() {
        println!("\nfigures of this run:");
        lines.iter().for_each(|line| println!("  {line}"));
    }
}

/// The kernel programs are a workspace of their own; what is pure in them is tested on the host.
pub(crate) const EBPF: &str = "splitter-ebpf/Cargo.toml";
