//! `connect()` of a process whose cgroup has the hooks, beside one whose has not.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use splitter::dataplane::{
    BalanceOptions, HookMode, Kernel, KernelOptions, SlotContent, SlotOp, connect_plan,
};
use splitter::model::{
    L4, L4Endpoint, L4Key, L4Scope, L4Service, L4SplitBy, L4State, L4Variant, Transport,
};
use splitter::routing::{SlotId, WeightSource as _, l4_live};
use splitter_tests::bpf::{BpfFs, Cgroup, Namespace};

const ROUNDS: usize = 40;
const CONNECTS: u32 = 500;
/// Before those that are measured.
const WARM: u32 = 100;

const OWN: &str = "10.96.0.10:7000";
const ENDPOINTS: [&str; 2] = ["10.244.1.1:7001", "10.244.1.2:7002"];

pub fn run() {
    let (node, cgroup, pins) = (Namespace::new("node"), Cgroup::new(), BpfFs::mount());
    for addr in ["10.244.1.1/32", "10.244.1.2/32"] {
        node.ip(&format!("addr add {addr} dev lo"));
    }
    for addr in ENDPOINTS {
        let listener = node.run(|| TcpListener::bind(addr).unwrap());
        thread::spawn(move || listener.incoming().for_each(drop));
    }
    let options = KernelOptions {
        xdp: None,
        interfaces: vec!["lo".to_owned()],
        pin_dir: pins.path().join("splitter"),
        keep_attached: false,
        beside: None,
        hooks: HookMode::On,
        cgroup: Some(cgroup.path().to_owned()),
        balance: BalanceOptions::default(),
    };
    let mut kernel = node.run(|| Kernel::load(&options)).unwrap();
    let content = SlotContent::new([(50, 0), (50, 1)]);
    let ops = [SlotOp::Write(SlotId(0), content)];
    kernel.splits().apply(&ops, 1).unwrap();
    assert!(kernel.split_connects(&plan()).is_empty());
    kernel.follow_hooks();
    assert_eq!(kernel.hooks().name(), "attached");
    println!(
        "\nns of connect(), best of {ROUNDS} x {CONNECTS}, over loopback; ratio to no hook at all"
    );
    for (name, kind, limit) in [
        ("TCP", Type::STREAM, "   (at most 1.05)"),
        ("UDP, which only looks up a route", Type::DGRAM, ""),
    ] {
        // Where to, and whether with the hooks.
        let ways = [(&ENDPOINTS[..], false), (&ENDPOINTS, true), (&[OWN], true)];
        let mut least = [f64::INFINITY; 3];
        for round in 0..ROUNDS * ways.len() {
            // Each on a thread of its own, in turn, as the first of a round finds caches cold.
            let way = round % ways.len();
            let (to, hooked) = ways[way];
            let measured = node.run(|| {
                if hooked {
                    cgroup.enter();
                }
                measure(kind, to)
            });
            least[way] = least[way].min(measured);
        }
        let [none, miss, hit] = least;
        for (what, took) in [("another address", miss), ("a split Service", hit)] {
            let name = format!("{name}: {what}");
            println!(
                "{name:<46} {none:>7.0} {took:>7.0}   x {:.3}{limit}",
                took / none
            );
        }
    }
    // Each must have been decided, or it measured another way.
    let chosen: u64 = kernel.splits().counted(SlotId(0)).iter().sum();
    assert_eq!(chosen, 2 * ROUNDS as u64 * u64::from(WARM + CONNECTS));
    drop(kernel);
}

/// Nanoseconds of the system call alone.
fn measure(kind: Type, to: &[&str]) -> f64 {
    let to = to.iter().map(|to| to.parse::<SocketAddr>().unwrap().into());
    let mut to = to.collect::<Vec<SockAddr>>().into_iter().cycle();
    let protocol = if kind == Type::STREAM {
        Protocol::TCP
    } else {
        Protocol::UDP
    };
    let mut took = 0;
    for turn in 0..WARM + CONNECTS {
        let socket = Socket::new(Domain::IPV4, kind, Some(protocol)).unwrap();
        if kind == Type::STREAM {
            // Closed by a reset, so that no port stays taken.
            socket.set_linger(Some(std::time::Duration::ZERO)).unwrap();
        }
        // As a split does, one after the other: each has a thread that accepts.
        let to = to.next().unwrap();
        let began = Instant::now();
        socket.connect(&to).unwrap();
        let elapsed = began.elapsed().as_nanos();
        took += if turn < WARM { 0 } else { elapsed };
    }
    took as f64 / f64::from(CONNECTS)
}

/// A TCP and a UDP Service of two Endpoints.
fn plan() -> splitter::dataplane::ConnectPlan {
    let services = [Transport::Tcp, Transport::Udp].map(|transport| {
        let key = L4Key {
            namespace: "shop".into(),
            service: "db".into(),
            port: 7000,
            transport,
        };
        let variants = ENDPOINTS.map(|addr| L4Variant {
            name: addr.into(),
            key: key.clone(),
            weight: 50,
            endpoints: [L4Endpoint {
                addr: addr.parse().unwrap(),
                state: L4State::Ready,
            }]
            .into(),
        });
        Arc::new(L4Service {
            key,
            scope: L4Scope::All,
            split_by: L4SplitBy::Connection,
            cluster_addresses: vec![OWN.parse::<SocketAddr>().unwrap().ip()],
            external_addresses: Vec::new(),
            variants: variants.into(),
        })
    });
    let l4 = L4 {
        services: services.into(),
        listeners: Vec::new(),
    };
    connect_plan(&l4_live(&[], &l4, &[SlotId(0); 2]))
}
