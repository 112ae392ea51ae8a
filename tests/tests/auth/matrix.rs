//! Every policy, on every protocol, whichever Variant answers: who may not call reaches no pod, and who
//! may call reaches the one that was chosen.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use splitter_tests::backend::Backend;
use splitter_tests::client::Client;
use splitter_tests::instance::Splitter;
use splitter_tests::issuer::{Key, bearer, claims, jwks};
use splitter_tests::manifests::Manifests;
use splitter_tests::tls::{Authority, connect, secret};
use splitter_tests::{PATIENCE, eventually};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;

use super::{basic, users};

/// One way to say who may call, and what lets in.
struct Policy {
    name: &'static str,
    notes: Vec<(&'static str, String)>,
    good: Shown,
    bad: Vec<Shown>,
}

/// What a client shows of itself.
#[derive(Clone)]
struct Shown {
    fields: String,
    tls: Arc<ClientConfig>,
}

/// Those who vouch for the server and for clients, and what a client without a certificate has.
struct World {
    key: Key,
    servers: Authority,
    people: Authority,
    nobody: Arc<ClientConfig>,
}

impl World {
    fn new() -> Self {
        let servers = Authority::new("servers");
        World {
            key: Key::ec(),
            nobody: Arc::new(servers.client()),
            people: Authority::new("people"),
            servers,
        }
    }

    fn fields(&self, fields: impl Into<String>) -> Shown {
        Shown {
            fields: fields.into(),
            tls: self.nobody.clone(),
        }
    }

    fn certificate(&self, of: &Authority) -> Shown {
        Shown {
            fields: String::new(),
            tls: Arc::new(self.servers.client_as(&of.person("ann"))),
        }
    }
}

/// Answers 202 to those who send `x-key: good`, else 403.
fn service() -> Backend {
    Backend::scripted(|conversation| {
        while let Some(request) = conversation.request() {
            let head = match request.field("x-key") {
                Some("good") => "202 Accepted",
                _ => "403 Forbidden",
            };
            conversation.send(format!("HTTP/1.1 {head}\r\nContent-Length: 0\r\n\r\n"));
        }
    })
}

fn policies(world: &World, service: &Backend) -> Vec<Policy> {
    let note = |name, value: &str| (name, value.to_owned());
    let jwt = [
        note("splitter.io/jwt-issuer", "https://id.test"),
        note("splitter.io/jwt-audiences", "shop"),
        note("splitter.io/jwt-jwks-secret", "keys"),
    ];
    let asks = [note("auth-type", "basic"), note("auth-secret", "users")];
    let url = format!("http://{}/", service.addr());
    let mut any = [&asks[..], &jwt[..]].concat();
    any.push(note("satisfy", "any"));
    let token = bearer(&world.key.token("ES256", "one", &claims()));
    let other = bearer(&Key::ec().token("ES256", "one", &claims()));
    let policy = |name, notes: &[_], good, bad: &[&str]| Policy {
        name,
        notes: notes.to_vec(),
        good: world.fields(good),
        bad: [""].iter().chain(bad).map(|it| world.fields(*it)).collect(),
    };
    let from = |address: &str| format!("X-Forwarded-For: {address}\r\n");
    let class = note("splitter.io/traffic-class", "north-south");
    let allow = note("allowlist-source-range", "192.0.2.0/24");
    let wrong = basic("ann", "x");
    let strangers = world.certificate(&Authority::new("people"));
    vec![
        policy("basic", &asks, basic("ann", "secret"), &[&wrong]),
        policy("jwt", &jwt, token.clone(), &[&other]),
        policy(
            "external",
            &[note("auth-url", &url)],
            "X-Key: good\r\n".to_owned(),
            &["X-Key: bad\r\n"],
        ),
        policy("any", &any, token, &[&wrong]),
        policy(
            "addresses",
            &[allow],
            from("192.0.2.1"),
            &[&from("203.0.113.1")],
        ),
        // The test itself is inside, and a header can only say that somebody is not.
        policy("class", &[class], from("203.0.113.1"), &[&from("10.1.2.3")]),
        Policy {
            name: "certificate",
            notes: vec![note("auth-tls-secret", "demo/people")],
            good: world.certificate(&world.people),
            bad: vec![world.fields(""), strangers],
        },
    ]
}

/// A way to ask.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Http10,
    Http11,
    Body,
    Upgrade,
    Http2,
    Grpc,
    Tls,
    TlsUpgrade,
    TlsHttp2,
    TlsGrpc,
}

