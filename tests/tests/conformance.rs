//! The scenarios of the Ingress conformance suite (kubernetes-sigs/ingress-controller-conformance),
//! over `--manifests`: 30 runs of five features. Each request is made on a connection of its own,
//! and the first one counts, as there.
//!
//! There is no status without a cluster, so the scenario of the class checks that nothing is served.
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use std::net::SocketAddr;
use std::sync::Arc;

use serde_json::Value;
use splitter_tests::backend::Backend;
use splitter_tests::client::{Answer, Client};
use splitter_tests::instance::Splitter;
use splitter_tests::manifests::Manifests;
use splitter_tests::tls::{self, Authority, Pair};

/// What the suite's client names itself.
const AGENT: &str = "Go-http-client/1.1";

fn request(addr: SocketAddr, method: &str, host: &str, path: &str) -> Answer {
    let mut client = Client::connect(addr);
    client.send(format!(
        "{method} {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: {AGENT}\r\n\r\n"
    ));
    client.answer(method)
}

/// The request is answered by a pod of this Service, which saw it as it was sent.
#[track_caller]
fn served(splitter: &Splitter, method: &str, host: &str, path: &str, service: &str) -> Value {
    let answer = request(splitter.http(), method, host, path);
    assert_eq!(answer.status, 200, "{method} {host}{path}: {answer:?}");
    assert!(answer.line.starts_with("HTTP/1.1 "), "{}", answer.line);
    for name in ["content-length", "content-type", "date", "server"] {
        assert!(answer.field(name).is_some(), "{name}: {answer:?}");
    }
    let echo: Value = serde_json::from_slice(&answer.body).expect("an echo");
    assert_eq!(echo["service"], service, "{method} {host}{path}");
    assert_eq!(echo["method"], method);
    assert_eq!(echo["path"], path);
    assert_eq!(echo["proto"], "HTTP/1.1");
    assert_eq!(echo["host"], host);
    assert_eq!(echo["headers"]["user-agent"][0], AGENT);
    echo
}

#[track_caller]
fn not_found(splitter: &Splitter, host: &str, path: &str) {
    let answer = request(splitter.http(), "GET", host, path);
    assert_eq!(answer.status, 404, "{host}{path}: {answer:?}");
}

mod default_backend {
    use super::*;

    /// An Ingress with a default backend and nothing else.
    fn setup() -> (Backend, Splitter) {
        let echo = Backend::echoing("echo-service", "pod");
        let splitter = Splitter::start(&manifests(&[echo.addr()]));
        (echo, splitter)
    }

    pub fn manifests(pods: &[SocketAddr]) -> Manifests {
        Manifests::new().service("echo-service", pods).raw(
            "apiVersion: networking.k8s.io/v1\nkind: Ingress\n\
             metadata: {name: default-backend, namespace: demo}\n\
             spec: {defaultBackend: {service: {name: echo-service, port: {number: 80}}}}\n",
        )
    }

    macro_rules! examples {
        ($($name:ident: $method:literal $host:literal $path:literal;)*) => {$(
            #[test]
            fn $name() {
                let (_echo, splitter) = setup();
                served(&splitter, $method, $host, $path, "echo-service");
            }
        )*};
    }

    examples! {
        get_of_the_root: "GET" "my-host" "/";
        get_of_a_path: "GET" "my-host" "/sub-path";
        post: "POST" "some-host" "/";
        delete: "DELETE" "some-host" "/resource";
        patch: "PATCH" "my-host" "/resource";
    }

    #[test]
    fn put_to_the_address_itself() {
        let (_echo, splitter) = setup();
        let host = splitter.http().to_string();
        served(&splitter, "PUT", &host, "/resource", "echo-service");
    }
}

mod host_rules {
    use super::*;

    struct Hosts {
        _backends: [Backend; 2],
        splitter: Splitter,
        authority: Authority,
        pair: Pair,
    }

