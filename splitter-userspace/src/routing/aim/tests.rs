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