const WAYS: [Way; 10] = [
    Way::Http10,
    Way::Http11,
    Way::Body,
    Way::Upgrade,
    Way::Http2,
    Way::Grpc,
    Way::Tls,
    Way::TlsUpgrade,
    Way::TlsHttp2,
    Way::TlsGrpc,
];

impl Way {
    fn is_secure(self) -> bool {
        matches!(
            self,
            Way::Tls | Way::TlsUpgrade | Way::TlsHttp2 | Way::TlsGrpc
        )
    }

    /// One request of HTTP/1; none for the others.
    fn text(self, fields: &str) -> Option<String> {
        let (line, more, body) = match self {
            Way::Http10 => ("GET / HTTP/1.0", "", ""),
            Way::Http11 | Way::Tls => ("GET / HTTP/1.1", "", ""),
            Way::Body => ("POST / HTTP/1.1", "Content-Length: 2\r\n", "hi"),
            Way::Upgrade | Way::TlsUpgrade => (
                "GET / HTTP/1.1",
                "Connection: upgrade\r\nUpgrade: websocket\r\n",
                "",
            ),
            Way::Http2 | Way::Grpc | Way::TlsHttp2 | Way::TlsGrpc => return None,
        };
        Some(format!(
            "{line}\r\nHost: a.test\r\n{more}{fields}\r\n{body}"
        ))
    }
}

/// The status that is answered to a request for `/`.
fn ask(splitter: &Splitter, way: Way, shown: &Shown) -> u16 {
    match (way.text(&shown.fields), way.is_secure()) {
        (Some(text), false) => exchange(splitter.client(), &text),
        (Some(text), true) => {
            let client = connect(splitter.https(), "a.test", &shown.tls);
            exchange(client, &text)
        }
        (None, _) => over_http2(splitter, way, shown),
    }
}

fn exchange<S: std::io::Read + std::io::Write>(mut client: Client<S>, text: &str) -> u16 {
    client.send(text);
    client.answer("GET").status
}

fn over_http2(splitter: &Splitter, way: Way, shown: &Shown) -> u16 {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    let exchange = async {
        if !way.is_secure() {
            let stream = tokio::net::TcpStream::connect(splitter.http()).await;
            return in_frames(stream.unwrap(), way, &shown.fields).await;
        }
        let mut config = ClientConfig::clone(&shown.tls);
        config.alpn_protocols = vec![b"h2".to_vec()];
        let stream = tokio::net::TcpStream::connect(splitter.https()).await;
        let name = ServerName::try_from("a.test").unwrap();
        let connector = TlsConnector::from(Arc::new(config));
        let stream = connector.connect(name, stream.unwrap()).await.unwrap();
        in_frames(stream, way, &shown.fields).await
    };
    runtime.block_on(async { tokio::time::timeout(PATIENCE, exchange).await.unwrap() })
}

async fn in_frames(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    way: Way,
    fields: &str,
) -> u16 {
    let connected = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
    let (mut sender, connection) = connected.unwrap();
    tokio::spawn(connection);
    let scheme = if way.is_secure() { "https" } else { "http" };
    let mut request = Request::builder().uri(format!("{scheme}://a.test/"));
    if matches!(way, Way::Grpc | Way::TlsGrpc) {
        request = request.method(Method::POST).header("te", "trailers");
        request = request.header("content-type", "application/grpc");
    }
    for line in fields.lines() {
        let (name, value) = line.split_once(": ").unwrap();
        request = request.header(name, value);
    }
    let request = request.body(Empty::<Bytes>::new()).unwrap();
    let answer = sender.send_request(request).await.unwrap();
    let status = answer.status().as_u16();
    let _ = answer.into_body().collect().await;
    status
}

