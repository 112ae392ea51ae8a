//! `cargo xtask demo`: real traffic through a real proxy, and a table of what became of it.
//!
//! Each part is a module with one function that shows it and counts what does not hold:
//! [`steering`] is the kernel programs' and needs root, [`split`] is the proxy's.

mod backend;
mod cases;
mod client;
mod dump;
mod instance;
mod interrupt;
mod manifests;
mod metrics;
mod net;
mod report;
mod split;
mod steering;

use anyhow::{Result, bail};
use clap::Args;

use crate::process::{self, cargo};
use crate::setup;
use interrupt::Interrupt;
use report::Report;

#[derive(Args)]
pub(crate) struct DemoArgs {
    /// Go on serving afterwards, until Ctrl-C, to try it by hand
    #[arg(long)]
    stay: bool,
}

/// Sets up, builds, shows; leaves nothing running and nothing on disk outside `target`.
///
/// # Errors
/// When a step fails, and when what is shown is not as it should be.
pub(crate) fn run(args: &DemoArgs) -> Result<()> {
    setup::run()?;
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

/// Shows every part; returns how many expectations did not hold.
fn show(args: &DemoArgs, interrupt: &Interrupt) -> Result<usize> {
    let mut report = Report::to_stdout();
    // First, as the other one may stay.
    steering::show(&mut report, interrupt)?;
    split::show(&mut report, interrupt, args.stay)?;
    Ok(report.failed())
}
