//! gRPC over TLS to pods: `backend-protocol: GRPCS` with `proxy-ssl-*`.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use splitter_tests::tls::{Authority, Pair, secret};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tonic::Code;

use super::*;

const GRPCS: (&str, &str) = ("backend-protocol", "GRPCS");
const SECRET: (&str, &str) = ("proxy-ssl-secret", "demo/pods");
const VERIFY: (&str, &str) = ("proxy-ssl-verify", "on");
const NAME: (&str, &str) = ("proxy-ssl-name", "pods.test");
const SNI: (&str, &str) = ("proxy-ssl-server-name", "on");

/// What a front knows of a connection: the protocol and name in its handshake, and whose
/// certificate was shown.
#[derive(Clone, Debug, PartialEq)]
struct Greeted {
    protocol: Option<Vec<u8>>,
    name: Option<String>,
    certificate: Option<CertificateDer<'static>>,
}

/// TLS in front of a pod; stops when dropped.
struct Front {
    addr: SocketAddr,
    greeted: Arc<Mutex<Vec<Greeted>>>,
    _stop: tokio::sync::oneshot::Sender<()>,
}

impl Front {
    fn new(pod: &Pod, pair: &Pair, protocols: &[&str]) -> Self {
        Self::with(pod, pair, protocols, None)
    }

    fn with(pod: &Pod, pair: &Pair, protocols: &[&str], people: Option<&Authority>) -> Self {
        let acceptor = TlsAcceptor::from(Arc::new(config(pair, protocols, people)));
        let greeted = Arc::<Mutex<Vec<Greeted>>>::default();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let (tell, told) = std::sync::mpsc::channel();
        let (shared, behind) = (greeted.clone(), pod.addr);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let any = SocketAddr::from(([127, 0, 0, 1], 0));
                let listener = TcpListener::bind(any).await.unwrap();
                tell.send(listener.local_addr().unwrap()).unwrap();
                let accept = async {
                    while let Ok((stream, _)) = listener.accept().await {
                        let (acceptor, shared) = (acceptor.clone(), shared.clone());
                        tokio::spawn(relay(acceptor, stream, behind, shared));
                    }
                };
                tokio::select! {
                    () = accept => {}
                    _ = stopped => {}
                }
            });
        });
        Front {
            addr: told.recv().unwrap(),
            greeted,
            _stop: stop,
        }
    }

    fn greeted(&self) -> Vec<Greeted> {
        self.greeted.lock().unwrap().clone()
    }
}

fn config(pair: &Pair, protocols: &[&str], people: Option<&Authority>) -> ServerConfig {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .unwrap();
    let builder = match people {
        None => builder.with_no_client_auth(),
        Some(people) => {
            let mut roots = RootCertStore::empty();
            let root = CertificateDer::from_pem_slice(people.pem().as_bytes()).unwrap();
            roots.add(root).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            builder.with_client_cert_verifier(verifier.build().unwrap())
        }
    };
    let chain = CertificateDer::pem_slice_iter(pair.chain.as_bytes());
    let chain = chain.map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap();
    let mut config = builder.with_single_cert(chain, key).unwrap();
    config.alpn_protocols = protocols.iter().map(|it| it.as_bytes().to_vec()).collect();
    config
}

async fn relay(
    acceptor: TlsAcceptor,
    stream: TcpStream,
    behind: SocketAddr,
    greeted: Arc<Mutex<Vec<Greeted>>>,
) {
    // The peer may leave whenever it likes.
    let Ok(mut tls) = acceptor.accept(stream).await else {
        return;
    };
    let (_, session) = tls.get_ref();
    greeted.lock().unwrap().push(Greeted {
        protocol: session.alpn_protocol().map(<[u8]>::to_vec),
        name: session.server_name().map(str::to_owned),
        certificate: session.peer_certificates().map(|it| it[0].clone()),
    });
    let mut pod = TcpStream::connect(behind).await.unwrap();
    let _ = tokio::io::copy_bidirectional(&mut tls, &mut pod).await;
}

/// A splitter before one address, and the Secret `pods` with these entries.
fn secured(addr: SocketAddr, notes: &[(&str, &str)], entries: &[(&str, &str)]) -> Splitter {
    let notes = [&[GRPCS], notes].concat();
    Splitter::start(
        &Manifests::new()
            .ingress("web", "a.test", "/", "Prefix", "app", &notes)
            .service("app", &[addr])
            .raw(&secret("pods", entries)),
    )
}

async fn ask(splitter: &Splitter) -> Result<String, Status> {
    Client::of(splitter).await.unary("Unary", "hello").await
}

