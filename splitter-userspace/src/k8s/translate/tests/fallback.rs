//! Default backends and error pages.

use super::support::{main, problems_of, run, show};
use crate::k8s::Translation;
use crate::model::Policy;

fn policy(translation: &Translation) -> &Policy {
    let location = &translation.snapshot.locations[0];
    location.policy.as_deref().expect("there is a policy")
}

#[test]
fn the_service_is_of_the_namespace_and_known_by_its_first_port() {
    let translation = run(&[main("m")
        .note("default-backend", " c ")
        .note("custom-http-errors", "503, 404,404")
        .on("a", "/", "m")]);
    assert_eq!(*translation.problems, []);
    let policy = policy(&translation);
    let key = policy.fallback.clone().expect("a default backend");
    assert_eq!(key.to_string(), "ns-c-80");
    let backend = translation.snapshot.backend_by_key(&key);
    assert!(backend.is_some_and(|it| it.is_available()));
    let pages = policy.error_pages.as_ref().expect("error pages");
    assert_eq!((&*pages.codes, pages.intercept), (&[404, 503][..], true));
}

#[test]
fn a_service_that_is_not_there_is_reported() {
    let translation = run(&[main("m").note("default-backend", "none").on("a", "/", "m")]);
    assert_eq!(
        problems_of(&translation, "m"),
        ["metadata.annotations.default-backend !service-not-found"]
    );
    let key = policy(&translation).fallback.clone().expect("the key");
    let backend = translation.snapshot.backend_by_key(&key);
    assert!(backend.is_some_and(|it| !it.is_available()));
}

#[test]
fn pages_need_a_default_backend_and_statuses() {
    for (codes, expected) in [
        ("404", "custom-http-errors error-pages-missing"),
        ("200", "custom-http-errors !error-code-invalid"),
        ("x", "custom-http-errors !error-code-invalid"),
        ("600", "custom-http-errors !error-code-invalid"),
    ] {
        let translation = run(&[main("m")
            .note("custom-http-errors", codes)
            .on("a", "/", "m")]);
        assert_eq!(translation.snapshot.locations[0].policy, None, "{codes}");
        let expected = format!("metadata.annotations.{expected}");
        assert_eq!(problems_of(&translation, "m"), [expected], "{codes}");
    }
}

#[test]
fn pods_answers_can_be_left_as_they_are() {
    let translation = run(&[main("m")
        .note("default-backend", "c")
        .note("custom-http-errors", "502,x")
        .note("disable-proxy-intercept-errors", "true")
        .on("a", "/", "m")]);
    let pages = policy(&translation).error_pages.as_ref();
    assert_eq!(pages.map(|it| it.intercept), Some(false));
    assert_eq!(
        problems_of(&translation, "m"),
        ["metadata.annotations.custom-http-errors !error-code-invalid"]
    );
}

#[test]
fn a_closed_ingress_stays_closed() {
    let translation = run(&[main("m")
        .note("auth-snippet", "x")
        .note("default-backend", "c")
        .note("custom-http-errors", "503")
        .on("a", "/", "m")]);
    assert_eq!(
        show(&translation.snapshot),
        ["a/ (Prefix): m!GuardUnsupported=100"]
    );
    assert_eq!(translation.snapshot.locations[0].policy, None);
}
