#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use http::HeaderMap;

use super::*;
use crate::model::{AddressSet, HeaderTest, Pattern, Rule, SplitKey, SplitPolicy};
use crate::routing::fixtures::{
    Fixed, affinity, cookie_rule, header_rule, headers, split, weights,
};

/// Decides over stable and one canary; `point` is what chance would give. Returns the variant, the
/// reason, and how often chance was asked.
fn run(
    rules: Vec<Rule>,
    lines: &[(&str, &str)],
    shares: [u32; 2],
    point: u32,
) -> (usize, Reason, u32) {
    let split = split(&shares, rules);
    let mut draw = Fixed::new(point);
    let decision = decide(
        &split,
        &Shown::of(&headers(lines)),
        &split.weights(),
        &mut draw,
    );
    (decision.variant, decision.reason, draw.asked)
}

/// Weights that leave all to stable, so that only a rule can choose the canary.
const STABLE_ONLY: [u32; 2] = [100, 0];
/// Weights that leave all to the canary, so that only a rule can choose stable.
const CANARY_ONLY: [u32; 2] = [0, 100];

const CANARY_BY_HEADER: (usize, Reason, u32) = (1, Reason::Header, 0);
const STABLE_BY_HEADER: (usize, Reason, u32) = (0, Reason::Header, 0);
const CANARY_BY_COOKIE: (usize, Reason, u32) = (1, Reason::Cookie, 0);
const STABLE_BY_COOKIE: (usize, Reason, u32) = (0, Reason::Cookie, 0);
const STABLE_BY_WEIGHT: (usize, Reason, u32) = (0, Reason::Weight, 0);
const CANARY_BY_WEIGHT: (usize, Reason, u32) = (1, Reason::Weight, 0);

fn header(test: HeaderTest) -> Vec<Rule> {
    vec![header_rule(1, "x-canary", test)]
}

fn value(text: &str) -> HeaderTest {
    HeaderTest::Value(text.into())
}

fn matches(text: &str) -> HeaderTest {
    HeaderTest::Pattern(Pattern::new(text).unwrap())
}

#[test]
fn a_split_without_canaries_reads_nothing() {
    let split = split(
        &[0],
        vec![header_rule(1, "x-canary", HeaderTest::AlwaysNever)],
    );
    let mut draw = Fixed::new(0);
    let decision = decide(
        &split,
        &Shown::of(&headers(&[("x-canary", "always")])),
        &weights(&[0, 100]),
        &mut draw,
    );
    assert_eq!(
        decision,
        Decision {
            variant: STABLE,
            reason: Reason::Only
        }
    );
    assert_eq!(draw.asked, 0);
}

#[test]
fn header_without_value() {
    let rules = || header(HeaderTest::AlwaysNever);
    assert_eq!(
        run(rules(), &[("X-Canary", "always")], STABLE_ONLY, 0),
        CANARY_BY_HEADER
    );
    assert_eq!(
        run(rules(), &[("X-Canary", "never")], CANARY_ONLY, 0),
        STABLE_BY_HEADER
    );
    for other in ["", "Always", "NEVER", "true", "always, always", "alway"] {
        let lines = [("x-canary", other)];
        assert_eq!(
            run(rules(), &lines, CANARY_ONLY, 0),
            CANARY_BY_WEIGHT,
            "{other:?}"
        );
        assert_eq!(
            run(rules(), &lines, STABLE_ONLY, 0),
            STABLE_BY_WEIGHT,
            "{other:?}"
        );
    }
    assert_eq!(run(rules(), &[], STABLE_ONLY, 0), STABLE_BY_WEIGHT);
}

#[test]
fn header_value() {
    let rules = || header(value("DoCanary"));
    assert_eq!(
        run(rules(), &[("x-canary", "DoCanary")], STABLE_ONLY, 0),
        CANARY_BY_HEADER
    );
    for other in ["docanary", "DoCanary2", "always", "DoCanary, DoCanary", ""] {
        assert_eq!(
            run(rules(), &[("x-canary", other)], STABLE_ONLY, 0),
            STABLE_BY_WEIGHT
        );
    }
    // `never` has no meaning beside a value: the weights go on.
    assert_eq!(
        run(rules(), &[("x-canary", "never")], CANARY_ONLY, 0),
        CANARY_BY_WEIGHT
    );
}

