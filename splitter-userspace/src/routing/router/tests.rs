#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use super::*;
use crate::model::PathKind::{self, Exact, Prefix, Regex};
use crate::model::PathPattern;
use crate::routing::fixtures::{Line, key, snapshot};
use crate::routing::normalize;

/// What a request finds: the rule as `host path kind`, or why none.
fn found(lines: &[Line<'_>], host: &str, path: &str) -> String {
    let snapshot = snapshot(lines);
    let host = normalize(host).unwrap();
    match Router::build(&snapshot).find(&host, path) {
        Found::Location(id) => {
            let key = &snapshot.location(id).unwrap().key;
            format!("{} {} {:?}", key.host, key.path, key.kind)
                .trim_start()
                .to_owned()
        }
        Found::NoHost => "no host".to_owned(),
        Found::NoPath(host) => format!("no path: {}", snapshot.hosts[host as usize].pattern),
        Found::Ambiguous => "ambiguous".to_owned(),
    }
}

/// The same with all rules on any host.
fn path(rules: &[(&str, PathKind)], path: &str) -> String {
    let lines: Vec<Line<'_>> = rules
        .iter()
        .map(|(path, kind)| ("", *path, *kind))
        .collect();
    found(&lines, "any.example", path).replace("no path: ", "no path")
}

#[test]
fn exact_paths() {
    assert_eq!(path(&[("/foo", Exact)], "/foo"), "/foo Exact");
    assert_eq!(path(&[("/foo", Exact)], "/foo/"), "no path");
    assert_eq!(path(&[("/foo", Exact)], "/bar"), "no path");
    assert_eq!(path(&[("/foo/", Exact)], "/foo"), "no path");
    assert_eq!(path(&[("/foo/", Exact)], "/foo/"), "/foo/ Exact");
    assert_eq!(path(&[("/foo", Exact)], "/FOO"), "no path");
    assert_eq!(path(&[("/foo", Exact)], "/foo/bar"), "no path");
    assert_eq!(path(&[("/", Exact)], "/"), "/ Exact");
    assert_eq!(path(&[("/", Exact)], "/foo"), "no path");
}

#[test]
fn prefix_paths() {
    assert_eq!(path(&[("/", Prefix)], "/"), "/ Prefix");
    assert_eq!(path(&[("/", Prefix)], "/any/thing"), "/ Prefix");
    assert_eq!(path(&[("/foo", Prefix)], "/foo"), "/foo Prefix");
    assert_eq!(path(&[("/foo", Prefix)], "/foo/"), "/foo Prefix");
    assert_eq!(path(&[("/foo/", Prefix)], "/foo"), "/foo/ Prefix");
    assert_eq!(path(&[("/foo/", Prefix)], "/foo/"), "/foo/ Prefix");
    assert_eq!(path(&[("/foo", Prefix)], "/FOO"), "no path");
    assert_eq!(path(&[("/aaa/bb", Prefix)], "/aaa/bbb"), "no path");
    assert_eq!(path(&[("/aaa/bbb", Prefix)], "/aaa/bbb"), "/aaa/bbb Prefix");
    assert_eq!(
        path(&[("/aaa/bbb/", Prefix)], "/aaa/bbb"),
        "/aaa/bbb/ Prefix"
    );
    assert_eq!(
        path(&[("/aaa/bbb", Prefix)], "/aaa/bbb/"),
        "/aaa/bbb Prefix"
    );
    assert_eq!(
        path(&[("/aaa/bbb", Prefix)], "/aaa/bbb/ccc"),
        "/aaa/bbb Prefix"
    );
    assert_eq!(path(&[("/aaa/bbb", Prefix)], "/aaa/bbbxyz"), "no path");
    assert_eq!(path(&[("/aaa/bbb", Prefix)], "/aaa"), "no path");
    assert_eq!(path(&[("/aaa", Prefix)], "/ccc"), "no path");
}

#[test]
fn the_longest_path_wins() {
    let three = [("/", Prefix), ("/aaa", Prefix), ("/aaa/bbb", Prefix)];
    assert_eq!(path(&three[..2], "/aaa/ccc"), "/aaa Prefix");
    assert_eq!(path(&three, "/aaa/bbb"), "/aaa/bbb Prefix");
    assert_eq!(path(&three, "/aaa/ccc"), "/aaa Prefix");
    assert_eq!(path(&three, "/ccc"), "/ Prefix");
    // An element between two rules that is itself no rule.
    let gap = [("/a", Prefix), ("/a/b/c", Prefix)];
    assert_eq!(path(&gap, "/a/b/x"), "/a Prefix");
    assert_eq!(path(&gap, "/a/b/c/d"), "/a/b/c Prefix");
}

#[test]
fn exact_wins_over_prefix() {
    let both = [("/foo", Exact), ("/foo", Prefix)];
    assert_eq!(path(&both, "/foo"), "/foo Exact");
    assert_eq!(path(&both, "/foo/"), "/foo Prefix");
    assert_eq!(path(&both, "/foo/bar"), "/foo Prefix");
    let slash = [
        ("/foo", Exact),
        ("/foo/", Exact),
        ("/foo/", Prefix),
        ("/foo", Prefix),
    ];
    assert_eq!(path(&slash, "/foo"), "/foo Exact");
    assert_eq!(path(&slash, "/foo/"), "/foo/ Exact");
    assert_eq!(path(&slash, "/foo/bar"), "/foo/ Prefix");
    assert_eq!(path(&[("/", Exact), ("/", Prefix)], "/"), "/ Exact");
    assert_eq!(path(&[("/", Exact), ("/", Prefix)], "/x"), "/ Prefix");
}

#[test]
fn of_two_spellings_of_a_prefix_the_longer_wins() {
    let both = [("/foo", Prefix), ("/foo/", Prefix)];
    for request in ["/foo", "/foo/", "/foo/bar"] {
        assert_eq!(path(&both, request), "/foo/ Prefix", "{request}");
    }
}

#[test]
fn of_two_encodings_of_a_path_the_first_wins() {
    for kind in [Prefix, Exact] {
        let both = [("/%61", kind), ("/a", kind)];
        assert_eq!(path(&both, "/a"), format!("/%61 {kind:?}"));
    }
    // Longer as it is compared, though it comes first and is longer as written too.
    assert_eq!(
        path(&[("/%61/", Prefix), ("/a", Prefix)], "/a"),
        "/%61/ Prefix"
    );
    // Longer only as written.
    assert_eq!(
        path(&[("/%61", Prefix), ("/a/", Prefix)], "/a"),
        "/a/ Prefix"
    );
}

#[test]
fn hosts() {
    let wildcard = [("*.foo.com", "/", Prefix)];
    assert_eq!(found(&wildcard, "bar.foo.com", "/"), "*.foo.com / Prefix");
    assert_eq!(found(&wildcard, "baz.bar.foo.com", "/"), "no host");
    assert_eq!(found(&wildcard, "foo.com", "/"), "no host");
    let exact = [("foo.com", "/", Prefix)];
    for host in ["foo.com", "FOO.com", "foo.com:8080", "foo.com."] {
        assert_eq!(found(&exact, host, "/"), "foo.com / Prefix", "{host}");
    }
    assert_eq!(found(&exact, "bar.com", "/"), "no host");
    assert_eq!(found(&exact, "", "/"), "no host");
    let any = [("", "/", Prefix)];
    for host in ["foo.com", "a.b.c.d", "10.0.0.1:80", "[::1]:80", ""] {
        assert_eq!(found(&any, host, "/"), "/ Prefix", "{host}");
    }
}

#[test]
fn the_more_specific_host_wins_and_is_the_only_one_asked() {
    let lines = [
        ("a.foo.com", "/a", Prefix),
        ("*.foo.com", "/a", Prefix),
        ("*.foo.com", "/w", Prefix),
        ("", "/", Prefix),
    ];
    assert_eq!(found(&lines, "a.foo.com", "/a"), "a.foo.com /a Prefix");
    assert_eq!(found(&lines, "b.foo.com", "/a"), "*.foo.com /a Prefix");
    assert_eq!(found(&lines, "foo.com", "/a"), "/ Prefix");
    assert_eq!(found(&lines, "a.foo.com", "/w"), "no path: a.foo.com");
    assert_eq!(found(&lines, "b.foo.com", "/x"), "no path: *.foo.com");
}

#[test]
fn a_host_without_locations_is_known() {
    let mut snapshot = snapshot(&[("a.com", "/", Prefix)]);
    snapshot.hosts[0].locations.clear();
    assert_eq!(
        Router::build(&snapshot).find("a.com", "/"),
        Found::NoPath(0)
    );
    assert_eq!(Router::build(&snapshot).find_host("a.com"), Some(0));
    assert_eq!(Router::build(&snapshot).find_host("b.com"), None);
}

#[test]
fn an_empty_router_finds_nothing() {
    let router = Router::build(&Snapshot::default());
    assert_eq!(router.find("a.com", "/"), Found::NoHost);
    assert_eq!(router.find("", "/%2e%2e"), Found::NoHost);
}

#[test]
fn spellings_of_one_path_are_one() {
    assert_eq!(path(&[("/ä b", Exact)], "/%C3%a4%20b"), "/ä b Exact");
    assert_eq!(path(&[("/ä b", Prefix)], "/ä%20b/c"), "/ä b Prefix");
    assert_eq!(path(&[("/%7euser", Prefix)], "/~user"), "/%7euser Prefix");
    assert_eq!(path(&[("/@me", Prefix)], "/%40me"), "/@me Prefix");
    assert_eq!(path(&[("/@me", Prefix)], "/%40%6d%65/x"), "/@me Prefix");
}

#[test]
fn paths_that_a_backend_may_read_otherwise_are_refused() {
    let rules = [("/", Prefix), ("/admin", Prefix), ("/api/v1", Exact)];
    for request in [
        "/x/../admin",
        "/x/%2e%2e/admin",
        "/x/%2E./admin",
        "/./admin",
        "//admin",
        "/%2Fadmin",
        "/x%2f..%2fadmin",
        "/x\\..\\admin",
        "/\\admin",
        "/%5Cadmin",
        "/x/..;a=b/admin",
        "/admin;x",
        "/;/admin",
        "/admin/..",
        "/admin/../x",
        "/admin%2f../x",
        "/api//v1",
        "/api%2Fv1",
        "/api/./v1",
        "/api/v1/.",
        "/api/v1/x/..",
        "/admin%3bx",
        "/x/..%3b/admin",
    ] {
        assert_ne!(path(&rules, request), "no path", "{request}");
        let expected = if request == "/api/v1/." || request == "/api/v1/x/.." {
            // Both readings end at `/`: an Exact path does not match with a final slash.
            "/ Prefix"
        } else {
            "ambiguous"
        };
        assert_eq!(path(&rules, request), expected, "{request}");
    }
}

#[test]
fn paths_above_the_root_are_refused() {
    for request in [
        "/..",
        "/../x",
        "/a/../..",
        "/%2e%2e/",
        "/a/..%2f..",
        "/..\\x",
        "/..;/x",
    ] {
        assert_eq!(path(&[("/", Prefix)], request), "ambiguous", "{request}");
    }
}

#[test]
fn malformed_paths_are_refused() {
    for request in ["/%", "/%zz", "/a%0", "/%00", "/a%00.txt"] {
        assert_eq!(path(&[("/", Prefix)], request), "ambiguous", "{request}");
    }
}

#[test]
fn odd_paths_with_one_destination_pass() {
    let rules = [("/", Prefix), ("/api", Prefix)];
    for (request, expected) in [
        ("/api/v4/projects/group%2Fproject/issues", "/api Prefix"),
        ("/api/a//b/./c", "/api Prefix"),
        ("/api/x/../y", "/api Prefix"),
        ("/api/a;v=1/b;w", "/api Prefix"),
        ("/api/C:%5Ctemp", "/api Prefix"),
        ("/.well-known/acme-challenge/x", "/ Prefix"),
        ("/http://other/", "/ Prefix"),
        ("/%E2%82%AC/%20", "/ Prefix"),
        ("/x%252Fapi", "/ Prefix"),
    ] {
        assert_eq!(path(&rules, request), expected, "{request}");
    }
}

#[test]
fn what_is_no_path_belongs_to_no_location() {
    for request in ["*", "", "foo", "foo/bar", "%2F"] {
        assert_eq!(path(&[("/", Prefix)], request), "no path", "{request}");
    }
}

#[test]
fn long_texts_work() {
    let (host, element) = (format!("{}.com", "h".repeat(60)), "e".repeat(200));
    let rule = format!("/{element}/{element}");
    let lines = [(host.as_str(), rule.as_str(), Prefix)];
    let request = format!("{rule}/x");
    assert_eq!(
        found(&lines, &host, &request),
        format!("{host} {rule} Prefix")
    );
    assert_eq!(
        found(&lines, &host, &request[..100]),
        format!("no path: {host}")
    );
}

#[test]
fn rules_that_need_a_leading_slash_get_it() {
    assert_eq!(path(&[("foo", Prefix)], "/foo/x"), "foo Prefix");
    assert_eq!(path(&[("", Prefix)], "/x"), "Prefix");
}

#[test]
fn depths_without_end_are_told_apart_by_their_path() {
    let deep = "/d".repeat(70);
    let rule = format!("{deep}/x");
    let lines = [
        ("", "/d", Prefix),
        ("", deep.as_str(), Prefix),
        ("", rule.as_str(), Exact),
    ];
    assert_eq!(found(&lines, "", &rule), format!("{rule} Exact"));
    assert_eq!(
        found(&lines, "", &format!("{rule}/y")),
        format!("{deep} Prefix")
    );
    assert_eq!(found(&lines, "", &"/d".repeat(69)), "/d Prefix");
    assert_eq!(found(&lines, "", &"/e".repeat(2_000)), "no path: ");
}

#[test]
fn entries_fill_a_cache_line() {
    assert_eq!(
        (size_of::<Entry<Host>>(), size_of::<Entry<Rule>>()),
        (64, 64)
    );
}

#[test]
fn keys_name_themselves() {
    assert_eq!(key(&("", "/", Prefix)).to_string(), "*/ (Prefix)");
}

/// What a host finds with these rules, of which those of the kind Regex are patterns.
fn with_patterns(lines: &[(&str, PathKind)], path: &str) -> Option<String> {
    let lines: Vec<_> = lines
        .iter()
        .map(|(path, kind)| ("a", *path, *kind))
        .collect();
    let mut snapshot = snapshot(&lines);
    for location in snapshot.locations.iter_mut() {
        if location.key.kind == Regex {
            let pattern = PathPattern::new(&[&location.key.path]).unwrap();
            Arc::make_mut(location).pattern = Some(pattern);
        }
    }
    match Router::build(&snapshot).find("a", path) {
        Found::Location(id) => Some(snapshot.location(id)?.key.path.to_string()),
        Found::Ambiguous => Some("ambiguous".to_owned()),
        Found::NoHost | Found::NoPath(_) => None,
    }
}

#[test]
fn the_longest_pattern_comes_first_whatever_it_matches() {
    let lines = [
        ("/a.*", Regex),
        ("/aaa", Regex),
        ("/(.*)", Regex),
        ("/b[0-9]", Regex),
        ("/b[0-8]", Regex),
    ];
    for (path, expected) in [
        ("/aaaa", Some("/(.*)")),
        ("/AAA", Some("/(.*)")),
        ("/b1", Some("/b[0-9]")),
        ("/b9", Some("/b[0-9]")),
        ("/", Some("/(.*)")),
    ] {
        assert_eq!(with_patterns(&lines, path).as_deref(), expected, "{path}");
    }
    assert_eq!(with_patterns(&lines[3..], "/c"), None);
}

#[test]
fn patterns_and_other_rules_of_a_host_are_ordered_by_length() {
    let lines = [
        ("/(.*)", Regex),
        ("/api", Prefix),
        ("/api/v[0-9]+", Regex),
        ("/x", Prefix),
        ("/", Prefix),
        ("/ping", Exact),
        ("/pin.*/?", Regex),
    ];
    for (path, expected) in [
        // As long with its slash, and behind `(` in the alphabet.
        ("/api", "/api"),
        ("/api/x", "/api"),
        ("/api/v1/x", "/api/v[0-9]+"),
        ("/API/x", "/(.*)"),
        ("/apix", "/(.*)"),
        // Shorter than the pattern.
        ("/x/y", "/(.*)"),
        ("/", "/(.*)"),
        // Exact wins over everything.
        ("/ping", "/ping"),
        ("/PING", "/pin.*/?"),
    ] {
        let found = with_patterns(&lines, path);
        assert_eq!(found.as_deref(), Some(expected), "{path}");
    }
}

#[test]
fn readings_that_match_other_patterns_are_ambiguous() {
    let lines = [("/api/(.*)", Regex), ("/admin/(.*)", Regex), ("/x", Prefix)];
    for (path, expected) in [
        ("/api/%61/b", Some("/api/(.*)")),
        ("/api/a%2Fb//c;d", Some("/api/(.*)")),
        ("/api/../admin/x", Some("ambiguous")),
        ("/api/..%2fadmin/x", Some("ambiguous")),
        ("/api/%2e%2e/x", Some("ambiguous")),
        ("/api//x", Some("/api/(.*)")),
        ("/%", Some("ambiguous")),
    ] {
        let found = with_patterns(&lines, path);
        assert_eq!(found.as_deref(), expected, "{path}");
    }
}
