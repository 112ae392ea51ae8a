//! The admission webhook: real TLS, AdmissionReview v1, beside an API server that does as it is told.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

use std::io::Read as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;

use rustls::ClientConfig;
use serde_json::{Value, json};
use socket2::{Domain, Socket, Type};
use splitter::config::WebhookSettings;
use splitter_tests::client::Answer;
use splitter_tests::cluster::fake::FakeApi;
use splitter_tests::cluster::instance::{self, ClusterSplitter};
use splitter_tests::cluster::objects;
use splitter_tests::eventually;
use splitter_tests::tls::{self, Authority, Pair};
use tempfile::TempDir;

const INGRESSES: &str = "/apis/networking.k8s.io/v1/ingresses";
const SERVICES: &str = "/api/v1/services";

/// By what the API server asks.
const NAME: &str = "splitter-webhook.splitter.svc";

struct Site {
    api: FakeApi,
    splitter: ClusterSplitter,
    addr: SocketAddr,
    client: Arc<ClientConfig>,
    authority: Authority,
    dir: TempDir,
    /// Has the port belong to this test until the end.
    _port: Socket,
}

fn write(dir: &Path, pair: &Pair) {
    for (name, text) in [("tls.crt", &pair.chain), ("tls.key", &pair.key)] {
        let next = dir.join("next");
        std::fs::write(&next, text).unwrap();
        std::fs::rename(next, dir.join(name)).unwrap();
    }
}

impl Site {
    fn start() -> Site {
        Site::start_with(|dir, authority| write(dir, &authority.issue(&[NAME])))
    }

    /// Started once its certificate was `prepared`.
    fn start_with(prepared: impl FnOnce(&Path, &Authority)) -> Site {
        let api = FakeApi::start();
        api.put_silently(SERVICES, &objects::service("shop", "web"));
        api.put_silently(INGRESSES, &objects::ingress("shop", "a", "a.test", "web"));
        let (authority, dir) = (Authority::new("webhooks"), TempDir::new().unwrap());
        prepared(dir.path(), &authority);
        let port = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        port.set_reuse_port(true).unwrap();
        port.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into())
            .unwrap();
        let addr = port.local_addr().unwrap().as_socket().unwrap();
        let (mut settings, mut cluster) = instance::settings(&api.kubeconfig(), "", "node-1");
        cluster.status.update = false;
        cluster.status.events = false;
        settings.webhook = Some(WebhookSettings {
            addr,
            certificate: dir.path().join("tls.crt"),
            key: dir.path().join("tls.key"),
        });
        Site {
            splitter: ClusterSplitter::start((settings, cluster)),
            client: Arc::new(authority.client()),
            api,
            addr,
            authority,
            dir,
            _port: port,
        }
    }

    fn post(&self, body: &str) -> Answer {
        let mut client = tls::connect(self.addr, NAME, &self.client);
        let length = body.len();
        client.send(format!(
            "POST / HTTP/1.1\r\nHost: {NAME}\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        ));
        client.answer("POST")
    }

    fn ask(&self, operation: &str, new: &Value, old: &Value) -> Value {
        let review = json!({
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "request": {
                "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
                "kind": {"group": "networking.k8s.io", "version": "v1", "kind": "Ingress"},
                "resource": {"group": "networking.k8s.io", "version": "v1", "resource": "ingresses"},
                "name": new["metadata"]["name"],
                "namespace": "shop",
                "operation": operation,
                "userInfo": {"username": "somebody", "groups": ["system:authenticated"]},
                "object": new,
                "oldObject": old,
                "dryRun": false,
                "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
            },
        });
        let answer = self.post(&review.to_string());
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.field("content-type"), Some("application/json"));
        let answer: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(answer["apiVersion"], "admission.k8s.io/v1");
        assert_eq!(answer["kind"], "AdmissionReview");
        let response = answer["response"].clone();
        assert_eq!(response["uid"], review["request"]["uid"]);
        response
    }

    fn create(&self, name: &str, host: &str, service: &str) -> Value {
        let ingress = objects::ingress("shop", name, host, service);
        self.ask("CREATE", &ingress, &Value::Null)
    }

    fn counted(&self, result: &str) -> f64 {
        let name = "splitter_admission_reviews_total";
        self.splitter.metrics().sum(name, &[("result", result)])
    }
}

