//! Annotations that are not supported.

use super::support::{Ing, canary, main, objects, problems_of, run, service, show};
use crate::config::ClassSettings;
use crate::k8s::translate;

/// The Location's line and the Problems of a main Ingress with one annotation.
fn with(name: &str, value: &str) -> (String, Vec<String>) {
    let translation = run(&[main("m").note(name, value).on("a", "/", "m")]);
    let line = show(&translation.snapshot).remove(0);
    (
        line.replace("a/ (Prefix): ", ""),
        problems_of(&translation, "m"),
    )
}

#[test]
fn guards_close_the_ingress() {
    let rows = [
        ("auth-snippet", "x"),
        ("enable-modsecurity", "true"),
        ("enable-modsecurity", "nonsense"),
        ("enable-owasp-core-rules", "true"),
        ("modsecurity-snippet", "SecRuleEngine On"),
        ("configuration-snippet", "allow 10.0.0.0/8;\ndeny all;"),
        ("server-snippet", "location /x { return 403; }"),
    ];
    for (name, value) in rows {
        let (line, problems) = with(name, value);
        assert_eq!(line, "m!GuardUnsupported=100", "{name}: {value}");
        assert_eq!(
            problems,
            [format!("metadata.annotations.{name} !guard-unsupported")]
        );
    }
}

#[test]
fn what_guards_nothing_needs_no_word() {
    let rows = [
        ("whitelist-source-range", "0.0.0.0/0,::/0"),
        ("allowlist-source-range", "::/0, 10.0.0.0/8, 0.0.0.0/0"),
        ("enable-modsecurity", "false"),
        ("auth-tls-verify-client", "off"),
        ("ssl-redirect", "false"),
        ("use-regex", "False"),
        ("backend-protocol", "HTTP"),
        ("backend-protocol", " http "),
        ("backend-protocol", "GRPC"),
        ("backend-protocol", "grpc"),
        ("backend-protocol", "HTTPS"),
        ("backend-protocol", "https"),
    ];
    for (name, value) in rows {
        assert_eq!(
            with(name, value),
            ("m=100".to_owned(), vec![]),
            "{name}: {value}"
        );
    }
}

#[test]
fn other_protocols_close_the_ingress() {
    for value in ["AUTO_HTTP", "auto_http", "FCGI", "", "h2c"] {
        let (line, problems) = with("backend-protocol", value);
        assert_eq!(line, "m!ProtocolUnsupported=100", "{value}");
        assert_eq!(
            problems,
            ["metadata.annotations.backend-protocol !protocol-unsupported"]
        );
    }
}

#[test]
fn the_rest_is_ignored_with_a_word() {
    for name in ["mirror-target", "http2-push-preload", "influxdb-host"] {
        let (line, problems) = with(name, "x");
        assert_eq!(line, "m=100");
        assert_eq!(
            problems,
            [format!(
                "metadata.annotations.{name} annotation-unsupported"
            )]
        );
    }
    for name in [
        "rate-limit",
        "websocket-services",
        "proxy-set-headers",
        "ingress.class",
        "canary-header",
    ] {
        let (line, problems) = with(name, "x");
        assert_eq!(line, "m=100");
        assert_eq!(
            problems,
            [format!("metadata.annotations.{name} annotation-unknown")]
        );
    }
    let (line, problems) = with("configuration-snippet", "more_set_headers \"a: b\";");
    assert_eq!(line, "m=100");
    assert_eq!(
        problems,
        ["metadata.annotations.configuration-snippet annotation-unsupported"]
    );
}

#[test]
fn annotations_of_others_are_none_of_our_business() {
    let translation = run(&[main("m")
        .raw_note("cert-manager.io/cluster-issuer", "x")
        .raw_note("nginx.org/rewrites", "x")
        .raw_note("nginx.ingress.kubernetes.io", "x")
        .on("a", "/", "m")]);
    assert_eq!(*translation.problems, []);
}

#[test]
fn a_closed_location_has_no_canary_and_closes_nobody_else() {
    let guarded = || main("g").note("auth-snippet", "x").on("a", "/", "m");
    let translation = run(&[
        guarded(),
        main("open").on("b", "/", "m"),
        canary("k")
            .weight("100")
            .note("canary-by-header", "h")
            .on("a", "/", "c"),
    ]);
    assert_eq!(
        show(&translation.snapshot),
        ["a/ (Prefix): m!GuardUnsupported=100", "b/ (Prefix): m=100"]
    );
    // One Service port, once open and once closed; sorted by key, then fault.
    let backends = &translation.snapshot.backends;
    assert_eq!(backends.len(), 2);
    assert_eq!(backends[0].key, backends[1].key);
    assert!(backends[0].fault.is_none() && backends[0].is_available());
    assert!(backends[1].fault.is_some() && !backends[1].is_available());
}