    fn setup() -> Hosts {
        let backends = ["wildcard-foo-com", "foo-bar-com"].map(|it| Backend::echoing(it, "pod"));
        let authority = Authority::new("conformance");
        let pair = authority.issue(&["foo.bar.com"]);
        let splitter = Splitter::start_with(
            &Manifests::new()
                .raw(&pair.secret("conformance-tls"))
                .service("wildcard-foo-com", &[backends[0].addr()])
                .service("foo-bar-com", &[backends[1].addr()])
                .raw(
                    "apiVersion: networking.k8s.io/v1\nkind: Ingress\n\
                     metadata: {name: host-rules, namespace: demo}\nspec:\n  tls:\n  \
                     - {hosts: [foo.bar.com], secretName: conformance-tls}\n  rules:\n  \
                     - host: \"*.foo.com\"\n    http: {paths: [{path: /, pathType: Prefix, \
                     backend: {service: {name: wildcard-foo-com, port: {number: 80}}}}]}\n  \
                     - host: foo.bar.com\n    http: {paths: [{path: /, pathType: Prefix, \
                     backend: {service: {name: foo-bar-com, port: {name: http}}}}]}\n",
                ),
            |settings| settings.https = vec!["127.0.0.1:0".parse().expect("an address")],
        );
        Hosts {
            _backends: backends,
            splitter,
            authority,
            pair,
        }
    }

    #[test]
    fn exact_host_asked_by_https() {
        let hosts = setup();
        let addr = hosts.splitter.https();
        assert_eq!(tls::shown(addr, Some("foo.bar.com")), hosts.pair.der());
        let config = Arc::new(hosts.authority.client());
        let mut client = tls::connect(addr, "foo.bar.com", &config);
        let answer = client.get("foo.bar.com", "/");
        assert_eq!(answer.status, 200, "{answer:?}");
        let echo: Value = serde_json::from_slice(&answer.body).expect("an echo");
        assert_eq!(echo["service"], "foo-bar-com");
        assert_eq!(echo["host"], "foo.bar.com");
    }

    /// The suite's client follows the redirect.
    #[test]
    fn exact_host() {
        let answer = request(setup().splitter.http(), "GET", "foo.bar.com", "/");
        assert_eq!(answer.status, 308);
        assert_eq!(answer.field("location"), Some("https://foo.bar.com"));
    }

    #[test]
    fn other_name_below_the_same_parent() {
        not_found(&setup().splitter, "subdomain.bar.com", "/");
    }

    #[test]
    fn wildcard_host() {
        served(
            &setup().splitter,
            "GET",
            "bar.foo.com",
            "/",
            "wildcard-foo-com",
        );
    }

    #[test]
    fn wildcard_is_for_one_label() {
        not_found(&setup().splitter, "baz.bar.foo.com", "/");
    }

    #[test]
    fn wildcard_is_not_for_its_parent() {
        not_found(&setup().splitter, "foo.com", "/");
    }
}

mod ingress_class {
    use super::*;

    #[test]
    fn ingress_of_a_class_that_is_not_ours_is_not_served() {
        let echo = Backend::echoing("echo-service", "pod");
        let splitter = Splitter::start(
            &Manifests::new()
                .service("echo-service", &[echo.addr()])
                .raw(
                    "apiVersion: networking.k8s.io/v1\nkind: Ingress\n\
                     metadata: {name: ingress-class, namespace: demo}\n\
                     spec: {ingressClassName: some-invalid-class-name, rules: [{host: ingress-class, \
                     http: {paths: [{path: /, pathType: Prefix, backend: {service: \
                     {name: echo-service, port: {number: 80}}}}]}}]}\n",
                ),
        );
        not_found(&splitter, "ingress-class", "/");
        assert_eq!(echo.connections(), 0);
    }
}

mod load_balancing {
    use super::*;

    #[test]
    fn a_hundred_requests_reach_each_of_ten_pods() {
        let pods: Vec<_> = (0..10)
            .map(|i| Backend::echoing("echo-service", &format!("pod-{i}")))
            .collect();
        let addrs: Vec<_> = pods.iter().map(Backend::addr).collect();
        let splitter = Splitter::start(&default_backend::manifests(&addrs));
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..100 {
            let echo = served(&splitter, "GET", "load-balancing", "/", "echo-service");
            seen.insert(echo["pod"].to_string());
        }
        assert_eq!(seen.len(), 10, "{seen:?}");
    }
}

mod path_rules {
    use super::*;

