#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use super::*;
use crate::model::EndpointState::{Draining, Ready};
use crate::model::PathKind::{Exact, Prefix};
use crate::model::{HeaderTest, Rows, Rule, SplitKey, SplitPolicy};
use crate::routing::Reason;
use crate::routing::fixtures::{
    affinity, backend, cookie_rule, header_rule, headers, key, snapshot, split,
};

fn run(snapshot: &Snapshot, host: &str, path: &str, lines: &[(&str, &str)]) -> Explanation {
    let headers = headers(lines);
    let query = Query {
        method: &Method::GET,
        host,
        path,
        query: None,
        headers: &headers,
        client: None,
        class: None,
    };
    explain(snapshot, &Router::build(snapshot), &query)
}

/// One Location, split over `app` (two Endpoints) and `app-canary` (`canary` Endpoints).
fn shop(weights: &[u32], rules: Vec<Rule>, canary: usize) -> Snapshot {
    let mut snapshot = snapshot(&[("shop.example", "/", Prefix)]);
    let mut location = snapshot.locations[0].as_ref().clone();
    location.split = split(weights, rules);
    snapshot.locations[0] = Arc::new(location);
    let canaries = [(7, Ready), (8, Draining)];
    snapshot.backends = Rows::from_iter([
        Arc::new(backend("app", &[(1, Ready), (2, Ready)])),
        Arc::new(backend("app-canary", &canaries[..canary])),
    ]);
    snapshot
}

fn answer(snapshot: &Snapshot, lines: &[(&str, &str)]) -> Answer {
    match run(snapshot, "Shop.example:80", "/x", lines).outcome {
        Outcome::Location(answer) => *answer,
        other => panic!("no location: {other:?}"),
    }
}

#[test]
fn candidates_for_the_host() {
    let state = snapshot(&[("a.foo.com", "/", Prefix), ("*.foo.com", "/", Prefix)]);
    let hosts = |host: &str| -> Vec<(String, bool)> {
        let hosts = run(&state, host, "/", &[]).hosts;
        hosts
            .into_iter()
            .map(|host| (host.pattern.to_string(), host.exists))
            .collect()
    };
    let named = |list: &[(&str, bool)]| -> Vec<(String, bool)> {
        list.iter()
            .map(|(name, exists)| ((*name).to_owned(), *exists))
            .collect()
    };
    assert_eq!(hosts("a.foo.com"), named(&[("a.foo.com", true)]));
    assert_eq!(
        hosts("B.foo.com:80"),
        named(&[("b.foo.com", false), ("*.foo.com", true)])
    );
    assert_eq!(
        hosts("other.com"),
        named(&[("other.com", false), ("*.com", false), ("", false)])
    );
    assert_eq!(hosts(""), named(&[("", false)]));
    assert_eq!(run(&state, "a b", "/", &[]).outcome, Outcome::InvalidHost);
    assert_eq!(run(&state, "other.com", "/", &[]).outcome, Outcome::NoHost);
}

#[test]
fn candidates_for_the_path() {
    let lines = [
        ("", "/", Prefix),
        ("", "/a", Prefix),
        ("", "/a", Exact),
        ("", "/a/", Prefix),
        ("", "/a/b", Prefix),
        ("", "/b", Prefix),
    ];
    let state = snapshot(&lines);
    let explanation = run(&state, "", "/a", &[]);
    let paths: Vec<_> = explanation
        .paths
        .iter()
        .map(|path| path.location.clone())
        .collect();
    assert_eq!(paths, [&lines[2], &lines[3], &lines[1], &lines[0]].map(key));
    assert_eq!(explanation.host_rule(), Some(&HostPattern::Any));
    let explanation = run(&snapshot(&lines[1..]), "", "/c", &[]);
    assert_eq!(
        (explanation.paths.len(), explanation.outcome),
        (0, Outcome::NoPath)
    );
}

