//! A process that follows the API server.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use splitter_tests::client;
use splitter_tests::cluster::fake::FakeApi;

/// For the first snapshot, however slow the build and the machine are.
const PATIENCE: Duration = Duration::from_secs(300);

/// A running one; ends when dropped.
pub struct Process {
    child: Child,
    pub http: SocketAddr,
    /// From its start until it was ready.
    pub took: Duration,
}

/// Resident memory in MiB.
pub struct Memory {
    pub now: u64,
    pub most: u64,
}

impl Process {
    /// One that follows this API server.
    pub fn start(api: &FakeApi) -> Self {
        Self::start_with(&[
            format!("--kubeconfig={}", api.kubeconfig().display()),
            "--update-status=false".to_owned(),
            "--events=false".to_owned(),
        ])
    }

    /// One with these arguments.
    pub fn start_with(args: &[String]) -> Self {
        let (http, admin) = (free(), free());
        let mut command = Command::new(env!("CARGO_BIN_EXE_splitter-here"));
        command
            .args([
                "run",
                "--workers",
                "2",
                "--steering",
                "none",
                "--https",
                "off",
            ])
            .args(["--access-log", "off"])
            .args(args)
            .arg(format!("--http={http}"))
            .arg(format!("--admin={admin}"))
            .env("SPLITTER_LOG", "error")
            .stdin(Stdio::null());
        let began = Instant::now();
        let mut child = command.spawn().unwrap();
        loop {
            let ready = TcpStream::connect(admin).is_ok()
                && client::get(admin, "admin", "/readyz").status == 200;
            if ready {
                break;
            }
            assert!(child.try_wait().unwrap().is_none(), "it ended");
            assert!(began.elapsed() < PATIENCE, "not ready within {PATIENCE:?}");
            std::thread::park_timeout(Duration::from_millis(5));
        }
        Process {
            child,
            http,
            took: began.elapsed(),
        }
    }

    /// CPU time of the threads that follow changes: the control thread and its helpers, not the workers.
    pub fn control_time(&self) -> Duration {
        let id = self.child.id();
        let tasks = std::fs::read_dir(format!("/proc/{id}/task")).unwrap();
        let nanoseconds = tasks.filter_map(|task| {
            let task = task.unwrap();
            // A helper may have ended meanwhile.
            let name = std::fs::read_to_string(task.path().join("comm")).ok()?;
            let main = task.file_name().to_str() == Some(&id.to_string());
            if !main && name.trim() != "control" {
                return None;
            }
            let times = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
            times.split(' ').next()?.parse::<u64>().ok()
        });
        Duration::from_nanos(nanoseconds.sum())
    }

    pub fn memory(&self) -> Memory {
        Memory {
            now: self.kib("VmRSS:") / 1024,
            most: self.kib("VmHWM:") / 1024,
        }
    }

    /// Resident memory now, in KiB.
    pub fn memory_kib(&self) -> u64 {
        self.kib("VmRSS:")
    }

    fn kib(&self, name: &str) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let kib = line.unwrap().trim_matches(|it: char| !it.is_ascii_digit());
        kib.parse().unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An address that nobody has at the moment.
fn free() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap()
}
