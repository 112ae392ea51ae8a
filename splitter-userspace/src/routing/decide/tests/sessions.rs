//! Sessions and keys.

use super::*;

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
