use std::sync::Arc;

use super::*;
use crate::model::{Backend, BackendId, HostPattern, Kind, ObjectRef, PathKind, Split, Variant};

/// A Location `host/` with these (Service, weight) Variants.
type Place<'a> = (&'a str, &'a [(&'a str, u32)]);

/// A Snapshot of these Locations, with ids as `translate` gives them: by sorted position.
fn snapshot(places: &[Place<'_>]) -> Snapshot {
    let services = places.iter().flat_map(|(_, variants)| variants.iter());
    let mut names: Vec<&str> = services.map(|(service, _)| *service).collect();
    names.sort_unstable();
    names.dedup();
    let backends = names.iter().map(|name| {
        Arc::new(Backend {
            key: backend_key(name),
            fault: None,
            endpoints: Vec::new(),
        })
    });
    let mut locations: Vec<_> = places.iter().map(|place| location(place, &names)).collect();
    locations.sort_by(|a, b| a.key.cmp(&b.key));
    Snapshot {
        backends: backends.collect(),
        locations: locations.into(),
        ..Snapshot::default()
    }
}

fn backend_key(service: &str) -> BackendKey {
    BackendKey {
        namespace: "default".into(),
        service: service.into(),
        port: "80".into(),
    }
}

fn location((host, variants): &Place<'_>, names: &[&str]) -> Arc<Location> {
    let ingress = ObjectRef::new(Kind::Ingress, "default", host);
    let variants = variants.iter().map(|(service, weight)| Variant {
        name: (*service).into(),
        ingress: ingress.clone(),
        backend: BackendId(names.binary_search(service).unwrap() as u32),
        weight: *weight,
    });
    Arc::new(Location {
        key: LocationKey {
            host: HostPattern::Exact((*host).into()),
            path: "/".into(),
            kind: PathKind::Prefix,
        },
        pattern: None,
        policy: None,
        split: Split {
            variants: variants.collect(),
            rules: Vec::new(),
            policy: None,
        },
        ingress: ingress.clone(),
    })
}

/// The Location of a host in a Snapshot, as its slot.
fn slot(snapshot: &Snapshot, plan: &SlotPlan, host: &str) -> SlotId {
    let is = |l: &Arc<Location>| l.key.host == HostPattern::Exact(host.into());
    plan.slots[snapshot.locations.iter().position(is).unwrap()]
}

const SHOP: Place<'static> = ("shop", &[("main", 80), ("new", 20)]);
const BLOG: Place<'static> = ("blog", &[("main", 95), ("next", 5)]);

#[test]
fn each_split_gets_its_own_slot_and_plain_locations_none() {
    let mut allocator = SlotAllocator::default();
    let snapshot = snapshot(&[SHOP, BLOG, ("plain", &[("main", 1)])]);
    let plan = plan(&snapshot, 1, &mut allocator);
    assert_eq!(plan.contents.len(), 2);
    assert_ne!(
        slot(&snapshot, &plan, "shop"),
        slot(&snapshot, &plan, "blog")
    );
    assert_eq!(slot(&snapshot, &plan, "plain"), NO_SLOT);
    let content = &plan.contents[&slot(&snapshot, &plan, "shop")];
    assert_eq!(content.count(), 2);
    assert_eq!(content.all().map(|v| v.weight)[..3], [80, 20, 0]);
    assert!(plan.problems.is_empty());
}

#[test]
fn slots_and_backend_numbers_outlast_changes_around_them() {
    let mut allocator = SlotAllocator::default();
    let first = snapshot(&[SHOP, BLOG]);
    let before = plan(&first, 1, &mut allocator);
    // New objects that sort before the old ones move every index of the Snapshot.
    let second = snapshot(&[("a", &[("aa", 1), ("ab", 1)]), SHOP, BLOG]);
    let after = plan(&second, 2, &mut allocator);
    for host in ["shop", "blog"] {
        assert_eq!(slot(&first, &before, host), slot(&second, &after, host));
    }
    let new = slot(&second, &after, "a");
    let ops = diff(&before, &after);
    assert_eq!(ops, [SlotOp::Write(new, after.contents[&new])]);
}

#[test]
fn a_location_keeps_its_slot_while_its_canary_comes_and_goes() {
    let mut allocator = SlotAllocator::default();
    let with = snapshot(&[SHOP]);
    let without = snapshot(&[("shop", &[("main", 80)])]);
    let first = plan(&with, 1, &mut allocator);
    let second = plan(&without, 2, &mut allocator);
    let third = plan(&with, 3, &mut allocator);
    let shop = slot(&with, &first, "shop");
    assert_eq!(slot(&without, &second, "shop"), shop);
    assert_eq!(slot(&with, &third, "shop"), shop);
    assert_eq!(second.contents[&shop].count(), 1);
    assert_eq!(diff(&first, &second).len(), 1);
}

#[test]
fn a_freed_slot_rests_while_an_old_state_names_it() {
    let mut allocator = SlotAllocator::default();
    let first = snapshot(&[SHOP]);
    let old = plan(&first, 1, &mut allocator);
    let shop = slot(&first, &old, "shop");
    let second = snapshot(&[BLOG]);
    let plan2 = plan(&second, 2, &mut allocator);
    assert_ne!(slot(&second, &plan2, "blog"), shop);
    // Somebody still holds generation 1: nothing is cleared or reused.
    assert!(allocator.reclaim(1).is_empty());
    assert_eq!(allocator.reclaim(2), [SlotOp::Clear(shop)]);
    let third = snapshot(&[BLOG, ("cart", &[("main", 1), ("new", 1)])]);
    let plan3 = plan(&third, 3, &mut allocator);
    assert_eq!(slot(&third, &plan3, "cart"), shop);
}

#[test]
fn the_location_that_finds_no_slot_is_named_and_the_others_work() {
    let mut allocator = SlotAllocator::with_slots(1);
    let snapshot = snapshot(&[BLOG, SHOP]);
    let plan = plan(&snapshot, 1, &mut allocator);
    assert_eq!(slot(&snapshot, &plan, "blog"), SlotId(0));
    assert_eq!(slot(&snapshot, &plan, "shop"), NO_SLOT);
    let [problem] = &plan.problems[..] else {
        panic!("one problem, not {:?}", plan.problems);
    };
    assert_eq!(problem.code, "too-many-splits");
    assert_eq!(problem.object.name.as_ref(), "shop");
    assert!(problem.message.contains("shop/"), "{}", problem.message);
}

#[test]
fn more_variants_than_places_are_cut() {
    let content = SlotContent::new((0..20).map(|i| (i, i)));
    assert_eq!(content.count(), MAX_VARIANTS as u32);
    assert_eq!(content.all()[7].weight, 7);
}

#[test]
fn applied_plans_are_what_readers_see() {
    use crate::routing::WeightSource as _;
    let table = SlotTable::in_memory().unwrap();
    let mut allocator = SlotAllocator::default();
    let snapshot = snapshot(&[SHOP, BLOG]);
    let plan = plan(&snapshot, 7, &mut allocator);
    apply(&table, &diff(&SlotPlan::default(), &plan), 7).unwrap();
    for (slot, location) in plan.slots.iter().zip(&snapshot.locations) {
        assert_eq!(table.weights(*slot), location.split.weights());
    }
    apply(&table, &[SlotOp::Clear(plan.slots[0])], 8).unwrap();
    assert_eq!(table.weights(plan.slots[0]).total(), 0);
    let error = apply(&table, &[SlotOp::Clear(NO_SLOT)], 8).unwrap_err();
    assert_eq!(error, SlotError::NoSuchSlot(NO_SLOT));
}

/// Services and weights of the Variants of hosts.
type State = Vec<(u8, Vec<(u8, u32)>)>;

/// Some out of few.
fn states() -> impl proptest::strategy::Strategy<Value = Vec<State>> {
    use proptest::collection::vec;
    let variants = vec((0u8..4, 0u32..3), 1..4);
    vec(vec((0u8..5, variants), 0..5), 1..12)
}

proptest::proptest! {
    #[test]
    fn what_follows_on_a_plan_is_what_would_be_planned_from_nothing(states in states()) {
        const HOSTS: [&str; 5] = ["a", "b", "c", "d", "e"];
        const SERVICES: [&str; 4] = ["s", "t", "u", "v"];
        // So few slots that there are not enough now and then.
        let (mut one, mut other) = (SlotAllocator::with_slots(3), SlotAllocator::with_slots(3));
        let (mut before, mut previous) = (Snapshot::default(), SlotPlan::default());
        for (generation, state) in (1..).zip(states) {
            let state: BTreeMap<u8, Vec<(u8, u32)>> = state.into_iter().collect();
            let named = |(service, weight): &(u8, u32)| (SERVICES[usize::from(*service)], *weight);
            let named = state.values().map(|it| it.iter().map(named).collect::<Vec<_>>());
            let named: Vec<_> = named.collect();
            let places = state.keys().map(|host| HOSTS[usize::from(*host)]);
            let places: Vec<Place<'_>> = places.zip(named.iter().map(Vec::as_slice)).collect();
            let mut next = snapshot(&places);
            // What did not change is the same allocation, as `translate` has it.
            for location in next.locations.iter_mut() {
                let same = before.locations.iter().find(|old| *old == location);
                *location = same.map_or_else(|| location.clone(), Arc::clone);
            }
            let whole = plan(&next, generation, &mut one);
            let changes = diff(&previous, &whole);
            let written = replan(&mut previous, &before, &next, generation, &mut other);
            proptest::prop_assert_eq!(&previous, &whole);
            proptest::prop_assert_eq!(written, changes);
            proptest::prop_assert_eq!(one.reclaim(generation), other.reclaim(generation));
            before = next;
        }
    }
}
