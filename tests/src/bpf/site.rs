//! A whole splitter process on the node of [`Nodes`], in front of two backends.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output};

use serde_json::Value;
use tempfile::TempDir;

use super::net::{output, spawn};
use super::{BpfFs, Namespace, Nodes};
use crate::backend::Backend;
use crate::client::{self, Answer, Client};
use crate::eventually;
use crate::manifests::Manifests;
use crate::prometheus::Page;

/// The host that the manifests know.
pub const HOST: &str = "shop.test";

/// Where every instance answers on its node.
const ADMIN: &str = "127.0.0.1:10254";

/// The node's network, two backends on the node, and a splitter that is started when asked for.
///
/// `shop.test/` goes to Service `web`, and 20 of 100 to its canary `web-next`.
pub struct Site {
    /// Where everything is.
    pub nodes: Nodes,
    /// Where the maps are pinned.
    pub pins: BpfFs,
    dir: TempDir,
    binary: PathBuf,
    backends: Vec<Backend>,
    running: Option<Child>,
}

impl Site {
    /// Makes everything but the splitter, whose program `binary` is.
    ///
    /// # Panics
    /// Without the rights.
    pub fn new(binary: &str) -> Site {
        let nodes = Nodes::new();
        let backends = ["web", "web-next"];
        let backends = nodes.node.run(|| backends.map(Backend::named));
        let site = Site {
            pins: BpfFs::mount(),
            dir: TempDir::new().unwrap(),
            binary: binary.into(),
            backends: backends.into(),
            running: None,
            nodes,
        };
        site.weigh(20);
        site
    }

    /// Writes manifests that give the canary this weight.
    pub fn weigh(&self, weight: u32) {
        let [web, next] = [&self.backends[0], &self.backends[1]].map(Backend::addr);
        let weight = weight.to_string();
        let manifests = Manifests::new()
            .main("shop", HOST, "/", "web")
            .canary("next", HOST, "/", "web-next", &[("canary-weight", &weight)])
            .service("web", &[web])
            .service("web-next", &[next]);
        let objects = self.dir.path().join("objects");
        fs::create_dir_all(&objects).unwrap();
        let next = self.dir.path().join("objects.next");
        fs::write(&next, manifests.yaml()).unwrap();
        fs::rename(next, objects.join("objects.yaml")).unwrap();
    }

    /// The pin directory of an instance that says nothing else.
    pub fn pin_dir(&self) -> PathBuf {
        self.pins.path().join("splitter")
    }

    /// A pinned map's path.
    pub fn map(&self, name: &str) -> String {
        let path = self.pin_dir().join("v1").join(name);
        path.to_string_lossy().into_owned()
    }

    /// The program with these arguments, separated by spaces, on the node, knowing the pin
    /// directory.
    pub fn command(&self, args: &str) -> Command {
        self.command_under(&[], args)
    }

    /// The same started by another program.
    pub fn command_under(&self, outer: &[&str], args: &str) -> Command {
        let words = outer
            .iter()
            .map(OsStr::new)
            .chain([self.binary.as_os_str()]);
        let mut words = words.chain(args.split(' ').map(OsStr::new));
        let mut command = Command::new(words.next().unwrap());
        command.args(words).env("SPLITTER_PIN_DIR", self.pin_dir());
        self.nodes.node.adopt(&mut command);
        command
    }

    /// Runs the program on the node to its end.
    pub fn output(&self, args: &str) -> Output {
        output(&mut self.command(args)).unwrap()
    }

    /// The arguments of an instance with pools of two workers, and more of them.
    pub fn run_args(&self, more: &str) -> String {
        let objects = self.dir.path().join("objects");
        let args = format!(
            "run --manifests {} --admin {ADMIN} --https off --log-format json --workers 2 --interface en0 \
             --pod-cidr 10.244.0.0/24,fd00:244::/64 --cluster-cidr 10.244.0.0/16,fd00:244::/48 \
             --drain-timeout 2s {more}",
            objects.display()
        );
        args.trim_end().to_owned()
    }

    /// Starts it on the node and waits until it is ready.
    pub fn start(&mut self, more: &str) {
        let command = self.command(&self.run_args(more));
        self.start_as(command);
    }

    /// Starts it by a command of the caller's.
    pub fn start_as(&mut self, mut command: Command) {
        let out = File::options()
            .create(true)
            .append(true)
            .open(self.log_file());
        let out = out.unwrap();
        command.stderr(out.try_clone().unwrap()).stdout(out);
        let child = spawn(&mut command).unwrap();
        self.running = Some(child);
        eventually("the splitter is ready", || {
            let ended = self
                .running
                .as_mut()
                .and_then(|child| child.try_wait().unwrap());
            assert!(ended.is_none(), "it ended: {}", self.log());
            self.try_admin("/readyz")
                .is_some_and(|answer| answer.status == 200)
        });
    }

    fn log_file(&self) -> PathBuf {
        self.dir.path().join("log")
    }

    /// Everything that was printed so far: log and access log.
    pub fn log(&self) -> String {
        fs::read_to_string(self.log_file()).unwrap_or_default()
    }

    /// The lines of the access log so far.
    pub fn requests(&self) -> Vec<Value> {
        let log = self.log();
        let lines = log
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        let is_request = |line: &Value| line.get("pool").is_some() && line.get("status").is_some();
        lines.filter(is_request).collect()
    }

    /// The process.
    pub fn pid(&self) -> u32 {
        self.running.as_ref().unwrap().id()
    }

    /// Asks it to stop, and waits for the end.
    pub fn stop(&mut self) -> ExitStatus {
        self.signal(libc::SIGTERM)
    }

    /// Ends it without a word.
    pub fn kill(&mut self) -> ExitStatus {
        self.signal(libc::SIGKILL)
    }

    fn signal(&mut self, signal: i32) -> ExitStatus {
        let mut child = self.running.take().unwrap();
        #[allow(unsafe_code, reason = "kill(2) has no safe form here")]
        // SAFETY: takes no pointers; the child has not been waited for, so the number is its own.
        let sent = unsafe { libc::kill(child.id() as i32, signal) };
        assert_eq!(sent, 0);
        child.wait().unwrap()
    }

    /// A GET for `shop.test/` from a namespace to an address.
    pub fn get(&self, from: &Namespace, to: &str) -> Answer {
        let to: SocketAddr = to.parse().unwrap();
        from.run(|| client::get(to, HOST, "/"))
    }

    fn try_admin(&self, path: &str) -> Option<Answer> {
        let admin: SocketAddr = ADMIN.parse().unwrap();
        self.nodes.node.run(|| {
            // It may not be there yet, or be gone again.
            TcpStream::connect(admin).ok()?;
            let mut client = Client::connect(admin);
            client.send(format!("GET {path} HTTP/1.1\r\nHost: admin\r\n\r\n"));
            client.try_answer("GET")
        })
    }

    /// An admin page.
    pub fn admin(&self, path: &str) -> String {
        self.try_admin(path).unwrap().text()
    }

    /// Its metrics now.
    pub fn metrics(&self) -> Page {
        Page::read(&self.admin("/metrics")).unwrap()
    }

    /// A backend, by its name.
    pub fn backend(&self, name: &str) -> &Backend {
        &self.backends[usize::from(name != "web")]
    }

    /// Where the manifests are.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if let Some(mut child) = self.running.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        if std::thread::panicking() {
            eprintln!("{}", self.log());
        }
        // A backend ends itself by a connection, which only its own network knows.
        let backends = std::mem::take(&mut self.backends);
        self.nodes.node.run(|| drop(backends));
    }
}
