//! The 30 scenarios of the Ingress conformance suite (kubernetes-sigs/ingress-controller-conformance)
//! on a real API server. As there, each Ingress is waited for until its status names an address, and
//! then the first request counts.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

use serde_json::{Value, json};
use splitter_tests::backend::Backend;
use splitter_tests::client::{Answer, Client};
use splitter_tests::cluster::instance::ClusterSplitter;
use splitter_tests::cluster::{echoing_pod, objects, pod_ip};
use splitter_tests::eventually;
use splitter_tests::tls::{self, Authority};

use crate::world::World;

/// What the suite's client names itself.
const AGENT: &str = "Go-http-client/1.1";

/// Where the splitter of a test listens, which its Ingresses' status says.
const ADDRESS: &str = "127.0.0.1";

/// A splitter and the Services of one scenario.
struct Scenario<'w> {
    world: &'w World,
    namespace: String,
    splitter: ClusterSplitter,
    pods: Vec<Backend>,
    ingresses: Vec<Value>,
}

/// The suite removes the namespace of each scenario: a default backend would answer for others.
impl Drop for Scenario<'_> {
    fn drop(&mut self) {
        for ingress in &self.ingresses {
            self.world.remove(ingress);
        }
    }
}

impl<'w> Scenario<'w> {
    fn start(world: &'w mut World) -> Self {
        let namespace = world.namespace();
        let (mut settings, mut cluster) = world.settings();
        settings.https = vec![SocketAddr::from(([127, 0, 0, 1], 0))];
        cluster.status.addresses = vec![ADDRESS.to_owned()];
        Scenario {
            world,
            namespace,
            splitter: ClusterSplitter::start((settings, cluster)),
            pods: Vec::new(),
            ingresses: Vec::new(),
        }
    }

    /// A Service with so many pods.
    fn service(&mut self, name: &str, pods: u8) {
        let first = self.pods.len() as u8 + 1;
        let numbers = first..first + pods;
        self.pods
            .extend(numbers.clone().map(|n| echoing_pod(n, name)));
        self.world.put(&objects::service(&self.namespace, name));
        let ips: Vec<_> = numbers.map(pod_ip).collect();
        let slice = objects::slice(&self.namespace, name, &ips, &[]);
        self.world.put(&slice);
    }

    /// An Ingress; returns when its status names an address.
    fn ingress(&mut self, name: &str, spec: &Value) {
        let mut spec = spec.clone();
        spec["ingressClassName"] = "splitter".into();
        let ingress = json!({
            "apiVersion": "networking.k8s.io/v1",
            "kind": "Ingress",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": spec,
        });
        self.world.put(&ingress);
        eventually("the status names an address", || {
            self.world.addresses(&ingress) == [ADDRESS]
        });
        self.ingresses.push(ingress);
    }

    fn request(&self, method: &str, host: &str, path: &str) -> Answer {
        let mut client = Client::connect(self.splitter.http());
        client.send(format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: {AGENT}\r\n\r\n"
        ));
        client.answer(method)
    }

    /// The request is answered by a pod of the Service, which saw it as it was sent.
    #[track_caller]
    fn served(&self, method: &str, host: &str, path: &str, service: &str) -> Value {
        let answer = self.request(method, host, path);
        assert_eq!(answer.status, 200, "{method} {host}{path}: {answer:?}");
        assert!(answer.line.starts_with("HTTP/1.1 "), "{}", answer.line);
        for name in ["content-length", "content-type", "date", "server"] {
            assert!(answer.field(name).is_some(), "{name}: {answer:?}");
        }
        let echo: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(echo["service"], service, "{method} {host}{path}");
        assert_eq!(echo["method"], method);
        assert_eq!(echo["path"], path);
        assert_eq!(echo["proto"], "HTTP/1.1");
        assert_eq!(echo["host"], host);
        assert_eq!(echo["headers"]["user-agent"][0], AGENT);
        echo
    }

    #[track_caller]
    fn not_found(&self, host: &str, path: &str) {
        let answer = self.request("GET", host, path);
        assert_eq!(answer.status, 404, "{host}{path}: {answer:?}");
    }
}

fn backend(service: &str, port: &Value) -> Value {
    json!({"service": {"name": service, "port": port}})
}

fn path(path: &str, kind: &str, service: &str) -> Value {
    let backend = backend(service, &json!({"number": 80}));
    json!({"path": path, "pathType": kind, "backend": backend})
}

fn echo_by_default() -> Value {
    json!({"defaultBackend": backend("echo-service", &json!({"number": 80}))})
}

pub fn conformance_default_backend(world: &mut World) {
    let mut scenario = Scenario::start(world);
    scenario.service("echo-service", 1);
    scenario.ingress("default-backend", &echo_by_default());
    let itself = scenario.splitter.http().to_string();
    for (method, host, path) in [
        ("GET", "my-host", "/"),
        ("GET", "my-host", "/sub-path"),
        ("POST", "some-host", "/"),
        ("PUT", &itself, "/resource"),
        ("DELETE", "some-host", "/resource"),
        ("PATCH", "my-host", "/resource"),
    ] {
        scenario.served(method, host, path, "echo-service");
    }
}

