//! Paths that are patterns, and rewrites.

use super::support::{canary, main, manifest, problems_of, run, show};
use crate::config::ClassSettings;
use crate::k8s::{Translation, translate};
use crate::model::Location;

fn strict(ingresses: &[super::support::Ing]) -> Translation {
    let settings = ClassSettings {
        strict_nginx: true,
        ..ClassSettings::default()
    };
    translate(&manifest(ingresses), &settings)
}

fn location<'t>(translation: &'t Translation, key: &str) -> &'t Location {
    let mut locations = translation.snapshot.locations.iter();
    locations
        .find(|it| it.key.to_string() == key)
        .expect("the Location is there")
}

/// The texts of the patterns, by Location.
fn patterns(translation: &Translation) -> Vec<String> {
    let locations = translation.snapshot.locations.iter();
    let with = locations.filter_map(|it| Some((&it.key, it.pattern.as_ref()?)));
    with.map(|(key, pattern)| format!("{}: {pattern:?}", key.path))
        .collect()
}

#[test]
fn an_ingress_with_use_regex_has_patterns() {
    let translation = run(&[main("m")
        .note("use-regex", "true")
        .path("a", "/x[0-9]", "ImplementationSpecific", "m")
        .on("a", "/y", "m2")]);
    assert_eq!(
        show(&translation.snapshot),
        ["a/x[0-9] (Regex): m=100", "a/y (Regex): m2=100"]
    );
    assert_eq!(
        patterns(&translation),
        [r#"/x[0-9]: ["/x[0-9]"]"#, r#"/y: ["/y"]"#]
    );
    assert_eq!(*translation.problems, []);
}

#[test]
fn a_rewrite_makes_patterns_unless_the_path_is_the_target() {
    let rewrites = |target: &str| {
        let translation = run(&[main("m").note("rewrite-target", target).on("a", "/x", "m")]);
        let location = &translation.snapshot.locations[0];
        let policy = location.policy.as_deref();
        let rewrite = policy.and_then(|it| it.rewrite.as_ref());
        (location.pattern.is_some(), rewrite.is_some())
    };
    assert_eq!(rewrites("/"), (true, true));
    assert_eq!(rewrites("/x"), (false, false));
}

#[test]
fn a_target_that_cannot_be_made_closes_the_ingress() {
    let too_many = "/$1".repeat(17);
    for target in [
        "x",
        "http://b/$1",
        "/a b",
        "/ä",
        "/$remote_addr",
        "/a/../$1",
        "/$request_uri",
        "/a#b",
        "/$0",
        &too_many,
    ] {
        let translation = run(&[main("m").note("rewrite-target", target).on("a", "/x", "m")]);
        assert_eq!(
            show(&translation.snapshot),
            ["a/x (Regex): m!RewriteInvalid=100"],
            "{target}"
        );
        assert_eq!(
            problems_of(&translation, "m"),
            ["metadata.annotations.rewrite-target !rewrite-invalid"],
            "{target}"
        );
    }
}

#[test]
fn a_forwarded_prefix_needs_a_rewrite() {
    let prefix = |notes: &[(&str, &str)]| {
        let mut ingress = main("m").on("a", "/x(.*)", "m");
        for (name, value) in notes {
            ingress = ingress.note(name, value);
        }
        let translation = run(&[ingress]);
        let rewrite = translation.snapshot.locations[0].policy.as_deref();
        let prefix = rewrite.and_then(|it| it.rewrite.as_ref()?.prefix.as_ref());
        let prefix = prefix.map(|it| it.as_str().to_owned());
        (prefix, problems_of(&translation, "m").len())
    };
    let rewrite = ("rewrite-target", "/$1");
    let own = |value| ("x-forwarded-prefix", value);
    assert_eq!(prefix(&[rewrite, own("/x")]), (Some("/x".to_owned()), 0));
    assert_eq!(prefix(&[own("/x")]), (None, 1));
    assert_eq!(prefix(&[rewrite, own("/a b")]), (None, 1));
    assert_eq!(prefix(&[rewrite, own("/$x")]), (None, 1));
}

#[test]
fn a_path_that_is_no_pattern_is_left_out_and_the_others_stay() {
    for path in ["/(", "/(?!api)(.*)", "/a++", "/x y"] {
        let translation = run(&[main("m")
            .note("use-regex", "true")
            .path("a", path, "ImplementationSpecific", "m")
            .on("a", "/y", "m")]);
        assert_eq!(
            show(&translation.snapshot),
            ["a/y (Regex): m=100"],
            "{path}"
        );
        assert_eq!(
            problems_of(&translation, "m"),
            ["spec.rules[0].http.paths[0].path !path-regex-invalid"],
            "{path}"
        );
    }
}

#[test]
fn exact_is_no_different_in_a_pattern() {
    let translation = run(&[main("m")
        .note("use-regex", "true")
        .path("a", "/x", "Exact", "m")
        .on("a", "/x", "m2")]);
    assert_eq!(show(&translation.snapshot), ["a/x (Regex): m=100"]);
    assert_eq!(
        problems_of(&translation, "m"),
        [
            "spec.rules[0].http.paths[0].pathType regex-exact",
            "spec.rules[1].http.paths[0].path !path-duplicate",
        ]
    );
}

#[test]
fn a_canary_attaches_by_the_text_of_the_path() {
    let translation = run(&[
        main("m")
            .note("rewrite-target", "/$1")
            .path("a", "/x/(.*)", "ImplementationSpecific", "m"),
        canary("c").weight("10").on("a", "/x/(.*)", "c"),
        canary("c2")
            .weight("10")
            .path("a", "/x/(.*)", "Exact", "c2"),
    ]);
    assert_eq!(show(&translation.snapshot), ["a/x/(.*) (Regex): m=90 c=10"]);
    assert_eq!(problems_of(&translation, "c"), [""; 0]);
    assert_eq!(
        problems_of(&translation, "c2"),
        ["spec.rules[0].http.paths[0] !canary-stray"]
    );
}

fn two() -> [super::support::Ing; 3] {
    [
        main("m")
            .at(1)
            .note("use-regex", "true")
            .on("a", "/x(.*)", "m"),
        main("m2")
            .at(2)
            .on("a", "/y", "m2")
            .path("a", "/z", "Exact", "m2")
            .on("a", "/z", "m2")
            .on("a", "/", "m2"),
        main("c").at(3).on("b", "/y", "c"),
    ]
}

#[test]
fn others_of_the_host_are_told_and_left_as_they_are() {
    let translation = run(&two());
    assert_eq!(patterns(&translation), [r#"/x(.*): ["/x(.*)"]"#]);
    assert_eq!(
        problems_of(&translation, "m2"),
        ["spec.rules[0].http.paths[0] regex-leak"]
    );
    assert_eq!(problems_of(&translation, "m"), [""; 0]);
    assert_eq!(problems_of(&translation, "c"), [""; 0]);
}

#[test]
fn strictly_all_paths_of_the_host_are_patterns() {
    let translation = strict(&two());
    assert_eq!(
        patterns(&translation),
        [
            r#"/: ["/"]"#,
            r#"/x(.*): ["/x(.*)"]"#,
            r#"/y: ["/y/", "/y"]"#,
            r#"/z: ["/z"]"#,
        ]
    );
    assert!(location(&translation, "b/y (Prefix)").pattern.is_none());
    // Both are the same pattern there too, of which the first is tried.
    assert_eq!(
        problems_of(&translation, "m2"),
        [
            "spec.rules[1].http.paths[0].pathType regex-exact",
            "spec.rules[2].http.paths[0].path !path-duplicate",
        ]
    );
}

#[test]
fn the_root_of_an_application_stays_exact() {
    let translation = strict(&[main("m")
        .note("app-root", "/app")
        .note("use-regex", "true")
        .path("a", "/", "Exact", "m")]);
    assert_eq!(
        show(&translation.snapshot),
        ["a/ (Exact): m=100", "a/ (Regex): m=100"]
    );
}
