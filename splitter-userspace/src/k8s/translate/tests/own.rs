//! The annotations that only we know.

use proptest::prelude::*;

use super::support::{Ing, canary, main, problems_of, run};
use crate::model::{Rule, Snapshot, SplitKey, Test, ValueTest};

fn on_both(of_main: &[(&str, &str)], of_canary: &[(&str, &str)]) -> (Snapshot, Vec<String>) {
    let noted = |ingress: Ing, notes: &[(&str, &str)]| {
        notes.iter().fold(ingress, |it, (name, value)| {
            it.raw_note(&format!("splitter.io/{name}"), value)
        })
    };
    let translation = run(&[
        noted(main("m"), of_main).on("a", "/", "m"),
        noted(canary("c"), of_canary)
            .note("canary-weight", "5")
            .on("a", "/", "c"),
    ]);
    let problems = [
        problems_of(&translation, "m"),
        problems_of(&translation, "c"),
    ]
    .concat();
    (translation.snapshot, problems)
}

fn rules(snapshot: &Snapshot) -> &[Rule] {
    &snapshot.locations[0].split.rules
}

#[test]
fn rules_come_in_the_order_header_cookie_query() {
    let (snapshot, problems) = on_both(
        &[],
        &[
            ("canary-by-query", "beta"),
            ("canary-by-query-value", "yes please"),
            ("canary-by-cookie", "group"),
            ("canary-by-cookie-value", "b"),
            ("canary-by-source-range", "10.0.0.1/8,::1"),
            ("canary-by-header", "x"),
        ],
    );
    assert_eq!(problems, [""; 0]);
    let kinds: Vec<_> = rules(&snapshot)
        .iter()
        .map(|rule| match &rule.test {
            Test::Header { .. } => "header".to_owned(),
            Test::Cookie { name, test } => format!("{name} {test:?}"),
            Test::Query { name, test } => format!("{name} {test:?}"),
            Test::Source(set) => set.to_string(),
        })
        .collect();
    let cookie = "group Value(\"b\")";
    let query = "beta Value(\"yes please\")";
    assert_eq!(kinds[..3], ["header", cookie, query]);
    assert!(kinds[3].starts_with("10.0.0.0/8"), "{kinds:?}");
    assert_eq!(kinds.len(), 4);
}

#[test]
fn a_cookie_pattern_may_have_any_character() {
    let (snapshot, problems) = on_both(
        &[],
        &[
            ("canary-by-cookie", "group"),
            ("canary-by-cookie-pattern", "^a{2,5}%[<>]$"),
        ],
    );
    assert_eq!(problems, [""; 0]);
    let Test::Cookie {
        test: ValueTest::Pattern(pattern),
        ..
    } = &rules(&snapshot)[0].test
    else {
        panic!("{:?}", rules(&snapshot));
    };
    assert!(pattern.is_match(b"aaa%<"));
}

#[test]
fn keys() {
    for (text, expected) in [
        ("header:X-User", Some("Header(\"x-user\")")),
        ("cookie:uid", Some("Cookie(\"uid\")")),
        ("query: q", Some("Query(\"q\")")),
        ("client-address", Some("Client")),
        ("header:", None),
        ("header:a b", None),
        ("address", None),
        ("Header:x", None),
    ] {
        let (snapshot, problems) = on_both(&[], &[("canary-hash-by", text)]);
        let key = snapshot.locations[0]
            .split
            .key()
            .map(|key| format!("{key:?}"));
        assert_eq!(key.as_deref(), expected, "{text}");
        let field = "metadata.annotations.splitter.io/canary-hash-by";
        match expected {
            Some(_) => assert_eq!(problems, [""; 0], "{text}"),
            None => assert_eq!(
                problems,
                [format!("{field} !canary-rule-invalid")],
                "{text}"
            ),
        }
    }
}

#[test]
fn the_oldest_key_counts() {
    let with = |name: &str, key: &str| {
        canary(name)
            .raw_note("splitter.io/canary-hash-by", key)
            .note("canary-weight", "5")
    };
    let translation = run(&[
        main("m").on("a", "/", "m"),
        with("c", "cookie:one").at(1).on("a", "/", "c"),
        with("d", "cookie:two").at(2).on("a", "/", "c"),
        with("e", "cookie:one").at(3).on("a", "/", "c"),
    ]);
    let key = translation.snapshot.locations[0].split.key();
    assert_eq!(key, Some(&SplitKey::Cookie("one".into())));
    assert_eq!(problems_of(&translation, "c"), [""; 0]);
    assert_eq!(problems_of(&translation, "e"), [""; 0]);
    assert_eq!(
        problems_of(&translation, "d"),
        ["spec.rules[0].http.paths[0] hash-by-differs"]
    );
}