#[test]
fn header_pattern() {
    let rules = || header(matches("^Do[A-Z][a-z]+y$"));
    assert_eq!(
        run(rules(), &[("x-canary", "DoCanary")], STABLE_ONLY, 0),
        CANARY_BY_HEADER
    );
    assert_eq!(
        run(rules(), &[("x-canary", "Docanary")], STABLE_ONLY, 0),
        STABLE_BY_WEIGHT
    );
    assert_eq!(
        run(rules(), &[("x-canary", "always")], STABLE_ONLY, 0),
        STABLE_BY_WEIGHT
    );
    assert_eq!(
        run(rules(), &[("x-canary", "never")], CANARY_ONLY, 0),
        CANARY_BY_WEIGHT
    );
    let loose = header(matches("gz|sz"));
    assert_eq!(
        run(loose.clone(), &[("x-canary", "xxgzxx")], STABLE_ONLY, 0),
        CANARY_BY_HEADER
    );
    assert_eq!(
        run(loose, &[("x-canary", "GZ")], STABLE_ONLY, 0),
        STABLE_BY_WEIGHT
    );
    let never = header(matches("never"));
    assert_eq!(
        run(never, &[("x-canary", "never")], STABLE_ONLY, 0),
        CANARY_BY_HEADER
    );
}

#[test]
fn an_invalid_header_rule_never_decides() {
    let rules = || {
        vec![
            header_rule(1, "x-canary", HeaderTest::Invalid),
            cookie_rule(1, "c"),
        ]
    };
    let forced = [("x-canary", "always"), ("cookie", "c=always")];
    assert_eq!(run(rules(), &forced, STABLE_ONLY, 0), CANARY_BY_COOKIE);
    assert_eq!(
        run(rules(), &[("x-canary", "never")], CANARY_ONLY, 0),
        CANARY_BY_WEIGHT
    );
    assert_eq!(
        run(rules(), &[("x-canary", "always")], STABLE_ONLY, 0),
        STABLE_BY_WEIGHT
    );
}

#[test]
fn header_lines_are_one_value() {
    let twice = [("x-canary", "always"), ("X-Canary", "always")];
    assert_eq!(
        run(header(HeaderTest::AlwaysNever), &twice, STABLE_ONLY, 0),
        STABLE_BY_WEIGHT
    );
    assert_eq!(
        run(header(value("always")), &twice, STABLE_ONLY, 0),
        STABLE_BY_WEIGHT
    );
    assert_eq!(
        run(header(value("always, always")), &twice, STABLE_ONLY, 0),
        CANARY_BY_HEADER
    );
    assert_eq!(
        run(header(matches("lways")), &twice, STABLE_ONLY, 0),
        CANARY_BY_HEADER
    );
    assert_eq!(
        run(header(matches("^always$")), &twice, STABLE_ONLY, 0),
        STABLE_BY_WEIGHT
    );
}

#[test]
fn cookies() {
    let rules = || vec![cookie_rule(1, "Canary-By-Cookie")];
    for (cookie, share, expected) in [
        ("Canary-By-Cookie=always", STABLE_ONLY, CANARY_BY_COOKIE),
        (
            "a=b; canary-by-cookie=always",
            STABLE_ONLY,
            CANARY_BY_COOKIE,
        ),
        ("canary-by-cookie=never", CANARY_ONLY, STABLE_BY_COOKIE),
        (
            "canary-by-cookie=never; canary-by-cookie=always",
            STABLE_ONLY,
            STABLE_BY_COOKIE,
        ),
        ("canary-by-cookie=badcookie", CANARY_ONLY, CANARY_BY_WEIGHT),
        (
            "canary-by-cookie=x; canary-by-cookie=never",
            CANARY_ONLY,
            CANARY_BY_WEIGHT,
        ),
        ("canary-by-cookie=\"always\"", STABLE_ONLY, STABLE_BY_WEIGHT),
        ("canary-by-cookie=Always", STABLE_ONLY, STABLE_BY_WEIGHT),
        ("canary-by-cookie=", STABLE_ONLY, STABLE_BY_WEIGHT),
        ("=always", STABLE_ONLY, STABLE_BY_WEIGHT),
    ] {
        assert_eq!(
            run(rules(), &[("cookie", cookie)], share, 0),
            expected,
            "{cookie}"
        );
    }
    let lines = [("cookie", "a=b"), ("cookie", "canary-by-cookie=always")];
    assert_eq!(run(rules(), &lines, STABLE_ONLY, 0), CANARY_BY_COOKIE);
}

#[test]
fn header_then_cookie_then_weight() {
    let rules = |test| vec![header_rule(1, "x-canary", test), cookie_rule(1, "c")];
    let both = |header, cookie| [("x-canary", header), ("cookie", cookie)];
    let plain = HeaderTest::AlwaysNever;
    for (header, cookie, share, expected) in [
        ("always", "c=never", STABLE_ONLY, CANARY_BY_HEADER),
        ("never", "c=always", CANARY_ONLY, STABLE_BY_HEADER),
        ("other", "c=always", STABLE_ONLY, CANARY_BY_COOKIE),
        ("other", "c=never", CANARY_ONLY, STABLE_BY_COOKIE),
        ("other", "c=other", CANARY_ONLY, CANARY_BY_WEIGHT),
    ] {
        let lines = both(header, cookie);
        assert_eq!(
            run(rules(plain.clone()), &lines, share, 0),
            expected,
            "{header} {cookie}"
        );
    }
    let lines = both("other", "c=always");
    assert_eq!(
        run(rules(value("DoCanary")), &lines, STABLE_ONLY, 0),
        CANARY_BY_COOKIE
    );
}

