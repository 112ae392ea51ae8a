//! What a request costs before an Endpoint is looked for: normalize its host, find its Location,
//! decide its Variant by header, cookie and an exact weight. The cost must not grow with the number
//! of Locations, and nothing may be allocated.
//!
//! - `hot`: 64 requests for the same ten Locations over and over. The memory touched is the same for
//!   every number of Locations, so what is measured is the work itself: it must be flat.
//! - `random`: 65,536 requests, each for one of all Locations. With many Locations this measures
//!   mostly how far away the memory is.

use divan::{AllocProfiler, Bencher, black_box};
use splitter::routing::{Found, Router, canonical, normalize};

#[path = "routing/load.rs"]
mod load;

use load::{Load, Shape};

#[global_allocator]
static ALLOCATOR: AllocProfiler = AllocProfiler::system();

const LOCATIONS: [usize; 3] = [10, 1_000, 100_000];

/// How many Locations are asked for, at most, and by how many requests.
const HOT: (usize, usize) = (10, 64);
const RANDOM: (usize, usize) = (usize::MAX, 65_536);

fn main() {
    divan::main();
}

fn find_and_decide(bencher: Bencher<'_, '_>, shape: Shape, locations: usize, mix: (usize, usize)) {
    let (asked, requests) = mix;
    let load = Load::new(shape, locations, asked.min(locations), requests);
    let mut blocks = load.blocks();
    let all = (0..load.len()).all(|index| load.answer(index, &mut blocks).is_some());
    assert!(all, "a request found no Location");
    let mut next = 0;
    bencher.bench_local(move || {
        next = (next + 1) % requests;
        black_box(load.answer(black_box(next), &mut blocks))
    });
}

#[divan::bench(args = LOCATIONS)]
fn hot_many_hosts(bencher: Bencher<'_, '_>, locations: usize) {
    find_and_decide(bencher, Shape::ManyHosts, locations, HOT);
}

#[divan::bench(args = LOCATIONS)]
fn hot_one_host(bencher: Bencher<'_, '_>, locations: usize) {
    find_and_decide(bencher, Shape::OneHost, locations, HOT);
}

#[divan::bench(args = LOCATIONS)]
fn random_many_hosts(bencher: Bencher<'_, '_>, locations: usize) {
    find_and_decide(bencher, Shape::ManyHosts, locations, RANDOM);
}

#[divan::bench(args = LOCATIONS)]
fn random_one_host(bencher: Bencher<'_, '_>, locations: usize) {
    find_and_decide(bencher, Shape::OneHost, locations, RANDOM);
}

/// The parts, and the slow way of a path that can be read in several ways.
#[divan::bench(args = ["/api/v1/orders/4711/items.json", "/api/a%2Fb/c", "/%61pi/x", "//api/./a%2Fb;c"])]
fn paths(bencher: Bencher<'_, '_>, path: &str) {
    let load = Load::new(Shape::ManyHosts, 1_000, 5, 1);
    let router = &load.live.router;
    bencher.bench_local(move || {
        let found = router.find("shop-00001.apps.example.com", black_box(path));
        assert!(!matches!(found, Found::NoHost));
        black_box(found)
    });
}

#[divan::bench(args = ["shop-00001.apps.example.com", "shop-00001.apps.example.com:8080", "Shop.Example"])]
fn hosts(bencher: Bencher<'_, '_>, host: &str) {
    bencher.bench_local(|| black_box(normalize(black_box(host))));
}

#[divan::bench(args = ["/api/v1/orders/4711/items.json", "/a%2fb/%61"])]
fn spelling(bencher: Bencher<'_, '_>, path: &str) {
    bencher.bench_local(|| black_box(canonical(black_box(path))));
}

#[divan::bench(args = LOCATIONS, sample_count = 10)]
fn build(bencher: Bencher<'_, '_>, locations: usize) {
    let load = Load::new(Shape::ManyHosts, locations, 5, 1);
    bencher.bench_local(|| black_box(Router::build(&load.live.snapshot)));
}