#[test]
fn readings_of_an_ambiguous_path() {
    let state = snapshot(&[("", "/", Prefix), ("", "/admin", Prefix)]);
    let readings = |path| match run(&state, "", path, &[]).outcome {
        Outcome::Ambiguous { readings } => readings,
        other => panic!("{other:?}"),
    };
    let admin = Some(key(&("", "/admin", Prefix)));
    let read = |path: &str| Reading::As {
        path: path.to_owned(),
        location: admin.clone(),
    };
    assert_eq!(readings("/x/../admin"), [read("/admin")]);
    assert_eq!(
        readings("/%2fadmin"),
        [read("/admin"), read("//admin")][..1]
    );
    assert_eq!(readings("/.."), [Reading::AboveRoot]);
    assert_eq!(readings("/%zz"), [Reading::Malformed]);
}

#[test]
fn shares_and_endpoints() {
    let answer = answer(&shop(&[95, 5], vec![], 2), &[]);
    assert_eq!(answer.answered, Answered::ByWeight);
    let variants = &answer.variants;
    assert_eq!((variants[0].share, variants[1].share), (0.95, 0.05));
    assert_eq!((variants[0].ready, variants[0].draining), (2, 0));
    assert_eq!((variants[1].ready, variants[1].draining), (1, 1));
    assert_eq!(variants[1].answered_by.as_deref(), Some("canary1"));
    assert_eq!(
        variants[1].backend.as_ref().unwrap().to_string(),
        "shop-app-canary-80"
    );
}

#[test]
fn no_weight_at_all_is_stable() {
    let answer = answer(&shop(&[0, 0], vec![], 1), &[]);
    assert_eq!(
        (answer.variants[0].share, answer.variants[1].share),
        (1.0, 0.0)
    );
    let stable = Answered::By {
        variant: "stable".to_owned(),
        reason: Reason::Weight,
    };
    assert_eq!(answer.answered, stable);
}

#[test]
fn rules_are_shown_in_order_with_what_they_saw() {
    let rules = || {
        vec![
            header_rule(1, "x-canary", HeaderTest::Value("yes".into())),
            header_rule(1, "x-other", HeaderTest::AlwaysNever),
            cookie_rule(1, "c"),
        ]
    };
    let state = shop(&[95, 5], rules(), 1);
    let lines = [
        ("x-canary", "no"),
        ("x-other", "never"),
        ("cookie", "c=always"),
    ];
    let explained = answer(&state, &lines);
    let steps: Vec<_> = explained
        .rules
        .iter()
        .map(|step| (step.seen.as_deref().unwrap(), step.answer))
        .collect();
    let expected = [
        ("no", RuleAnswer::Next),
        ("never", RuleAnswer::Stable),
        ("always", RuleAnswer::NotAsked),
    ];
    assert_eq!(steps, expected);
    let stable = Answered::By {
        variant: "stable".to_owned(),
        reason: Reason::Header,
    };
    assert_eq!(explained.answered, stable);
    let explained = answer(&state, &[]);
    assert!(
        explained
            .rules
            .iter()
            .all(|step| step.answer == RuleAnswer::Next)
    );
    assert!(explained.rules.iter().all(|step| step.seen.is_none()));
}

#[test]
fn rules_without_a_canary_are_not_asked() {
    let rules = vec![header_rule(1, "x-canary", HeaderTest::AlwaysNever)];
    let answer = answer(&shop(&[100], rules, 1), &[("x-canary", "always")]);
    assert_eq!(answer.rules[0].answer, RuleAnswer::NotAsked);
    let only = Answered::By {
        variant: "stable".to_owned(),
        reason: Reason::Only,
    };
    assert_eq!(answer.answered, only);
}

#[test]
fn missing_endpoints_are_told() {
    let forced = [("cookie", "c=always")];
    let explained = answer(&shop(&[95, 5], vec![cookie_rule(1, "c")], 0), &forced);
    let instead = Answered::By {
        variant: "stable".to_owned(),
        reason: Reason::CanaryUnavailable,
    };
    assert_eq!(explained.answered, instead);
    assert_eq!(explained.variants[1].answered_by.as_deref(), Some("stable"));

    let mut state = shop(&[100, 0], vec![cookie_rule(1, "c")], 1);
    state.backends[0] = Arc::new(backend("app", &[]));
    let nobody = Answered::Nobody {
        chosen: "stable".to_owned(),
        reason: Reason::Weight,
    };
    assert_eq!(answer(&state, &[]).answered, nobody);
    assert_eq!(answer(&state, &[]).variants[0].answered_by, None);
    let canary = Answered::By {
        variant: "canary1".to_owned(),
        reason: Reason::Cookie,
    };
    assert_eq!(answer(&state, &forced).answered, canary);
}

