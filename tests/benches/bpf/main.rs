//! Nanoseconds of the kernel programs by `BPF_PROG_TEST_RUN`, as ratios to a program that only
//! passes; and of `connect()` with the programs on its hooks. Needs root. Each figure is the best of several rounds, all taken in turn, so that a
//! busy machine disturbs all alike.

#![allow(clippy::unwrap_used, reason = "a bench fails by panicking")]
#![allow(clippy::print_stdout, reason = "the figures are what it is for")]

mod connect;
mod forward;

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use splitter::dataplane::{Cidr, Policy, Ranges, interfaces};
use splitter_common::{Fallback, Limit, Pool, Spoof, SpoofAction};
use splitter_tests::bpf::Loaded;
use splitter_tests::bpf::kernel::{address, ranges};
use splitter_tests::bpf::packet::syn;
use splitter_tests::bpf::run::{self, XDP_DROP, XDP_PASS};

const ROUNDS: usize = 60;
const REPEAT: u32 = 50_000;

fn main() {
    let pass = run::pass_program().unwrap();
    let mut loaded = Loaded::quiet(&Policy::default());
    let attached = attach(&loaded, pass.as_fd());
    println!("ns a packet, best of {ROUNDS} x {REPEAT}; 64-byte TCP SYN (IPv6: 74)");
    println!("(beside it, in turn with it: an XDP program that only passes)");
    few(&mut loaded, pass.as_fd());
    many(&mut loaded, pass.as_fd());
    limited(&mut loaded, pass.as_fd());
    steer(&mut loaded);
    drop((attached, loaded));
    forward::run(pass.as_fd());
    connect::run();
}

/// Attaches a program to another interface of the node: until it is, each of its runs takes the long way.
fn attach(loaded: &Loaded, program: BorrowedFd<'_>) -> OwnedFd {
    loaded.nodes.node.run(|| {
        let all = interfaces().unwrap();
        let other = all.iter().find(|other| other.name == "cali0").unwrap();
        run::attach_xdp(program, other.index).unwrap()
    })
}

/// 16 prefixes.
fn few(loaded: &mut Loaded, pass: BorrowedFd<'_>) {
    let mut known = ranges();
    known
        .nodes
        .extend((0..6).map(|n| IpAddr::from([192, 0, 2, n])));
    loaded.set(&known, &Policy::default());
    report(
        loaded,
        pass,
        "16 prefixes, from outside",
        "198.51.100.7",
        XDP_PASS,
        Some(2.5),
    );
    report(
        loaded,
        pass,
        "16 prefixes, IPv6, from outside",
        "2a00:9::7",
        XDP_PASS,
        None,
    );
    report(
        loaded,
        pass,
        "16 prefixes, from another node",
        "203.0.113.9",
        XDP_PASS,
        None,
    );
    report(
        loaded,
        pass,
        "16 prefixes, spoofed pod (dropped)",
        "10.244.0.7",
        XDP_DROP,
        None,
    );
}

/// 4,096 pod ranges of other nodes, none next to another, so that nothing can be put together.
fn many(loaded: &mut Loaded, pass: BorrowedFd<'_>) {
    let range = |n: u32| Cidr::cut(Ipv4Addr::from_bits(0x0a80_0000 + (n << 9)).into(), 24);
    let known = Ranges {
        cluster: (0..4096).map(range).collect(),
        ..ranges()
    };
    let policy = Policy {
        native_routing: true,
        ..Policy::default()
    };
    loaded.set(&known, &policy);
    report(
        loaded,
        pass,
        "4,096 pod ranges, from outside",
        "198.51.100.7",
        XDP_PASS,
        Some(4.0),
    );
    report(
        loaded,
        pass,
        "4,096 pod ranges, from a pod",
        "10.143.254.7",
        XDP_PASS,
        Some(4.0),
    );
    report(
        loaded,
        pass,
        "4,096 pod ranges, beside them",
        "10.143.255.7",
        XDP_PASS,
        Some(4.0),
    );
}

