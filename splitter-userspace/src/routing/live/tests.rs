use super::*;
use crate::model::PathKind::{Exact, Prefix};
use crate::model::Rows;
use crate::routing::Found;
use crate::routing::fixtures::{ingress, snapshot, split};

fn live(snapshot: Snapshot) -> Live {
    let router = Arc::new(Router::build(&snapshot));
    let slots = (0..snapshot.locations.len() as u32).map(SlotId).collect();
    Live::new(1, Arc::new(snapshot), router, slots)
}

#[test]
fn the_start_is_empty() {
    let live = Live::empty();
    assert_eq!((live.generation, live.slots.len()), (0, 0));
    assert_eq!(live.router.find("a.com", "/"), Found::NoHost);
    assert_eq!(live.slot(LocationId(0)), None);
}

#[test]
fn weights_owners_and_endpoints_are_not_structure() {
    let first = snapshot(&[("a.com", "/", Prefix), ("b.com", "/", Exact)]);
    let mut second = first.clone();
    let mut location = second.locations[1].as_ref().clone();
    location.split = split(&[1, 9], vec![]);
    location.ingress = ingress("other");
    second.locations[1] = Arc::new(location);
    second.backends = Rows::new();
    assert_ne!(first, second);
    assert!(same_structure(&first, &second));
    let live = live(first);
    assert!(Arc::ptr_eq(&live.router_for(&second), &live.router));
}

#[test]
fn hosts_and_keys_are_structure() {
    let first = snapshot(&[("a.com", "/", Prefix), ("a.com", "/x", Prefix)]);
    for second in [
        snapshot(&[("a.com", "/", Prefix)]),
        snapshot(&[("a.com", "/", Prefix), ("a.com", "/y", Prefix)]),
        snapshot(&[("a.com", "/", Prefix), ("a.com", "/x", Exact)]),
        snapshot(&[("b.com", "/", Prefix), ("b.com", "/x", Prefix)]),
        snapshot(&[("a.com", "/", Prefix), ("b.com", "/x", Prefix)]),
        Snapshot::default(),
    ] {
        assert!(!same_structure(&first, &second));
        let old = live(first.clone());
        let router = old.router_for(&second);
        assert!(!Arc::ptr_eq(&router, &old.router));
    }
}
