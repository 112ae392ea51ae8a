use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty, Full};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::ServerName;
use splitter_tests::backend::Backend;
use splitter_tests::instance::Splitter;
use splitter_tests::manifests::Manifests;
use splitter_tests::tls::{Authority, connect};
use tokio::net::TcpStream;

use super::{Site, noise, secure};

#[test]
fn pods_are_told_that_it_was_https() {
    let site = Site::new();
    let mut client = site.client();
    assert_eq!(client.get("a.test", "/x?y=z").text(), "/x?y=z");
    let port = site.splitter.https().port().to_string();
    let seen = site.backend.last();
    for (name, value) in [
        ("x-forwarded-proto", "https"),
        ("x-forwarded-scheme", "https"),
        ("x-scheme", "https"),
        ("x-forwarded-port", &port),
    ] {
        assert_eq!(seen.field(name), Some(value), "{name}");
    }
    // The connection goes on.
    assert_eq!(client.get("a.test", "/again").text(), "/again");
    assert_eq!(site.handshakes(&[]), 1.0);
}

#[test]
fn browsers_are_told_to_come_by_https_again() {
    let own = "Strict-Transport-Security: max-age=1\r\n";
    let site = Site::before_with(
        Backend::answering(format!("HTTP/1.1 200 OK\r\n{own}Content-Length: 0\r\n\r\n")),
        |settings| settings.hsts = Some("max-age=60".to_owned()),
    );
    let field = "strict-transport-security";
    let answer = site.client().get("a.test", "/");
    assert_eq!(answer.field(field), Some("max-age=60"));
    // In clear it would mean nothing.
    let redirect = site.splitter.get("a.test", "/");
    assert_eq!((redirect.status, redirect.field(field)), (308, None));
    // Not of a host that nobody serves.
    assert_eq!(site.client().get("b.test", "/").field(field), None);
}

#[test]
fn what_is_refused_in_clear_is_refused_here() {
    let site = Site::new();
    let mut client = site.client();
    client.send(
        "GET / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    );
    client.answer("GET").assert_own(400);
    assert!(client.is_closed());
    assert_eq!(site.backend.seen().len(), 0);
}

#[test]
fn large_bodies_go_both_ways() {
    let body = noise(1, 5_000_000);
    let site = Site::before(Backend::scripted(|conversation| {
        while let Some(request) = conversation.request() {
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n",
                request.body.len()
            );
            conversation.send(head);
            conversation.send(&request.body);
        }
    }));
    let mut client = site.client();
    for _ in 0..2 {
        client.send(format!(
            "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: {}\r\n\r\n",
            body.len()
        ));
        client.send(&body);
        let answer = client.answer("POST");
        assert!(answer.body == body, "the bodies differ");
    }
}

#[test]
fn a_pipeline_is_answered_in_order() {
    let site = Site::new();
    let mut client = site.client();
    let request = |n: u32| format!("GET /{n} HTTP/1.1\r\nHost: a.test\r\n\r\n");
    client.send((0..200).map(request).collect::<String>());
    for n in 0..200 {
        assert_eq!(client.answer("GET").text(), format!("/{n}"));
    }
}

