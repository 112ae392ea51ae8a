//! What policies allocate for a request is a few pieces, the same for the first and the last one.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use splitter_tests::counting::{Counting, allocations};

#[path = "../../splitter-userspace/benches/policies/site.rs"]
mod site;

use site::{AFFINITY, CORS, LIMIT, Notes, REWRITE, Site, response};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations of each of so many requests in a row, after a first one.
fn counts(notes: &[Notes]) -> Vec<u64> {
    let mut site = Site::new(notes);
    let mut pairs: Vec<_> = (0..500).map(|_| (site.request(), response())).collect();
    let mut counts = Vec::with_capacity(pairs.len());
    for (request, response) in &mut pairs {
        let mut passed = false;
        counts.push(allocations(|| passed = site.serve(request, response)));
        assert!(passed);
    }
    counts.remove(0);
    counts
}

#[test]
fn policies_allocate_little_and_never_more() {
    for (notes, most) in [
        (&[][..], 0),
        (&[AFFINITY], 0),
        (&[LIMIT], 0),
        (&[CORS], 2),
        (&[REWRITE], 8),
        (&[REWRITE, AFFINITY, CORS, LIMIT], 10),
    ] {
        let counts = counts(notes);
        let (least, highest) = (counts.iter().min(), counts.iter().max());
        assert_eq!(least, highest, "{notes:?}");
        assert!(
            highest.is_some_and(|it| *it <= most),
            "{notes:?}: {highest:?}"
        );
    }
}
