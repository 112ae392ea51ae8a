//! What it costs to forward a packet, above a program that only passes.

use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Instant;

use splitter::dataplane::{BalancePlan, balance_plan};
use splitter::model::{L4, L4Endpoint, L4SplitBy, L4State, Transport};
use splitter_common::Target;
use splitter_tests::bpf::forwarder::{FRONT, Forwarder, listener, segment, service};
use splitter_tests::bpf::kernel::ranges;
use splitter_tests::bpf::run::{self, XDP_PASS};

use super::{REPEAT, best};

/// Flows that are asked one after the other.
const FLOWS: u32 = 50_000;

/// Prints a line for each case.
pub fn run(pass: BorrowedFd<'_>) {
    println!("\nns a packet of TCP over IPv4 above one that only passes; forwarded by XDP");
    for services in [1, 10_000] {
        let forwarder = place(services);
        let _attached = super::attach(&forwarder.loaded, pass);
        let known = packet(40_000, 0x10);
        // The flow has to be there.
        let _first = once(&forwarder, &packet(40_000, 2));
        show(
            &forwarder,
            pass,
            &format!("known flow, {services} services"),
            &known,
            80.0,
        );
        let mut plan = plan(&forwarder, services);
        // One that takes nothing new is not believed: each SYN is decided anew.
        plan.targets
            .values_mut()
            .for_each(|it| *it &= !Target::TAKES);
        let mut forwarder = forwarder;
        forwarder.put(&plan);
        let new = packet(40_001, 2);
        show(
            &forwarder,
            pass,
            &format!("new flow, {services} services"),
            &new,
            60.0,
        );
    }
    let forwarder = place(1);
    let _attached = super::attach(&forwarder.loaded, pass);
    let packets: Vec<_> = (1..=FLOWS as u16)
        .map(|port| [packet(port, 2), packet(port, 0x10)])
        .collect();
    let ingress = || forwarder.loaded.program("ingress");
    let floor = each(pass, packets.iter().map(|it| &it[1]));
    let new = each(ingress(), packets.iter().map(|it| &it[0]));
    let known = each(ingress(), packets.iter().map(|it| &it[1]));
    println!(
        "{FLOWS} flows, one packet each: {:.0} for the first of each, {:.0} for the next",
        new - floor,
        known - floor
    );
}

/// Nanoseconds of one run for each packet, on average.
fn each<'p>(program: BorrowedFd<'_>, packets: impl ExactSizeIterator<Item = &'p Vec<u8>>) -> f64 {
    let (count, start) = (packets.len() as f64, Instant::now());
    for packet in packets {
        run::xdp(program, packet, 1).unwrap();
    }
    start.elapsed().as_nanos() as f64 / count
}

fn once(forwarder: &Forwarder, packet: &[u8]) -> Vec<u8> {
    let ran = run::xdp(forwarder.loaded.program("ingress"), packet, 1).unwrap();
    assert_eq!(ran.action, XDP_PASS);
    ran.packet
}

fn show(forwarder: &Forwarder, pass: BorrowedFd<'_>, name: &str, packet: &[u8], limit: f64) {
    // The Endpoint is what was asked: a packet that comes out is the one that went in, and can go in again.
    assert_eq!(once(forwarder, packet), packet);
    let program = forwarder.loaded.program("ingress");
    let measure = |program| run::xdp(program, packet, REPEAT).unwrap().nanoseconds;
    let before = forwarder.loaded.counts();
    let [floor, took] = best([&mut || measure(pass), &mut || measure(program)]);
    let after = forwarder.loaded.counts();
    let forwarded = ["l4-new", "l4-known"].map(|it| after.reason(it) - before.reason(it));
    assert!(forwarded.iter().sum::<u64>() > u64::from(REPEAT));
    println!(
        "{name:<46} {floor:>6.1} {took:>6.1}   + {:.0}   (at most {limit:.0})",
        took - floor
    );
}

fn packet(port: u16, flags: u8) -> Vec<u8> {
    let from = SocketAddr::from(([198, 51, 100, 7], port));
    let mut bytes = segment(from, FRONT.parse().unwrap(), Transport::Tcp);
    bytes[14 + 20 + 13] = flags;
    bytes
}

/// Service ports whose Endpoint is the address that is asked.
fn place(services: u16) -> Forwarder {
    let L4 {
        services,
        listeners,
    } = objects(services);
    Forwarder::new(services, listeners, [1, 0])
}

fn objects(services: u16) -> L4 {
    let all = 0..services;
    let port = |number: u16| 5432 + number;
    let made = all.clone().map(|number| {
        let name = format!("s{number:05}");
        let mut it = (*service(&name, Transport::Tcp, L4SplitBy::Connection)).clone();
        it.variants.truncate(1);
        it.variants[0].endpoints = [L4Endpoint {
            addr: SocketAddr::from(([203, 0, 113, 1], port(number))),
            state: L4State::Ready,
        }]
        .into();
        Arc::new(it)
    });
    L4 {
        services: made.collect(),
        listeners: all
            .map(|it| listener(Transport::Tcp, port(it), u32::from(it)))
            .collect(),
    }
}

fn plan(forwarder: &Forwarder, services: u16) -> BalancePlan {
    balance_plan(&forwarder.live, &objects(services), |_, _| true, &ranges())
}
