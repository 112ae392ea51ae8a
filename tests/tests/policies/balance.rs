//! Which pod is asked: in turn, by a hash key, or by speed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use splitter_tests::backend::Backend;
use splitter_tests::instance::Splitter;
use splitter_tests::manifests::Manifests;

fn pods(count: usize) -> Vec<Backend> {
    (0..count).map(|n| Backend::named(&n.to_string())).collect()
}

fn serve(pods: &[Backend], annotations: &[(&str, &str)]) -> Splitter {
    let addrs: Vec<_> = pods.iter().map(Backend::addr).collect();
    Splitter::start(
        &Manifests::new()
            .ingress("web", "a.test", "/", "Prefix", "app", annotations)
            .service("app", &addrs),
    )
}

/// The pods that answer these requests, each asked 20 times.
fn pods_of(splitter: &Splitter, path: &str, fields: &str) -> BTreeSet<String> {
    (0..20)
        .map(|_| splitter.get_with("a.test", path, fields).text())
        .collect()
}

#[test]
fn requests_with_one_key_have_one_pod_on_every_instance() {
    let pods = pods(4);
    for (key, same, other) in [
        ("$request_uri", ("/a?b=1", ""), ("/a?b=", "")),
        ("$http_x_user", ("/a", "X-User: u\r\n"), ("/b", "X-User: ")),
        (
            "${cookie_sid}x",
            ("/a", "Cookie: sid=1\r\n"),
            ("/b", "Cookie: sid="),
        ),
        ("$arg_id", ("/a?id=1&z=1", ""), ("/b?z=2&id=", "")),
    ] {
        let annotations = [("upstream-hash-by", key)];
        let splitters = [serve(&pods, &annotations), serve(&pods, &annotations)];
        let first = pods_of(&splitters[0], same.0, same.1);
        assert_eq!(first.len(), 1, "{key}");
        assert_eq!(pods_of(&splitters[1], same.0, same.1), first, "{key}");
        let mut met = BTreeSet::new();
        for number in 0..60 {
            let (path, fields) = match other.1.is_empty() {
                true => (format!("{}{number}", other.0), String::new()),
                false => (other.0.to_owned(), format!("{}{number}\r\n", other.1)),
            };
            met.insert(splitters[0].get_with("a.test", &path, &fields).text());
        }
        assert_eq!(met.len(), 4, "{key}");
        assert_eq!(splitters[0].problems(), [""; 0]);
    }
}

#[test]
fn requests_without_a_key_go_in_turn() {
    let pods = pods(3);
    let splitter = serve(&pods, &[("upstream-hash-by", "$http_x_user")]);
    assert_eq!(pods_of(&splitter, "/", "").len(), 3);
}

#[test]
fn a_subset_shares_the_requests_of_a_key() {
    let pods = pods(6);
    for (size, expected) in [(None, 3), (Some("2"), 2), (Some("64"), 6)] {
        let mut annotations = vec![
            ("upstream-hash-by", "$request_uri"),
            ("upstream-hash-by-subset", "true"),
        ];
        annotations.extend(size.map(|size| ("upstream-hash-by-subset-size", size)));
        let splitter = serve(&pods, &annotations);
        let met: BTreeSet<String> = (0..10).flat_map(|_| pods_of(&splitter, "/a", "")).collect();
        assert_eq!(met.len(), expected, "{size:?}");
    }
}

#[test]
fn the_faster_pod_gets_more() {
    let slow = Backend::scripted(|conversation| {
        while conversation.request().is_some() {
            conversation.pause(Duration::from_millis(30));
            conversation.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nslow");
        }
    });
    let pods = [Backend::named("fast"), slow, Backend::named("fast")];
    let count = |annotations: &[(&str, &str)]| {
        let splitter = serve(&pods, annotations);
        let mut counts = BTreeMap::new();
        for _ in 0..150 {
            *counts
                .entry(splitter.get("a.test", "/").text())
                .or_insert(0) += 1;
        }
        counts.get("slow").copied().unwrap_or(0)
    };
    assert_eq!(count(&[("load-balance", "round_robin")]), 50);
    // At first nobody knows that it is slow; then it loses against each of the others.
    let slow = count(&[("load-balance", "ewma")]);
    assert!((1..25).contains(&slow), "{slow} of 150");
}

#[test]
fn a_canary_has_a_choice_of_its_own_or_the_mains() {
    let pods = pods(3);
    let addrs: Vec<_> = pods.iter().map(Backend::addr).collect();
    let hash = ("upstream-hash-by", "$request_uri");
    for (of_main, of_canary, expected) in [
        (&[][..], &[hash][..], 1),
        (&[hash], &[], 1),
        (&[hash], &[("load-balance", "round_robin")], 3),
        (&[], &[], 3),
    ] {
        let rules = [&[("canary-weight", "100")], of_canary].concat();
        let splitter = Splitter::start(
            &Manifests::new()
                .ingress("web", "a.test", "/", "Prefix", "app", of_main)
                .canary("web-canary", "a.test", "/", "app-canary", &rules)
                .service("app", &addrs[..1])
                .service("app-canary", &addrs),
        );
        assert_eq!(pods_of(&splitter, "/a", "").len(), expected);
        assert_eq!(splitter.problems(), [""; 0]);
    }
}

#[test]
fn a_session_comes_before_a_hash_key() {
    let pods = pods(4);
    let annotations = [("affinity", "cookie"), ("upstream-hash-by", "$host")];
    let splitter = serve(&pods, &annotations);
    // Every client is new, so each may get another pod.
    assert!(pods_of(&splitter, "/", "").len() > 1);
}

#[test]
fn bad_values_are_reported_and_pods_are_asked_in_turn() {
    let pods = pods(2);
    for annotation in [
        ("load-balance", "least_conn"),
        ("upstream-hash-by", "$nonsense"),
        ("upstream-hash-by", "text"),
    ] {
        let splitter = serve(&pods, &[annotation]);
        assert_eq!(
            splitter.problems(),
            ["web: balance-invalid"],
            "{annotation:?}"
        );
        assert_eq!(pods_of(&splitter, "/", "").len(), 2, "{annotation:?}");
    }
    for (name, value) in [
        ("subset", "yes"),
        ("subset-size", "0"),
        ("subset-size", "65"),
    ] {
        let name = format!("upstream-hash-by-{name}");
        let splitter = serve(&pods, &[("upstream-hash-by", "$uri"), (&name, value)]);
        assert_eq!(splitter.problems(), ["web: balance-invalid"], "{name}");
        assert_eq!(pods_of(&splitter, "/", "").len(), 1, "{name}");
    }
}
