//! The table of annotations against what is done with them.

use std::collections::BTreeSet;
use std::path::Path;

use super::support::{Ing, canary, main, objects, service};
use crate::config::ClassSettings;
use crate::k8s::translate::reference::{Row, Status, all, own, own_guards, own_main, tokens};
use crate::k8s::translate::{catalogue, policy};
use crate::k8s::{Translation, annotations_page, translate};

/// Authorities for `auth-tls-secret`.
const SECRET: &str = "---
apiVersion: v1
kind: Secret
metadata: {name: authorities, namespace: ns}
data: {ca.crt: eA==}
---
apiVersion: v1
kind: Secret
metadata: {name: users, namespace: ns}
data: {auth: eA==}
---
apiVersion: v1
kind: Secret
metadata: {name: keys, namespace: ns}
data: {jwks: eA==}
";

fn run(ingresses: &[Ing]) -> Translation {
    let services = ["m", "c"].map(|name| service("ns", name));
    let mut yaml = services.join("---\n");
    yaml.push_str(SECRET);
    for ingress in ingresses {
        yaml.push_str("---\n");
        yaml.push_str(&ingress.yaml());
    }
    translate(&objects(&yaml), &ClassSettings::default())
}

fn is_canarys(row: &Row) -> bool {
    catalogue::CANARY.contains(&row.name) || policy::is_canarys(row.name)
}

/// What comes of an Ingress with this value, and with what the annotation needs beside it.
fn with(row: &Row, value: &str) -> Translation {
    let beside = main("m").on("a", "/", "m");
    if is_canarys(row) && row.name != "canary" {
        let beside_it = [("canary-by-header", "h"), ("canary-weight", "5")];
        let it = beside_it
            .iter()
            .filter(|(name, _)| *name != row.name)
            .fold(canary("k"), |it, (name, value)| it.note(name, value));
        return run(&[beside, it.note(row.name, value).on("a", "/", "c")]);
    }
    let mut ingress = main("i");
    if row.name.starts_with("session-") || row.name == "affinity-mode" {
        ingress = ingress.note("affinity", "cookie");
    }
    if row.name.starts_with("auth-tls-") && row.name != "auth-tls-secret" {
        ingress = ingress.note("auth-tls-secret", "ns/authorities");
    }
    let basic = [("auth-type", "basic"), ("auth-secret", "users")];
    if basic.iter().any(|(name, _)| row.name == *name)
        || ["auth-realm", "auth-secret-type"].contains(&row.name)
    {
        let missing = basic.iter().filter(|(name, _)| row.name != *name);
        ingress = missing.fold(ingress, |it, (name, value)| it.note(name, value));
    }
    let family = [
        "auth-always-set-cookie",
        "auth-cache-duration",
        "auth-cache-key",
        "auth-method",
        "auth-proxy-set-headers",
        "auth-request-redirect",
        "auth-response-headers",
        "auth-signin",
        "auth-signin-redirect-param",
    ];
    if family.contains(&row.name) {
        ingress = ingress.note("auth-url", "http://auth.test/");
    }
    if row.name == "x-forwarded-prefix" {
        ingress = ingress.note("rewrite-target", "/x");
    }
    if row.name.starts_with("cors-") {
        ingress = ingress.note("enable-cors", "true");
    }
    if let Some(redirect) = row.name.strip_suffix("-redirect-code") {
        ingress = ingress.note(&format!("{redirect}-redirect"), "https://b.example/");
    }
    run(&[beside, ingress.note(row.name, value).on("b", "/", "m")])
}

fn codes(row: &Row, translation: &Translation) -> Vec<&'static str> {
    let field = format!("/{}", row.name);
    let found = translation.problems.iter();
    let own = found.filter(|it| it.field.ends_with(&field));
    own.map(|it| it.code).collect()
}

fn is_closed(translation: &Translation) -> bool {
    let mut backends = translation.snapshot.backends.iter();
    backends.any(|it| it.fault.is_some())
}

#[test]
fn every_known_annotation_has_one_row() {
    let mut names = BTreeSet::new();
    for row in all() {
        assert!(names.insert(row.name), "{} has two rows", row.name);
        assert!(catalogue::is_known(row.name), "{} is not known", row.name);
    }
    let missing: Vec<_> = catalogue::all().filter(|it| !names.contains(it)).collect();
    assert_eq!(missing, [""; 0], "add them to k8s/translate/reference/");
}

#[test]
fn what_is_read_is_not_called_missing_and_the_other_way_round() {
    for row in all() {
        let supported = is_canarys(row) || policy::is_supported(row.name);
        let said = !matches!(row.status, Status::Refused | Status::Ignored);
        assert_eq!(supported, said, "{}: {:?}", row.name, row.status);
    }
}

#[test]
fn what_is_refused_closes_and_what_is_ignored_does_not() {
    for row in all() {
        let translation = with(row, "true");
        match row.status {
            Status::Refused => {
                assert!(is_closed(&translation), "{}", row.name);
                assert_eq!(
                    codes(row, &translation),
                    ["guard-unsupported"],
                    "{}",
                    row.name
                );
            }
            Status::Ignored => {
                assert!(!is_closed(&translation), "{}", row.name);
                assert_eq!(
                    codes(row, &translation),
                    ["annotation-unsupported"],
                    "{}",
                    row.name
                );
            }
            Status::Works | Status::Differs | Status::Accepted => {}
        }
    }
}

