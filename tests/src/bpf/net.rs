//! Network namespaces for a test.

#![allow(
    unsafe_code,
    reason = "setns(2) has no safe form; each block says why it is sound"
)]

use std::fs::File;
use std::io;
use std::net::TcpListener;
use std::os::fd::AsRawFd as _;
use std::os::unix::process::CommandExt as _;
use std::process::{self, Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::PATIENCE;

/// Held while a child is made: until it runs its program it has every descriptor of this process,
/// those of tests beside this one among them.
static FORK: Mutex<()> = Mutex::new(());

/// Starts a program; returns when it runs.
///
/// # Errors
/// When it cannot be started.
pub fn spawn(command: &mut Command) -> io::Result<Child> {
    let _fork = FORK.lock().unwrap_or_else(PoisonError::into_inner);
    command.spawn()
}

/// Runs a program to its end.
///
/// # Errors
/// When it cannot be started.
pub fn output(command: &mut Command) -> io::Result<Output> {
    command.stdin(Stdio::null());
    let child = spawn(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    child?.wait_with_output()
}

/// Drops something whose descriptors must be closed for good when this returns.
pub fn let_go<T>(thing: T) {
    closing(|| drop(thing));
}

/// Runs what closes descriptors that must be closed for good when this returns: while it runs, no
/// child comes to be that would hold copies of them.
pub fn closing<T>(run: impl FnOnce() -> T) -> T {
    let _fork = FORK.lock().unwrap_or_else(PoisonError::into_inner);
    run()
}

/// Runs a program that must succeed; gives what it printed.
///
/// # Panics
/// With its output when it does not.
pub fn command(program: &str, args: &[&str]) -> String {
    let mut command = Command::new(program);
    let output = output(command.args(args));
    let output = output.unwrap_or_else(|error| panic!("cannot run {program}: {error}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{program} {}: {}\n{text}{}",
        args.join(" "),
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    text
}

/// Has a command end with the calling thread at the latest.
pub fn bind_to_thread(command: &mut Command) {
    let bind = || {
        // SAFETY: takes no pointers and changes only this process; a plain system call, which may be
        // made between fork and exec.
        match unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: the closure allocates nothing and takes no lock.
    unsafe { command.pre_exec(bind) };
}

/// A network namespace of its own; gone on drop.
pub struct Namespace {
    name: String,
    owned: bool,
}

impl Namespace {
    /// Makes one, with its loopback interface up.
    ///
    /// # Panics
    /// Without the rights.
    pub fn new(role: &str) -> Namespace {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("splitter-{}-{count}-{role}", process::id());
        command("ip", &["netns", "add", &name]);
        let namespace = Namespace { name, owned: true };
        namespace.ip("link set lo up");
        namespace
    }

    /// One that somebody else has made, and ends.
    pub fn borrowed(name: &str) -> Namespace {
        Namespace {
            name: name.to_owned(),
            owned: false,
        }
    }

    /// Its name, as `ip netns` knows it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs `ip` in it; the words are separated by single spaces.
    pub fn ip(&self, args: &str) -> String {
        let mut all = vec!["-n", self.name.as_str()];
        all.extend(args.split(' '));
        command("ip", &all)
    }

    /// Runs a function on a thread that is in the namespace.
    ///
    /// # Panics
    /// When the function does.
    pub fn run<T: Send>(&self, function: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| {
            let inside = scope.spawn(|| {
                self.enter();
                function()
            });
            inside
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// A listener in it whose `accept` gives up after [`PATIENCE`], so that a test fails instead of
    /// waiting for ever.
    pub fn listen(&self, addr: &str) -> TcpListener {
        let listener = self.run(|| TcpListener::bind(addr));
        let listener = listener.unwrap_or_else(|error| panic!("{addr}: {error}"));
        let socket = socket2::SockRef::from(&listener);
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        listener
    }

    /// Has a command run in the namespace, and end with the calling thread at the latest.
    ///
    /// # Panics
    /// When the namespace is gone.
    pub fn adopt(&self, command: &mut Command) {
        let path = format!("/run/netns/{}", self.name);
        let file = File::open(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let enter = move || {
            // SAFETY: both take no pointers, change only this process, and are plain system calls,
            // which may be made between fork and exec.
            let results = unsafe {
                [
                    libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET),
                    libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL),
                ]
            };
            match results {
                [0, 0] => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        };
        // SAFETY: the closure allocates nothing and takes no lock.
        unsafe { command.pre_exec(enter) };
    }

    /// Moves the thread that calls it into the namespace, for good.
    ///
    /// # Panics
    /// When the namespace is gone.
    pub fn entry(&self) -> impl FnOnce() + Send + 'static {
        let path = format!("/run/netns/{}", self.name);
        let file = File::open(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        move || {
            // SAFETY: takes no pointers; changes only which network the calling thread sees.
            let result = unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET) };
            assert_eq!(result, 0, "{path}: {}", std::io::Error::last_os_error());
        }
    }

    fn enter(&self) {
        self.entry()();
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if self.owned {
            command("ip", &["netns", "del", &self.name]);
        }
    }
}

/// A node with a NIC to the outside and a bridge with a pod, in namespaces.
///
/// | where | interface | addresses |
/// |---|---|---|
/// | outside | `wire` | 203.0.113.2, 2001:db8::2 |
/// | node | `en0` | 203.0.113.1, 2001:db8::1 |
/// | node | `cni0` | 10.244.0.1, fd00:244::1 |
/// | pod | `eth0` | 10.244.0.7, fd00:244::7 |
pub struct Nodes {
    /// A client outside.
    pub out: Namespace,
    /// The node.
    pub node: Namespace,
    /// A pod of the node.
    pub pod: Namespace,
}

impl Nodes {
    /// Makes them and waits until each sees the node.
    ///
    /// # Panics
    /// Without the rights.
    pub fn new() -> Nodes {
        let nodes = Nodes {
            out: Namespace::new("out"),
            node: Namespace::new("node"),
            pod: Namespace::new("pod"),
        };
        let Nodes { out, node, pod } = &nodes;
        node.ip(&format!(
            "link add en0 type veth peer name wire netns {}",
            out.name
        ));
        node.ip(&format!(
            "link add cali0 type veth peer name eth0 netns {}",
            pod.name
        ));
        node.ip("link add cni0 type bridge forward_delay 0 mcast_snooping 0");
        node.ip("link set cali0 master cni0");
        address(node, "en0", &["203.0.113.1/24", "2001:db8::1/64"]);
        address(node, "cni0", &["10.244.0.1/24", "fd00:244::1/64"]);
        address(out, "wire", &["203.0.113.2/24", "2001:db8::2/64"]);
        address(pod, "eth0", &["10.244.0.7/24", "fd00:244::7/64"]);
        node.ip("link set cali0 up");
        pod.ip("route add default via 10.244.0.1");
        pod.ip("-6 route add default via fd00:244::1");
        out.ip("route add 10.244.0.0/16 via 203.0.113.1");
        out.ip("-6 route add fd00:244::/48 via 2001:db8::1");
        nodes
    }

    /// A host behind the client outside, which is its router: the way there takes packets of `mtu` bytes,
    /// which the host does not tell.
    ///
    /// # Panics
    /// Without the rights.
    pub fn behind(&self, mtu: u32) -> Namespace {
        let Nodes { out, node, .. } = self;
        let far = Namespace::new("far");
        out.ip(&format!(
            "link add narrow type veth peer name eth0 netns {}",
            far.name
        ));
        address(out, "narrow", &["198.51.100.1/24", "2001:db8:9::1/64"]);
        address(&far, "eth0", &["198.51.100.7/24", "2001:db8:9::7/64"]);
        // Of the route, as a veth would drop what is longer than its own in either direction.
        out.ip(&format!(
            "route add 198.51.100.7/32 dev narrow mtu lock {mtu}"
        ));
        out.ip(&format!(
            "-6 route add 2001:db8:9::7/128 dev narrow mtu {mtu}"
        ));
        far.ip("route add default via 198.51.100.1");
        far.ip("-6 route add default via 2001:db8:9::1");
        node.ip("route add 198.51.100.0/24 via 203.0.113.2");
        node.ip("-6 route add 2001:db8:9::/64 via 2001:db8::2");
        out.run(|| {
            for family in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
                let path = format!("/proc/sys/net/{family}");
                std::fs::write(path, "1").unwrap_or_else(|error| panic!("{family}: {error}"));
            }
        });
        far
    }

    /// Has the client outside send whole checksums: a veth leaves them to a NIC that is not there,
    /// and a packet that XDP moves to another CPU needs its own.
    ///
    /// # Panics
    /// Without `ethtool`.
    pub fn whole_checksums(&self) {
        let words = ["netns", "exec", self.out.name(), "ethtool", "-K", "wire"];
        command("ip", &[&words[..], &["tx", "off"]].concat());
    }
}

impl Default for Nodes {
    fn default() -> Self {
        Self::new()
    }
}

/// Gives an interface addresses that are usable at once, and takes it up.
fn address(namespace: &Namespace, interface: &str, addresses: &[&str]) {
    namespace.ip(&format!("link set {interface} up"));
    for address in addresses {
        let no_detection = if address.contains(':') { " nodad" } else { "" };
        namespace.ip(&format!("addr add {address} dev {interface}{no_detection}"));
    }
}
