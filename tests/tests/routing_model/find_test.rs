use std::collections::BTreeSet;
use std::sync::Arc;

use http::{HeaderMap, Method};
use proptest::prelude::*;
use splitter::model::{
    BackendId, Host, HostPattern, Kind, Location, LocationId, LocationKey, ObjectRef, PathKind,
    Snapshot, Split, Variant,
};
use splitter::routing::explain::{Outcome, Query, explain};
use splitter::routing::{Found, Router, canonical, is_plain};

use crate::find_model::{Expected, find, symbols};

/// A Snapshot with a Location for each key.
fn snapshot(keys: &BTreeSet<LocationKey>) -> Snapshot {
    let ingress = ObjectRef::new(Kind::Ingress, "shop", "main");
    let stable = Variant {
        name: "stable".into(),
        ingress: ingress.clone(),
        backend: BackendId(0),
        weight: 1,
    };
    let location = |key: &LocationKey| Location {
        key: key.clone(),
        ingress: ingress.clone(),
        pattern: None,
        policy: None,
        split: Split {
            variants: vec![stable.clone()],
            rules: vec![],
            policy: None,
        },
    };
    let mut hosts: Vec<Host> = Vec::new();
    for (index, key) in keys.iter().enumerate() {
        let id = LocationId(index as u32);
        match hosts.last_mut() {
            Some(host) if host.pattern == key.host => host.locations.push(id),
            _ => hosts.push(Host {
                pattern: key.host.clone(),
                aliases: Vec::new(),
                locations: vec![id],
            }),
        }
    }
    let locations = keys.iter().map(|key| Arc::new(location(key))).collect();
    Snapshot {
        hosts: hosts.into(),
        locations,
        ..Snapshot::default()
    }
}

fn found(snapshot: &Snapshot, router: &Router, host: &str, path: &str) -> Expected {
    match router.find(host, path) {
        Found::Location(id) => Expected::Rule(snapshot.location(id).unwrap().key.clone()),
        Found::NoHost => Expected::NoHost,
        Found::NoPath(host) => Expected::NoPath(snapshot.hosts[host as usize].pattern.clone()),
        Found::Ambiguous => Expected::Refused,
    }
}

fn host() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "a.com",
        "b.a.com",
        "c.b.a.com",
        "com",
        "x.com",
        "",
        "[::1]",
    ])
    .prop_map(str::to_owned)
}

fn host_pattern() -> impl Strategy<Value = HostPattern> {
    let name = prop::sample::select(vec!["a.com", "b.a.com", "com", "x.com"]);
    prop_oneof![
        name.clone()
            .prop_map(|name| HostPattern::Exact(name.into())),
        name.prop_map(|name| HostPattern::Wildcard(name.into())),
        Just(HostPattern::Any),
    ]
}

/// Few elements, so that rules and requests often meet.
fn plain_path() -> impl Strategy<Value = String> {
    let element = prop::sample::select(vec!["a", "b", "aa", "A", "a.b", "@x"]);
    (prop::collection::vec(element, 0..5), any::<bool>()).prop_map(|(elements, slash)| {
        let path = format!("/{}", elements.join("/"));
        if slash && path != "/" {
            path + "/"
        } else {
            path
        }
    })
}

/// Pieces out of which every kind of oddity is put together.
fn odd_path() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "/", "/", "/", "a", "b", "aa", ".", "..", "%2e", "%2F", "%2f", "\\", "%5c", ";", ";x",
        "%3B", "%61", "%41", "ä", "%C3%a4", "%20", " ", "%25", "%2525", "{", "%40", "@", "%00",
        "%", "%z1",
    ]);
    prop::collection::vec(piece, 0..9).prop_map(|pieces| format!("/{}", pieces.concat()))
}

fn rules(path: impl Strategy<Value = String>) -> impl Strategy<Value = BTreeSet<LocationKey>> {
    let kind = prop_oneof![Just(PathKind::Exact), Just(PathKind::Prefix)];
    let key = (host_pattern(), path, kind).prop_map(|(host, path, kind)| LocationKey {
        host,
        path: path.into(),
        kind,
    });
    prop::collection::btree_set(key, 0..24)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn plain_paths_find_what_the_model_finds(
        keys in rules(plain_path()),
        requests in prop::collection::vec((host(), plain_path()), 1..20),
    ) {
        let snapshot = snapshot(&keys);
        let router = Router::build(&snapshot);
        let keys: Vec<_> = keys.into_iter().collect();
        for (host, path) in requests {
            prop_assert!(is_plain(&path));
            let expected = find(&keys, &host, &path);
            prop_assert_ne!(&expected, &Expected::Refused);
            prop_assert_eq!(found(&snapshot, &router, &host, &path), expected, "{} {}", host, path);
        }
    }

    #[test]
    fn odd_paths_find_what_the_model_finds(
        keys in rules(prop_oneof![plain_path(), odd_path()]),
        requests in prop::collection::vec((host(), odd_path()), 1..20),
    ) {
        let snapshot = snapshot(&keys);
        let router = Router::build(&snapshot);
        let keys: Vec<_> = keys.into_iter().collect();
        for (host, path) in requests {
            let expected = find(&keys, &host, &path);
            prop_assert_eq!(found(&snapshot, &router, &host, &path), expected, "{} {}", host, path);
        }
    }

    #[test]
    fn equal_spellings_are_those_with_equal_symbols(one in odd_path(), other in odd_path()) {
        let equal = symbols(&one).0 == symbols(&other).0;
        prop_assert_eq!(canonical(&one) == canonical(&other), equal, "{} {}", one, other);
        prop_assert_eq!(&symbols(&canonical(&one)).0, &symbols(&one).0);
    }

    #[test]
    fn the_explanation_is_what_the_router_does(
        keys in rules(prop_oneof![plain_path(), odd_path()]),
        host in host(),
        path in prop_oneof![plain_path(), odd_path()],
    ) {
        let snapshot = snapshot(&keys);
        let router = Router::build(&snapshot);
        let query = Query {
            method: &Method::GET, host: &host, path: &path, query: None,
            headers: &HeaderMap::new(), client: None,
            class: None,
        };
        let explanation = explain(&snapshot, &router, &query);
        let first = explanation.paths.first().map(|path| path.location.clone());
        let chosen = explanation.host_rule().cloned();
        match found(&snapshot, &router, &host, &path) {
            Expected::Rule(key) => {
                let Outcome::Location(answer) = explanation.outcome else {
                    return Err(TestCaseError::fail("no location"));
                };
                prop_assert_eq!(chosen.as_ref(), Some(&key.host));
                prop_assert_eq!(first.as_ref(), Some(&key));
                prop_assert_eq!(answer.location, key);
            }
            Expected::NoHost => {
                prop_assert_eq!(explanation.outcome, Outcome::NoHost);
                prop_assert_eq!(chosen, None);
            }
            Expected::NoPath(pattern) => {
                prop_assert_eq!(explanation.outcome, Outcome::NoPath);
                prop_assert_eq!((chosen, first), (Some(pattern), None));
            }
            Expected::Refused => match explanation.outcome {
                Outcome::Ambiguous { readings } => prop_assert!(!readings.is_empty()),
                outcome => prop_assert!(false, "{:?}", outcome),
            },
        }
    }
}