#[test]
fn a_session_is_shown_and_comes_before_the_rules() {
    let rules = vec![header_rule(1, "x-canary", HeaderTest::AlwaysNever)];
    let mut snapshot = shop(&[50, 50], rules, 1);
    let mut location = snapshot.locations[0].as_ref().clone();
    let policy = SplitPolicy {
        affinity: Some(affinity(&[true, true])),
        ..SplitPolicy::default()
    };
    location.split.policy = policy.into_shared();
    snapshot.locations[0] = Arc::new(location);

    let new = answer(&snapshot, &[("x-canary", "never")]);
    let session = new.session.unwrap();
    assert_eq!((session.sent, session.holds), (0, None));
    assert_eq!(new.rules[0].answer, RuleAnswer::Stable);

    let cookie = format!("route={:016x}{:016x}", 2, 7);
    let lines = [("x-canary", "never"), ("cookie", cookie.as_str())];
    let held = answer(&snapshot, &lines);
    let session = held.session.unwrap();
    assert_eq!(session.cookie, "route");
    assert_eq!(
        (session.sent, session.holds.as_deref()),
        (1, Some("canary1"))
    );
    assert_eq!(held.rules[0].answer, RuleAnswer::NotAsked);
    assert_eq!(
        held.answered,
        Answered::By {
            variant: "canary1".to_owned(),
            reason: Reason::Affinity
        }
    );
}

#[test]
fn a_key_is_shown_with_its_place() {
    let mut snapshot = shop(&[50, 50], vec![], 1);
    let mut location = snapshot.locations[0].as_ref().clone();
    let policy = SplitPolicy {
        key: Some(SplitKey::Cookie("user".into())),
        ..SplitPolicy::default()
    };
    location.split.policy = policy.into_shared();
    snapshot.locations[0] = Arc::new(location);
    let with = answer(&snapshot, &[("cookie", "user=7")]);
    let place = with.key.unwrap().place.unwrap();
    let variant = if place < 0.5 { "canary1" } else { "stable" };
    assert_eq!(
        with.answered,
        Answered::By {
            variant: variant.to_owned(),
            reason: Reason::Key
        }
    );
    let without = answer(&snapshot, &[]);
    assert_eq!(without.key.unwrap().place, None);
    assert_eq!(without.answered, Answered::ByWeight);
}

/// What the gates of `shop.example/` say to this request, and who answers.
fn gates(policy: crate::model::Policy, client: &str) -> (Vec<String>, Answered) {
    let mut snapshot = shop(&[100], vec![], 0);
    let mut location = snapshot.locations[0].as_ref().clone();
    location.policy = policy.into_shared();
    snapshot.locations[0] = Arc::new(location);
    let query = Query {
        method: &Method::GET,
        host: "shop.example",
        path: "/",
        headers: &HeaderMap::new(),
        query: None,
        client: client.parse().ok(),
        class: None,
    };
    match explain(&snapshot, &Router::build(&snapshot), &query).outcome {
        Outcome::Location(answer) => {
            let says = answer.gates.iter();
            let says = says.map(|it| format!("{}: {}", it.name, it.says));
            (says.collect(), answer.answered)
        }
        other => panic!("no location: {other:?}"),
    }
}

#[test]
fn gates_are_shown_in_order_and_one_that_answers_ends_it() {
    let policy = crate::model::Policy {
        addresses: Some(crate::model::Addresses {
            allow: Some("10.0.0.0/8".parse().unwrap()),
            deny: Some("10.1.0.0/16".parse().unwrap()),
        }),
        ..crate::model::Policy::default()
    };
    let lists = "source-range: keeps out 10.1.0.0/16; lets in 10.0.0.0/8 only; ";
    for (client, says, refused) in [
        ("10.2.0.1", "10.2.0.1 may call", false),
        ("10.1.0.1", "10.1.0.1 may not call", true),
        ("", "no client address is given (--client)", false),
    ] {
        let (gates, answered) = gates(policy.clone(), client);
        assert_eq!(gates, [format!("{lists}{says}")]);
        let gate = Answered::ByGate {
            gate: "source-range",
            status: 403,
        };
        assert_eq!(answered == gate, refused, "{client}");
    }
}
