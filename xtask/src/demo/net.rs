use std::fs::File;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::Command;
use std::thread;

use anyhow::{Context as _, Result, bail};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::report::Report;
use crate::process::shown;

/// The node's address on its NIC, where splitter listens.
pub(super) const NODE: &str = "203.0.113.1";
/// A client outside.
pub(super) const OUTSIDE: &str = "203.0.113.2";
/// The node's address on the pods' network.
const GATEWAY: &str = "10.244.0.1";
/// A pod of the node.
pub(super) const POD: &str = "10.244.0.7";
/// The NIC.
pub(super) const NIC: &str = "en0";

/// Makes a place for something that takes kernel programs; none, with a line that says why, where there is
/// none to be had.
pub(super) fn place<T>(report: &mut Report, make: impl FnOnce() -> Result<T>) -> Result<Option<T>> {
    if !rustix::process::geteuid().is_root() {
        report.line("left out: it loads kernel programs, which needs root (sudo)")?;
        return Ok(None);
    }
    match make() {
        Ok(made) => Ok(Some(made)),
        Err(error) => {
            report.line(&format!("left out: no place to show it in: {error:#}"))?;
            Ok(None)
        }
    }
}

/// A node with a wire to the outside and a pod, each a network namespace; gone on drop.
pub(super) struct Network {
    pub(super) out: Namespace,
    pub(super) node: Namespace,
    pub(super) pod: Namespace,
}

impl Network {
    pub(super) fn make() -> Result<Self> {
        let network = Network {
            out: Namespace::make("out")?,
            node: Namespace::make("node")?,
            pod: Namespace::make("pod")?,
        };
        let Network { out, node, pod } = &network;
        node.link(NIC, NODE, out, "wire", OUTSIDE)?;
        node.link("veth0", GATEWAY, pod, "eth0", POD)?;
        pod.ip(&["route", "add", "default", "via", GATEWAY])?;
        Ok(network)
    }
}

/// A network namespace; gone on drop.
pub(super) struct Namespace(String);

impl Namespace {
    fn make(role: &str) -> Result<Self> {
        let name = format!("splitter-demo-{}-{role}", std::process::id());
        command("ip", &["netns", "add", &name])?;
        let namespace = Namespace(name);
        namespace.ip(&["link", "set", "lo", "up"])?;
        Ok(namespace)
    }

    /// A pair of interfaces, one here and one there, both up and with an address.
    fn link(&self, here: &str, addr: &str, other: &Self, there: &str, peer: &str) -> Result<()> {
        let pair = ["link", "add", here, "type", "veth", "peer", "name", there];
        self.ip(&[&pair[..], &["netns", &other.0]].concat())?;
        for (namespace, interface, addr) in [(self, here, addr), (other, there, peer)] {
            let addr = format!("{addr}/24");
            namespace.ip(&["addr", "add", &addr, "dev", interface])?;
            namespace.ip(&["link", "set", interface, "up"])?;
        }
        Ok(())
    }

    fn ip(&self, args: &[&str]) -> Result<()> {
        let args = [&["-n", &self.0], args].concat();
        command("ip", &args).map(|_| ())
    }

    /// Runs a function on a thread in the namespace. What it opens and starts stays there.
    pub(super) fn run<T: Send>(&self, function: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        let path = Path::new("/run/netns").join(&self.0);
        let file = File::open(&path).with_context(|| format!("cannot open {}", path.display()))?;
        let inside = || {
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?;
            function()
        };
        let result = thread::scope(|scope| scope.spawn(inside).join());
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if let Err(error) = command("ip", &["netns", "del", &self.0]) {
            eprintln!("{error:#}");
        }
    }
}

/// A BPF file system in a directory of its own; gone on drop.
pub(super) struct BpfFs(tempfile::TempDir);

impl BpfFs {
    pub(super) fn mount() -> Result<Self> {
        let dir = tempfile::Builder::new().prefix("splitter-demo-").tempdir();
        let dir = dir.context("cannot make a directory")?;
        let path = dir.path().to_string_lossy().into_owned();
        command("mount", &["-t", "bpf", "bpf", &path])?;
        Ok(BpfFs(dir))
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for BpfFs {
    fn drop(&mut self) {
        let path = self.path().to_string_lossy().into_owned();
        if let Err(error) = command("umount", &["-l", &path]) {
            eprintln!("{error:#}");
        }
    }
}

/// Runs a program that must succeed; gives what it printed.
pub(super) fn command(program: &str, args: &[&str]) -> Result<String> {
    let mut command = Command::new(program);
    command.args(args);
    let output = command.output();
    let output = output.with_context(|| format!("cannot run {program}"))?;
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        let text = String::from_utf8_lossy(&output.stdout);
        bail!("{}: {}{}", shown(&command), text.trim(), error.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
