//! `splitter probe`: asks one instance how it is, whoever has the admin address.

use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, ValueEnum};

use super::instance;

/// How long the instance may take for each step of an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Arguments of `splitter probe`.
#[derive(Args, Clone, Debug)]
pub struct ProbeArgs {
    /// What to ask
    #[arg(value_enum)]
    pub page: PageArg,

    /// The instance's --probe-socket
    #[arg(long, env = "SPLITTER_PROBE_SOCKET", value_name = "PATH")]
    pub probe_socket: PathBuf,
}

/// What can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PageArg {
    /// Whether the process runs
    Healthz,
    /// Whether it may be given traffic
    Readyz,
}

impl ProbeArgs {
    /// Prints the answer.
    ///
    /// # Errors
    /// When there is none, or it is not 200.
    pub fn run(self) -> anyhow::Result<()> {
        let path = &self.probe_socket;
        let stream = UnixStream::connect(path);
        let stream = stream.with_context(|| format!("no instance at {}", path.display()))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let page = match self.page {
            PageArg::Healthz => "/healthz",
            PageArg::Readyz => "/readyz",
        };
        let answer = instance::get_on(stream, "probe", page)?;
        std::io::stdout().write_all(&answer)?;
        Ok(())
    }
}