#[test]
fn a_bad_value_is_reported() {
    for row in all().filter(|row| !row.bad.is_empty()) {
        let found = codes(row, &with(row, row.bad));
        assert!(!found.is_empty(), "{}: {:?}", row.name, row.bad);
    }
}

/// What comes of a canary with this annotation of ours, and with what it needs beside it.
fn with_own(row: &Row, value: &str) -> Translation {
    let mut it = canary("k").note("canary-weight", "5");
    if row.name.starts_with("canary-by-cookie-") {
        it = it.note("canary-by-cookie", "g");
    }
    if row.name == "canary-by-query-value" {
        it = it.raw_note("splitter.io/canary-by-query", "q");
    }
    let it = it.raw_note(&format!("splitter.io/{}", row.name), value);
    run(&[main("m").on("a", "/", "m"), it.on("a", "/", "c")])
}

#[test]
fn each_annotation_of_ours_has_one_row() {
    let names: Vec<_> = own().map(|row| row.name).collect();
    assert_eq!(names, catalogue::OWN);
}

#[test]
fn a_bad_value_of_ours_is_reported_and_a_good_one_is_not() {
    let good = [
        "^a+$",
        "b",
        "q",
        "any value",
        "10.0.0.0/8, ::1",
        "client-address",
        "0.5",
        "x-variant",
    ];
    for (row, good) in own().zip(good) {
        assert_eq!(codes(row, &with_own(row, good)), [""; 0], "{}", row.name);
        let bad = codes(row, &with_own(row, row.bad));
        assert!(!bad.is_empty(), "{}: {:?}", row.name, row.bad);
    }
}

/// What comes of a main Ingress with this access control of ours, under a prefix.
fn with_guard(row: &Row, prefix: &str, value: &str) -> Translation {
    let mut it = main("i");
    if row.name.starts_with("auth-tls-") {
        it = it.note("auth-tls-secret", "ns/authorities");
    }
    let it = it.raw_note(&format!("{prefix}/{}", row.name), value);
    run(&[main("m").on("a", "/", "m"), it.on("b", "/", "m")])
}

#[test]
fn each_access_control_of_ours_has_one_row_and_closes_what_it_cannot_guard() {
    let names: Vec<_> = own_guards().map(|row| row.name).collect();
    assert_eq!(names, catalogue::OWN_GUARDS);
    let good = ["spiffe://td.test/*, a.test", "east-west"];
    for (row, good) in own_guards().zip(good) {
        let of = |prefix, value| {
            let translation = with_guard(row, prefix, value);
            (codes(row, &translation), is_closed(&translation))
        };
        assert_eq!(of("splitter.io", good), (vec![], false), "{}", row.name);
        for bad in [row.bad, ""] {
            let (codes, closed) = of("splitter.io", bad);
            assert!(!codes.is_empty() && closed, "{}: {bad:?}", row.name);
        }
        let misnamed = of("nginx.ingress.kubernetes.io", good);
        assert_eq!(misnamed, (vec!["guard-misnamed"], true), "{}", row.name);
    }
}

#[test]
fn what_else_is_ours_has_one_row_and_is_read_under_our_prefix_only() {
    let names: Vec<_> = own_main().map(|row| row.name).collect();
    assert_eq!(names, catalogue::OWN_MAIN);
    for (row, good) in own_main().zip(["TLSv1.3"]) {
        let of = |prefix, value| codes(row, &with_guard(row, prefix, value));
        assert_eq!(of("splitter.io", good), [""; 0], "{}", row.name);
        assert!(!of("splitter.io", row.bad).is_empty(), "{}", row.name);
        let misnamed = of("nginx.ingress.kubernetes.io", good);
        assert_eq!(misnamed, ["annotation-unknown"], "{}", row.name);
    }
}

#[test]
fn each_annotation_of_tokens_has_one_row() {
    let names: Vec<_> = tokens().map(|row| row.name).collect();
    assert_eq!(names, catalogue::TOKENS);
    assert!(names.iter().all(|name| policy::is_supported(name)));
}

#[test]
fn a_bad_value_of_tokens_closes() {
    for row in tokens() {
        let needed = [
            ("jwt-issuer", "i"),
            ("jwt-audiences", "a"),
            ("jwt-jwks-secret", "keys"),
        ];
        let sources = ["jwt-jwks-configmap", "jwt-jwks-url"];
        let instead = |name: &str| sources.contains(&row.name) && name == "jwt-jwks-secret";
        let mut it = main("i").raw_note(&format!("splitter.io/{}", row.name), row.bad);
        let service = row.name.starts_with("auth-url-");
        if service {
            it = it.note("auth-url", "https://auth.test/");
        }
        for (name, value) in needed.into_iter().filter(|_| !service) {
            if name != row.name && !instead(name) {
                it = it.raw_note(&format!("splitter.io/{name}"), value);
            }
        }
        let translation = run(&[it.on("b", "/", "m")]);
        assert!(is_closed(&translation), "{}: {:?}", row.name, row.bad);
        assert_eq!(codes(row, &translation), ["auth-invalid"], "{}", row.name);
    }
}

#[test]
fn the_page_is_what_the_table_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/annotations.md");
    let page = annotations_page();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &page).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page,
        "docs/annotations.md is not what the table says; run \
         UPDATE_DOCS=1 cargo test -p splitter-userspace --lib reference"
    );
}