#[test]
fn the_response_header_is_the_mains_or_the_oldest_canarys() {
    let header = |snapshot: &Snapshot| {
        let policy = snapshot.locations[0].split.policy.clone();
        let header = policy.and_then(|policy| policy.response_header.clone());
        header.map(|name| name.to_string())
    };
    let (snapshot, problems) = on_both(&[], &[("canary-response-header", "X-Variant")]);
    assert_eq!(
        (header(&snapshot).as_deref(), problems),
        (Some("x-variant"), vec![])
    );
    let (snapshot, problems) = on_both(
        &[("canary-response-header", "X-Main")],
        &[("canary-response-header", "X-Variant")],
    );
    assert_eq!(
        (header(&snapshot).as_deref(), problems),
        (Some("x-main"), vec![])
    );
    for bad in ["a b", "Content-Length", "set-cookie"] {
        let (snapshot, problems) = on_both(&[], &[("canary-response-header", bad)]);
        assert_eq!(header(&snapshot), None);
        assert_eq!(problems.len(), 1, "{problems:?}");
    }
}

#[test]
fn what_is_wrong_never_chooses_the_canary() {
    for (notes, code) in [
        (
            &[("canary-by-cookie", "g"), ("canary-by-cookie-value", "a;b")][..],
            "canary-by-cookie-value !canary-rule-invalid",
        ),
        (
            &[("canary-by-cookie", "g"), ("canary-by-cookie-pattern", "(")],
            "canary-by-cookie-pattern !pattern-invalid",
        ),
    ] {
        let (snapshot, problems) = on_both(&[], notes);
        assert_eq!(
            problems,
            [format!("metadata.annotations.splitter.io/{code}")]
        );
        let test = &rules(&snapshot)[0].test;
        assert!(
            matches!(
                test,
                Test::Cookie {
                    test: ValueTest::Invalid,
                    ..
                }
            ),
            "{test:?}"
        );
    }
    for (name, value) in [
        ("canary-by-cookie-value", "a"),
        ("canary-by-query-value", "a"),
    ] {
        let (snapshot, problems) = on_both(&[], &[(name, value)]);
        assert_eq!(
            problems,
            [format!(
                "metadata.annotations.splitter.io/{name} rule-name-missing"
            )]
        );
        assert!(rules(&snapshot).is_empty());
    }
}

/// With ingress-nginx's prefix they have never meant anything, so they do not start to.
#[test]
fn they_count_with_our_own_prefix_only() {
    for name in [
        "canary-by-query",
        "canary-hash-by",
        "canary-response-header",
    ] {
        let translation = run(&[
            main("m").on("a", "/", "m"),
            canary("c")
                .note("canary-weight", "5")
                .note(name, "x")
                .on("a", "/", "c"),
        ]);
        assert_eq!(
            problems_of(&translation, "c"),
            [format!("metadata.annotations.{name} annotation-unknown")]
        );
        let split = &translation.snapshot.locations[0].split;
        assert!(split.rules.is_empty() && split.policy.is_none());
        let message = &translation.problems[0].message;
        assert!(
            message.contains(&format!("splitter.io/{name}")),
            "{message}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Whatever is written, nothing panics, and a value either counts or is reported.
    #[test]
    fn any_value_counts_or_is_reported(
        name in prop::sample::select(&[
            "canary-by-query", "canary-by-source-range", "canary-hash-by",
            "canary-response-header", "mirror", "load-balance", "upstream-hash-by",
            "affinity-canary-behavior",
        ][..]),
        value in prop_oneof![
            any::<String>(), "[$a-z_{}]{0,24}", "(header|cookie|query):[ -~]{0,8}",
            "[0-9a-f.:/, ]{0,40}", "[0-9]{0,4}[.][0-9]{0,5}",
        ],
    ) {
        let note = [(name, value.as_str())];
        let (snapshot, problems) = on_both(&[], &note);
        let split = &snapshot.locations[0].split;
        let counts = split.policy.is_some() || !split.rules.is_empty();
        let says_nothing = match name {
            "load-balance" => value.trim() == "round_robin",
            "affinity-canary-behavior" => matches!(value.trim(), "sticky" | "legacy"),
            "mirror" => value.trim().trim_matches(['0', '.']).is_empty(),
            _ => false,
        };
        prop_assert!(counts || says_nothing || !problems.is_empty(), "{name}: {value:?}");
    }
}
