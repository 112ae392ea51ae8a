#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use k8s_openapi::api::networking::v1::Ingress;

use super::*;

/// An Ingress with a class, a status address and a version that changes with every write.
fn ingress(name: &str, class: &str, address: &str, version: u32) -> Ingress {
    serde_json::from_value(serde_json::json!({
        "metadata": {
            "name": name,
            "namespace": "shop",
            "resourceVersion": version.to_string(),
            "managedFields": [{"manager": "m"}],
            "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": version.to_string(),
                "a": "b",
            },
        },
        "spec": {"ingressClassName": class},
        "status": {"loadBalancer": {"ingress": [{"ip": address}]}},
    }))
    .unwrap()
}

fn key(name: &str) -> Key {
    ("shop".into(), name.into())
}

fn list(store: &Store<Ingress>, objects: &[Ingress]) -> Vec<Change> {
    let objects = objects.iter().cloned().map(Event::InitApply);
    let all = std::iter::once(Event::Init)
        .chain(objects)
        .chain([Event::InitDone]);
    all.map(|event| store.apply(event)).collect()
}

#[test]
fn nothing_shows_before_the_first_list_is_whole() {
    let store = Store::default();
    store.apply(Event::Init);
    store.apply(Event::InitApply(ingress("a", "x", "192.0.2.1", 1)));
    assert!(!store.is_filled());
    assert!(store.all().is_empty());
    assert_eq!(store.apply(Event::InitDone), Change::Content);
    assert!(store.is_filled());
    assert_eq!(store.all().len(), 1);
}

#[test]
fn an_empty_list_fills_too() {
    let store = Store::<Ingress>::default();
    assert_eq!(list(&store, &[]).last(), Some(&Change::Content));
    assert!(store.is_filled());
}

#[test]
fn what_changes_without_a_meaning_is_no_change() {
    let store = Store::default();
    list(&store, &[ingress("a", "x", "192.0.2.1", 1)]);
    let before = store.get(&key("a")).unwrap();
    assert!(before.metadata.managed_fields.is_none());
    let change = store.apply(Event::Apply(ingress("a", "x", "192.0.2.1", 2)));
    assert_eq!(change, Change::None);
    assert!(Arc::ptr_eq(&before, &store.get(&key("a")).unwrap()));
}

#[test]
fn a_status_is_not_content() {
    let store = Store::default();
    list(&store, &[ingress("a", "x", "192.0.2.1", 1)]);
    let change = store.apply(Event::Apply(ingress("a", "x", "192.0.2.2", 2)));
    assert_eq!(change, Change::Status);
    let change = store.apply(Event::Apply(ingress("a", "y", "192.0.2.2", 3)));
    assert_eq!(change, Change::Content);
}

#[test]
fn deleting_what_is_not_there_is_no_change() {
    let store = Store::default();
    list(&store, &[ingress("a", "x", "192.0.2.1", 1)]);
    let gone = ingress("b", "x", "192.0.2.1", 1);
    assert_eq!(store.apply(Event::Delete(gone)), Change::None);
    let there = ingress("a", "x", "192.0.2.1", 1);
    assert_eq!(store.apply(Event::Delete(there)), Change::Content);
    assert!(store.all().is_empty());
}

#[test]
fn a_new_list_that_says_nothing_new_changes_nothing() {
    let store = Store::default();
    let objects = ["a", "b"].map(|name| ingress(name, "x", "192.0.2.1", 1));
    list(&store, &objects);
    let before = store.get(&key("a")).unwrap();
    let again = ["b", "a"].map(|name| ingress(name, "x", "192.0.2.1", 7));
    assert!(list(&store, &again).iter().all(|it| *it == Change::None));
    assert!(Arc::ptr_eq(&before, &store.get(&key("a")).unwrap()));
}

#[test]
fn a_new_list_replaces_everything_at_once() {
    let store = Store::default();
    list(
        &store,
        &["a", "b"].map(|name| ingress(name, "x", "192.0.2.1", 1)),
    );
    store.apply(Event::Init);
    store.apply(Event::InitApply(ingress("b", "x", "192.0.2.1", 1)));
    assert_eq!(store.all().len(), 2, "until the list is whole");
    store.apply(Event::InitApply(ingress("c", "x", "192.0.2.1", 2)));
    assert_eq!(store.apply(Event::InitDone), Change::Content);
    assert!(store.get(&key("a")).is_none());
    assert!(store.get(&key("c")).is_some());
}

#[test]
fn a_list_that_breaks_off_changes_nothing() {
    let store = Store::default();
    list(
        &store,
        &["a", "b"].map(|name| ingress(name, "x", "192.0.2.1", 1)),
    );
    store.apply(Event::Init);
    store.apply(Event::InitApply(ingress("c", "x", "192.0.2.1", 2)));
    // The next try begins anew.
    let again = ["a", "b"].map(|name| ingress(name, "x", "192.0.2.1", 1));
    assert_eq!(list(&store, &again).last(), Some(&Change::None));
    assert!(store.get(&key("c")).is_none());
}

#[test]
fn a_change_of_what_nobody_heeds_is_none() {
    let store = Store::default();
    store.heed(HashSet::from([key("a")]));
    let all = [
        ingress("a", "x", "192.0.2.1", 1),
        ingress("b", "x", "192.0.2.1", 1),
    ];
    list(&store, &all);
    let apply = |name| store.apply(Event::Apply(ingress(name, "y", "192.0.2.1", 2)));
    assert_eq!([apply("a"), apply("b")], [Change::Content, Change::None]);
    let gone = |name| store.apply(Event::Delete(ingress(name, "y", "192.0.2.1", 2)));
    assert_eq!([gone("b"), gone("a")], [Change::None, Change::Content]);
    list(&store, &all[..1]);
    assert_eq!(list(&store, &all).last(), Some(&Change::None));
    assert_eq!(list(&store, &all[1..]).last(), Some(&Change::Content));
    assert_eq!(store.all().len(), 1);
}

#[test]
fn what_does_not_change_keeps_its_place() {
    let store = Store::default();
    let all = ["a", "b", "c"].map(|name| ingress(name, "x", "192.0.2.1", 1));
    list(&store, &all);
    let before = store.rows();
    store.apply(Event::Apply(ingress("b", "y", "192.0.2.1", 2)));
    let after = store.rows();
    let pairs = before.iter().zip(&after);
    let kept = pairs.filter(|(old, new)| Arc::ptr_eq(&old.object, &new.object));
    assert_eq!((kept.count(), after.len()), (2, 3));

    store.apply(Event::Delete(ingress("a", "x", "192.0.2.1", 3)));
    let left = store.rows();
    assert_eq!(left.len(), 2);
    for name in ["b", "c"] {
        let object = store.get(&key(name)).unwrap();
        assert_eq!(object.metadata.name.as_deref(), Some(name));
        assert!(left.iter().any(|it| Arc::ptr_eq(&it.object, &object)));
    }
    assert!(store.get(&key("a")).is_none());

    // A new list that says the same, in whatever order.
    let same = [
        ingress("c", "x", "192.0.2.1", 4),
        ingress("b", "y", "192.0.2.1", 4),
    ];
    list(&store, &same);
    assert!(store.rows().is_same(&left));
    list(&store, &same[..1]);
    assert_eq!(store.rows().len(), 1);
    assert!(store.get(&key("c")).is_some());
}
