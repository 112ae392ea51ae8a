#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;

use super::*;
use crate::model::EndpointState::{Draining, Ready};
use crate::routing::fixtures::{addr, backend};

const NOW: Tick = Tick(0);

fn picker(seed: u64) -> Picker {
    Picker::new(fastrand::Rng::with_seed(seed))
}

fn app(numbers: &[u8]) -> Arc<Backend> {
    let endpoints: Vec<_> = numbers.iter().map(|number| (*number, Ready)).collect();
    Arc::new(backend("app", &endpoints))
}

fn session(mode: AffinityMode, held: Option<u64>, change_on_failure: bool) -> Session {
    Session {
        mode,
        change_on_failure,
        held,
        issue: None,
    }
}

/// Picks once; gives the Endpoint and the new cookie.
fn pick_once(
    picker: &mut Picker,
    backend: &Arc<Backend>,
    session: Session,
    excluded: &[SocketAddr],
) -> (SocketAddr, Option<u64>) {
    let mut aim = Aim::Session(session);
    let endpoint = picker.aimed(backend, &mut aim, excluded, NOW).unwrap();
    match aim {
        Aim::Session(session) => (endpoint.addr, session.issue),
        other => panic!("the aim became {other:?}"),
    }
}

const MODES: [AffinityMode; 2] = [AffinityMode::Balanced, AffinityMode::Persistent];

#[test]
fn a_new_client_is_given_a_key_that_leads_back_on_every_node() {
    for mode in MODES {
        let backend = app(&[1, 2, 3, 4, 5]);
        let mut first = picker(1);
        let mut met = BTreeSet::new();
        for _ in 0..200 {
            let (endpoint, key) = pick_once(&mut first, &backend, session(mode, None, false), &[]);
            assert!(key.is_some());
            met.insert(endpoint);
            // Another node knows nothing but the cookie.
            let mut other = picker(2);
            let again = pick_once(&mut other, &backend, session(mode, key, false), &[]);
            assert_eq!(again, (endpoint, None), "{mode:?}");
        }
        assert_eq!(met.len(), 5, "{mode:?}");
    }
}

#[test]
fn new_endpoints_take_clients_over_only_when_balanced() {
    for mode in MODES {
        let (two, three) = (app(&[1, 2]), app(&[1, 2, 3]));
        let mut picker = picker(3);
        let mut moved = 0;
        for _ in 0..300 {
            let (before, key) = pick_once(&mut picker, &two, session(mode, None, false), &[]);
            let (after, issue) = pick_once(&mut picker, &three, session(mode, key, false), &[]);
            assert_eq!(issue, None);
            assert!(after == before || after == addr(3));
            moved += usize::from(after != before);
        }
        match mode {
            AffinityMode::Persistent => assert_eq!(moved, 0),
            AffinityMode::Balanced => assert!((50..150).contains(&moved), "{moved}"),
        }
    }
}

#[test]
fn a_client_whose_endpoint_is_gone_gets_another() {
    let (three, two) = (app(&[1, 2, 3]), app(&[1, 2]));
    for mode in MODES {
        let mut picker = picker(4);
        let key = loop {
            let (endpoint, key) = pick_once(&mut picker, &three, session(mode, None, false), &[]);
            if endpoint == addr(3) {
                break key;
            }
        };
        let (endpoint, issue) = pick_once(&mut picker, &two, session(mode, key, false), &[]);
        assert_ne!(endpoint, addr(3));
        // A persistent cookie names an address and is of no use any more; a key goes on.
        assert_eq!(issue.is_some(), mode == AffinityMode::Persistent);
        let issued = issue.or(key);
        let again = pick_once(&mut picker, &two, session(mode, issued, false), &[]);
        assert_eq!(again, (endpoint, None));
    }
}

#[test]
fn failures_change_the_cookie_only_when_told_to() {
    let backend = app(&[1, 2, 3]);
    for mode in MODES {
        for change in [false, true] {
            let mut picker = picker(5);
            let (first, key) = pick_once(&mut picker, &backend, session(mode, None, change), &[]);
            let held = session(mode, key, change);
            let (second, issue) = pick_once(&mut picker, &backend, held, &[first]);
            assert_ne!(second, first);
            assert_eq!(issue.is_some(), change, "{mode:?}");
            if change {
                let next = session(mode, issue, change);
                assert_eq!(pick_once(&mut picker, &backend, next, &[]).0, second);
            }
            picker.health().refused(first, NOW);
            let (third, issue) = pick_once(&mut picker, &backend, held, &[]);
            assert_ne!(third, first);
            assert_eq!(issue.is_some(), change, "{mode:?}");
            picker.health().answered(first);
            assert_eq!(pick_once(&mut picker, &backend, held, &[]), (first, None));
        }
    }
}