/// Which side answers, by what the canary and the request say.
#[derive(Clone, Copy, Debug)]
enum Side {
    Stable,
    Canary,
    Mirrored,
    Retried,
    Page,
}

const SIDES: [Side; 5] = [
    Side::Stable,
    Side::Canary,
    Side::Mirrored,
    Side::Retried,
    Side::Page,
];

struct Pods {
    stable: Backend,
    canary: Backend,
    page: Backend,
}

impl Pods {
    fn new(side: Side) -> Self {
        let broken = "HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n";
        Pods {
            stable: match side {
                Side::Retried | Side::Page => Backend::answering(broken),
                _ => Backend::named("stable"),
            },
            canary: Backend::named("canary"),
            page: Backend::named("page"),
        }
    }

    fn asked(&self) -> [usize; 3] {
        [&self.stable, &self.canary, &self.page].map(|it| it.seen().len())
    }
}

fn site(world: &World, policy: &Policy, side: Side, pods: &Pods) -> Splitter {
    let mut notes: Vec<_> = policy
        .notes
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    notes.push(("ssl-redirect", "false"));
    let canary: &[(&str, &str)] = match side {
        Side::Canary => &[("canary-weight", "100")],
        Side::Mirrored => &[("canary-weight", "0"), ("splitter.io/mirror", "100")],
        _ => &[("canary-by-header", "x-canary")],
    };
    match side {
        Side::Retried => notes.push(("proxy-next-upstream", "error http_500")),
        Side::Page => {
            notes.extend([
                ("custom-http-errors", "400,401,403,500"),
                ("default-backend", "page"),
            ]);
        }
        _ => {}
    }
    let stable = [pods.stable.addr()];
    let pair = world.servers.issue(&["a.test"]);
    let manifests = Manifests::new()
        .tls("a", &["a.test"])
        .ingress("web", "a.test", "/", "Prefix", "app", &notes)
        .canary("web-canary", "a.test", "/", "app-canary", canary)
        .service("app", &stable)
        .service("app-canary", &[pods.canary.addr()])
        .service("page", &[pods.page.addr()])
        .raw(&users())
        .raw(&pair.secret("a"))
        .raw(&secret("people", &[("ca.crt", world.people.pem())]))
        .raw(&secret("keys", &[("jwks", &jwks(&[world.key.jwk("one")]))]));
    Splitter::start_with(&manifests, |settings| {
        settings.names.allow_local = true;
        settings.https = vec!["127.0.0.1:0".parse().unwrap()];
        settings.use_forwarded_headers = true;
        settings.dataplane.ranges.cluster = vec!["10.0.0.0/8".parse().unwrap()];
    })
}

#[test]
fn no_way_and_no_side_leads_past_a_policy() {
    let (world, service) = (World::new(), service());
    for policy in policies(&world, &service) {
        for side in SIDES {
            let pods = Pods::new(side);
            let splitter = site(&world, &policy, side, &pods);
            let what = |way| format!("{} {side:?} {way:?}", policy.name);
            for way in WAYS {
                for bad in &policy.bad {
                    let status = ask(&splitter, way, bad);
                    let refused = [400, 401, 403].contains(&status);
                    assert!(refused, "{}: {status}", what(way));
                }
            }
            assert_eq!(pods.asked(), [0; 3], "{} {side:?}", policy.name);
            // A certificate is shown in no other way.
            let in_clear = policy.name == "certificate";
            for way in WAYS {
                let before = pods.asked();
                let status = ask(&splitter, way, &policy.good);
                if in_clear && !way.is_secure() {
                    assert_eq!((status, pods.asked()), (403, before), "{}", what(way));
                    continue;
                }
                let (expected, grown) = match side {
                    Side::Stable | Side::Mirrored => (200, 0),
                    Side::Canary => (200, 1),
                    Side::Retried => (500, 0),
                    Side::Page => (200, 2),
                };
                assert_eq!(status, expected, "{}", what(way));
                assert!(pods.asked()[grown] > before[grown], "{}", what(way));
            }
            if matches!(side, Side::Mirrored) {
                eventually("copies come", || pods.asked()[1] > 0);
            }
        }
    }
}
