//! Finding, deciding and picking allocate nothing, however many Locations there are.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::net::SocketAddr;

use splitter::model::{Backend, BackendKey, Endpoint, EndpointState};
use splitter::routing::{Picker, Tick};

#[path = "../../splitter-userspace/benches/routing/load.rs"]
mod load;

use load::{Load, Shape};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is passed on to the system's allocator as it came; the counter is a plain
// thread-local that needs no memory of its own.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps alloc's contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps dealloc's contract, and all memory is the system's.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps realloc's contract, and all memory is the system's.
        unsafe { System.realloc(ptr, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations of this thread while `work` runs.
fn allocations(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}

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