#[test]
fn somebody_answers_while_anybody_can() {
    let backend = Arc::new(backend("app", &[(1, Draining), (2, Ready)]));
    for mode in MODES {
        let mut picker = picker(6);
        let (endpoint, key) = pick_once(&mut picker, &backend, session(mode, None, false), &[]);
        assert_eq!(endpoint, addr(2));
        let held = session(mode, key, false);
        assert_eq!(
            pick_once(&mut picker, &backend, held, &[addr(2)]).0,
            addr(1)
        );
        picker.health().refused(addr(2), NOW);
        let (endpoint, _) = pick_once(&mut picker, &backend, held, &[]);
        assert!([addr(1), addr(2)].contains(&endpoint));
        let mut aim = Aim::Session(held);
        let all = [addr(1), addr(2)];
        assert_eq!(picker.aimed(&backend, &mut aim, &all, NOW), None);
    }
}

fn aimed(picker: &mut Picker, backend: &Arc<Backend>, mut aim: Aim) -> SocketAddr {
    picker.aimed(backend, &mut aim, &[], NOW).unwrap().addr
}

#[test]
fn a_key_has_one_endpoint_on_every_node_or_a_few() {
    let backend = app(&[1, 2, 3, 4, 5, 6, 7, 8]);
    let (mut one, mut other) = (picker(1), picker(2));
    let mut met = BTreeSet::new();
    for key in (0..64u64).map(|key| key << 58) {
        let first = aimed(&mut one, &backend, Aim::Key(key, None));
        assert_eq!(aimed(&mut other, &backend, Aim::Key(key, None)), first);
        met.insert(first);
        let few = |picker: &mut Picker| -> BTreeSet<SocketAddr> {
            let aim = Aim::Key(key, NonZeroU16::new(3));
            (0..100).map(|_| aimed(picker, &backend, aim)).collect()
        };
        let sharers = few(&mut one);
        assert_eq!(sharers.len(), 3);
        assert!(sharers.contains(&first));
        assert_eq!(few(&mut other), sharers);
    }
    assert_eq!(met.len(), 8);
    // A subset as large as all of them is all of them.
    let all = Aim::Key(7, NonZeroU16::new(64));
    let met: BTreeSet<_> = (0..300).map(|_| aimed(&mut one, &backend, all)).collect();
    assert_eq!(met.len(), 8);
}

#[test]
fn a_key_goes_on_when_its_endpoint_cannot_be_used() {
    let backend = app(&[1, 2, 3]);
    for subset in [None, NonZeroU16::new(2)] {
        let mut picker = picker(3);
        let aim = Aim::Key(9, subset);
        let first = aimed(&mut picker, &backend, aim);
        picker.health().refused(first, NOW);
        assert_ne!(aimed(&mut picker, &backend, aim), first);
        let second = picker.aimed(&backend, &mut aim.clone(), &[first], NOW);
        assert_ne!(second.unwrap().addr, first);
        let all = [addr(1), addr(2), addr(3)];
        assert_eq!(picker.aimed(&backend, &mut aim.clone(), &all, NOW), None);
    }
}

#[test]
fn the_faster_one_gets_more_and_the_slower_one_something() {
    let backend = app(&[1, 2, 3]);
    let mut picker = picker(4);
    for number in 1..=3 {
        let took = Duration::from_millis(if number == 2 { 5 } else { 50 });
        picker.answered_after(addr(number), took, Duration::ZERO);
    }
    let mut counts = std::collections::BTreeMap::new();
    for _ in 0..3_000 {
        *counts
            .entry(aimed(&mut picker, &backend, Aim::Faster))
            .or_insert(0) += 1;
    }
    // It is one of the two in two of three draws.
    assert!((1_900..2_100).contains(&counts[&addr(2)]), "{counts:?}");
    picker.health().refused(addr(2), NOW);
    for _ in 0..100 {
        assert_ne!(aimed(&mut picker, &backend, Aim::Faster), addr(2));
    }
    let one = app(&[1]);
    assert_eq!(aimed(&mut picker, &one, Aim::Faster), addr(1));
}

#[test]
fn rings_of_backends_that_are_gone_are_dropped() {
    let backend = app(&[1, 2]);
    let mut picker = picker(7);
    pick_once(
        &mut picker,
        &backend,
        session(AffinityMode::Balanced, None, false),
        &[],
    );
    let mut snapshot = Snapshot::default();
    snapshot.backends.push(Arc::clone(&backend));
    picker.keep(&snapshot);
    assert_eq!(picker.rings.0.len(), 1);
    picker.keep(&Snapshot::default());
    assert!(picker.rings.0.is_empty());
}
