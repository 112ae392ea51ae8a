//! Connections and datagrams of processes in a cgroup to Services' own addresses, by real sockets.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod given;
mod owners;

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::thread;

use splitter::dataplane::{
    BalanceOptions, ConnectPlan, HookMode, HookState, Kernel, KernelOptions, SlotContent, SlotOp,
    connect_plan,
};
use splitter::model::{
    L4, L4Endpoint, L4Key, L4Scope, L4Service, L4SplitBy, L4State, L4Variant, Transport,
};
use splitter::routing::{SlotId, WeightSource as _, l4_live};
use splitter_common::{ConnectDraw, EndpointList, MAX_VARIANTS, ServiceValue};
use splitter_tests::bpf::net::{command, let_go};
use splitter_tests::bpf::{BpfFs, Cgroup, Namespace, figures};
use splitter_tests::{PATIENCE, eventually};

const SLOT: SlotId = SlotId(3);

/// The Service's own address: a listener there stands for the cluster's own answer.
const OWN: [&str; 2] = ["10.96.0.10:7000", "[fd00:96::10]:7000"];
const STABLE: [&str; 2] = ["10.244.1.1:7001", "[fd00:244::1]:7001"];
const CANARY: [&str; 2] = ["10.244.1.2:7002", "[fd00:244::2]:7002"];

/// A node with a Service, whose Endpoints answer with what they are, and a cgroup for clients.
struct Place {
    kernel: Option<Kernel>,
    node: Namespace,
    cgroup: Cgroup,
    pins: BpfFs,
}

fn options(pins: &BpfFs, cgroup: &Cgroup, hooks: HookMode) -> KernelOptions {
    KernelOptions {
        xdp: None,
        interfaces: vec!["lo".to_owned()],
        pin_dir: pins.path().join("splitter"),
        keep_attached: false,
        beside: None,
        hooks,
        cgroup: Some(cgroup.path().to_owned()),
        balance: BalanceOptions::default(),
    }
}

impl Place {
    fn new(hooks: HookMode) -> Place {
        let node = Namespace::new("node");
        for of in [OWN, STABLE, CANARY] {
            for addr in of.map(|it| it.parse::<SocketAddr>().unwrap().ip()) {
                let nodad = if addr.is_ipv6() { " nodad" } else { "" };
                node.ip(&format!("addr add {addr} dev lo{nodad}"));
            }
        }
        let (cgroup, pins) = (Cgroup::new(), BpfFs::mount());
        let options = options(&pins, &cgroup, hooks);
        let kernel = node.run(|| Kernel::load(&options)).unwrap();
        Place {
            kernel: Some(kernel),
            node,
            cgroup,
            pins,
        }
    }

    /// With answers at every address, a split, and the hooks attached.
    fn split(weights: [u32; 2]) -> Place {
        let mut place = Place::new(HookMode::Auto);
        place.answer_all();
        place.weigh(weights);
        place.plan(&service(|_| {}));
        assert_eq!(place.state().name(), "attached", "{}", place.state());
        place
    }

    fn answer_all(&self) {
        for (of, name) in [(OWN, "cluster"), (STABLE, "stable"), (CANARY, "canary")] {
            for addr in of {
                self.answer(addr, name);
            }
        }
    }

    /// Answers at an address for as long as the test runs.
    fn answer(&self, addr: &str, name: &'static str) {
        let (tcp, udp) = self.node.run(|| {
            (
                TcpListener::bind(addr).unwrap(),
                UdpSocket::bind(addr).unwrap(),
            )
        });
        thread::spawn(move || {
            for stream in tcp.incoming().flatten() {
                let _gone = std::io::Write::write_all(&mut &stream, name.as_bytes());
            }
        });
        thread::spawn(move || {
            let mut bytes = [0; 64];
            while let Ok((_, from)) = udp.recv_from(&mut bytes) {
                let _gone = udp.send_to(name.as_bytes(), from);
            }
        });
    }

    fn kernel(&mut self) -> &mut Kernel {
        self.kernel.as_mut().unwrap()
    }

