use std::time::Duration;

use splitter_tests::backend::Backend;
use splitter_tests::client::Client;
use splitter_tests::eventually;
use splitter_tests::instance::Splitter;
use splitter_tests::manifests::Manifests;

/// An allow list of 192.0.2.0/24 behind PROXY headers.
fn before(backend: &Backend) -> Splitter {
    let note = ("allowlist-source-range", "192.0.2.0/24,2001:db8::/32");
    let manifests = Manifests::new()
        .ingress("web", "a.test", "/", "Prefix", "app", &[note])
        .service("app", &[backend.addr()]);
    Splitter::start_with(&manifests, |settings| {
        settings.use_proxy_protocol = true;
        settings.timeouts.header = Duration::from_millis(300);
    })
}

/// A version 2 header for a client at 192.0.2.1 that connected to port 443.
fn v2(command: u8) -> Vec<u8> {
    let mut header = b"\r\n\r\n\0\r\nQUIT\n".to_vec();
    header.extend([0x20 | command, 0x11, 0, 12, 192, 0, 2, 1, 198, 51, 100, 1]);
    header.extend([0x30, 0x39, 0x01, 0xbb]);
    header
}

#[test]
fn the_client_is_whom_the_header_names() {
    let backend = Backend::named("main");
    let splitter = before(&backend);
    for (header, address) in [
        (
            &b"PROXY TCP4 192.0.2.1 198.51.100.1 12345 80\r\n"[..],
            "192.0.2.1",
        ),
        (
            b"PROXY TCP6 2001:db8::7 2001:db8::1 12345 80\r\n",
            "2001:db8::7",
        ),
        (&v2(1), "192.0.2.1"),
    ] {
        let mut client = splitter.client();
        client.send(header);
        for _ in 0..2 {
            // What the client says of itself counts as little as ever.
            let answer = client.get_with("a.test", "/", "X-Forwarded-For: 203.0.113.1\r\n");
            assert_eq!(answer.status, 200, "{address}");
        }
        let seen = backend.last();
        assert_eq!(seen.field("x-forwarded-for"), Some(address));
        assert_eq!(seen.field("x-real-ip"), Some(address));
    }
    let seen = backend.last();
    assert_eq!(seen.field("x-forwarded-port"), Some("443"));
    assert_eq!(seen.field("x-forwarded-proto"), Some("https"));
}

#[test]
fn a_header_may_come_byte_by_byte_and_with_the_request_in_one() {
    let backend = Backend::named("main");
    let splitter = before(&backend);
    let request = b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n";
    let mut client = splitter.client();
    client.send([&v2(1)[..], request].concat());
    assert_eq!(client.answer("GET").status, 200);

    let line = b"PROXY TCP4 192.0.2.1 198.51.100.1 12345 80\r\n";
    let mut client = splitter.client();
    for byte in [&line[..], request].concat() {
        client.send([byte]);
    }
    assert_eq!(client.answer("GET").status, 200);
}

#[test]
fn a_balancers_own_connection_keeps_its_address() {
    let backend = Backend::named("main");
    let splitter = before(&backend);
    for header in [&b"PROXY UNKNOWN\r\n"[..], &v2(0)] {
        let mut client = splitter.client();
        client.send(header);
        assert_eq!(client.get("a.test", "/").status, 403);
    }
    assert_eq!(splitter.faults("address-denied"), 2.0);
}

#[test]
fn what_is_no_header_is_closed_and_counted() {
    let backend = Backend::named("main");
    let splitter = before(&backend);
    for (count, bytes) in [
        &b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"[..],
        b"PROXY TCP4 192.0.2.1 198.51.100.1 12345 99999\r\n",
        b"\r\n\r\n\0\r\nQUIT\n\x21\x11\xff\xff",
        b"\x16\x03\x01\x02\x00\x01",
    ]
    .into_iter()
    .enumerate()
    {
        let mut client = splitter.client();
        client.send(bytes);
        assert!(client.is_cut(), "{bytes:?}");
        eventually("it is counted", || {
            splitter.faults("bad-proxy-header") == (count + 1) as f64
        });
    }
    assert_eq!(backend.seen().len(), 0);
}

#[test]
fn a_header_that_is_not_there_in_time_is_closed_and_counted() {
    let backend = Backend::named("main");
    let splitter = before(&backend);
    let mut client = splitter.client();
    client.send("PROXY TCP4 192.0.2.1");
    assert!(client.is_cut());
    eventually("it is counted", || splitter.faults("head-timeout") == 1.0);
}

#[test]
fn a_peer_that_is_not_trusted_is_itself() {
    let backend = Backend::named("main");
    let note = ("allowlist-source-range", "192.0.2.0/24");
    let manifests = Manifests::new()
        .ingress("web", "a.test", "/", "Prefix", "app", &[note])
        .service("app", &[backend.addr()]);
    let splitter = Splitter::start_with(&manifests, |settings| {
        settings.use_proxy_protocol = true;
        settings.proxy_real_ip = "10.0.0.0/8".parse().unwrap();
    });
    let mut client = Client::connect(splitter.http());
    client.send(v2(1));
    assert_eq!(client.get("a.test", "/").status, 403);
}

#[test]
fn waiting_for_a_header_does_not_hold_the_end_up() {
    let backend = Backend::named("main");
    let manifests = Manifests::new()
        .main("web", "a.test", "/", "app")
        .service("app", &[backend.addr()]);
    let splitter = Splitter::start_with(&manifests, |settings| {
        settings.use_proxy_protocol = true;
        settings.drain_timeout = Duration::from_secs(3600);
    });
    let mut client = splitter.client();
    client.send("PROXY ");
    eventually("it is accepted", || {
        splitter.metrics().sum("splitter_connections_open", &[]) == 1.0
    });
    splitter.stop();
    assert!(client.is_cut());
}
