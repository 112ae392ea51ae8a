//! What a node has for its pods: a bridge in the namespace of this process, a pair of interfaces for
//! each pod, and room for what they print.

use std::cell::Cell;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use tempfile::TempDir;

use crate::bpf::Namespace;
use crate::bpf::command;

/// The bridge; gone on drop.
pub struct Bridge {
    range: [u8; 3],
    name: String,
    logs: TempDir,
    /// What was given away last. Addresses go round, so that nobody who was late to hear of a pod's
    /// end asks its successor.
    last: Cell<u8>,
}

/// A pod's own network; gone on drop.
pub struct Network {
    /// The node's end of the pair.
    link: String,
    pub namespace: Namespace,
}

impl Drop for Network {
    fn drop(&mut self) {
        // The kernel takes its time with what was in a namespace, and the name is wanted again.
        ip(&format!("link del {}", self.link));
    }
}

/// The last bytes of pods' addresses.
const PODS: std::ops::Range<u8> = 10..250;

impl Bridge {
    pub fn new(range: [u8; 3]) -> Self {
        let bridge = Bridge {
            range,
            name: format!("pods{}", range[2]),
            logs: TempDir::new().expect("a temporary directory"),
            last: Cell::new(PODS.start),
        };
        let name = &bridge.name;
        ip(&format!(
            "link add {name} type bridge forward_delay 0 mcast_snooping 0"
        ));
        ip(&format!("addr add {}/24 dev {name}", bridge.address()));
        ip(&format!("link set {name} up"));
        bridge
    }

    /// The node's own address there.
    pub fn address(&self) -> IpAddr {
        self.ip(1)
    }

    /// The addresses of the node's pods.
    pub fn pod_range(&self) -> String {
        format!("{}/24", self.ip(0))
    }

    /// Where pods print to.
    pub fn logs(&self) -> &Path {
        self.logs.path()
    }

    fn ip(&self, number: u8) -> IpAddr {
        let [a, b, c] = self.range;
        IpAddr::V4(Ipv4Addr::new(a, b, c, number))
    }

    /// A network namespace with an address that is not `used`.
    pub fn connect(&self, used: &[IpAddr]) -> (Network, IpAddr) {
        let after = self.last.get() + 1..PODS.end;
        let mut free = after.chain(PODS).map(|number| (number, self.ip(number)));
        let (number, address) = free
            .find(|(_, ip)| !used.contains(ip))
            .expect("an address is free");
        self.last.set(number);
        let namespace = Namespace::new("pod");
        let (here, inside) = (format!("{}-{number}", self.name), namespace.name());
        ip(&format!(
            "link add {here} type veth peer name eth0 netns {inside}"
        ));
        ip(&format!("link set {here} master {} up", self.name));
        namespace.ip(&format!("addr add {address}/24 dev eth0"));
        namespace.ip("link set eth0 up");
        namespace.ip(&format!("route add default via {}", self.address()));
        let link = here;
        (Network { link, namespace }, address)
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        ip(&format!("link del {}", self.name));
    }
}

/// Runs `ip` with words that are separated by single spaces.
fn ip(words: &str) {
    command("ip", &words.split(' ').collect::<Vec<_>>());
}