pub fn conformance_host_rules(world: &mut World) {
    let mut scenario = Scenario::start(world);
    let authority = Authority::new("conformance");
    let pair = authority.issue(&["foo.bar.com"]);
    let secret = objects::tls_secret(&scenario.namespace, "conformance-tls", &pair);
    scenario.world.put(&secret);
    scenario.service("wildcard-foo-com", 1);
    scenario.service("foo-bar-com", 1);
    let mut named = path("/", "Prefix", "foo-bar-com");
    named["backend"] = backend("foo-bar-com", &json!({"name": "http"}));
    let spec = json!({
        "tls": [{"hosts": ["foo.bar.com"], "secretName": "conformance-tls"}],
        "rules": [
            {"host": "*.foo.com", "http": {"paths": [path("/", "Prefix", "wildcard-foo-com")]}},
            {"host": "foo.bar.com", "http": {"paths": [named]}},
        ],
    });
    scenario.ingress("host-rules", &spec);

    let https = scenario.splitter.https();
    assert_eq!(tls::shown(https, Some("foo.bar.com")), pair.der());
    let config = Arc::new(authority.client());
    let answer = tls::connect(https, "foo.bar.com", &config).get("foo.bar.com", "/");
    assert_eq!(answer.status, 200, "{answer:?}");
    let echo: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(echo["service"], "foo-bar-com");
    assert_eq!(echo["host"], "foo.bar.com");
    // The suite's client follows the redirect to what was asked just now.
    let answer = scenario.request("GET", "foo.bar.com", "/");
    assert_eq!(answer.status, 308);
    assert_eq!(answer.field("location"), Some("https://foo.bar.com"));

    scenario.not_found("subdomain.bar.com", "/");
    scenario.served("GET", "bar.foo.com", "/", "wildcard-foo-com");
    scenario.not_found("baz.bar.foo.com", "/");
    scenario.not_found("foo.com", "/");
}

/// The suite waits five minutes for a status that must not come; here an Ingress that is ours and
/// newer has got its own by then.
pub fn conformance_ingress_class(world: &mut World) {
    let mut scenario = Scenario::start(world);
    scenario.service("echo-service", 1);
    let mut other = objects::ingress(
        &scenario.namespace,
        "ingress-class",
        "ingress-class",
        "echo-service",
    );
    other["spec"]["ingressClassName"] = "some-invalid-class-name".into();
    scenario.world.put(&other);
    scenario.ingress("later", &echo_by_default());
    assert!(scenario.world.addresses(&other).is_empty());
    let metrics = scenario.splitter.metrics();
    let served = metrics.select(
        "splitter_requests_total",
        &[("chosen_ingress", "ingress-class")],
    );
    assert!(served.is_empty());
}

pub fn conformance_load_balancing(world: &mut World) {
    let mut scenario = Scenario::start(world);
    scenario.service("echo-service", 10);
    scenario.ingress("load-balancing", &echo_by_default());
    let seen = (0..100).map(|_| {
        let echo = scenario.served("GET", "load-balancing", "/", "echo-service");
        echo["pod"].to_string()
    });
    let seen: BTreeSet<String> = seen.collect();
    assert_eq!(seen.len(), 10, "{seen:?}");
}

pub fn conformance_path_rules(world: &mut World) {
    let mut scenario = Scenario::start(world);
    for service in [
        "foo-exact",
        "foo-prefix",
        "aaa-slash-bbb-prefix",
        "aaa-prefix",
        "aaa-slash-bbb-slash-prefix",
        "foo-slash-exact",
    ] {
        scenario.service(service, 1);
    }
    let rule = |host: &str, paths: &[Value]| json!({"host": host, "http": {"paths": paths}});
    let rules = [
        rule("exact-path-rules", &[path("/foo", "Exact", "foo-exact")]),
        rule(
            "prefix-path-rules",
            &[
                path("/foo", "Prefix", "foo-prefix"),
                path("/aaa/bbb", "Prefix", "aaa-slash-bbb-prefix"),
                path("/aaa", "Prefix", "aaa-prefix"),
            ],
        ),
        rule(
            "mixed-path-rules",
            &[
                path("/foo", "Prefix", "foo-prefix"),
                path("/foo", "Exact", "foo-exact"),
            ],
        ),
        rule(
            "trailing-slash-path-rules",
            &[
                path("/aaa/bbb/", "Prefix", "aaa-slash-bbb-slash-prefix"),
                path("/foo/", "Exact", "foo-slash-exact"),
            ],
        ),
    ];
    scenario.ingress("path-rules", &json!({"rules": rules}));
    for (host, path, service) in [
        ("exact-path-rules", "/foo", Some("foo-exact")),
        ("exact-path-rules", "/foo/", None),
        ("exact-path-rules", "/FOO", None),
        ("exact-path-rules", "/bar", None),
        ("prefix-path-rules", "/foo", Some("foo-prefix")),
        ("prefix-path-rules", "/foo/", Some("foo-prefix")),
        ("prefix-path-rules", "/foo/", Some("foo-prefix")),
        ("prefix-path-rules", "/FOO", None),
        (
            "prefix-path-rules",
            "/aaa/bbb",
            Some("aaa-slash-bbb-prefix"),
        ),
        (
            "prefix-path-rules",
            "/aaa/bbb/ccc",
            Some("aaa-slash-bbb-prefix"),
        ),
        ("prefix-path-rules", "/aaa/ccc", Some("aaa-prefix")),
        ("prefix-path-rules", "/aaaccc", None),
        ("mixed-path-rules", "/foo", Some("foo-exact")),
        (
            "trailing-slash-path-rules",
            "/aaa/bbb",
            Some("aaa-slash-bbb-slash-prefix"),
        ),
        (
            "trailing-slash-path-rules",
            "/aaa/bbb/",
            Some("aaa-slash-bbb-slash-prefix"),
        ),
        ("trailing-slash-path-rules", "/foo", None),
    ] {
        match service {
            Some(service) => {
                scenario.served("GET", host, path, service);
            }
            None => scenario.not_found(host, path),
        }
    }
}
