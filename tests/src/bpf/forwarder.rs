//! The XDP program with TCP and UDP services to forward, and packets for it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use splitter::dataplane::{BalancePlan, Forwarding, Policy, SlotContent, SlotOp, balance_plan};
use splitter::model::{
    Kind, L4, L4Endpoint, L4Id, L4Key, L4Listener, L4Scope, L4Service, L4SplitBy, L4State,
    L4Variant, ObjectRef, Transport,
};
use splitter::routing::{L4Live, L4Taken, SlotId, WeightSource as _, l4_flow, l4_live};

use super::kernel::ranges;
use super::run::{self, XDP_PASS};
use super::{Loaded, packet};

/// The slot of all of them.
pub const SLOT: SlotId = SlotId(9);
/// Where [`service`] is asked for.
pub const FRONT: &str = "203.0.113.1:5432";
/// Endpoints of it, on the pod's node.
pub const STABLE: [&str; 3] = ["10.244.0.7:5001", "10.244.0.8:5001", "10.244.0.9:5001"];
/// Endpoints of its canary.
pub const CANARY: [&str; 2] = ["10.244.0.17:6001", "10.244.0.18:6001"];

fn key(service: &str, transport: Transport) -> L4Key {
    L4Key {
        namespace: "shop".into(),
        service: service.into(),
        port: 5432,
        transport,
    }
}

/// A Service port with a canary.
///
/// # Panics
/// Never: the texts are right.
pub fn service(name: &str, transport: Transport, by: L4SplitBy) -> Arc<L4Service> {
    let variant = |name: &str, addrs: &[&str]| L4Variant {
        name: name.into(),
        key: key(name, transport),
        weight: 1,
        endpoints: addrs
            .iter()
            .map(|addr| L4Endpoint {
                addr: addr.parse().unwrap(),
                state: L4State::Ready,
            })
            .collect(),
    };
    Arc::new(L4Service {
        key: key(name, transport),
        scope: L4Scope::All,
        split_by: by,
        cluster_addresses: Vec::new(),
        external_addresses: Vec::new(),
        variants: vec![variant("stable", &STABLE), variant("canary", &CANARY)],
    })
}

/// A port of the node that leads to the nth Service port.
pub fn listener(transport: Transport, port: u16, service: u32) -> L4Listener {
    L4Listener {
        transport,
        port,
        service: L4Id(service),
        accept_proxy: false,
        send_proxy: false,
        object: ObjectRef::new(Kind::ConfigMap, "shop", "tcp"),
        source: "".into(),
    }
}

/// The loaded programs with a plan in force.
pub struct Forwarder {
    /// The programs.
    pub loaded: Loaded,
    /// What user space goes by.
    pub live: Vec<Arc<L4Live>>,
}

impl Forwarder {
    /// Of these, with weights for all.
    ///
    /// # Panics
    /// Without the rights.
    pub fn new(
        services: Vec<Arc<L4Service>>,
        listeners: Vec<L4Listener>,
        weights: [u32; 2],
    ) -> Forwarder {
        let l4 = L4 {
            services,
            listeners,
        };
        let slots = vec![SLOT; l4.services.len()];
        let live = l4_live(&[], &l4, &slots);
        let mut it = Forwarder {
            loaded: Loaded::quiet(&Policy::default()),
            live,
        };
        let plan = balance_plan(&it.live, &l4, |_, _| true, &ranges());
        it.weigh(weights);
        it.put(&plan);
        it
    }

    /// One Service port of three Endpoints, and of two of its canary.
    ///
    /// # Panics
    /// Without the rights.
    pub fn of(transport: Transport, by: L4SplitBy, weights: [u32; 2]) -> Forwarder {
        let listeners = vec![listener(transport, 5432, 0)];
        Forwarder::new(vec![service("db", transport, by)], listeners, weights)
    }

    /// Puts another plan in force.
    ///
    /// # Panics
    /// When that fails.
    pub fn put(&mut self, plan: &BalancePlan) {
        let Loaded { kernel, nodes, .. } = &mut self.loaded;
        let (state, faults) = nodes
            .node
            .run(|| kernel.forward(plan, Duration::from_secs(30)));
        assert!(faults.is_empty(), "{faults:?}");
        assert!(
            matches!(state, Forwarding::On { no_local: None, .. }),
            "{state:?}"
        );
    }

