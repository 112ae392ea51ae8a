use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, ClientConnection, HandshakeKind, StreamOwned};
use splitter::config::NamespacedName;
use splitter_tests::PATIENCE;
use splitter_tests::backend::Backend;
use splitter_tests::client::Client;
use splitter_tests::eventually;
use splitter_tests::instance::Splitter;
use splitter_tests::manifests::Manifests;
use splitter_tests::tls::{Authority, Pair, connect, secret};

use super::secure;

fn manifests(backend: &Backend, pair: &Pair, tickets: &str) -> Manifests {
    let manifests = Manifests::new()
        .tls("a", &["a.test"])
        .main("main", "a.test", "/", "main")
        .service("main", &[backend.addr()])
        .raw(&pair.secret("a"));
    match tickets {
        "" => manifests,
        tickets => manifests.raw(tickets),
    }
}

/// A node that has `tickets` for its Secret.
fn node(backend: &Backend, pair: &Pair, tickets: &str) -> Splitter {
    Splitter::start_with(&manifests(backend, pair, tickets), |settings| {
        secure(settings);
        settings.ticket_secret = Some(NamespacedName {
            namespace: "demo".to_owned(),
            name: "tickets".to_owned(),
        });
    })
}

fn key(byte: char) -> String {
    byte.to_string().repeat(40)
}

#[test]
fn nodes_that_share_a_secret_resume_each_others_sessions() {
    let (backend, authority) = (Backend::reflecting(), Authority::new("root"));
    let pair = authority.issue(&["a.test"]);
    let shared = secret("tickets", &[("key", &key('k'))]);
    let other = secret("tickets", &[("key", &key('x'))]);
    let nodes = [&shared, &shared, &other].map(|it| node(&backend, &pair, it));
    for version in [&TLS13, &TLS12] {
        let config = Arc::new(authority.client_with(&[version]));
        let mut ask = |node: &Splitter| {
            let mut client = connect(node.https(), "a.test", &config);
            assert_eq!(client.get("a.test", "/x").text(), "/x");
            client.stream().conn.handshake_kind().unwrap()
        };
        let [one, two, stranger] = &nodes;
        let kinds = [one, two, one, stranger, one].map(&mut ask);
        let (full, resumed) = (HandshakeKind::Full, HandshakeKind::Resumed);
        // The stranger's ticket is the newest that the client has then.
        assert_eq!(kinds, [full, resumed, resumed, full, full], "{version:?}");
    }
}

#[test]
fn a_changed_secret_is_taken_over_and_a_bad_one_is_not() {
    let (backend, authority) = (Backend::reflecting(), Authority::new("root"));
    let pair = authority.issue(&["a.test"]);
    let (old, new) = (key('o'), key('n'));
    let first = secret("tickets", &[("key", &old)]);
    let both = secret("tickets", &[("key", &new), ("previous", &old)]);
    let node = node(&backend, &pair, "");
    assert_eq!(node.problems(), ["tickets: ticket-secret-invalid"]);
    let config = Arc::new(authority.client());
    let ask = || {
        let mut client = connect(node.https(), "a.test", &config);
        assert_eq!(client.get("a.test", "/x").text(), "/x");
        client.stream().conn.handshake_kind() == Some(HandshakeKind::Resumed)
    };
    assert_eq!((ask(), ask()), (false, true), "with keys of its own");
    node.apply(&manifests(&backend, &pair, &first));
    eventually("the Secret is used", || node.problems().is_empty());
    eventually("sessions are made anew", || !ask());
    assert!(ask());
    // Sessions go on while all nodes still have the old one.
    node.apply(&manifests(&backend, &pair, &both));
    let sealed_anew = |ticket: &str| {
        node.apply(&manifests(&backend, &pair, ticket));
        eventually("it is reported", || {
            node.problems() == ["tickets: ticket-secret-invalid"]
        });
    };
    assert!(ask() && ask());
    sealed_anew(&secret("tickets", &[("key", "short")]));
    assert!(ask() && ask(), "the last good one stays");
    sealed_anew("");
    assert!(ask() && ask());
}

/// Sends its request with the end of the handshake, and reads the answer.
fn eager(addr: SocketAddr, config: &Arc<ClientConfig>) -> Option<HandshakeKind> {
    let name = ServerName::try_from("a.test").unwrap();
    let mut tls = ClientConnection::new(config.clone(), name).unwrap();
    let mut stream = TcpStream::connect(addr).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    // Kept until it may be sent.
    let request = b"GET /x HTTP/1.1\r\nHost: a.test\r\n\r\n";
    tls.writer().write_all(request).unwrap();
    while tls.is_handshaking() {
        tls.complete_io(&mut stream).unwrap();
    }
    let mut client = Client::over(StreamOwned::new(tls, stream));
    assert_eq!(client.answer("GET").text(), "/x");
    client.stream().conn.handshake_kind()
}

#[test]
fn tickets_come_with_the_answer_and_without_one() {
    let (backend, authority) = (Backend::reflecting(), Authority::new("root"));
    let pair = authority.issue(&["a.test"]);
    let node = Splitter::start_with(&manifests(&backend, &pair, ""), secure);
    for version in [&TLS13, &TLS12] {
        let config = Arc::new(authority.client_with(&[version]));
        for expected in [HandshakeKind::Full, HandshakeKind::Resumed] {
            let kind = eager(node.https(), &config);
            assert_eq!(kind, Some(expected), "{version:?}");
        }
    }
    // Somebody who asks nothing gets them as well.
    let config = Arc::new(authority.client());
    let mut client = connect(node.https(), "a.test", &config);
    let StreamOwned { conn, sock } = client.stream();
    while conn.tls13_tickets_received() == 0 {
        conn.complete_io(sock).expect("tickets");
    }
    let mut client = connect(node.https(), "a.test", &config);
    let resumed = Some(HandshakeKind::Resumed);
    assert_eq!(client.stream().conn.handshake_kind(), resumed);
}
