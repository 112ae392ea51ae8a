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
    /// Where the running one leaves its log and answers probes.
    at: PathBuf,
    /// Instances that were started beside the running one, so far.
    beside: u32,
}

/// An instance that was started beside another one.
pub struct Beside {
    /// None when it has become the running one.
    child: Option<Child>,
    dir: PathBuf,
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
        let dir = TempDir::new().unwrap();
        let site = Site {
            pins: BpfFs::mount(),
            at: dir.path().to_owned(),
            dir,
            binary: binary.into(),
            backends: backends.into(),
            running: None,
            beside: 0,
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

    /// Has the program be started from a copy that everybody may read, as everything else of it.
    pub fn share(&mut self) {
        let copy = self.dir.path().join("splitter");
        fs::copy(&self.binary, &copy).unwrap();
        self.binary = copy;
        let mut chmod = Command::new("chmod");
        let chmod = chmod.args(["-R", "a+rX"]).arg(self.dir.path());
        assert!(chmod.status().unwrap().success());
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

    /// The arguments by which instances follow one another.
    pub fn hand_over_args(&self) -> String {
        format!("--take-over {}", self.dir.path().join("next").display())
    }

    /// Starts one more instance, which takes over from the running one, without waiting for
    /// anything.
    pub fn start_beside(&mut self, args: &str) -> Beside {
        self.beside += 1;
        let dir = self.dir.path().join(format!("beside-{}", self.beside));
        fs::create_dir(&dir).unwrap();
        let out = File::create(dir.join("log")).unwrap();
        let mut command = self.command(args);
        command
            .env("SPLITTER_PROBE_SOCKET", dir.join("probe"))
            .stderr(out.try_clone().unwrap())
            .stdout(out);
        let child = Some(spawn(&mut command).unwrap());
        Beside { child, dir }
    }

    /// What an instance says of its readiness, whoever has the admin address; none when it does
    /// not answer yet.
    pub fn probe(&self, instance: &Beside) -> Option<(bool, String)> {
        let socket = instance.dir.join("probe");
        let probe = self.output(&format!("probe readyz --probe-socket {}", socket.display()));
        let text = [probe.stdout, probe.stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        (!text.contains("no instance at")).then(|| (probe.status.success(), text))
    }

    /// Waits until it is ready.
    pub fn wait_for(&self, instance: &mut Beside) {
        eventually("the successor is ready", || {
            assert!(!instance.has_ended(), "it ended: {}", instance.log());
            self.probe(instance).is_some_and(|(ready, _)| ready)
        });
    }

    /// Makes it the running one; gives the one that was.
    pub fn promote(&mut self, mut instance: Beside) -> Beside {
        let dir = std::mem::replace(&mut self.at, instance.dir.clone());
        let child = std::mem::replace(&mut self.running, instance.child.take());
        Beside { child, dir }
    }

    /// Takes the running one out.
    pub fn demote(&mut self) -> Beside {
        let dir = self.at.clone();
        let child = self.running.take();
        Beside { child, dir }
    }

    fn log_file(&self) -> PathBuf {
        self.at.join("log")
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

    /// Waits until the series with these labels come to this: what a client has seen may be counted
    /// a moment later.
    ///
    /// # Panics
    /// When they do not within the patience of the tests.
    #[track_caller]
    pub fn expect_sum(&self, name: &str, labels: &[(&str, &str)], expected: f64) {
        crate::prometheus::expect_sum(|| self.metrics(), name, labels, expected);
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

impl Beside {
    fn child(&self) -> &Child {
        self.child.as_ref().unwrap()
    }

    fn child_mut(&mut self) -> &mut Child {
        self.child.as_mut().unwrap()
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child().id()
    }

    /// What it has printed.
    pub fn log(&self) -> String {
        fs::read_to_string(self.dir.join("log")).unwrap_or_default()
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        self.child_mut().try_wait().unwrap().is_some()
    }

    /// Waits for its end.
    pub fn wait(&mut self) -> ExitStatus {
        self.child_mut().wait().unwrap()
    }

    /// Sends a signal.
    pub fn signal(&self, signal: i32) {
        #[allow(unsafe_code, reason = "kill(2) has no safe form here")]
        // SAFETY: takes no pointers; the child has not been waited for, so the number is its own.
        let sent = unsafe { libc::kill(self.child().id() as i32, signal) };
        assert_eq!(sent, 0);
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        let Some(child) = &mut self.child else {
            return;
        };
        let _ = child.kill();
        let _ = child.wait();
        if std::thread::panicking() {
            eprintln!("{}: {}", self.dir.display(), self.log());
        }
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
