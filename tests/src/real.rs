//! Servers as people run them, from Debian's packages: Redis for TCP, dnsmasq for UDP.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::bpf::net::spawn;
use crate::bpf::{Namespace, net};
use crate::{PATIENCE, eventually};

/// A running server; ends when dropped.
pub struct Server {
    child: Child,
    _dir: TempDir,
}

impl Server {
    /// Redis, empty, at this address of the namespace, or of this one.
    ///
    /// # Panics
    /// When it is not installed: `cargo xtask setup` does that.
    pub fn redis(at: Option<&Namespace>, addr: SocketAddr) -> Server {
        // Debian's redis-server is this program by another name, in a package that also starts it for good.
        let mut command = Command::new("redis-check-rdb");
        command.arg0("redis-server");
        command.args(["--bind", &addr.ip().to_string()]);
        command.args(["--port", &addr.port().to_string()]);
        command.args(["--save", "", "--appendonly", "no"]);
        command.args(["--protected-mode", "no"]);
        let server = Server::start(at, command);
        let is_up = move || TcpStream::connect(addr).is_ok();
        eventually("Redis listens", || within(at, is_up));
        server
    }

    /// dnsmasq at this address, where `who.test` has this address and nothing else has any.
    ///
    /// # Panics
    /// When it is not installed: `cargo xtask setup` does that.
    pub fn dns(at: Option<&Namespace>, addr: SocketAddr, who: [u8; 4]) -> Server {
        let [a, b, c, d] = who;
        let mut command = Command::new("dnsmasq");
        command.args(["--keep-in-foreground", "--no-resolv", "--no-hosts"]);
        command.args(["--conf-file=/dev/null", "--pid-file=", "--user=root"]);
        command.args(["--bind-interfaces", "--log-facility=/dev/null"]);
        command.arg(format!("--listen-address={}", addr.ip()));
        command.arg(format!("--port={}", addr.port()));
        command.arg(format!("--address=/who.test/{a}.{b}.{c}.{d}"));
        let server = Server::start(at, command);
        let is_up = move || matches!(lookup(&socket(addr), addr), Some(found) if found == who);
        eventually("dnsmasq answers", || within(at, is_up));
        server
    }

    fn start(at: Option<&Namespace>, mut command: Command) -> Server {
        let dir = TempDir::new().unwrap();
        command.current_dir(dir.path());
        command.stdin(Stdio::null()).stdout(Stdio::null());
        match at {
            Some(namespace) => namespace.adopt(&mut command),
            None => net::bind_to_thread(&mut command),
        }
        let child = spawn(&mut command);
        let name = command.get_program().display();
        let child = child.unwrap_or_else(|error| panic!("{name}: {error}; cargo xtask setup"));
        Server { child, _dir: dir }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn within<T: Send>(at: Option<&Namespace>, run: impl FnOnce() -> T + Send) -> T {
    match at {
        Some(namespace) => namespace.run(run),
        None => run(),
    }
}

/// A connection to Redis.
pub struct Redis(BufReader<TcpStream>);

impl Redis {
    /// Connects, from the namespace of the calling thread.
    ///
    /// # Panics
    /// When nobody listens.
    pub fn connect(addr: SocketAddr) -> Redis {
        let stream = TcpStream::connect_timeout(&addr, PATIENCE).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Redis(BufReader::new(stream))
    }

    /// Sets a key.
    ///
    /// # Panics
    /// When Redis refuses.
    pub fn set(&mut self, key: &str, value: &[u8]) {
        self.send(&[b"SET", key.as_bytes(), value]);
        assert_eq!(self.line(), "+OK");
    }

    /// What a key has; none when there is no such key.
    ///
    /// # Panics
    /// When the answer is no string.
    pub fn get(&mut self, key: &str) -> Option<Vec<u8>> {
        self.send(&[b"GET", key.as_bytes()]);
        let line = self.line();
        let length = line.strip_prefix('$').expect("a string is answered");
        let length = usize::try_from(length.parse::<i64>().unwrap()).ok()?;
        let mut value = vec![0; length + 2];
        self.0.read_exact(&mut value).unwrap();
        value.truncate(length);
        Some(value)
    }

    fn send(&mut self, words: &[&[u8]]) {
        let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            bytes.extend(format!("${}\r\n", word.len()).bytes());
            bytes.extend(*word);
            bytes.extend(b"\r\n");
        }
        self.0.get_mut().write_all(&bytes).unwrap();
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }
}

/// A socket that can ask there.
///
/// # Panics
/// When there are no ports left.
pub fn socket(addr: SocketAddr) -> UdpSocket {
    let any = if addr.is_ipv4() {
        "0.0.0.0:0"
    } else {
        "[::]:0"
    };
    let socket = UdpSocket::bind(any).unwrap();
    let patience = PATIENCE.min(std::time::Duration::from_secs(2));
    socket.set_read_timeout(Some(patience)).unwrap();
    socket
}

/// The address of `who.test`, asked for by DNS; none when nobody answers, or somebody who was not asked.
pub fn lookup(socket: &UdpSocket, server: SocketAddr) -> Option<[u8; 4]> {
    const QUESTION: &[u8] =
        b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x03who\x04test\x00\x00\x01\x00\x01";
    socket.send_to(QUESTION, server).ok()?;
    let mut answer = [0; 512];
    let (length, from) = socket.recv_from(&mut answer).ok()?;
    let answer = &answer[..length];
    // The identification is ours, it is an answer, and its only record is last.
    let is_ours = answer.get(..2)? == b"\x12\x34" && answer[2] & 0x80 != 0 && from == server;
    is_ours.then(|| answer[length - 4..].try_into().unwrap())
}
