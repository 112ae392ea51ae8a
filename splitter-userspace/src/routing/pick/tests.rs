#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use super::*;
use crate::model::EndpointState::{Draining, Ready};
use crate::routing::FIRST_EJECTION_MS;
use crate::routing::fixtures::{addr, backend, snapshot};

const NOW: Tick = Tick(1_000_000);

fn picker() -> Picker {
    Picker::new(fastrand::Rng::with_seed(1))
}

fn ready(count: u8) -> Backend {
    let endpoints: Vec<_> = (1..=count).map(|last| (last, Ready)).collect();
    backend("app", &endpoints)
}

/// How often each Endpoint was picked, by the last byte of its address.
fn spread(picker: &mut Picker, backend: &Backend, picks: usize) -> BTreeMap<u8, usize> {
    let mut counts = BTreeMap::new();
    for _ in 0..picks {
        let endpoint = picker.pick(backend, &[], NOW).unwrap();
        *counts.entry(last(&endpoint)).or_insert(0) += 1;
    }
    counts
}

fn last(endpoint: &Endpoint) -> u8 {
    (1..=u8::MAX)
        .find(|last| addr(*last) == endpoint.addr)
        .unwrap()
}

#[test]
fn ready_endpoints_share_exactly() {
    for count in 1..=9 {
        let backend = ready(count);
        let mut picker = picker();
        for _ in 0..5 {
            let counts = spread(&mut picker, &backend, usize::from(count));
            assert_eq!(counts.len(), usize::from(count));
        }
    }
}

#[test]
fn ejected_and_draining_ones_leave_the_rest_even() {
    let backend = backend(
        "app",
        &[
            (1, Ready),
            (2, Draining),
            (3, Ready),
            (4, Ready),
            (5, Ready),
        ],
    );
    let mut picker = picker();
    picker.health().refused(addr(4), NOW);
    let counts = spread(&mut picker, &backend, 300);
    assert_eq!(counts, BTreeMap::from([(1, 100), (3, 100), (5, 100)]));
}

#[test]
fn preference() {
    for (endpoints, ejected, expected) in [
        (&[(1, Draining), (2, Ready)][..], &[][..], Some(2)),
        (&[(1, Draining)], &[], Some(1)),
        (&[(1, Draining), (2, Ready)], &[2], Some(1)),
        (&[(1, Draining), (2, Ready)], &[1, 2], Some(2)),
        (&[(1, Draining)], &[1], Some(1)),
        (&[], &[], None),
    ] {
        let backend = backend("app", endpoints);
        let mut picker = picker();
        for last in ejected {
            picker.health().refused(addr(*last), NOW);
        }
        for _ in 0..5 {
            let picked = picker.pick(&backend, &[], NOW).as_ref().map(last);
            assert_eq!(picked, expected, "{endpoints:?} {ejected:?}");
        }
    }
}

#[test]
fn all_ejected_are_used_evenly() {
    let backend = ready(3);
    let mut picker = picker();
    for last in 1..=3 {
        picker.health().refused(addr(last), NOW);
    }
    assert_eq!(
        spread(&mut picker, &backend, 9),
        BTreeMap::from([(1, 3), (2, 3), (3, 3)])
    );
}

#[test]
fn an_endpoint_comes_back_after_its_ejection() {
    let backend = ready(2);
    let mut picker = picker();
    picker.health().refused(addr(1), NOW);
    assert_eq!(spread(&mut picker, &backend, 4), BTreeMap::from([(2, 4)]));
    let later = Tick(NOW.0 + FIRST_EJECTION_MS);
    let picks: Vec<_> = (0..4)
        .map(|_| last(&picker.pick(&backend, &[], later).unwrap()))
        .collect();
    assert_eq!(picks, [1, 2, 1, 2]);
}

#[test]
fn a_retry_goes_elsewhere() {
    let backend = ready(3);
    let mut picker = picker();
    for _ in 0..10 {
        let first = picker.pick(&backend, &[], NOW).unwrap();
        let second = picker.pick(&backend, &[first.addr], NOW).unwrap();
        let third = picker
            .pick(&backend, &[first.addr, second.addr], NOW)
            .unwrap();
        let mut all = [last(&first), last(&second), last(&third)];
        all.sort_unstable();
        assert_eq!(all, [1, 2, 3]);
        let tried = [first.addr, second.addr, third.addr];
        assert_eq!(picker.pick(&backend, &tried, NOW), None);
    }
}

#[test]
fn workers_start_at_different_endpoints() {
    let backend = ready(8);
    let starts: std::collections::BTreeSet<_> = (0..64)
        .map(|seed| {
            let mut picker = Picker::new(fastrand::Rng::with_seed(seed));
            last(&picker.pick(&backend, &[], NOW).unwrap())
        })
        .collect();
    assert!(starts.len() >= 6, "{starts:?}");
}

#[test]
fn the_rotation_goes_on_when_endpoints_change() {
    let mut picker = picker();
    let four = backend("app", &[(1, Ready), (3, Ready), (5, Ready), (7, Ready)]);
    while last(&picker.pick(&four, &[], NOW).unwrap()) != 3 {}
    let changed = backend("app", &[(1, Ready), (2, Ready), (4, Ready), (5, Ready)]);
    assert_eq!(last(&picker.pick(&changed, &[], NOW).unwrap()), 4);
    let shrunk = backend("app", &[(1, Ready), (2, Ready)]);
    assert_eq!(last(&picker.pick(&shrunk, &[], NOW).unwrap()), 1);
}

#[test]
fn backends_rotate_apart_and_are_forgotten() {
    let mut picker = picker();
    let (app, other) = (ready(2), backend("other", &[(1, Ready), (2, Ready)]));
    let gone = backend("gone", &[(1, Ready)]);
    assert!(picker.pick(&gone, &[], NOW).is_some());
    let mut picks = (vec![], vec![]);
    for _ in 0..4 {
        picks.0.push(last(&picker.pick(&app, &[], NOW).unwrap()));
        picks.1.push(last(&picker.pick(&other, &[], NOW).unwrap()));
    }
    assert!(picks.0[0] == picks.0[2] && picks.0[0] != picks.0[1]);
    assert!(picks.1[0] == picks.1[2] && picks.1[0] != picks.1[1]);
    assert_eq!(picker.rotations.len(), 3);
    picker.keep(&snapshot(&[]));
    assert_eq!(picker.rotations.keys().collect::<Vec<_>>(), [&app.key]);
}
