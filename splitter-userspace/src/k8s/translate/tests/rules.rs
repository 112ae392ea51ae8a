//! Hosts and paths of rules, and who owns a path.

use super::super::host;
use super::super::path::{self, PathError};
use super::support::{clean, codes, main, problems_of, run, show};
use crate::model::{HostPattern, PathKind};

#[test]
fn hosts() {
    let exact = |name: &str| Some(HostPattern::Exact(name.into()));
    let wildcard = |name: &str| Some(HostPattern::Wildcard(name.into()));
    let long_label = "a".repeat(63);
    let long_name = format!("{}.{}", "a".repeat(63), "b.".repeat(94) + "cc");
    let rows = [
        ("", Some(HostPattern::Any)),
        ("foo.com", exact("foo.com")),
        ("FOO.Com", exact("foo.com")),
        ("localhost", exact("localhost")),
        ("1.example", exact("1.example")),
        ("xn--bcher-kva.example", exact("xn--bcher-kva.example")),
        ("*.foo.com", wildcard("foo.com")),
        ("*.Foo.com", wildcard("foo.com")),
        (long_label.as_str(), exact(&long_label)),
        ("*", None),
        ("*.", None),
        ("*foo.com", None),
        ("a.*.com", None),
        ("*.*.com", None),
        ("foo.com:80", None),
        ("foo.com.", None),
        (".foo.com", None),
        ("foo..com", None),
        ("-foo.com", None),
        ("foo-.com", None),
        ("foo_bar.com", None),
        ("foo bar", None),
        ("foo.com/", None),
        ("bücher.example", None),
        ("10.0.0.1", None),
        ("::1", None),
        ("[::1]", None),
        (long_name.as_str(), None),
    ];
    for (text, expected) in rows {
        assert_eq!(host::parse(text).ok(), expected, "{text}");
    }
    assert!(host::parse(&"a".repeat(64)).is_err());
}

#[test]
fn paths() {
    use PathKind::{Exact, Prefix};
    type Row<'a> = (&'a str, &'a str, Option<(&'a str, PathKind)>);
    let rows: [Row<'_>; 32] = [
        ("/", "Prefix", Some(("/", Prefix))),
        ("/foo", "Exact", Some(("/foo", Exact))),
        ("/foo/", "Exact", Some(("/foo/", Exact))),
        ("/foo/", "Prefix", Some(("/foo/", Prefix))),
        ("/FOO", "Prefix", Some(("/FOO", Prefix))),
        ("/foo", "ImplementationSpecific", Some(("/foo", Prefix))),
        ("", "ImplementationSpecific", Some(("/", Prefix))),
        ("", "", Some(("/", Prefix))),
        ("/foo", "", Some(("/foo", Prefix))),
        ("/a.b/..c/d..", "Prefix", Some(("/a.b/..c/d..", Prefix))),
        ("/a%2Eb", "Prefix", Some(("/a%2Eb", Prefix))),
        // Only the API server's rule for the type.
        (
            "/foo(/|$)(.*)",
            "ImplementationSpecific",
            Some(("/foo(/|$)(.*)", Prefix)),
        ),
        ("/a//b", "ImplementationSpecific", Some(("/a//b", Prefix))),
        ("foo", "ImplementationSpecific", None),
        ("foo", "", None),
        ("", "Exact", None),
        ("", "Prefix", None),
        ("foo", "Prefix", None),
        ("*", "Exact", None),
        ("//", "Prefix", None),
        ("/a//b", "Exact", None),
        ("/./a", "Prefix", None),
        ("/a/../b", "Prefix", None),
        ("/a/..", "Exact", None),
        ("/a/.", "Prefix", None),
        ("/..", "Prefix", None),
        ("/a%2fb", "Exact", None),
        ("/a%2Fb", "Prefix", None),
        ("/a", "prefix", None),
        ("/a", "EXACT", None),
        ("/a", "Regex", None),
        ("/a", " ", None),
    ];
    for (text, kind, expected) in rows {
        let parsed = path::parse(Some(text), kind);
        let found = parsed.as_ref().ok().map(|it| (&*it.path, it.kind));
        assert_eq!(found, expected, "{text:?} {kind:?}");
        if let Ok(parsed) = parsed {
            assert_eq!(parsed.assumed, kind.is_empty());
        }
    }
    assert_eq!(path::parse(Some("/a"), "x"), Err(PathError::Kind));
    assert_eq!(&*path::parse(None, "").unwrap().path, "/");
}

