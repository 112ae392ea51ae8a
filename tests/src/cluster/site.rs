//! Who asks a node: a client outside and a pod.

use std::net::{IpAddr, Ipv4Addr};

use crate::bpf::{Namespace, command};

/// The node's address for those outside.
pub const NODE: IpAddr = IpAddr::V4(Ipv4Addr::new(203, 0, 113, 1));
/// The node's address for its pods.
pub const BRIDGE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 244, 1, 1));

/// A network beside this one, which is the node's.
pub struct Site {
    out: Namespace,
}

impl Default for Site {
    fn default() -> Self {
        Self::new()
    }
}

impl Site {
    /// Makes it; gone on drop.
    pub fn new() -> Self {
        let out = Namespace::new("out");
        let ip = |words: &str| command("ip", &words.split(' ').collect::<Vec<_>>());
        ip(&format!(
            "link add en0 type veth peer name wire netns {}",
            out.name()
        ));
        ip(&format!("addr add {NODE}/24 dev en0"));
        ip("link set en0 up");
        out.ip("addr add 203.0.113.2/24 dev wire");
        out.ip("link set wire up");
        // The NIC that traffic of others comes by.
        ip("route add default via 203.0.113.2");
        Site { out }
    }

    /// The network outside.
    pub fn network(&self) -> &Namespace {
        &self.out
    }

    /// Does something outside.
    pub fn outside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.out.run(work)
    }

    /// Does something in the network of a pod.
    pub fn inside<T: Send>(network: &str, work: impl FnOnce() -> T + Send) -> T {
        Namespace::borrowed(network).run(work)
    }
}
