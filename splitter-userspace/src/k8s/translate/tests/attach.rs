//! Section 5 of the contract: which Location a canary attaches to.

use super::support::{Ing, canary, clean, codes, main, problems_of, run, show};

fn half(name: &str) -> Ing {
    canary(name).weight("50")
}

/// The canary does not attach and is reported at this field; the main's line is untouched.
fn stray(mains: &[Ing], canary: Ing, field: &str) -> String {
    let without = show(&run(mains).snapshot);
    let mut all = mains.to_vec();
    all.push(canary);
    let translation = run(&all);
    assert_eq!(show(&translation.snapshot), without);
    assert_eq!(
        problems_of(&translation, "k"),
        [format!("{field} !canary-stray")]
    );
    translation.problems[0].message.clone()
}

const PATH: &str = "spec.rules[0].http.paths[0]";

#[test]
fn equal_host_path_and_type() {
    for (path, kind) in [("/", "Prefix"), ("/foo", "Exact"), ("/foo/", "Prefix")] {
        let lines = clean(&[
            main("m").path("a", path, kind, "m"),
            half("k").path("a", path, kind, "c"),
        ]);
        assert_eq!(lines, [format!("a{path} ({kind}): m=50 c=50")]);
    }
}

#[test]
fn implementation_specific_is_prefix_and_empty_is_root() {
    let specific = "ImplementationSpecific";
    let rows = [
        ("/foo", "Prefix", "/foo", specific),
        ("/foo", specific, "/foo", "Prefix"),
        ("/", "Prefix", "", specific),
        ("", specific, "/", "Prefix"),
        // A regular expression is compared as text.
        ("/foo(/|$)(.*)", specific, "/foo(/|$)(.*)", specific),
    ];
    for (path, kind, canary_path, canary_kind) in rows {
        let lines = clean(&[
            main("m").path("a", path, kind, "m"),
            half("k").path("a", canary_path, canary_kind, "c"),
        ]);
        assert_eq!(lines.len(), 1);
        assert!(lines[0].ends_with("m=50 c=50"), "{lines:?}");
    }
}

#[test]
fn another_type_slash_or_path_is_a_stray() {
    let main = || [main("m").on("a", "/foo", "m").on("a", "/", "m2")];
    let message = stray(&main(), half("k").path("a", "/foo", "Exact", "c"), PATH);
    assert!(
        message.contains("a/foo (Prefix), which is a different location"),
        "{message}"
    );
    let message = stray(&main(), half("k").on("a", "/foo/", "c"), PATH);
    assert!(
        message.contains("a/foo (Prefix), which is a different location"),
        "{message}"
    );
    // No inheritance from a shorter prefix.
    let message = stray(&main(), half("k").on("a", "/foo/bar", "c"), PATH);
    assert!(message.contains("the host a"), "{message}");
    let message = stray(&main(), half("k").on("a", "/FOO", "c"), PATH);
    assert!(message.contains("there is no a/FOO (Prefix)"), "{message}");
}

#[test]
fn another_host_is_a_stray() {
    let message = stray(
        &[main("m").on("a.b", "/", "m")],
        half("k").on("c.b", "/", "c"),
        PATH,
    );
    assert!(
        message.contains("no main Ingress is for the host c.b"),
        "{message}"
    );
    // A wildcard is a host of its own, in both directions.
    stray(
        &[main("m").on("*.b", "/", "m")],
        half("k").on("a.b", "/", "c"),
        PATH,
    );
    stray(
        &[main("m").on("a.b", "/", "m")],
        half("k").on("*.b", "/", "c"),
        PATH,
    );
    stray(
        &[main("m").on("a.b", "/", "m")],
        half("k").on("", "/", "c"),
        PATH,
    );
    stray(
        &[main("m").on("", "/", "m")],
        half("k").on("a.b", "/", "c"),
        PATH,
    );
}

