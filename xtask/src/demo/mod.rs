//! `cargo xtask demo`: real traffic through a real proxy, and a table of what became of it.
//!
//! Each part is a module with one function that shows it and counts what does not hold:
//! [`steering`] is the kernel programs' and needs root, [`access`], [`l4`] and [`split`] are the proxy's.

mod access;
mod backend;
mod cases;
mod client;
mod connect;
mod dump;
mod forward;
mod instance;
mod interrupt;
mod l4;
mod manifests;
mod metrics;
mod net;
mod report;
mod split;
mod steering;
mod token;

use anyhow::{Result, bail};
use clap::Args;

use crate::process::{self, cargo};
use crate::{control_plane, setup};
use interrupt::Interrupt;
use report::Report;

#[derive(Args)]
pub(crate) struct DemoArgs {
    /// Go on serving afterwards, until Ctrl-C, to try it by hand
    #[arg(long)]
    stay: bool,

    /// Instead show it on a Kubernetes made for it, installed from deploy/ and used with kubectl. Takes
    /// Go some ten minutes the first time, and root
    #[arg(long, conflicts_with = "stay")]
    cluster: bool,
}

/// Sets up, builds, shows; leaves nothing running and nothing on disk outside `target`.
///
/// # Errors
/// When a step fails, and when what is shown is not as it should be.
pub(crate) fn run(args: &DemoArgs) -> Result<()> {
    setup::run()?;
    if args.cluster {
        return cluster();
    }
    // As part of the workspace, so that the tests find the same libraries built.
    let build = ["build", "--locked", "--workspace", "--bin", "splitter"];
    process::run(&mut cargo(&build))?;
    // From here on Ctrl-C must end what was started before it ends us.
    let interrupt = Interrupt::watch()?;
    let shown = show(args, &interrupt);
    if interrupt.is_set() {
        bail!("interrupted; everything that was started is stopped");
    }
    match shown? {
        0 => Ok(()),
        failed => bail!("{failed} of the rows above are not as they should be"),
    }
}

/// Shows it on a Kubernetes, by a program that has all of that in it.
fn cluster() -> Result<()> {
    let plane = control_plane::program()?;
    let kubectl = control_plane::kubectl()?;
    let build = [
        "build",
        "--locked",
        "--workspace",
        "--features",
        "splitter-tests/cluster",
        "--bins",
    ];
    process::run(cargo(&build).env("SPLITTER_BPF", "require"))?;
    let built = |name: &str| process::root().join("target/debug").join(name);
    let mut demo = std::process::Command::new(built("cluster-demo"));
    demo.env(control_plane::VARIABLE, plane)
        .env("SPLITTER_KUBECTL", kubectl)
        .env("SPLITTER_BINARY", built("splitter"))
        .env("SPLITTER_ECHO_POD", built("echo-pod"));
    process::run(&mut demo)
}

/// Shows every part; returns how many expectations did not hold.
fn show(args: &DemoArgs, interrupt: &Interrupt) -> Result<usize> {
    let mut report = Report::to_stdout();
    // First, as the other one may stay.
    steering::show(&mut report, interrupt)?;
    access::show(&mut report, interrupt)?;
    l4::show(&mut report, interrupt)?;
    forward::show(&mut report, interrupt)?;
    connect::show(&mut report, interrupt)?;
    split::show(&mut report, interrupt, args.stay)?;
    Ok(report.failed())
}
