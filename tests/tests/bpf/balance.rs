//! Forwarding by test runs: packets in, packets out, with every checksum worked out anew.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use splitter::dataplane::{Forwarding, Kernel, XdpKind, balance_plan};
use splitter::model::{L4, L4Endpoint, L4SplitBy, L4State, Transport};
use splitter::routing::{SlotId, l4_live};
use splitter_tests::bpf::forwarder::{FRONT, Forwarder, checked, listener, ones, segment, service};
use splitter_tests::bpf::kernel::ranges;
use splitter_tests::bpf::net::let_go;
use splitter_tests::bpf::{BpfFs, Nodes, run};

use crate::load::{code, options};

fn client(port: u16) -> SocketAddr {
    SocketAddr::from(([198, 51, 100, 7], port))
}

#[test]
fn the_kernel_and_user_space_decide_alike_for_every_port_and_exactly() {
    for weights in [[1000, 0], [999, 1], [667, 333], [1, 1], [0, 1]] {
        let bench = Forwarder::of(Transport::Tcp, L4SplitBy::Connection, weights);
        let mut canary = 0;
        for port in 1..=u16::MAX {
            let to = bench.sends(client(port), Transport::Tcp);
            canary += u32::from(to.port() == 6001);
            if port % 16 == 0 {
                assert_eq!(to, bench.user_space(client(port), Transport::Tcp), "{port}");
            }
        }
        let wanted = f64::from(weights[1]) / f64::from(weights[0] + weights[1]);
        let share = f64::from(canary) / 65_535.0;
        assert!((share - wanted).abs() < 0.001, "{weights:?}: {share}");
    }
}

#[test]
fn datagrams_and_clients_by_address_are_decided_alike_too() {
    let bench = Forwarder::of(Transport::Udp, L4SplitBy::Connection, [3, 1]);
    for port in (1..2_000).map(|it| it * 31) {
        let to = bench.sends(client(port), Transport::Udp);
        assert_eq!(to, bench.user_space(client(port), Transport::Udp));
    }
    let bench = Forwarder::of(Transport::Tcp, L4SplitBy::SourceAddress, [1, 1]);
    for host in 0..=255 {
        let from = |port| SocketAddr::from(([198, 51, 100, host], port));
        let variants = [1_000, 2_000, 3_000].map(|port| {
            let to = bench.sends(from(port), Transport::Tcp);
            assert_eq!(to, bench.user_space(from(port), Transport::Tcp));
            to.port()
        });
        assert_eq!(variants, [variants[0]; 3], "{host}");
    }
}

#[test]
fn a_thousand_services_each_have_their_own_endpoint() {
    const SERVICES: u16 = 1_000;
    let services = (0..SERVICES).map(|number| {
        let mut it = (*service(
            &format!("s{number:04}"),
            Transport::Tcp,
            L4SplitBy::Connection,
        ))
        .clone();
        it.variants.truncate(1);
        it.variants[0].endpoints = [L4Endpoint {
            addr: SocketAddr::from(([10, 244, 0, 7], 10_000 + number)),
            state: L4State::Ready,
        }]
        .into();
        Arc::new(it)
    });
    let listeners = (0..SERVICES).map(|it| listener(Transport::Tcp, 20_000 + it, u32::from(it)));
    let bench = Forwarder::new(services.collect(), listeners.collect(), [1, 0]);
    for number in 0..SERVICES {
        let front = SocketAddr::from(([203, 0, 113, 1], 20_000 + number));
        let bytes = segment(client(40_000), front, Transport::Tcp);
        let ran = run::xdp(bench.loaded.program("ingress"), &bytes, 1).unwrap();
        assert_eq!(checked(&ran.packet).1.port(), 10_000 + number);
    }
    assert_eq!(bench.loaded.counts().reason("l4-new"), u64::from(SERVICES));
}

#[test]
fn whatever_comes_is_left_as_it_was_or_forwarded_whole() {
    let bench = Forwarder::of(Transport::Tcp, L4SplitBy::Connection, [1, 1]);
    let good = segment(client(40_000), FRONT.parse().unwrap(), Transport::Tcp);
    let mut state = 1u64;
    let mut dice = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (state >> 33) as usize
    };
    for _ in 0..20_000 {
        let mut bytes = good.clone();
        for _ in 0..1 + dice() % 3 {
            let at = 12 + dice() % (bytes.len() - 12);
            bytes[at] = dice() as u8;
        }
        bytes.truncate(14 + dice() % (bytes.len() - 13));
        let before = bench.loaded.counts();
        let ran = run::xdp(bench.loaded.program("ingress"), &bytes, 1).unwrap();
        let after = bench.loaded.counts();
        let forwarded = |counts: &splitter::dataplane::Counts| {
            counts.reason("l4-new") + counts.reason("l4-known")
        };
        assert_eq!(ran.packet.len(), bytes.len());
        if forwarded(&after) == forwarded(&before) {
            assert_eq!(ran.packet, bytes);
            continue;
        }
        // Sums are as far from right as they were.
        let sum = |bytes: &[u8]| ones(&[&bytes[14..34]]) % 0xffff;
        assert_eq!(sum(&ran.packet), sum(&bytes));
        // All but addresses, ports and both checksums stays.
        let checksum = if bytes[23] == 6 { 50 } else { 40 };
        let rest = |bytes: &[u8]| {
            let kept =
                |at: &usize| !(24..38).contains(at) && !(checksum..checksum + 2).contains(at);
            let kept = (0..bytes.len()).filter(kept);
            kept.map(|at| bytes[at]).collect::<Vec<_>>()
        };
        assert_eq!(rest(&ran.packet), rest(&bytes));
    }
}

#[test]
fn a_kernel_that_takes_no_forwarding_polices_all_the_same() {
    let (nodes, pins) = (Nodes::new(), BpfFs::mount());
    let mut object = splitter::dataplane::object().unwrap().to_vec();
    // What only forwards are functions of their own, in the first section with instructions. The first of
    // them reads from a number now, as if it were an address.
    let at = code(&object)[0].start;
    object[at..at + 8].copy_from_slice(&[0x61, 0x20, 0, 0, 0, 0, 0, 0]);
    let options = options(&pins, Some(XdpKind::Native));
    let loaded = nodes.node.run(|| Kernel::load_object(&object, &options));
    let mut kernel = loaded.unwrap_or_else(|error| panic!("{error}"));
    let programs = kernel.report().programs.iter().map(|it| it.name);
    assert_eq!(programs.collect::<Vec<_>>(), ["steer", "ingress"]);
    let l4 = L4 {
        services: vec![service("db", Transport::Tcp, L4SplitBy::Connection)],
        listeners: vec![listener(Transport::Tcp, 5432, 0)],
    };
    let live = l4_live(&[], &l4, &[SlotId(1)]);
    let plan = balance_plan(&live, &l4, |_, _| true, &ranges());
    let (state, faults) = nodes
        .node
        .run(|| kernel.forward(&plan, Duration::from_secs(30)));
    assert!(faults.is_empty(), "{faults:?}");
    assert!(matches!(state, Forwarding::Unable { .. }), "{state:?}");
    let_go(kernel);
}
