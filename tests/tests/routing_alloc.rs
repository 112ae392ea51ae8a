//! Finding, deciding and picking allocate nothing, however many Locations there are.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::net::SocketAddr;

use splitter::model::{Backend, BackendKey, Endpoint, EndpointState};
use splitter::routing::{Picker, Tick};
use splitter_tests::counting::{Counting, allocations};

#[path = "../../splitter-userspace/benches/routing/load.rs"]
mod load;

use load::{Load, Shape};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn the_counter_counts() {
    assert!(allocations(|| drop(std::hint::black_box(vec![1u8]))) > 0);
}

#[test]
fn find_and_decide() {
    for shape in [Shape::ManyHosts, Shape::OneHost] {
        for locations in [10, 1_000, 100_000] {
            let load = Load::new(shape, locations, locations, 2_000);
            let mut blocks = load.blocks();
            let (mut found, mut canaries) = (0, 0);
            let count = allocations(|| {
                for index in 0..load.len() {
                    if let Some((_, decision)) = load.answer(index, &mut blocks) {
                        found += 1;
                        canaries += usize::from(decision.variant > 0);
                    }
                }
            });
            assert_eq!(count, 0, "{shape:?}, {locations} locations");
            assert_eq!(found, load.len());
            assert!(
                (10..200).contains(&canaries),
                "{canaries} canaries of 2,000"
            );
        }
    }
}

#[test]
fn pick() {
    let endpoint = |index: u32| Endpoint {
        addr: SocketAddr::from((std::net::Ipv4Addr::from(index), 80)),
        state: EndpointState::Ready,
    };
    let backend = Backend {
        key: BackendKey {
            namespace: "shop".into(),
            service: "app".into(),
            port: "80".into(),
        },
        fault: None,
        endpoints: (0..1_000).map(endpoint).collect(),
    };
    let mut picker = Picker::new(fastrand::Rng::with_seed(1));
    let first = picker.pick(&backend, &[], Tick(0)).unwrap();
    picker.health().refused(first.addr, Tick(0));
    let mut picked = 0;
    let count = allocations(|| {
        for _ in 0..2_000 {
            let endpoint = picker.pick(&backend, &[first.addr], Tick(0));
            picked += usize::from(endpoint.is_some_and(|endpoint| endpoint.addr != first.addr));
        }
    });
    assert_eq!((count, picked), (0, 2_000));
}
