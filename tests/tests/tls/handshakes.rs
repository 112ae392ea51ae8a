use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConnection, HandshakeKind, NamedGroup, ProtocolVersion};
use splitter_tests::backend::Backend;
use splitter_tests::client::Client;
use splitter_tests::tls::{connect, try_connect};
use splitter_tests::{PATIENCE, eventually};

use super::{Site, noise};

#[test]
fn both_versions_and_the_post_quantum_group_first() {
    let site = Site::new();
    for (version, expected, label) in [
        (&TLS13, ProtocolVersion::TLSv1_3, "1.3"),
        (&TLS12, ProtocolVersion::TLSv1_2, "1.2"),
    ] {
        let config = Arc::new(site.authority.client_with(&[version]));
        let mut client = connect(site.splitter.https(), "a.test", &config);
        assert_eq!(client.get("a.test", "/x").text(), "/x");
        let tls = &client.stream().conn;
        assert_eq!(tls.protocol_version(), Some(expected));
        let group = tls
            .negotiated_key_exchange_group()
            .map(|group| group.name());
        if version.version == ProtocolVersion::TLSv1_3 {
            assert_eq!(group, Some(NamedGroup::X25519MLKEM768));
        }
        assert_eq!(
            site.handshakes(&[("version", label), ("result", "full")]),
            1.0
        );
    }
    assert_eq!(site.handshakes(&[("group", "X25519MLKEM768")]), 1.0);
}

#[test]
fn older_versions_are_refused() {
    let site = Site::new();
    let addr = site.splitter.https().to_string();
    for version in ["-tls1_1", "-tls1"] {
        let output = Command::new("openssl")
            .args([
                "s_client",
                "-connect",
                &addr,
                version,
                "-cipher",
                "ALL:@SECLEVEL=0",
            ])
            .stdin(Stdio::null())
            .output()
            .expect("openssl is there");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("Cipher is (NONE)"), "{version}: {text}");
    }
    assert_eq!(site.handshakes(&[("result", "failed")]), 2.0);
}

#[test]
fn the_protocol_is_agreed_on() {
    let site = Site::new();
    for (offered, agreed) in [
        (&["h2", "http/1.1"][..], Some("h2")),
        (&["http/1.1", "h2"], Some("h2")),
        (&["http/1.1"], Some("http/1.1")),
        (&[], None),
    ] {
        let mut config = site.authority.client();
        config.alpn_protocols = offered.iter().map(|it| it.as_bytes().to_vec()).collect();
        let mut client = connect(site.splitter.https(), "a.test", &Arc::new(config));
        let agreed = agreed.map(str::as_bytes);
        assert_eq!(client.stream().conn.alpn_protocol(), agreed, "{offered:?}");
    }
    let mut config = site.authority.client();
    config.alpn_protocols = vec![b"acme-tls/1".to_vec()];
    assert!(try_connect(site.splitter.https(), "a.test", &Arc::new(config)).is_err());
    assert_eq!(site.handshakes(&[("reason", "no-protocol")]), 1.0);
}

#[test]
fn a_hello_may_come_byte_by_byte() {
    let site = Site::new();
    let name = ServerName::try_from("a.test").unwrap();
    let mut tls = ClientConnection::new(site.config.clone(), name).unwrap();
    let mut hello = Vec::new();
    tls.write_tls(&mut hello).unwrap();
    let mut stream = TcpStream::connect(site.splitter.https()).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    for byte in hello {
        stream.write_all(&[byte]).unwrap();
    }
    while tls.is_handshaking() {
        tls.complete_io(&mut stream).unwrap();
    }
    let mut client = Client::over(rustls::StreamOwned::new(tls, stream));
    assert_eq!(client.get("a.test", "/x").text(), "/x");
}