#[test]
fn what_is_wrong_is_left_out_and_the_rest_stays() {
    let translation = run(&[main("i")
        .on("10.0.0.1", "/", "m")
        .on("a", "/fine", "m")
        .on("a", "no-slash", "m")
        .path("a", "/other", "Regex", "m")
        .path("a", "/unsaid", "", "m")]);
    assert_eq!(
        show(&translation.snapshot),
        ["a/fine (Prefix): m=100", "a/unsaid (Prefix): m=100"]
    );
    assert_eq!(
        problems_of(&translation, "i"),
        [
            "spec.rules[0].host !host-invalid",
            "spec.rules[2].http.paths[0].path !path-invalid",
            "spec.rules[3].http.paths[0].pathType !path-type-invalid",
            "spec.rules[4].http.paths[0].pathType path-type-missing",
        ]
    );
}

#[test]
fn equal_hosts_and_paths_of_several_ingresses_meet() {
    let lines = clean(&[
        main("one").on("a", "/x", "m").on("*.a", "/", "m"),
        main("two").on("A", "/y", "m2").on("", "/", "m2"),
    ]);
    let expected = [
        "a/x (Prefix): m=100",
        "a/y (Prefix): m2=100",
        "*.a/ (Prefix): m=100",
        "*/ (Prefix): m2=100",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn exact_and_prefix_and_a_slash_make_different_locations() {
    let lines = clean(&[main("one")
        .on("a", "/foo", "m")
        .on("a", "/foo/", "m2")
        .path("a", "/foo", "Exact", "c")]);
    assert_eq!(lines.len(), 3);
}

#[test]
fn the_older_one_owns_a_path_then_the_first_by_name() {
    let conflict = |first: super::support::Ing, second: super::support::Ing| {
        let translation = run(&[first.on("a", "/", "m"), second.on("a", "/", "m2")]);
        assert_eq!(codes(&translation.problems), ["!path-duplicate"]);
        let owner = translation.snapshot.locations[0].ingress.name.to_string();
        (owner, translation.problems[0].object.name.to_string())
    };
    let names = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    assert_eq!(conflict(main("z").at(1), main("a").at(2)), names("z", "a"));
    assert_eq!(conflict(main("z").at(2), main("a").at(1)), names("a", "z"));
    assert_eq!(conflict(main("b"), main("a")), names("a", "b"));
    assert_eq!(conflict(main("b").at(1), main("a").at(1)), names("a", "b"));
    // A manifest without a time comes after one that has it.
    assert_eq!(conflict(main("a"), main("b").at(9)), names("b", "a"));
    // Namespaces come before names.
    assert_eq!(conflict(main("a").ns("other"), main("b")), names("b", "a"));
}

#[test]
fn implementation_specific_and_prefix_are_one() {
    let translation = run(&[
        main("a").on("a", "/", "m"),
        main("b").path("a", "", "ImplementationSpecific", "m2"),
    ]);
    assert_eq!(show(&translation.snapshot), ["a/ (Prefix): m=100"]);
    assert_eq!(
        problems_of(&translation, "b"),
        ["spec.rules[0].http.paths[0] !path-duplicate"]
    );
}

#[test]
fn a_rule_without_http_makes_the_host_known() {
    let translation = run(&[main("i").bare("a").on("b", "/", "m").bare("")]);
    assert_eq!(codes(&translation.problems), [""; 0]);
    assert_eq!(show(&translation.snapshot), ["b/ (Prefix): m=100"]);
    let hosts: Vec<_> = translation.snapshot.hosts.iter().collect();
    let known: Vec<_> = hosts
        .iter()
        .map(|it| (it.pattern.to_string(), it.locations.len()))
        .collect();
    let expected = [("a", 0), ("b", 1), ("", 0)].map(|(name, count)| (name.to_owned(), count));
    assert_eq!(known, expected);
}