#[test]
fn calls_of_each_kind_share_a_connection_that_offers_h2() {
    let authority = Authority::new("pods");
    let pod = Pod::named("pod");
    let front = Front::new(&pod, &authority.issue(&["pods.test"]), &["h2"]);
    let splitter = secured(front.addr, &[NAME, SNI], &[]);
    run(async {
        let mut client = Client::of(&splitter).await;
        for _ in 0..10 {
            assert_eq!(client.unary("Unary", "hello").await.unwrap(), "pod:hello");
        }
        let mut messages = client.stream("50,20000,9").await.unwrap();
        let mut count = 0;
        let ended = loop {
            match messages.message().await {
                Ok(Some(message)) => {
                    assert_eq!(message.len(), 20_000);
                    count += 1;
                }
                ended => break ended,
            }
        };
        // The trailers come over TLS too.
        let status = ended.unwrap_err();
        assert_eq!((count, status.code()), (50, Code::FailedPrecondition));
        assert_eq!(status.metadata().get("x-end").unwrap(), "told");
    });
    assert_eq!(
        front.greeted(),
        [Greeted {
            protocol: Some(b"h2".to_vec()),
            name: Some("pods.test".to_owned()),
            certificate: None,
        }]
    );
    assert_eq!(splitter.problems(), [""; 0]);
}

#[test]
fn a_pod_that_chooses_no_protocol_may_speak_it_and_one_of_another_gets_nothing() {
    let authority = Authority::new("pods");
    let pod = Pod::named("pod");
    let pair = authority.issue(&["pods.test"]);
    let silent = Front::new(&pod, &pair, &[]);
    let splitter = secured(silent.addr, &[], &[]);
    run(async { assert_eq!(ask(&splitter).await.unwrap(), "pod:hello") });
    assert_eq!(silent.greeted()[0].protocol, None);
    let other = Front::new(&pod, &pair, &["http/1.1"]);
    let splitter = secured(other.addr, &[], &[]);
    run(async { assert_eq!(ask(&splitter).await.unwrap_err().code(), Code::Unavailable) });
    // Nor one that speaks no TLS at all: nothing is sent in the clear.
    let calls = pod.calls();
    let splitter = secured(pod.addr, &[], &[]);
    run(async { assert_eq!(ask(&splitter).await.unwrap_err().code(), Code::Unavailable) });
    assert_eq!(pod.calls(), calls);
}

#[test]
fn pods_prove_who_they_are_and_are_shown_who_we_are() {
    let (servers, people) = (Authority::new("servers"), Authority::new("people"));
    let pod = Pod::named("pod");
    let own = people.person("us");
    let entries = [
        ("ca.crt", servers.pem()),
        ("tls.crt", &*own.chain),
        ("tls.key", &*own.key),
    ];
    let notes = [SECRET, VERIFY, NAME];
    for (name, proves) in [("pods.test", true), ("other.test", false)] {
        let pair = servers.issue(&[name]);
        let front = Front::with(&pod, &pair, &["h2"], Some(&people));
        let splitter = secured(front.addr, &notes, &entries);
        run(async {
            let answer = ask(&splitter).await;
            match proves {
                true => assert_eq!(answer.unwrap(), "pod:hello"),
                false => assert_eq!(answer.unwrap_err().code(), Code::Unavailable),
            }
        });
        let shown = front.greeted().into_iter().map(|it| it.certificate);
        let expected: Vec<_> = proves.then(|| Some(own.der())).into_iter().collect();
        assert_eq!(shown.collect::<Vec<_>>(), expected, "{name}");
    }
}

#[test]
fn what_cannot_be_read_is_never_sent() {
    let pod = Pod::named("pod");
    for notes in [
        &[("proxy-ssl-secret", "demo/none")][..],
        &[VERIFY],
        &[("proxy-ssl-name", "a b")],
    ] {
        let splitter = secured(pod.addr, notes, &[]);
        run(async { assert_eq!(ask(&splitter).await.unwrap_err().code(), Code::Unavailable) });
        let problems = splitter.problems();
        assert_eq!(problems, ["web: upstream-tls-invalid"], "{notes:?}");
    }
    assert_eq!(pod.calls(), 0);
}

#[test]
fn paths_of_different_identities_share_no_connection() {
    let authority = Authority::new("pods");
    let pod = Pod::named("pod");
    let front = Front::new(&pod, &authority.issue(&["a.test", "b.test"]), &["h2"]);
    let named = |name| [GRPCS, ("proxy-ssl-name", name), SNI];
    let splitter = Splitter::start(
        &Manifests::new()
            .ingress("one", "a.test", "/", "Prefix", "app", &named("a.test"))
            .ingress(
                "two",
                "a.test",
                "/t.Echo",
                "Prefix",
                "app",
                &named("b.test"),
            )
            .service("app", &[front.addr]),
    );
    run(async {
        let mut client = Client::of(&splitter).await;
        assert_eq!(client.unary("Unary", "x").await.unwrap(), "pod:x");
        client.ready().await;
        let request = Request::new(Bytes::new());
        let elsewhere = "/t.Other/Unary".parse().unwrap();
        let answer = client
            .0
            .unary::<Bytes, Bytes, _>(request, elsewhere, Raw)
            .await;
        assert_eq!(answer.unwrap_err().code(), Code::Unimplemented);
    });
    let mut names: Vec<_> = front
        .greeted()
        .into_iter()
        .filter_map(|it| it.name)
        .collect();
    names.sort();
    assert_eq!(names, ["a.test", "b.test"]);
}