    fn weigh(&mut self, weights: [u32; 2]) {
        let content = SlotContent::new(weights.into_iter().zip(0..));
        let ops = [SlotOp::Write(SLOT, content)];
        self.kernel().splits().apply(&ops, 1).unwrap();
    }

    fn plan(&mut self, services: &[Arc<L4Service>]) {
        let plan = planned(services);
        let faults = self.kernel().split_connects(&plan);
        assert!(faults.is_empty(), "{faults:?}");
        self.kernel().follow_hooks();
    }

    fn state(&mut self) -> HookState {
        self.kernel().hooks().clone()
    }

    /// Runs as a process of the cgroup.
    fn client<T: Send>(&self, run: impl FnOnce() -> T + Send) -> T {
        let cgroup = &self.cgroup;
        self.node.run(|| {
            cgroup.enter();
            run()
        })
    }

    fn chosen(&mut self) -> [u64; 2] {
        let all = self.kernel().splits().counted(SLOT);
        [all[0], all[1]]
    }

    fn counts(&mut self) -> BTreeMap<&'static str, u64> {
        let all = self.kernel().connects.read().unwrap();
        all.into_iter().filter(|(_, count)| *count > 0).collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Before the cgroup and the file system go.
        let_go(self.kernel.take());
    }
}

/// One Service for each protocol, changed as the test says.
fn service(change: impl Fn(&mut L4Service)) -> Vec<Arc<L4Service>> {
    let made = [Transport::Tcp, Transport::Udp].map(|transport| {
        let key = |service: &str| L4Key {
            namespace: "shop".into(),
            service: service.into(),
            port: 7000,
            transport,
        };
        let variant = |name: &str, addrs: [&str; 2]| L4Variant {
            name: name.into(),
            key: key(name),
            weight: 1,
            endpoints: addrs
                .map(|addr| L4Endpoint {
                    addr: addr.parse().unwrap(),
                    state: L4State::Ready,
                })
                .into(),
        };
        let mut service = L4Service {
            key: key("db"),
            scope: L4Scope::All,
            split_by: L4SplitBy::Connection,
            cluster_addresses: OWN
                .map(|addr| addr.parse::<SocketAddr>().unwrap().ip())
                .into(),
            external_addresses: Vec::new(),
            variants: vec![variant("stable", STABLE), variant("canary", CANARY)],
        };
        change(&mut service);
        Arc::new(service)
    });
    made.into()
}

/// Both Services with the weights of one slot.
fn planned(services: &[Arc<L4Service>]) -> ConnectPlan {
    let l4 = L4 {
        services: services.to_vec(),
        listeners: Vec::new(),
    };
    connect_plan(&l4_live(&[], &l4, &vec![SLOT; services.len()]))
}

/// Who answers a TCP connection.
fn ask(addr: &str) -> String {
    let mut stream = TcpStream::connect(addr).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let peer = stream.peer_addr().unwrap();
    assert_eq!(peer, addr.parse().unwrap(), "who was asked");
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

/// A socket for datagrams of the family of an address.
fn datagrams(to: &str) -> UdpSocket {
    let to: SocketAddr = to.parse().unwrap();
    let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// Who answers a datagram of a socket that is not connected. The answer comes from who was asked.
fn ask_from(socket: &UdpSocket, to: &str) -> String {
    let mut bytes = [0; 64];
    socket.send_to(b"?", to).unwrap();
    let (length, from) = socket.recv_from(&mut bytes).unwrap();
    assert_eq!(from, to.parse().unwrap(), "who was asked");
    String::from_utf8_lossy(&bytes[..length]).into_owned()
}

/// The same of a connected one.
fn ask_connected(to: &str) -> String {
    let socket = datagrams(to);
    socket.connect(to).unwrap();
    assert_eq!(socket.peer_addr().unwrap(), to.parse().unwrap());
    socket.send(b"?").unwrap();
    let mut bytes = [0; 64];
    let (length, from) = socket.recv_from(&mut bytes).unwrap();
    assert_eq!(from, to.parse().unwrap(), "who was asked");
    String::from_utf8_lossy(&bytes[..length]).into_owned()
}
