//! What the policies of a Location cost a request beside exchanging it: finding, deciding, a rewrite
//! by a pattern, session affinity, CORS, a rate limit, alone and together. `none` is a Location
//! without any. Time and allocations are printed.

use divan::{AllocProfiler, Bencher, black_box};

#[path = "policies/site.rs"]
mod site;

use site::{AFFINITY, CORS, LIMIT, Notes, REWRITE, Site, response};

#[global_allocator]
static ALLOCATOR: AllocProfiler = AllocProfiler::system();

const CASES: [(&str, &[Notes]); 6] = [
    ("none", &[]),
    ("rewrite", &[REWRITE]),
    ("affinity", &[AFFINITY]),
    ("cors", &[CORS]),
    ("limit", &[LIMIT]),
    ("all", &[REWRITE, AFFINITY, CORS, LIMIT]),
];

fn main() {
    divan::main();
}

#[divan::bench(args = CASES.map(|(name, _)| name))]
fn serve(bencher: Bencher<'_, '_>, case: &str) {
    let notes = CASES.iter().find(|(name, _)| *name == case);
    let mut site = Site::new(notes.map_or(&[][..], |(_, notes)| notes));
    let mut checked = (site.request(), response());
    assert!(
        site.serve(&mut checked.0, &mut checked.1),
        "{case} is not served"
    );
    let request = site.request();
    bencher
        .with_inputs(|| (request.clone(), response()))
        .bench_local_refs(|(request, response)| {
            black_box(site.serve(black_box(request), black_box(response)))
        });
}