#[test]
fn rules_of_several_canaries_are_asked_in_order() {
    let rules = vec![
        header_rule(1, "x-one", value("1")),
        header_rule(2, "x-two", HeaderTest::AlwaysNever),
        cookie_rule(1, "c"),
    ];
    let split = split(&[100, 0, 0], rules);
    let choose = |lines: &[(&str, &str)]| {
        decide(
            &split,
            &Shown::of(&headers(lines)),
            &split.weights(),
            &mut Fixed::new(0),
        )
        .variant
    };
    assert_eq!(choose(&[("x-one", "1"), ("x-two", "always")]), 1);
    assert_eq!(choose(&[("x-one", "2"), ("x-two", "always")]), 2);
    // A younger canary's header comes before an older one's cookie, and its `never` ends it all.
    assert_eq!(choose(&[("cookie", "c=always"), ("x-two", "always")]), 2);
    assert_eq!(choose(&[("cookie", "c=always"), ("x-two", "never")]), 0);
    assert_eq!(choose(&[("cookie", "c=always")]), 1);
}

#[test]
fn weights_decide_by_the_point() {
    let split = split(&[60, 10, 30], vec![]);
    let variant = |point| {
        let mut draw = Fixed::new(point);
        let decision = decide(
            &split,
            &Shown::of(&HeaderMap::new()),
            &split.weights(),
            &mut draw,
        );
        assert_eq!((decision.reason, draw.asked), (Reason::Weight, 1));
        decision.variant
    };
    let counts = (0..100).fold([0; 3], |mut counts, point| {
        counts[variant(point)] += 1;
        counts
    });
    assert_eq!(counts, [60, 10, 30]);
}

#[test]
fn weights_without_choice_need_no_chance() {
    for (shares, expected) in [
        ([0, 0], 0),
        ([100, 0], 0),
        ([0, 150], 1),
        ([0, u32::MAX], 1),
    ] {
        assert_eq!(
            run(vec![], &[], shares, 7),
            (expected, Reason::Weight, 0),
            "{shares:?}"
        );
    }
}

#[test]
fn the_slot_counts_and_not_the_object() {
    let split = split(&[100, 0], vec![]);
    let decision = decide(
        &split,
        &Shown::of(&HeaderMap::new()),
        &weights(&[0, 5]),
        &mut Fixed::new(0),
    );
    assert_eq!(decision.variant, 1);
}

/// Decides with a session that holds `held`, over a canary for each entry of `sticky`.
fn run_held(
    sticky: &[bool],
    weights: &[u32],
    held: usize,
    lines: &[(&str, &str)],
) -> (usize, Reason, u32) {
    let mut split = split(
        weights,
        vec![header_rule(1, "x-canary", HeaderTest::AlwaysNever)],
    );
    let policy = SplitPolicy {
        affinity: Some(affinity(sticky)),
        ..SplitPolicy::default()
    };
    split.policy = policy.into_shared();
    let headers = headers(lines);
    let held = Some(Held {
        variant: held,
        key: 1,
    });
    let shown = Shown {
        held,
        ..Shown::of(&headers)
    };
    let mut draw = Fixed::new(0);
    let decision = decide(&split, &shown, &split.weights(), &mut draw);
    (decision.variant, decision.reason, draw.asked)
}

#[test]
fn a_sticky_session_wins_over_rules_and_weights() {
    let sticky = [true, true];
    for weights in [[100, 0], [0, 100], [50, 50]] {
        for lines in [&[][..], &[("x-canary", "always")], &[("x-canary", "never")]] {
            for held in [0, 1] {
                assert_eq!(
                    run_held(&sticky, &weights, held, lines),
                    (held, Reason::Affinity, 0)
                );
            }
        }
    }
}

#[test]
fn a_legacy_canary_is_chosen_by_rules_and_weights_whatever_the_session() {
    let legacy = [true, false];
    for (weights, lines, expected) in [
        ([100, 0], &[("x-canary", "always")][..], CANARY_BY_HEADER),
        ([0, 100], &[("x-canary", "never")], STABLE_BY_HEADER),
        ([0, 100], &[], CANARY_BY_WEIGHT),
        ([100, 0], &[], STABLE_BY_WEIGHT),
        ([50, 50], &[], (1, Reason::Weight, 1)),
    ] {
        assert_eq!(run_held(&legacy, &weights, 0, lines), expected);
    }
}

