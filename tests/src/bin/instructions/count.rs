//! Runs a program under valgrind and counts.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use splitter_tests::backend::Backend;
use tempfile::TempDir;

use crate::script::{KEPT, Script};

/// Requests of the two runs: what begins and ends is in both, so their difference is requests only.
const FEW: u32 = 500;
const MANY: u32 = 2_500;

/// Until it listens, and until it has ended: valgrind makes everything some fifty times slower.
const PATIENCE: Duration = Duration::from_secs(120);

/// What is compared.
pub struct Programs {
    splitter: PathBuf,
    plain: PathBuf,
}

impl Programs {
    /// The programs at these paths.
    ///
    /// # Errors
    /// When there is no valgrind, which `cargo xtask setup` installs.
    pub fn new(splitter: &str, plain: &str) -> Result<Self> {
        let valgrind = Command::new("valgrind").arg("--version").output();
        let valgrind = valgrind.context("cannot run valgrind; `cargo xtask setup` installs it")?;
        ensure!(valgrind.status.success(), "valgrind does not work");
        Ok(Programs {
            splitter: splitter.into(),
            plain: plain.into(),
        })
    }

    /// Instructions that a request of the script takes splitter.
    pub fn splitter(&self, script: &Script) -> Result<f64> {
        a_request(|times| self.run_splitter(script, times))
    }

    /// Instructions that a request on a kept connection takes the plain proxy.
    pub fn plain(&self) -> Result<f64> {
        a_request(|times| self.run_plain(times))
    }

    fn run_splitter(&self, script: &Script, times: u32) -> Result<u64> {
        let backend = backend();
        let dir = TempDir::new()?;
        let manifests = dir.path().join("manifests");
        std::fs::create_dir(&manifests)?;
        std::fs::write(
            manifests.join("objects.yaml"),
            script.manifests(backend.addr()).yaml(),
        )?;
        let (http, admin) = (free()?, free()?);
        let mut command = counted(&self.splitter, dir.path());
        command
            .args(["run", "--workers", "1", "--steering", "none"])
            .args(["--https", "off"])
            .args(script.log(dir.path()))
            .arg(format!("--manifests={}", manifests.display()))
            .arg(format!("--http={http}"))
            .arg(format!("--admin={admin}"))
            .env("SPLITTER_LOG", "error");
        run(command, dir.path(), http, || script.ask(http, times))
    }

    fn run_plain(&self, times: u32) -> Result<u64> {
        let backend = backend();
        let dir = TempDir::new()?;
        let listen = free()?;
        let mut command = counted(&self.plain, dir.path());
        command.args([listen.to_string(), backend.addr().to_string()]);
        run(command, dir.path(), listen, || KEPT.ask(listen, times))
    }
}

fn a_request(run: impl Fn(u32) -> Result<u64>) -> Result<f64> {
    let (few, many) = (run(FEW)?, run(MANY)?);
    ensure!(many > few, "fewer instructions for more requests");
    Ok((many - few) as f64 / f64::from(MANY - FEW))
}

/// Answers with 1 KiB.
fn backend() -> Backend {
    let body = "x".repeat(1024);
    Backend::answering(format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 1024\r\n\r\n{body}"
    ))
}

fn counted(program: &Path, dir: &Path) -> Command {
    let mut command = Command::new("valgrind");
    command
        .args(["--tool=cachegrind", "--cache-sim=no", "--quiet"])
        .arg(format!("--log-file={}", dir.join("valgrind").display()))
        .arg(format!(
            "--cachegrind-out-file={}",
            dir.join("counts").display()
        ))
        .arg(program)
        .stdin(Stdio::null());
    command
}

/// Starts it, has it asked, ends it; all the instructions that it went through.
fn run(
    mut command: Command,
    dir: &Path,
    listen: SocketAddr,
    ask: impl FnOnce() -> Result<()>,
) -> Result<u64> {
    let mut child = command.spawn().context("cannot run valgrind")?;
    let result = until_listens(&mut child, listen).and_then(|()| ask());
    let ended = end(&mut child);
    let said = || std::fs::read_to_string(dir.join("valgrind")).unwrap_or_default();
    result.and(ended).with_context(said)?;
    let counts =
        std::fs::read_to_string(dir.join("counts")).context("valgrind has written no counts")?;
    let summary = counts
        .lines()
        .find_map(|line| line.strip_prefix("summary: "));
    let total = summary.and_then(|numbers| numbers.split(' ').next()?.parse().ok());
    total.context("valgrind's counts have no summary")
}

fn until_listens(child: &mut Child, listen: SocketAddr) -> Result<()> {
    let began = Instant::now();
    while TcpStream::connect(listen).is_err() {
        if let Some(status) = child.try_wait()? {
            bail!("it ended before it listened: {status}");
        }
        ensure!(began.elapsed() < PATIENCE, "it never listens on {listen}");
        std::thread::park_timeout(Duration::from_millis(20));
    }
    Ok(())
}

fn end(child: &mut Child) -> Result<()> {
    if child.try_wait()?.is_none() {
        let id = rustix::process::Pid::from_child(child);
        rustix::process::kill_process(id, rustix::process::Signal::TERM)?;
    }
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            ensure!(status.success(), "it ended with {status}");
            return Ok(());
        }
        if began.elapsed() > PATIENCE {
            child.kill()?;
            bail!("it does not end");
        }
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

/// An address that nobody listens on.
fn free() -> Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}