#[test]
fn hosts_are_compared_without_regard_to_case() {
    assert_eq!(
        clean(&[main("m").on("a.B", "/", "m"), half("k").on("A.b", "/", "c")]),
        ["a.b/ (Prefix): m=50 c=50"]
    );
}

#[test]
fn a_stray_path_leaves_the_others_working() {
    let translation = run(&[
        main("m").on("a", "/", "m"),
        half("k")
            .on("b", "/", "c")
            .on("a", "/only-here", "c")
            .on("a", "/", "c"),
    ]);
    assert_eq!(show(&translation.snapshot), ["a/ (Prefix): m=50 c=50"]);
    assert_eq!(
        problems_of(&translation, "k"),
        [
            "spec.rules[0].http.paths[0] !canary-stray",
            "spec.rules[1].http.paths[0] !canary-stray",
        ]
    );
}

#[test]
fn no_host_meets_no_host() {
    assert_eq!(
        clean(&[main("m").on("", "/x", "m"), half("k").on("", "/x", "c")]),
        ["*/x (Prefix): m=50 c=50"]
    );
}

#[test]
fn a_default_backend_attaches_to_the_catch_all_only() {
    let mains = [
        main("m").default_to("m"),
        main("n").on("", "/x", "m").on("a", "/", "m"),
    ];
    let mut all = mains.to_vec();
    all.push(half("k").default_to("c"));
    assert_eq!(
        clean(&all),
        [
            "a/ (Prefix): m=100",
            "*/ (Prefix): m=50 c=50",
            "*/x (Prefix): m=100"
        ]
    );
    // A written root of any host is the same Location.
    assert_eq!(
        clean(&[main("m").on("", "/", "m"), half("k").default_to("c")]),
        ["*/ (Prefix): m=50 c=50"]
    );
    // And a written canary attaches to an implied one.
    assert_eq!(
        clean(&[main("m").default_to("m"), half("k").on("", "/", "c")]),
        ["*/ (Prefix): m=50 c=50"]
    );
}

#[test]
fn a_root_rule_attaches_to_the_implied_root_of_the_host() {
    let lines = clean(&[
        main("m").on("a", "/x", "m").default_to("m2"),
        half("k").on("a", "/", "c"),
    ]);
    assert_eq!(lines, ["a/ (Prefix): m2=50 c=50", "a/x (Prefix): m=100"]);
}

#[test]
fn a_default_backend_with_rules_attaches_to_the_implied_root_of_its_hosts() {
    let lines = clean(&[
        main("m").on("a", "/x", "m").default_to("m"),
        main("n").default_to("m"),
        half("k").on("a", "/x", "c").default_to("c"),
    ]);
    // The catch-all belongs to somebody who is not named by the canary.
    assert_eq!(
        lines,
        [
            "a/ (Prefix): m=50 c=50",
            "a/x (Prefix): m=50 c=50",
            "*/ (Prefix): m=100"
        ]
    );
}

#[test]
fn a_default_backend_with_rules_does_not_reach_a_written_root() {
    let translation = run(&[
        main("m").on("a", "/", "m").on("a", "/x", "m"),
        half("k").on("a", "/x", "c").default_to("c"),
    ]);
    assert_eq!(
        show(&translation.snapshot),
        ["a/ (Prefix): m=100", "a/x (Prefix): m=50 c=50"]
    );
    assert_eq!(
        problems_of(&translation, "k"),
        ["spec.defaultBackend !canary-stray"]
    );
}

#[test]
fn a_rule_without_http_does_no_harm() {
    let translation = run(&[main("m").on("a", "/", "m"), half("k").bare("a").bare("b")]);
    assert_eq!(show(&translation.snapshot), ["a/ (Prefix): m=100"]);
    assert_eq!(translation.snapshot.hosts.len(), 1);
    assert_eq!(
        problems_of(&translation, "k"),
        ["spec canary-without-effect"]
    );
}