#[test]
fn plain_http_gets_an_answer_that_says_so() {
    let site = Site::new();
    let answer = splitter_tests::client::get(site.splitter.https(), "a.test", "/");
    answer.assert_own(400);
    assert!(answer.text().contains("HTTPS port"), "{answer:?}");
    assert_eq!(site.splitter.faults("plain-http-on-tls-port"), 1.0);
    assert_eq!(
        site.handshakes(&[("reason", "plain-http-on-tls-port")]),
        1.0
    );
}

#[test]
fn tls_on_the_plain_port_is_closed_and_counted() {
    let site = Site::new();
    let refused = try_connect(site.splitter.http(), "a.test", &site.config);
    assert!(refused.is_err());
    eventually("it is counted", || {
        site.splitter.faults("tls-on-plain-port") == 1.0
    });
}

#[test]
fn garbage_ends_in_a_close_and_hurts_nobody() {
    let site = Site::new();
    let long = noise(7, 200_000);
    let mut heads: Vec<Vec<u8>> = vec![
        b"\x16\x03\x01".to_vec(),
        b"\x16\x03\x01\xff\xff".to_vec(),
        b"\x16\x03\x01\x00\x00".to_vec(),
        b"\x16\x03\x01\x00\x04\x01\xff\xff\xff".to_vec(),
        b"\x80\x2e\x01\x03\x01".to_vec(),
        b"\x00".to_vec(),
        [&b"\x16\x03\x01\x40\x00\x01\x00\xff\xff"[..], &long].concat(),
        [&b"\x16\x03\x01\x02\x00"[..], &long].concat(),
    ];
    heads.push(long);
    for head in heads {
        let mut client = Client::connect(site.splitter.https());
        client.send(&head);
        client.finish();
        // An alert or nothing, then the end.
        let mut rest = Vec::new();
        let _ = client.reader().read_to_end(&mut rest);
        assert!(rest.len() < 64, "{rest:?}");
    }
    assert_eq!(site.handshakes(&[("result", "failed")]), 9.0);
    assert_eq!(site.client().get("a.test", "/x").text(), "/x");
}

#[test]
fn a_stalled_handshake_is_ended_in_time() {
    let site = Site::before_with(Backend::reflecting(), |settings| {
        settings.timeouts.handshake = Duration::from_millis(300);
    });
    let mut client = Client::connect(site.splitter.https());
    client.send(b"\x16\x03\x01\x02\x00\x01");
    assert!(client.is_cut());
    assert_eq!(site.handshakes(&[("reason", "timeout")]), 1.0);
}

#[test]
fn handshakes_at_once_are_bounded() {
    let site = Site::before_with(Backend::reflecting(), |settings| {
        settings.limits.max_handshakes = 2;
    });
    let mut stalled: Vec<Client> = (0..2)
        .map(|_| {
            let mut client = Client::connect(site.splitter.https());
            client.send(b"\x16\x03\x01\x02\x00\x01");
            client
        })
        .collect();
    eventually("a third one has no room", || {
        try_connect(site.splitter.https(), "a.test", &site.config).is_err()
    });
    assert!(site.handshakes(&[("reason", "overloaded")]) >= 1.0);
    stalled.pop();
    eventually("there is room again", || {
        try_connect(site.splitter.https(), "a.test", &site.config).is_ok()
    });
}

#[test]
fn sessions_are_resumed_by_every_worker() {
    let site = Site::before_with(Backend::reflecting(), |settings| settings.workers = 4);
    for version in [&TLS13, &TLS12] {
        let config = Arc::new(site.authority.client_with(&[version]));
        let mut resumed = 0;
        for _ in 0..20 {
            let mut client = connect(site.splitter.https(), "a.test", &config);
            assert_eq!(client.get("a.test", "/x").text(), "/x");
            let kind = client.stream().conn.handshake_kind();
            resumed += u32::from(kind == Some(HandshakeKind::Resumed));
        }
        // All but the first, whichever workers the kernel chose.
        assert_eq!(resumed, 19, "{version:?}");
    }
    assert_eq!(site.handshakes(&[("result", "resumed")]), 38.0);
}
