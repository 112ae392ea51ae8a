//! Every policy, on every protocol, whichever Variant answers: who may not call reaches no pod, and who
//! may call reaches the one that was chosen.

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use splitter_tests::backend::Backend;
use splitter_tests::instance::Splitter;
use splitter_tests::issuer::{Key, bearer, claims, jwks};
use splitter_tests::manifests::Manifests;
use splitter_tests::tls::secret;
use splitter_tests::{PATIENCE, eventually};

use super::{basic, users};

/// One way to say who may call, and fields that let in.
struct Policy {
    name: &'static str,
    notes: Vec<(&'static str, String)>,
    good: String,
    bad: String,
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

fn policies(key: &Key, service: &Backend) -> Vec<Policy> {
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
    let token = bearer(&key.token("ES256", "one", &claims()));
    vec![
        Policy {
            name: "basic",
            notes: asks.to_vec(),
            good: basic("ann", "secret"),
            bad: basic("ann", "x"),
        },
        Policy {
            name: "jwt",
            notes: jwt.to_vec(),
            good: token.clone(),
            bad: bearer(&Key::ec().token("ES256", "one", &claims())),
        },
        Policy {
            name: "external",
            notes: vec![note("auth-url", &url)],
            good: "X-Key: good\r\n".to_owned(),
            bad: "X-Key: bad\r\n".to_owned(),
        },
        Policy {
            name: "any",
            notes: any,
            good: token,
            bad: basic("ann", "x"),
        },
    ]
}

/// A way to ask.
#[derive(Clone, Copy, Debug)]
enum Way {
    Http10,
    Http11,
    Body,
    Upgrade,
    Http2,
}

const WAYS: [Way; 5] = [
    Way::Http10,
    Way::Http11,
    Way::Body,
    Way::Upgrade,
    Way::Http2,
];

/// The status that is answered to `GET /` with these fields.
fn ask(splitter: &Splitter, way: Way, fields: &str) -> u16 {
    let mut client = splitter.client();
    match way {
        Way::Http10 => client.send(format!("GET / HTTP/1.0\r\nHost: a.test\r\n{fields}\r\n")),
        Way::Http11 => client.send(format!("GET / HTTP/1.1\r\nHost: a.test\r\n{fields}\r\n")),
        Way::Body => client.send(format!(
            "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 2\r\n{fields}\r\nhi"
        )),
        Way::Upgrade => client.send(format!(
            "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\
             {fields}\r\n"
        )),
        Way::Http2 => return over_http2(splitter, fields),
    }
    client.answer("GET").status
}

fn over_http2(splitter: &Splitter, fields: &str) -> u16 {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    let exchange = async {
        let stream = tokio::net::TcpStream::connect(splitter.http())
            .await
            .unwrap();
        let (mut sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .unwrap();
        tokio::spawn(connection);
        let mut request = Request::get("http://a.test/");
        for line in fields.lines() {
            let (name, value) = line.split_once(": ").unwrap();
            request = request.header(name, value);
        }
        let request = request.body(Empty::<Bytes>::new()).unwrap();
        let answer = sender.send_request(request).await.unwrap();
        let status = answer.status().as_u16();
        let _ = answer.into_body().collect().await;
        status
    };
    runtime.block_on(async { tokio::time::timeout(PATIENCE, exchange).await.unwrap() })
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

fn site(policy: &Policy, side: Side, pods: &Pods, key: &Key) -> Splitter {
    let mut notes: Vec<_> = policy
        .notes
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    let canary: &[(&str, &str)] = match side {
        Side::Canary => &[("canary-weight", "100")],
        Side::Mirrored => &[("canary-weight", "0"), ("splitter.io/mirror", "100")],
        _ => &[("canary-by-header", "x-canary")],
    };
    match side {
        Side::Retried => notes.push(("proxy-next-upstream", "error http_500")),
        Side::Page => {
            notes.extend([
                ("custom-http-errors", "401,403,500"),
                ("default-backend", "page"),
            ]);
        }
        _ => {}
    }
    let stable = [pods.stable.addr()];
    let manifests = Manifests::new()
        .ingress("web", "a.test", "/", "Prefix", "app", &notes)
        .canary("web-canary", "a.test", "/", "app-canary", canary)
        .service("app", &stable)
        .service("app-canary", &[pods.canary.addr()])
        .service("page", &[pods.page.addr()])
        .raw(&users())
        .raw(&secret("keys", &[("jwks", &jwks(&[key.jwk("one")]))]));
    Splitter::start_with(&manifests, |settings| settings.names.allow_local = true)
}

#[test]
fn no_way_and_no_side_leads_past_a_policy() {
    let (key, service) = (Key::ec(), service());
    for policy in policies(&key, &service) {
        for side in SIDES {
            let pods = Pods::new(side);
            let splitter = site(&policy, side, &pods, &key);
            let what = |way| format!("{} {side:?} {way:?}", policy.name);
            for way in WAYS {
                for fields in ["", &policy.bad] {
                    let status = ask(&splitter, way, fields);
                    assert!([401, 403].contains(&status), "{}: {status}", what(way));
                }
            }
            assert_eq!(pods.asked(), [0; 3], "{} {side:?}", policy.name);
            for way in WAYS {
                let before = pods.asked();
                let status = ask(&splitter, way, &policy.good);
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