#[test]
fn the_mains_own_service_is_no_canary_of_it() {
    let same_by_name = "{service: {name: m, port: {name: http}}}";
    for canary in [
        half("k").on("a", "/", "m"),
        half("k").backend("a", "/", "Prefix", same_by_name),
    ] {
        let translation = run(&[main("m").on("a", "/", "m"), canary]);
        assert_eq!(show(&translation.snapshot), ["a/ (Prefix): m=100"]);
        assert_eq!(
            problems_of(&translation, "k"),
            ["spec canary-without-effect"]
        );
    }
}

#[test]
fn an_own_path_does_not_stop_the_canarys_other_paths() {
    let lines = clean(&[
        // The order of the paths does not matter either.
        main("m").on("a", "/first", "c").on("a", "/second", "m"),
        half("k").on("a", "/first", "c").on("a", "/second", "c"),
    ]);
    assert_eq!(
        lines,
        ["a/first (Prefix): c=100", "a/second (Prefix): m=50 c=50"]
    );
}

#[test]
fn the_same_service_in_another_namespace_is_a_canary() {
    assert_eq!(
        clean(&[
            main("m").on("a", "/", "m"),
            half("k").ns("other").on("a", "/", "m")
        ]),
        ["a/ (Prefix): m=50 m=50"]
    );
}

#[test]
fn only_canaries_make_no_host() {
    let translation = run(&[half("k").on("a", "/", "c").default_to("c2")]);
    assert_eq!(translation.snapshot, crate::model::Snapshot::default());
    assert_eq!(codes(&translation.problems), ["!canary-stray"]);
    let translation = run(&[half("k").default_to("c")]);
    assert_eq!(translation.snapshot, crate::model::Snapshot::default());
    assert_eq!(codes(&translation.problems), ["!canary-stray"]);
}

#[test]
fn age_does_not_matter() {
    for (main_age, canary_age) in [(1, 2), (2, 1), (1, 1)] {
        let lines = clean(&[
            main("m").at(main_age).on("a", "/", "m"),
            half("k").at(canary_age).on("a", "/", "c"),
        ]);
        assert_eq!(lines, ["a/ (Prefix): m=50 c=50"]);
    }
}

#[test]
fn a_path_twice_in_one_canary_counts_once() {
    let translation = run(&[
        main("m").on("a", "/", "m"),
        half("k").on("a", "/", "c").on("A", "/", "c2"),
    ]);
    assert_eq!(show(&translation.snapshot), ["a/ (Prefix): m=50 c=50"]);
    assert_eq!(
        problems_of(&translation, "k"),
        ["spec.rules[1].http.paths[0] !path-duplicate"]
    );
}

#[test]
fn of_a_path_twice_the_first_counts_even_if_it_is_the_mains_own() {
    let translation = run(&[
        main("m").on("a", "/", "m"),
        half("k").on("a", "/", "m").on("a", "/", "c"),
    ]);
    assert_eq!(show(&translation.snapshot), ["a/ (Prefix): m=100"]);
    assert_eq!(
        problems_of(&translation, "k"),
        [
            "spec canary-without-effect",
            "spec.rules[1].http.paths[0] !path-duplicate"
        ]
    );
}

#[test]
fn a_canary_of_another_class_is_none() {
    assert_eq!(
        clean(&[
            main("m").on("a", "/", "m"),
            half("k").class(Some("x")).on("a", "/", "c")
        ]),
        ["a/ (Prefix): m=100"]
    );
}

#[test]
fn a_canary_to_nowhere_is_reported_and_stable_answers() {
    let translation = run(&[
        main("m").on("a", "/", "m"),
        half("k").on("a", "/", "missing"),
    ]);
    assert_eq!(
        show(&translation.snapshot),
        ["a/ (Prefix): m=50 missing!ServiceNotFound=50"]
    );
    assert_eq!(
        problems_of(&translation, "k"),
        [format!("{PATH}.backend !service-not-found")]
    );
    assert!(translation.problems[0].effect.contains("stable answers"));
}