    /// Puts other weights in force.
    ///
    /// # Panics
    /// Never: the slot is one.
    pub fn weigh(&self, weights: [u32; 2]) {
        let content = SlotContent::new(weights.into_iter().zip(0..));
        let ops = [SlotOp::Write(SLOT, content)];
        self.loaded.kernel.splits().apply(&ops, 1).unwrap();
    }

    /// Where a packet goes that is forwarded to a pod of the node.
    ///
    /// # Panics
    /// When it is not.
    #[track_caller]
    pub fn sends(&self, from: SocketAddr, transport: Transport) -> SocketAddr {
        let bytes = segment(from, FRONT.parse().unwrap(), transport);
        let ran = run::xdp(self.loaded.program("ingress"), &bytes, 1).unwrap();
        assert_eq!(ran.action, XDP_PASS);
        let (source, destination) = checked(&ran.packet);
        assert_eq!(source, from);
        destination
    }

    /// Where user space would lead it.
    ///
    /// # Panics
    /// When nowhere.
    pub fn user_space(&self, from: SocketAddr, transport: Transport) -> SocketAddr {
        let live = &self.live[0];
        let flow = l4_flow(transport, from, FRONT.parse().unwrap());
        let weights = self.loaded.kernel.splits().table.weights(SLOT);
        let choice = live.choose(&flow, &weights, L4Taken::NorthSouth).unwrap();
        live.endpoints(choice.variant, &flow)[0]
    }
}

/// A SYN, or a datagram, of IPv4 with right checksums.
///
/// # Panics
/// With other addresses.
pub fn segment(from: SocketAddr, to: SocketAddr, transport: Transport) -> Vec<u8> {
    let (IpAddr::V4(source), IpAddr::V4(destination)) = (from.ip(), to.ip()) else {
        panic!("IPv4 only");
    };
    let ports = [from.port().to_be_bytes(), to.port().to_be_bytes()].concat();
    let (protocol, at, mut payload) = match transport {
        Transport::Tcp => {
            let rest = [
                0,
                0,
                0,
                1,
                0,
                0,
                0,
                0,
                0x50,
                packet::SYN,
                0xff,
                0xff,
                0,
                0,
                0,
                0,
            ];
            (6u8, 16, [&ports[..], &rest].concat())
        }
        Transport::Udp => (17, 6, [&ports[..], &[0, 12, 0, 0], b"data"].concat()),
    };
    let pseudo = [&source.octets()[..], &destination.octets(), &[0, protocol]].concat();
    let length = (payload.len() as u16).to_be_bytes();
    let sum = !ones(&[&pseudo, &length, &payload]);
    payload[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    let mut header = vec![
        0x45,
        0,
        0,
        20 + payload.len() as u8,
        0,
        1,
        0x40,
        0,
        64,
        protocol,
        0,
        0,
    ];
    header.extend(source.octets());
    header.extend(destination.octets());
    let sum = !ones(&[&header]);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    let mut bytes = [packet::ethernet(&[], packet::IPV4), header, payload].concat();
    bytes.resize(bytes.len().max(60), 0);
    bytes
}

/// A sum in one's complement.
pub fn ones(parts: &[&[u8]]) -> u16 {
    let bytes = parts.concat();
    let pairs = bytes.chunks(2);
    let words = pairs.map(|it| u32::from(it[0]) << 8 | u32::from(*it.get(1).unwrap_or(&0)));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Both ends of a packet whose checksums are right.
///
/// # Panics
/// When they are not.
#[track_caller]
pub fn checked(bytes: &[u8]) -> (SocketAddr, SocketAddr) {
    let ip = &bytes[14..];
    let length = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
    let (header, payload) = ip[..length].split_at(20);
    assert_eq!(ones(&[header]), 0xffff, "IPv4's checksum");
    let size = (payload.len() as u16).to_be_bytes();
    let all = ones(&[&header[12..20], &[0, header[9]], &size, payload]);
    assert_eq!(all, 0xffff, "the transport's checksum");
    let end = |addr: usize, port: usize| {
        let octets: [u8; 4] = header[addr..addr + 4].try_into().unwrap();
        let port = u16::from_be_bytes([payload[port], payload[port + 1]]);
        SocketAddr::from((Ipv4Addr::from(octets), port))
    };
    (end(12, 0), end(16, 2))
}