#[test]
fn a_guard_is_named_before_a_protocol() {
    let both: Ing = main("m")
        .note("backend-protocol", "FCGI")
        .note("auth-snippet", "x");
    let translation = run(&[both.on("a", "/", "m")]);
    assert_eq!(
        show(&translation.snapshot),
        ["a/ (Prefix): m!GuardUnsupported=100"]
    );
    assert_eq!(translation.problems.len(), 2);
}

#[test]
fn guards_count_under_the_own_prefix_too() {
    let translation = run(&[main("m")
        .raw_note("splitter.io/auth-snippet", "x")
        .on("a", "/", "m")]);
    assert_eq!(
        show(&translation.snapshot),
        ["a/ (Prefix): m!GuardUnsupported=100"]
    );
}

#[test]
fn a_canary_has_no_policy_of_its_own() {
    let translation = run(&[
        main("m").on("a", "/", "m"),
        canary("k")
            .weight("5")
            .note("auth-url", "x")
            .note("backend-protocol", "HTTPS")
            .on("a", "/", "c"),
    ]);
    assert_eq!(show(&translation.snapshot), ["a/ (Prefix): m=95 c=5"]);
    assert_eq!(
        problems_of(&translation, "k"),
        [
            "metadata.annotations.auth-url annotation-unsupported",
            "metadata.annotations.backend-protocol annotation-unsupported",
        ]
    );
}

/// Problems of an Ingress with this `spec.tls` beside these Secrets.
fn tls(tls: &str, secrets: &str) -> Vec<String> {
    let yaml = format!(
        "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {{name: i, namespace: ns}}\n\
         spec: {{tls: {tls}, defaultBackend: {{service: {{name: m, port: {{number: 80}}}}}}}}\n---\n{}---\n{secrets}",
        service("ns", "m")
    );
    let translation = translate(&objects(&yaml), &ClassSettings::default());
    assert_eq!(show(&translation.snapshot), ["*/ (Prefix): m=100"]);
    problems_of(&translation, "i")
}

fn secret(namespace: &str, data: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{name: s, namespace: {namespace}}}\n{data}\n---\n"
    )
}

#[test]
fn whose_certificate_is_good_must_be_told() {
    let invalid = |name: &str, value: &str| {
        let found = with(name, value);
        let problem = format!("metadata.annotations.{name} !client-cert-invalid");
        assert_eq!(found, ("m!GuardInvalid=100".to_owned(), vec![problem]));
    };
    invalid("auth-tls-secret", "");
    invalid("auth-tls-secret", "ca");
    invalid("auth-tls-secret", "ns/ca");
    invalid("auth-tls-secret", "other/ca");
    invalid("auth-tls-verify-client", "on");
    invalid("auth-tls-match-cn", "CN=a");
    invalid("auth-tls-verify-depth", "1");
}

#[test]
fn secrets_of_tls_are_looked_for() {
    let there = secret("ns", "");
    let unused = "spec.tls[0].hosts[0] tls-host-unused";
    assert_eq!(tls("[]", ""), [""; 0]);
    assert_eq!(tls("[{secretName: s, hosts: [a]}]", &there), [unused]);
    assert_eq!(tls("[{hosts: [a]}]", ""), [unused]);
    assert_eq!(tls("[{secretName: s}]", &there), [""; 0]);
    let missing = "spec.tls[0].secretName !secret-not-found";
    assert_eq!(tls("[{secretName: s}]", ""), [missing]);
    let elsewhere = secret("other", "");
    assert_eq!(tls("[{secretName: s}]", &elsewhere), [missing]);
    let bad = "spec.tls[0].hosts[0] host-invalid";
    assert_eq!(tls("[{hosts: ['a:1']}]", ""), [bad]);
}

#[test]
fn what_has_no_effect_without_another_annotation_is_told() {
    for (notes, told) in [
        (
            &[("proxy-ssl-verify", "on")][..],
            "proxy-ssl-verify upstream-tls-unused",
        ),
        (
            &[("proxy-ssl-secret", "ns/ca"), ("proxy-ssl-verify", "on")],
            "proxy-ssl-secret upstream-tls-unused",
        ),
        (
            &[("proxy-ssl-name", "x.test"), ("backend-protocol", "GRPC")],
            "proxy-ssl-name upstream-tls-unused",
        ),
        (
            &[("limit-rate-after", "5")],
            "limit-rate-after limit-unused",
        ),
        (&[("limit-rate-after", "5"), ("limit-rate", "0")], ""),
        (&[("proxy-ssl-verify", "off")], ""),
        (
            &[("proxy-ssl-name", "x.test"), ("backend-protocol", "HTTPS")],
            "",
        ),
    ] {
        let ingress = notes
            .iter()
            .fold(main("m"), |it, (name, value)| it.note(name, value));
        let translation = run(&[ingress.on("a", "/", "m")]);
        let told = Some(told).filter(|it| !it.is_empty());
        let told: Vec<_> = told
            .map(|it| format!("metadata.annotations.{it}"))
            .into_iter()
            .collect();
        assert_eq!(problems_of(&translation, "m"), told, "{notes:?}");
        assert_eq!(show(&translation.snapshot), ["a/ (Prefix): m=100"]);
    }
}
