//! How Ingresses fare beside ingress-nginx.

use super::support::{Ing, canary, main, objects, service};
use crate::config::ClassSettings;
use crate::k8s::{Fared, Fate, compare, translate};

fn fared(ingresses: &[Ing]) -> Vec<Fared> {
    let services = ["m", "c", "d", "o"].map(|name| service("ns", name));
    let mut yaml = services.join("---\n");
    for ingress in ingresses {
        yaml.push_str("---\n");
        yaml.push_str(&ingress.yaml());
    }
    let (objects, settings) = (objects(&yaml), ClassSettings::default());
    let translation = translate(&objects, &settings);
    compare(&objects, &settings, &translation)
}

/// Name, fate and reasons of each.
fn told(ingresses: &[Ing]) -> Vec<String> {
    let line = |it: &Fared| {
        let fate = match it.fate {
            Fate::Unchanged => "unchanged",
            Fate::Differs => "differs",
            Fate::NeedsWork => "work",
        };
        format!("{} {fate} {}", it.ingress.name, it.reasons.join(","))
    };
    fared(ingresses).iter().map(line).collect()
}

#[test]
fn what_is_the_same_is_unchanged() {
    let all = [
        main("a").note("rate-limit", "5").on("a", "/", "m"),
        main("b").note("proxy-body-size", "8m").on("b", "/", "o"),
        canary("k").weight("5").on("a", "/", "c"),
        main("other").class(Some("other")).on("a", "/x", "m"),
    ];
    assert_eq!(
        told(&all),
        ["a unchanged ", "b unchanged ", "k unchanged "],
        "an Ingress of another class is none of our business"
    );
}

#[test]
fn what_is_missing_or_wrong_needs_work() {
    let all = [
        main("a").note("auth-url", "x").on("a", "/", "m"),
        main("b").note("mirror-target", "x").on("b", "/", "m"),
        main("c").on("c", "/", "nobody"),
        main("d").note("ssl-passthrough", "true").on("d", "/", "m"),
        canary("k").weight("5").on("nowhere", "/", "c"),
    ];
    let told = told(&all);
    assert!(told.iter().all(|it| it.contains(" work ")), "{told:?}");
}

#[test]
fn a_canary_that_would_leak_is_named_on_both_sides() {
    let all = [
        main("a").on("a", "/", "m"),
        main("b").on("b", "/", "m"),
        canary("k").weight("5").on("a", "/", "c"),
    ];
    assert_eq!(
        told(&all),
        [
            "a unchanged ",
            "b differs canary-leak",
            "k differs canary-leak"
        ]
    );
    let difference = fared(&all).swap_remove(1).differences.remove(0);
    assert!(
        difference
            .there
            .contains("takes requests of b/ (Prefix) too")
    );
    assert_eq!(difference.here, "only a/ (Prefix) is split");
}

#[test]
fn two_paths_of_one_ingress_leak_too() {
    let all = [
        main("a").on("a", "/", "m").on("a", "/x", "m"),
        canary("k").weight("5").on("a", "/x", "c"),
    ];
    assert_eq!(
        told(&all),
        ["a differs canary-leak", "k differs canary-leak"]
    );
}

#[test]
fn a_canarys_service_that_is_used_elsewhere_is_named() {
    let all = [
        main("a").on("a", "/", "m"),
        main("direct").on("canary.a", "/", "c"),
        canary("k").weight("5").on("a", "/", "c"),
    ];
    assert_eq!(
        told(&all),
        [
            "a unchanged ",
            "direct differs canary-service-shared",
            "k differs canary-service-shared"
        ]
    );
}

#[test]
fn later_canaries_and_small_totals_are_named() {
    let all = [
        main("a").on("a", "/", "m"),
        canary("k1").at(1).weight("5").on("a", "/", "c"),
        canary("k2").at(2).weight("5").on("a", "/", "d"),
    ];
    assert_eq!(
        told(&all),
        [
            "a unchanged ",
            "k1 unchanged ",
            "k2 differs canary-first-only"
        ]
    );
    let small = [
        main("a").on("a", "/", "m"),
        canary("k")
            .weight("5")
            .note("canary-weight-total", "10")
            .on("a", "/", "c"),
    ];
    assert_eq!(told(&small)[1], "k differs weight-total-small");
}

#[test]
fn a_regular_expression_makes_the_hosts_other_paths_differ() {
    let mut all = vec![
        main("a").note("use-regex", "true").on("a", "/", "m"),
        main("b").on("a", "/b", "o"),
        main("c").on("c", "/", "o"),
    ];
    let told_b = |all: &[Ing]| told(all).remove(1);
    assert_eq!(told_b(&all), "b differs regex-leak");
    all[0] = main("a").note("use-regex", "false").on("a", "/", "m");
    assert_eq!(told_b(&all), "b unchanged ");
}

#[test]
fn annotations_that_are_read_more_narrowly_are_named() {
    for (name, value, expected) in [
        ("limit-rps", "5", "a differs limit-by-network"),
        ("limit-connections", "5", "a differs limit-by-network"),
        ("limit-rpm", "0", "a unchanged "),
        ("cors-allow-origin", "*", "a unchanged "),
        (
            "cors-allow-origin",
            "https://b",
            "a differs cors-origin-whole",
        ),
        ("proxy-next-upstream", "error timeout", "a unchanged "),
        (
            "proxy-next-upstream",
            "error non_idempotent",
            "a differs body-not-repeated",
        ),
        // It has no Secret, which is the greater worry.
        (
            "auth-tls-match-cn",
            "CN=b",
            "a work client-cert-invalid,match-cn-whole",
        ),
    ] {
        let noted = main("a").note("enable-cors", "true").note(name, value);
        assert_eq!(
            told(&[noted.on("a", "/", "m")]),
            [expected],
            "{name}: {value}"
        );
    }
    let off = main("a").note("cors-allow-origin", "https://b");
    let told = told(&[off.on("a", "/", "m")]);
    assert_eq!(
        told,
        ["a unchanged "],
        "without enable-cors it has no effect"
    );
}

#[test]
fn what_ingress_nginx_does_nothing_with_either_is_unchanged() {
    for (name, value) in [("session-cookie-name", "x"), ("session-cookie-path", "/x")] {
        let noted = main("a").note(name, value).on("a", "/", "m");
        assert_eq!(told(&[noted]), ["a unchanged "], "{name}");
    }
}

#[test]
fn what_each_demands_of_its_callers_is_told() {
    let guarded = main("a")
        .note("allowlist-source-range", "10.0.0.0/8")
        .note("auth-url", "https://auth.test:8443/check")
        .note("enable-cors", "true");
    let any = main("b")
        .note("denylist-source-range", "10.0.0.0/8")
        .note("auth-url", "http://m.ns.svc/")
        .note("satisfy", "any");
    let all = fared(&[
        guarded.on("a", "/", "m").on("a", "/x", "m"),
        any.on("b", "/", "m"),
        main("c").on("c", "/", "m"),
    ]);
    let demands: Vec<_> = all.iter().map(|it| it.demands.join("; ")).collect();
    assert_eq!(
        demands,
        [
            "an address of 10.0.0.0/8; a yes of https://auth.test:8443",
            "an address that is none of 10.0.0.0/8, or a yes of http://m.ns.svc:80",
            "",
        ]
    );
    let codes: Vec<_> = all[0].differences.iter().map(|it| it.code).collect();
    assert!(codes.contains(&"auth-service-verified"), "{codes:?}");
}
