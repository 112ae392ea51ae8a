use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::interrupt::Interrupt;

/// How long it may take to start.
const START: Duration = Duration::from_secs(30);
/// How long it may take to stop when asked.
const STOP: Duration = Duration::from_secs(10);
/// Between two looks at something that cannot be waited for.
const POLL: Duration = Duration::from_millis(10);

/// A `splitter run` of our own, on ports that the kernel chose. Killed when dropped.
pub(super) struct Instance {
    child: Child,
    /// Those of HTTP, then that of HTTPS.
    addresses: Vec<SocketAddr>,
    admin: SocketAddr,
}

impl Instance {
    /// Starts it with further arguments and waits until it serves.
    pub(super) fn start(manifests: &Path, args: &[&str], interrupt: &Interrupt) -> Result<Self> {
        Self::start_as(manifests, "off", args, interrupt)
    }

    /// The same with a port for HTTPS.
    pub(super) fn start_with_https(
        manifests: &Path,
        args: &[&str],
        interrupt: &Interrupt,
    ) -> Result<Self> {
        Self::start_as(manifests, "127.0.0.1:0", args, interrupt)
    }

    fn start_as(
        manifests: &Path,
        https: &str,
        args: &[&str],
        interrupt: &Interrupt,
    ) -> Result<Self> {
        let mut child = command(manifests, https, args)?
            .spawn()
            .context("cannot start splitter")?;
        let lines = child.stderr.take().map(lines);
        // Made before anything can fail, so that the child is ended in any case.
        let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
        let mut instance = Instance {
            child,
            addresses: Vec::new(),
            admin: nowhere,
        };
        let lines = lines.context("splitter has no standard error")?;
        (instance.addresses, instance.admin) = await_serving(&lines, interrupt)?;
        Ok(instance)
    }

    /// Where it takes requests.
    pub(super) fn http(&self) -> SocketAddr {
        // There is one, or it would not have been waited for.
        let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
        self.addresses.first().copied().unwrap_or(nowhere)
    }

    /// Where it takes them over TLS.
    pub(super) fn https(&self) -> Result<SocketAddr> {
        let https = self.addresses.get(1).copied();
        https.context("splitter does not listen for https")
    }

    /// Where its metrics are.
    pub(super) fn admin(&self) -> SocketAddr {
        self.admin
    }

    /// An error once it has ended by itself.
    pub(super) fn check(&mut self) -> Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("splitter has ended: {status}"),
        }
    }

    /// Asks it to finish what is in hand and to end, as Kubernetes does.
    pub(super) fn stop(mut self) -> Result<()> {
        self.check()?;
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.context("splitter has no pid")?, Signal::TERM)?;
        let deadline = Instant::now() + STOP;
        while Instant::now() < deadline {
            match self.child.try_wait()? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => bail!("splitter ended with {status} after SIGTERM"),
                None => thread::sleep(POLL),
            }
        }
        bail!("splitter did not end within {STOP:?} of SIGTERM")
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // Both do nothing to a child that has been waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One worker, so that one exact share is seen; nothing of our own environment.
fn command(manifests: &Path, https: &str, args: &[&str]) -> Result<Command> {
    let here = std::env::current_exe().context("where is this program?")?;
    let mut command = Command::new(here.with_file_name("splitter"));
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"SPLITTER_") {
            command.env_remove(name);
        }
    }
    command
        .args([
            "run",
            "--admin",
            "127.0.0.1:0",
            "--https",
            https,
            "--workers",
            "1",
        ])
        .args(["--access-log", "off", "--log-format", "json", "--manifests"])
        .arg(manifests)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        // Ctrl-C is for us: we end it in order.
        .process_group(0);
    Ok(command)
}

/// What it logs, line by line; read to the end in any case, so that it never waits for us.
fn lines(stderr: ChildStderr) -> Receiver<String> {
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            let _ = sender.send(line);
        }
    });
    lines
}

/// Waits for the line that names the addresses.
fn await_serving(
    lines: &Receiver<String>,
    interrupt: &Interrupt,
) -> Result<(Vec<SocketAddr>, SocketAddr)> {
    let deadline = Instant::now() + START;
    let mut said = Vec::new();
    loop {
        interrupt.check()?;
        match lines.recv_timeout(POLL) {
            Ok(line) => match serving(&line) {
                Some(addrs) => return Ok(addrs),
                None => said.push(line),
            },
            Err(RecvTimeoutError::Timeout) if Instant::now() < deadline => {}
            Err(_) => bail!("splitter does not serve; it said:\n{}", said.join("\n")),
        }
    }
}

/// `{"message":"serving","addresses":"[127.0.0.1:40000]","admin":"127.0.0.1:40001",..}`
fn serving(line: &str) -> Option<(Vec<SocketAddr>, SocketAddr)> {
    let event: Value = serde_json::from_str(line).ok()?;
    let text = |field: &str| event.get(field)?.as_str();
    if text("message") != Some("serving") {
        return None;
    }
    let addresses = text("addresses")?.strip_prefix('[')?.strip_suffix(']')?;
    let addresses = addresses.split(", ").map(|it| it.parse().ok());
    Some((
        addresses.collect::<Option<_>>()?,
        text("admin")?.parse().ok()?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_addresses_are_those_of_the_line_that_says_serving() {
        let line = r#"{"level":"INFO","message":"serving","addresses":"[127.0.0.1:40000]","admin":"127.0.0.1:40001"}"#;
        let addr = |port| SocketAddr::from(([127, 0, 0, 1], port));
        assert_eq!(serving(line), Some((vec![addr(40000)], addr(40001))));
        let two = line.replace("40000]", "40000, 127.0.0.1:40002]");
        let expected = (vec![addr(40000), addr(40002)], addr(40001));
        assert_eq!(serving(&two), Some(expected));
        for other in [
            "",
            "text",
            r#"{"message":"configuration applied"}"#,
            r#"{"message":"serving","addresses":"[]","admin":"127.0.0.1:40001"}"#,
        ] {
            assert_eq!(serving(other), None, "{other}");
        }
    }
}