#[test]
fn ingresses_are_judged_beside_those_that_are_there() {
    let site = Site::start();
    let good = site.create("b", "b.test", "web");
    assert_eq!(
        (&good["allowed"], &good["warnings"]),
        (&true.into(), &Value::Null)
    );
    let taken = site.create("b", "a.test", "web");
    assert_eq!(taken["allowed"], false, "{taken}");
    let why = taken["status"]["message"].as_str().unwrap();
    assert!(why.contains("spec.rules[0].http.paths[0]"), "{why}");
    let early = site.create("b", "b.test", "later");
    assert_eq!(early["allowed"], true, "{early}");
    assert!(
        early["warnings"][0].as_str().unwrap().contains("later"),
        "{early}"
    );
    // What was wrong already may be changed otherwise; what gets wrong may not.
    let there = objects::ingress("shop", "a", "a.test", "web");
    let mut other = there.clone();
    other["metadata"]["annotations"] = json!({"nginx.ingress.kubernetes.io/canary": "true"});
    let worse = site.ask("UPDATE", &other, &there);
    let same = site.ask("UPDATE", &other, &other);
    assert_eq!(same["allowed"], true, "{worse} {same}");
    assert_eq!(
        (site.counted("refused") >= 1.0, site.counted("late")),
        (true, 0.0)
    );
    // The state is that of the moment.
    site.api
        .put(INGRESSES, &objects::ingress("shop", "c", "c.test", "web"));
    eventually("the new one is in the way", || {
        site.create("d", "c.test", "web")["allowed"] == false
    });
}

#[test]
fn what_is_no_question_is_answered_so_and_bounded() {
    let site = Site::start();
    for body in [
        "",
        "{}",
        "no JSON",
        r#"{"apiVersion": "admission.k8s.io/v1"}"#,
    ] {
        assert_eq!(site.post(body).status, 400, "{body}");
    }
    let long = format!("\"{}\"", "a".repeat(splitter::webhook::MAX_BODY_BYTES));
    let answer = site.post(&long);
    assert_eq!(answer.status, 400);
    assert!(answer.text().contains("bytes"), "{}", answer.text());
    let mut client = tls::connect(site.addr, NAME, &site.client);
    client.send(format!("GET / HTTP/1.1\r\nHost: {NAME}\r\n\r\n"));
    assert_eq!(client.answer("GET").status, 405);
    // Neither harms the next one.
    assert_eq!(site.create("b", "b.test", "web")["allowed"], true);
    assert_eq!(site.counted("unread"), 5.0);
}

#[test]
fn a_new_certificate_is_shown_and_a_bad_one_is_not() {
    let site = Site::start();
    let first = tls::shown(site.addr, Some(NAME));
    std::fs::write(site.dir.path().join("tls.key"), "nothing").unwrap();
    assert_eq!(tls::shown(site.addr, Some(NAME)), first);
    let next = site.authority.issue(&[NAME]);
    write(site.dir.path(), &next);
    eventually("the new one is shown", || {
        tls::shown(site.addr, Some(NAME)) == next.der()
    });
    assert_eq!(site.create("b", "b.test", "web")["allowed"], true);
}

#[test]
fn a_certificate_may_come_later_and_traffic_does_not_wait() {
    let site = Site::start_with(|_, _| {});
    eventually("readiness says what is missing", || {
        let (ready, text) = site.splitter.ready();
        ready && text.contains("webhook: --webhook-certificate") && text.contains("tls.crt")
    });
    // Of the Ingress that is there; its Service has no endpoint.
    assert_eq!(site.splitter.get("a.test").status, 503);
    let mut refused = TcpStream::connect(site.addr).unwrap();
    let mut nothing = Vec::new();
    assert_eq!(refused.read_to_end(&mut nothing).unwrap_or(0), 0);
    assert!(site.counted("no-certificate") >= 1.0);
    write(site.dir.path(), &site.authority.issue(&[NAME]));
    eventually("the certificate is taken up", || {
        site.splitter.ready().1.contains("webhook: answering")
    });
    assert_eq!(site.create("b", "b.test", "web")["allowed"], true);
}

#[test]
fn an_address_that_is_taken_is_an_error_at_the_start() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let (authority, dir) = (Authority::new("webhooks"), TempDir::new().unwrap());
    write(dir.path(), &authority.issue(&[NAME]));
    let settings = WebhookSettings {
        addr: taken.local_addr().unwrap(),
        certificate: dir.path().join("tls.crt"),
        key: dir.path().join("tls.key"),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let _inside = runtime.as_ref().unwrap().enter();
    let opened = splitter::webhook::Webhook::open(&settings);
    let text = opened.err().unwrap().to_string();
    assert!(text.contains("--webhook 127.0.0.1"), "{text}");
}