/// Token buckets that never run out.
fn limited(loaded: &mut Loaded, pass: BorrowedFd<'_>) {
    let ample = Limit {
        rate: 1_000_000_000,
        burst: 1_000_000_000,
    };
    let mut policy = Policy {
        spoof: [SpoofAction::Drop; Spoof::COUNT],
        class_syn: [ample; 5],
        ..Policy::default()
    };
    loaded.set(&ranges(), &policy);
    report(
        loaded,
        pass,
        "with a SYN limit of the class",
        "198.51.100.7",
        XDP_PASS,
        None,
    );
    policy.source_syn = ample;
    loaded.set(&ranges(), &policy);
    report(
        loaded,
        pass,
        "with SYN limits of class and source",
        "198.51.100.7",
        XDP_PASS,
        None,
    );
}

fn report(
    loaded: &Loaded,
    pass: BorrowedFd<'_>,
    name: &str,
    source: &str,
    action: u32,
    limit: Option<f64>,
) {
    let [floor, took] = best([&mut || packet(pass, "198.51.100.7", XDP_PASS), &mut || {
        packet(loaded.program("ingress"), source, action)
    }]);
    let ratio = took / floor;
    let limit = limit.map_or_else(String::new, |limit| format!("   (at most {limit:.1})"));
    println!("{name:<46} {floor:>6.1} {took:>6.1}   x {ratio:.2}{limit}");
}

/// One measurement: the verdict and the bytes must be right as well.
fn packet(program: BorrowedFd<'_>, source: &str, action: u32) -> f64 {
    let packet = syn(address(source));
    let run = run::xdp(program, &packet, REPEAT).unwrap();
    assert_eq!(
        (run.action, &run.packet),
        (action, &packet),
        "from {source}"
    );
    run.nanoseconds
}

/// The best of many rounds of two measurements, taken in turn.
fn best(mut both: [&mut dyn FnMut() -> f64; 2]) -> [f64; 2] {
    let mut least = [f64::INFINITY; 2];
    for _ in 0..ROUNDS {
        for (least, measure) in least.iter_mut().zip(&mut both) {
            *least = least.min(measure());
        }
    }
    least
}

fn steer(loaded: &mut Loaded) {
    let bind = |ip: &str| TcpListener::bind((address(ip), 0)).unwrap();
    let sockets = [["127.0.0.1"; 2], ["::1"; 2]]
        .map(|pair| pair.map(|ip| loaded.nodes.node.run(|| bind(ip))));
    let Loaded { kernel, nodes, .. } = &mut *loaded;
    for (addr, pair) in ["0.0.0.0:80", "[::]:80"].iter().zip(&sockets) {
        let pools = [
            (Pool::NorthSouth, pair[0].as_fd()),
            (Pool::EastWest, pair[1].as_fd()),
        ];
        let addr = addr.parse().unwrap();
        nodes
            .node
            .run(|| kernel.pools.publish(addr, Fallback::OtherPool, &pools))
            .unwrap();
    }
    loaded.set(&ranges(), &Policy::default());
    loaded.set_external(&[0]);
    let pass = run::pass_lookup().unwrap();
    println!("\nns a look-up (at most 40); beside it one that only passes, and what is above that");
    for (name, peer, local, chosen) in [
        (
            "sk_lookup, from outside",
            "198.51.100.7",
            "203.0.113.1:80",
            true,
        ),
        (
            "sk_lookup, the node itself",
            "203.0.113.1",
            "203.0.113.1:80",
            true,
        ),
        (
            "sk_lookup, IPv6, from outside",
            "2a00:9::7",
            "[2001:db8::1]:80",
            true,
        ),
        (
            "sk_lookup, a port that is not ours",
            "198.51.100.7",
            "203.0.113.1:22",
            false,
        ),
    ] {
        let ask = |program: BorrowedFd<'_>, chosen| {
            let peer = SocketAddr::new(address(peer), 40000);
            let local = local.parse().unwrap();
            let run = run::lookup(program, 6, peer, local, REPEAT).unwrap();
            assert_eq!((run.verdict, run.cookie != 0), (1, chosen), "{name}");
            run.nanoseconds
        };
        let [floor, took] = best([&mut || ask(pass.as_fd(), false), &mut || {
            ask(loaded.program("steer"), chosen)
        }]);
        let above = took - floor;
        println!("{name:<46} {floor:>6.1} {took:>6.1}   + {above:.1}");
    }
    let counts = loaded.counts();
    // Every repeat must have gone the way that was meant, or it measured another one.
    assert_eq!(
        counts.reason("steer-assigned"),
        3 * ROUNDS as u64 * u64::from(REPEAT)
    );
}