#[test]
fn a_session_gives_way_only_to_legacy_canaries() {
    // The first canary is legacy, the second is sticky.
    let mixed = [true, false, true];
    let always = [("x-canary", "always")];
    assert_eq!(
        run_held(&mixed, &[100, 0, 0], 2, &always),
        (1, Reason::Header, 0)
    );
    assert_eq!(
        run_held(&mixed, &[100, 0, 0], 2, &[]),
        (2, Reason::Affinity, 0)
    );
    assert_eq!(
        run_held(&mixed, &[0, 0, 100], 0, &[]),
        (0, Reason::Affinity, 0)
    );
}

#[test]
fn a_session_with_a_variant_that_is_gone_is_stable() {
    assert_eq!(
        run_held(&[true, true], &[0, 100], 5, &[]),
        (0, Reason::Affinity, 0)
    );
}

#[test]
fn a_key_takes_the_place_of_chance_and_nothing_else() {
    let mut split = split(&[50, 50], vec![cookie_rule(1, "c")]);
    let policy = SplitPolicy {
        key: Some(SplitKey::Header(http::header::USER_AGENT)),
        ..SplitPolicy::default()
    };
    split.policy = policy.into_shared();
    let run = |lines: &[(&str, &str)]| {
        let mut draw = Fixed::new(99);
        let headers = headers(lines);
        let decision = decide(&split, &Shown::of(&headers), &split.weights(), &mut draw);
        (decision.variant, decision.reason, draw.asked)
    };
    let mut counts = [0; 2];
    for number in 0..200 {
        let agent = number.to_string();
        let lines = [("user-agent", agent.as_str())];
        let first = run(&lines);
        assert_eq!((first.1, first.2), (Reason::Key, 0));
        assert_eq!(run(&lines), first);
        counts[first.0] += 1;
    }
    assert!(counts.iter().all(|count| *count > 60), "{counts:?}");
    // Rules come before it, and a request without the key is drawn.
    assert_eq!(
        run(&[("user-agent", "x"), ("cookie", "c=always")]),
        CANARY_BY_COOKIE
    );
    assert_eq!(run(&[]), (0, Reason::Weight, 1));
}

#[test]
fn rules_of_query_and_address() {
    let rule = |test| Rule { variant: 1, test };
    let query = |test| {
        let name = "beta".into();
        rule(Test::Query { name, test })
    };
    let ranges: AddressSet = "10.0.0.0/8, 2001:db8::/32".parse().unwrap();
    for (test, text, client, expected) in [
        (
            query(ValueTest::AlwaysNever),
            "beta=always",
            "192.0.2.1",
            (1, Reason::Query),
        ),
        (
            query(ValueTest::AlwaysNever),
            "beta=never",
            "192.0.2.1",
            (0, Reason::Query),
        ),
        (
            query(ValueTest::AlwaysNever),
            "beta",
            "192.0.2.1",
            (0, Reason::Weight),
        ),
        (
            query(value("a b")),
            "x=1&beta=a%20b",
            "192.0.2.1",
            (1, Reason::Query),
        ),
        (
            query(value("a b")),
            "beta=ab",
            "192.0.2.1",
            (0, Reason::Weight),
        ),
        (
            rule(Test::Source(ranges.clone())),
            "",
            "10.9.9.9",
            (1, Reason::Source),
        ),
        (
            rule(Test::Source(ranges.clone())),
            "",
            "::ffff:10.9.9.9",
            (1, Reason::Source),
        ),
        (
            rule(Test::Source(ranges.clone())),
            "",
            "2001:db8::1",
            (1, Reason::Source),
        ),
        (
            rule(Test::Source(ranges)),
            "",
            "11.0.0.1",
            (0, Reason::Weight),
        ),
    ] {
        let split = split(&[100, 0], vec![test]);
        let headers = HeaderMap::new();
        let shown = Shown {
            query: text,
            client: client.parse().unwrap(),
            ..Shown::of(&headers)
        };
        let decision = decide(&split, &shown, &split.weights(), &mut Fixed::new(0));
        assert_eq!(
            (decision.variant, decision.reason),
            expected,
            "{text} {client}"
        );
    }
}

#[test]
fn a_slot_with_rubbish_gives_a_variant() {
    let split = split(
        &[100, 0],
        vec![header_rule(7, "x-canary", HeaderTest::AlwaysNever)],
    );
    let rubbish = [&[0, 0, 9][..], &[u32::MAX; 8], &[1, 1, 1, 1, 1, 1, 1, 1]];
    for values in rubbish {
        for point in [0, 1, 2, 7, u32::MAX] {
            let lines = headers(&[("x-canary", "always")]);
            let decision = decide(
                &split,
                &Shown::of(&lines),
                &weights(values),
                &mut Fixed::new(point),
            );
            assert!(decision.variant < 2, "{values:?} {point}");
            assert_eq!(decision.reason, Reason::Weight);
        }
    }
}
