use anyhow::Result;
use clap::Args;

use crate::process::{self, cargo, root};
use crate::setup;

#[derive(Args)]
pub(crate) struct TestArgs {
    /// Arguments for `cargo test`, such as a filter
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    cargo: Vec<String>,
}

/// Sets up, then runs every test of the workspace and the host tests of the kernel programs.
pub(crate) fn run(args: &TestArgs) -> Result<()> {
    setup::run()?;
    // One run shows all that fails.
    let mut test = cargo(&["test", "--workspace", "--locked", "--no-fail-fast"]);
    // Without the kernel programs the tests that load them would have nothing to test.
    process::run(test.args(&args.cargo).env("SPLITTER_BPF", "require"))?;
    if args.cargo.is_empty() && root().join(EBPF).is_file() {
        process::run(&mut cargo(&[
            "test",
            "--locked",
            "--lib",
            "--manifest-path",
            EBPF,
        ]))?;
    }
    Ok(())
}

/// The kernel programs are a workspace of their own; what is pure in them is tested on the host.
pub(crate) const EBPF: &str = "splitter-ebpf/Cargo.toml";
