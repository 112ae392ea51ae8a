use std::io::{Read as _, Write as _};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::Value;
use splitter_tests::backend::Backend;
use splitter_tests::eventually;
use splitter_tests::instance::Splitter;
use splitter_tests::issuer::{Key, bearer, claims, jwks};
use splitter_tests::manifests::Manifests;
use splitter_tests::tls::{Authority, Pair, secret};

/// Gives out keys over TLS.
struct KeyServer {
    backend: Backend,
    answer: Arc<Mutex<Vec<u8>>>,
    asked: Arc<AtomicUsize>,
}

impl KeyServer {
    fn new(pair: &Pair, answer: Vec<u8>) -> Self {
        let chain = CertificateDer::pem_slice_iter(pair.chain.as_bytes());
        let chain = chain.map(Result::unwrap).collect();
        let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        let config = Arc::new(config);
        let (answer, asked) = (Arc::new(Mutex::new(answer)), Arc::<AtomicUsize>::default());
        let backend = {
            let (answer, asked) = (answer.clone(), asked.clone());
            Backend::scripted(move |conversation| {
                let stream = conversation.stream().try_clone().unwrap();
                let tls = ServerConnection::new(config.clone()).unwrap();
                let mut stream = StreamOwned::new(tls, stream);
                let mut head = Vec::new();
                let mut byte = [0];
                while !head.ends_with(b"\r\n\r\n") {
                    match stream.read(&mut byte) {
                        Ok(1) => head.push(byte[0]),
                        _ => return,
                    }
                }
                asked.fetch_add(1, Ordering::SeqCst);
                let answer = answer.lock().unwrap().clone();
                let _ = stream.write_all(&answer);
                let _ = stream.flush();
                // Until the other side has had enough.
                let _ = stream.read(&mut byte);
            })
        };
        KeyServer {
            backend,
            answer,
            asked,
        }
    }

    fn answers(&self, answer: Vec<u8>) {
        *self.answer.lock().unwrap() = answer;
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

fn ok(body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into()
}

fn keys(all: &[Value]) -> Vec<u8> {
    ok(&jwks(all))
}

fn site(backend: &Backend, server: &KeyServer, trusted: &Authority) -> Splitter {
    let url = format!("https://127.0.0.1:{}/keys", server.backend.addr().port());
    let notes = [
        ("splitter.io/jwt-issuer", "https://id.test"),
        ("splitter.io/jwt-audiences", "shop"),
        ("splitter.io/jwt-jwks-url", &url),
        ("splitter.io/jwt-jwks-ca-secret", "roots"),
    ];
    let manifests = Manifests::new()
        .ingress("web", "a.test", "/", "Prefix", "app", &notes)
        .main("open", "b.test", "/", "app")
        .service("app", &[backend.addr()])
        .raw(&secret("roots", &[("ca.crt", trusted.pem())]));
    Splitter::start_with(&manifests, |settings| settings.names.allow_local = true)
}

fn status(splitter: &Splitter, key: &Key, name: &str) -> u16 {
    let token = key.token("ES256", name, &claims());
    splitter.get_with("a.test", "/", &bearer(&token)).status
}

#[test]
fn keys_are_fetched_kept_and_fetched_again_for_a_new_one_but_not_for_each() {
    let backend = Backend::named("app");
    let authority = Authority::new("keys");
    let (old, new, stranger) = (Key::ec(), Key::ec(), Key::ec());
    let server = KeyServer::new(&authority.issue(&["127.0.0.1"]), keys(&[old.jwk("old")]));
    let splitter = site(&backend, &server, &authority);
    assert_eq!(
        status(&splitter, &old, "old"),
        200,
        "the first one waits for the keys"
    );
    for _ in 0..50 {
        assert_eq!(status(&splitter, &stranger, "unknown"), 401);
    }
    assert_eq!(server.asked(), 1);
    server.answers(keys(&[old.jwk("old"), new.jwk("new")]));
    eventually("the new key is fetched", || {
        status(&splitter, &new, "new") == 200
    });
    assert_eq!(server.asked(), 2, "whoever asked how often");
    assert_eq!(status(&splitter, &old, "old"), 200);
    let fetches = |result| {
        let labels = [("result", result)];
        splitter
            .metrics()
            .sum("splitter_jwks_fetches_total", &labels)
    };
    assert_eq!((fetches("ok"), fetches("failed")), (2.0, 0.0));
    // What turns bad leaves the last good keys.
    server.answers(ok("<html>"));
    eventually("it is fetched again", || {
        status(&splitter, &stranger, "unknown");
        server.asked() > 2
    });
    eventually("it is told", || {
        splitter.problems() == ["web: jwks-invalid"]
    });
    assert_eq!(status(&splitter, &new, "new"), 200);
}

/// Whatever such a server does, nobody is let in, and nobody else is held up.
#[track_caller]
fn stays_closed(names: &[&str], answer: Vec<u8>, trusts: bool) {
    let backend = Backend::named("app");
    let authority = Authority::new("keys");
    let server = KeyServer::new(&authority.issue(names), answer);
    let trusted = match trusts {
        true => authority,
        false => Authority::new("somebody else"),
    };
    let splitter = site(&backend, &server, &trusted);
    assert_eq!(splitter.get("b.test", "/").status, 200);
    assert_eq!(status(&splitter, &Key::ec(), "one"), 503);
    assert_eq!(splitter.faults("token-keys-missing"), 1.0);
}

#[test]
fn a_server_that_is_not_who_it_should_be_is_not_believed() {
    let key = Key::ec();
    stays_closed(&["127.0.0.1"], keys(&[key.jwk("one")]), false);
    stays_closed(&["id.test"], keys(&[key.jwk("one")]), true);
}

#[test]
fn answers_that_are_none_are_not_taken() {
    let moved = b"HTTP/1.1 302 Found\r\nLocation: https://evil.test/\r\nContent-Length: 0\r\n\r\n";
    stays_closed(&["127.0.0.1"], moved.to_vec(), true);
    stays_closed(&["127.0.0.1"], ok(&"x".repeat(10 << 20)), true);
    let endless = "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n{\"keys\":";
    stays_closed(&["127.0.0.1"], endless.into(), true);
}
