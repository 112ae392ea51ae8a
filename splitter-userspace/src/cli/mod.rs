//! The command line. Names of flags and of their environment variables are a contract.

pub mod check;
pub mod class_args;
mod cluster_args;
#[cfg(test)]
mod deploy_tests;
pub mod detach;
pub mod doctor;
pub mod explain;
mod hand_over_args;
pub mod instance;
mod l4_args;
mod limit_args;
pub mod logging;
pub mod maps;
mod named;
mod pool_args;
pub mod probe;
mod run_args;
pub mod status;
mod steer_args;
mod tls_args;
mod values;
mod webhook_args;
pub mod weight;

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::config::{Settings, SettingsError};

pub use cluster_args::ClusterArgs;
pub use limit_args::{LimitArgs, TimeoutArgs};
pub use named::Named;
pub use run_args::{LogFormatArg, RunArgs, SteeringArg};
pub use steer_args::{PinArgs, SteerArgs, XdpModeArg};

/// Exit code when the command line, or an environment variable in its place, is wrong.
pub const EXIT_USAGE: u8 = 2;

/// The whole command line.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "splitter",
    version,
    about = "Splits HTTP requests by weight, header or cookie, as Ingress objects say",
    disable_help_subcommand = true
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands, one variant and one module each.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Serve requests
    Run(Box<RunArgs>),
    /// Say what is wrong with manifests
    Check(check::CheckArgs),
    /// Say who would answer a request, and why
    Explain(Box<explain::ExplainArgs>),
    /// Say what an instance does: steering, pools, splits
    Status(status::StatusArgs),
    /// Print what the kernel's maps hold, with names, as JSON
    Maps(maps::MapsArgs),
    /// Change weights at once, past the objects
    Weight(weight::WeightArgs),
    /// Remove what stayed attached and pinned
    Detach(detach::DetachArgs),
    /// Say what this node gives and lacks for what `run` with these flags needs
    Doctor(doctor::DoctorArgs),
    /// Ask one instance whether it runs, or may be given traffic
    Probe(probe::ProbeArgs),
    /// Print the version
    Version,
}

/// Reads the command line and does what it says; `run` is what serves.
///
/// Wrong usage ends with [`EXIT_USAGE`], any other failure with 1.
pub fn main(
    args: impl IntoIterator<Item = OsString>,
    run: impl FnOnce(Settings) -> anyhow::Result<()>,
) -> ExitCode {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    match cli.command {
        Command::Run(args) => match settings(*args) {
            Ok(settings) => finish(run(settings)),
            Err(error) => wrong(&error),
        },
        Command::Check(args) => match args.run() {
            Ok(code) => ExitCode::from(code),
            Err(error) => finish(Err(error)),
        },
        Command::Explain(args) => finish(args.run()),
        Command::Status(args) => finish(args.run()),
        Command::Maps(args) => finish(args.run()),
        Command::Weight(args) => finish(args.run()),
        Command::Detach(args) => finish(args.run()),
        Command::Doctor(args) => match args.run() {
            Ok(code) => ExitCode::from(code),
            Err(error) => finish(Err(error)),
        },
        Command::Probe(args) => finish(args.run()),
        Command::Version => {
            let mut out = std::io::stdout().lock();
            finish(writeln!(out, "splitter {}", env!("CARGO_PKG_VERSION")).map_err(Into::into))
        }
    }
}

/// Settings of `run`, with logging started.
fn settings(args: RunArgs) -> Result<Settings, UsageError> {
    let settings = Settings::try_from(args)?;
    logging::init(settings.log_format)?;
    Ok(settings)
}

#[derive(Debug, thiserror::Error)]
enum UsageError {
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error(transparent)]
    Logging(#[from] logging::LoggingError),
}

/// clap's own message: help and version are not errors.
fn usage(error: &clap::Error) -> ExitCode {
    // Nothing can be done when the terminal is gone.
    let _ = error.print();
    if error.use_stderr() {
        ExitCode::from(EXIT_USAGE)
    } else {
        ExitCode::SUCCESS
    }
}

fn wrong(error: &UsageError) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "error: {error}");
    ExitCode::from(EXIT_USAGE)
}

fn finish(result: anyhow::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