    const RULES: [(&str, &str, &str, &str); 8] = [
        ("exact-path-rules", "/foo", "Exact", "foo-exact"),
        ("prefix-path-rules", "/foo", "Prefix", "foo-prefix"),
        (
            "prefix-path-rules",
            "/aaa/bbb",
            "Prefix",
            "aaa-slash-bbb-prefix",
        ),
        ("prefix-path-rules", "/aaa", "Prefix", "aaa-prefix"),
        ("mixed-path-rules", "/foo", "Prefix", "foo-prefix"),
        ("mixed-path-rules", "/foo", "Exact", "foo-exact"),
        (
            "trailing-slash-path-rules",
            "/aaa/bbb/",
            "Prefix",
            "aaa-slash-bbb-slash-prefix",
        ),
        (
            "trailing-slash-path-rules",
            "/foo/",
            "Exact",
            "foo-slash-exact",
        ),
    ];

    /// One Ingress with a rule for each host.
    fn setup() -> (Vec<Backend>, Splitter) {
        let mut services: Vec<_> = RULES.iter().map(|rule| rule.3).collect();
        services.sort_unstable();
        services.dedup();
        let backends: Vec<_> = services
            .iter()
            .map(|it| Backend::echoing(it, "pod"))
            .collect();
        let mut manifests = Manifests::new();
        for (service, backend) in services.iter().zip(&backends) {
            manifests = manifests.service(service, &[backend.addr()]);
        }
        let mut ingress = "apiVersion: networking.k8s.io/v1\nkind: Ingress\n\
             metadata: {name: path-rules, namespace: demo}\nspec:\n  rules:\n"
            .to_owned();
        for rules in RULES.chunk_by(|a, b| a.0 == b.0) {
            ingress += &format!("  - host: {}\n    http:\n      paths:\n", rules[0].0);
            for (_, path, kind, service) in rules {
                ingress += &format!(
                    "      - {{path: {path}, pathType: {kind}, backend: {{service: \
                     {{name: {service}, port: {{number: 80}}}}}}}}\n"
                );
            }
        }
        let splitter = Splitter::start(&manifests.raw(&ingress));
        (backends, splitter)
    }

    macro_rules! scenarios {
        ($($name:ident: $host:literal $path:literal => $service:expr;)*) => {$(
            #[test]
            fn $name() {
                let (_backends, splitter) = setup();
                let service: Option<&str> = $service;
                match service {
                    Some(service) => {
                        served(&splitter, "GET", $host, $path, service);
                    }
                    None => not_found(&splitter, $host, $path),
                }
            }
        )*};
    }

    scenarios! {
        exact_equal: "exact-path-rules" "/foo" => Some("foo-exact");
        exact_with_a_slash_more: "exact-path-rules" "/foo/" => None;
        exact_in_capitals: "exact-path-rules" "/FOO" => None;
        exact_of_another_path: "exact-path-rules" "/bar" => None;
        prefix_equal: "prefix-path-rules" "/foo" => Some("foo-prefix");
        prefix_with_a_slash_more: "prefix-path-rules" "/foo/" => Some("foo-prefix");
        prefix_with_a_slash_more_again: "prefix-path-rules" "/foo/" => Some("foo-prefix");
        prefix_in_capitals: "prefix-path-rules" "/FOO" => None;
        prefix_of_two_elements: "prefix-path-rules" "/aaa/bbb" => Some("aaa-slash-bbb-prefix");
        prefix_of_two_and_one_more:
            "prefix-path-rules" "/aaa/bbb/ccc" => Some("aaa-slash-bbb-prefix");
        prefix_of_one_and_another: "prefix-path-rules" "/aaa/ccc" => Some("aaa-prefix");
        prefix_of_half_an_element: "prefix-path-rules" "/aaaccc" => None;
        exact_before_prefix: "mixed-path-rules" "/foo" => Some("foo-exact");
        prefix_rule_with_a_slash:
            "trailing-slash-path-rules" "/aaa/bbb" => Some("aaa-slash-bbb-slash-prefix");
        prefix_rule_and_request_with_a_slash:
            "trailing-slash-path-rules" "/aaa/bbb/" => Some("aaa-slash-bbb-slash-prefix");
        exact_rule_with_a_slash: "trailing-slash-path-rules" "/foo" => None;
    }
}