#[test]
fn the_end_is_announced() {
    let site = Site::new();
    let mut client = site.client();
    client.send("GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
    assert_eq!(client.answer("GET").status, 200);
    // An end without close_notify would be an error here.
    assert!(client.is_closed());
}

#[test]
fn a_tunnel_carries_bytes_and_the_end_of_each_side() {
    let site = Site::before(Backend::scripted(|conversation| {
        if conversation.request().is_none() {
            return;
        }
        conversation.send(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        );
        let mut buf = vec![0; 64 * 1024];
        let mut all = 0;
        while let Ok(n) = std::io::Read::read(conversation.reader(), &mut buf) {
            if n == 0 {
                break;
            }
            all += n;
            conversation.send(&buf[..n]);
        }
        // After the client's end: what is sent now must still arrive.
        conversation.send(format!("{all} bytes"));
        conversation.finish();
    }));
    let mut client = site.client();
    client.send(
        "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    );
    assert_eq!(client.head().status, 101);
    for seed in 0..20 {
        let bytes = noise(seed, 10_000);
        client.send(&bytes);
        assert!(client.read(bytes.len()) == bytes, "the bytes differ");
    }
    let stream = client.stream();
    stream.conn.send_close_notify();
    while stream.conn.wants_write() {
        stream.conn.write_tls(&mut stream.sock).unwrap();
    }
    assert_eq!(client.read(12), b"200000 bytes");
    assert!(client.is_closed());
}

#[test]
fn a_canary_has_its_share_of_http2_over_tls() {
    let authority = Authority::new("root");
    let (main, canary) = (Backend::named("main"), Backend::named("canary"));
    let manifests = Manifests::new()
        .tls("a", &["a.test"])
        .main("main", "a.test", "/", "main")
        .canary(
            "canary",
            "a.test",
            "/",
            "canary",
            &[("canary-weight", "20")],
        )
        .service("main", &[main.addr()])
        .service("canary", &[canary.addr()])
        .raw(&authority.issue(&["a.test"]).secret("a"));
    let splitter = Splitter::start_with(&manifests, secure);
    let mut config = authority.client();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let config = Arc::new(config);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let (mut mains, mut canaries) = (0, 0);
    runtime.block_on(async {
        let stream = TcpStream::connect(splitter.https()).await.unwrap();
        let name = ServerName::try_from("a.test").unwrap();
        let connector = tokio_rustls::TlsConnector::from(config);
        let stream = connector.connect(name, stream).await.unwrap();
        let (mut sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .unwrap();
        tokio::spawn(connection);
        for _ in 0..100 {
            sender.ready().await.unwrap();
            let request = hyper::Request::get("https://a.test/").body(Empty::<Bytes>::new());
            let answer = sender.send_request(request.unwrap()).await.unwrap();
            let body = answer.into_body().collect().await.unwrap().to_bytes();
            match &body[..] {
                b"main" => mains += 1,
                b"canary" => canaries += 1,
                other => panic!("{other:?}"),
            }
        }
    });
    assert_eq!((mains, canaries), (80, 20));
    assert_eq!(main.last().field("x-forwarded-proto"), Some("https"));
}

#[test]
fn large_bodies_go_both_ways_over_http2() {
    let site = Site::before(Backend::scripted(|conversation| {
        while let Some(request) = conversation.request() {
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n",
                request.body.len()
            );
            conversation.send(head);
            conversation.send(&request.body);
        }
    }));
    let mut config = site.authority.client();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let body = Bytes::from(noise(5, 3_000_000));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let stream = TcpStream::connect(site.splitter.https()).await.unwrap();
        let name = ServerName::try_from("a.test").unwrap();
        let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
        let stream = connector.connect(name, stream).await.unwrap();
        let (mut sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .unwrap();
        tokio::spawn(connection);
        let request = hyper::Request::post("https://a.test/").body(Full::new(body.clone()));
        let answer = sender.send_request(request.unwrap()).await.unwrap();
        let answer = answer.into_body().collect().await.unwrap().to_bytes();
        assert!(answer == body, "the bodies differ");
    });
}

#[test]
fn other_hosts_on_one_connection_are_served() {
    // Browsers do so when a certificate covers both; nothing about these hosts differs.
    let authority = Authority::new("root");
    let backend = Backend::reflecting();
    let manifests = Manifests::new()
        .tls("ab", &["a.test", "b.test"])
        .main("a", "a.test", "/", "app")
        .main("b", "b.test", "/", "app")
        .service("app", &[backend.addr()])
        .raw(&authority.issue(&["a.test", "b.test"]).secret("ab"));
    let splitter = Splitter::start_with(&manifests, secure);
    let mut client = connect(splitter.https(), "a.test", &Arc::new(authority.client()));
    assert_eq!(client.get("a.test", "/1").text(), "/1");
    assert_eq!(client.get("b.test", "/2").text(), "/2");
}
