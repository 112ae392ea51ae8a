//! Upgraded connections: bytes both ways, none lost, none added, for as long as both sides stay.
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use std::io::Read;
use std::net::Shutdown;
use std::time::Duration;

use splitter_tests::backend::{Backend, Conversation};
use splitter_tests::client::Client;
use splitter_tests::eventually;
use splitter_tests::instance::Splitter;
use splitter_tests::manifests::Manifests;
use splitter_tests::noise::Noise;

const ASK: &str = "GET /chat HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\n\
    Upgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
    Sec-WebSocket-Version: 13\r\n\r\n";

const SWITCH: &str = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\
    Upgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

/// Sends back what it gets, until the end.
fn echo(conversation: &mut Conversation<'_>) {
    let mut buf = vec![0; 64 * 1024];
    loop {
        match conversation.reader().read(&mut buf) {
            Ok(n) if n > 0 => conversation.send(&buf[..n]),
            _ => break,
        }
    }
    conversation.finish();
}

/// Upgrades, then echoes.
fn echoing() -> Backend {
    Backend::scripted(|conversation| {
        if conversation.request().is_some() {
            conversation.send(SWITCH);
            echo(conversation);
        }
    })
}

/// A tunnel that stands.
fn upgraded(splitter: &Splitter) -> Client {
    let mut client = splitter.client();
    client.send(ASK);
    assert_eq!(client.head().status, 101);
    client
}

/// One round through the tunnel.
#[track_caller]
fn round(client: &mut Client, text: &str) {
    client.send(text);
    assert_eq!(client.read(text.len()), text.as_bytes());
}

#[test]
fn bytes_go_both_ways() {
    let backend = echoing();
    let splitter = Splitter::before(&backend);
    let mut client = splitter.client();
    client.send(ASK);
    let answer = client.head();
    assert_eq!(answer.status, 101);
    assert_eq!(answer.field("upgrade"), Some("websocket"));
    let connection = answer.field("connection").unwrap_or_default();
    assert!(connection.eq_ignore_ascii_case("upgrade"), "{connection}");
    assert_eq!(
        answer.field("sec-websocket-accept"),
        Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
    );
    assert_eq!(answer.field("content-length"), None);
    assert_eq!(answer.field("transfer-encoding"), None);
    for _ in 0..100 {
        round(&mut client, "hello");
    }
    let seen = backend.last();
    assert_eq!(seen.line, "GET /chat HTTP/1.1");
    assert_eq!(seen.field("upgrade"), Some("websocket"));
    let connection = seen.field("connection").unwrap_or_default();
    assert!(connection.eq_ignore_ascii_case("upgrade"), "{connection}");
    assert_eq!(
        seen.field("sec-websocket-key"),
        Some("dGhlIHNhbXBsZSBub25jZQ==")
    );
    assert_eq!(seen.field("sec-websocket-version"), Some("13"));
}

#[test]
fn connection_may_name_more_than_the_upgrade() {
    let backend = echoing();
    let splitter = Splitter::before(&backend);
    let mut client = splitter.client();
    client.send(ASK.replace("Connection: Upgrade", "Connection: keep-alive, upgrade"));
    assert_eq!(client.head().status, 101);
    round(&mut client, "hello");
}

#[test]
fn bytes_right_behind_the_answer_are_not_lost() {
    let backend = Backend::scripted(|conversation| {
        if conversation.request().is_some() {
            conversation.send(format!("{SWITCH}early bird"));
            echo(conversation);
        }
    });
    let splitter = Splitter::before(&backend);
    let mut client = upgraded(&splitter);
    assert_eq!(client.read(10), b"early bird");
    round(&mut client, "hello");
}

#[test]
fn bytes_right_behind_the_request_are_not_lost() {
    let backend = echoing();
    let splitter = Splitter::before(&backend);
    let mut client = splitter.client();
    client.send(format!("{ASK}early bird"));
    assert_eq!(client.head().status, 101);
    assert_eq!(client.read(10), b"early bird");
    round(&mut client, "hello");
}

/// Bytes that would be refused in HTTP are nobody's business in a tunnel.
#[test]
fn any_bytes_pass() {
    let backend = echoing();
    let splitter = Splitter::before(&backend);
    let mut client = upgraded(&splitter);
    round(&mut client, "GET / HTTP/1.1\nHost : x\r\n\r\n\0\r\r\n");
    let all: Vec<u8> = (0..=255).cycle().take(10_000).collect();
    client.send(&all);
    assert_eq!(client.read(all.len()), all);
}

#[test]
fn large_transfers_pass_both_ways_at_once() {
    const SIZE: usize = 20 * 1024 * 1024;
    let backend = echoing();
    let splitter = Splitter::before(&backend);
    let mut client = upgraded(&splitter);
    let mut up = client.stream().try_clone().expect("a second handle");
    let sender = std::thread::spawn(move || Noise::new(5).write_to(&mut up, SIZE));
    assert_eq!(Noise::new(5).check_from(client.reader(), SIZE), SIZE);
    assert_eq!(sender.join().ok(), Some(SIZE));
}

#[test]
fn a_client_that_has_ended_still_gets_the_rest() {
    let backend = Backend::scripted(|conversation| {
        if conversation.request().is_some() {
            conversation.send(SWITCH);
            conversation.wait_for_close();
            conversation.send("goodbye");
        }
    });
    let splitter = Splitter::before(&backend);
    let mut client = upgraded(&splitter);
    client.send("hello");
    client.finish();
    assert_eq!(client.read(100), b"goodbye");
}

#[test]
fn a_backend_that_has_ended_still_gets_the_rest() {
    let (heard, hears) = std::sync::mpsc::channel();
    let heard = std::sync::Mutex::new(heard);
    let backend = Backend::scripted(move |conversation| {
        if conversation.request().is_some() {
            conversation.send(format!("{SWITCH}goodbye"));
            conversation.finish();
            let rest = conversation.read(100);
            let heard = heard.lock().unwrap_or_else(|e| e.into_inner());
            let _ = heard.send(rest);
        }
    });
    let splitter = Splitter::before(&backend);
    let mut client = upgraded(&splitter);
    assert_eq!(client.read(100), b"goodbye");
    client.send("one more thing");
    client.finish();
    let rest = hears.recv_timeout(splitter_tests::PATIENCE);
    assert_eq!(rest.as_deref(), Ok(&b"one more thing"[..]));
}

#[test]
fn a_close_of_either_side_is_passed_on() {
    let backend = echoing();
    let splitter = Splitter::before(&backend);
    let mut client = upgraded(&splitter);
    round(&mut client, "hello");
    client.finish();
    assert!(client.is_closed());
    eventually("the connection is forgotten", || {
        splitter.metrics().sum("splitter_connections_open", &[]) == 0.0
    });
}

#[test]
fn a_reset_is_passed_on_as_one() {
    let backend = Backend::scripted(|conversation| {
        if conversation.request().is_some() {
            conversation.send(SWITCH);
            conversation.read(5);
            conversation.end_with_reset();
        }
    });
    let splitter = Splitter::before(&backend);
    let mut client = upgraded(&splitter);
    client.send("hello");
    let mut rest = Vec::new();
    assert!(client.reader().read_to_end(&mut rest).is_err());
}

#[test]
fn a_client_that_vanishes_frees_the_backend() {
    let (gone, goes) = std::sync::mpsc::channel();
    let gone = std::sync::Mutex::new(gone);
    let backend = Backend::scripted(move |conversation| {
        if conversation.request().is_some() {
            conversation.send(SWITCH);
            conversation.wait_for_close();
            let gone = gone.lock().unwrap_or_else(|e| e.into_inner());
            let _ = gone.send(());
        }
    });
    let splitter = Splitter::before(&backend);
    drop(upgraded(&splitter));
    assert_eq!(goes.recv_timeout(splitter_tests::PATIENCE), Ok(()));
}

#[test]
fn a_side_that_does_not_read_stops_the_other() {
    let backend = echoing();
    let splitter = Splitter::before(&backend);
    let mut client = upgraded(&splitter);
    let stream = client.stream();
    let stall = Some(Duration::from_millis(500));
    stream.set_write_timeout(stall).expect("a timeout");
    // Nobody reads the echo, so all buffers fill up.
    let sent = Noise::new(6).write_to(&*stream, 256 * 1024 * 1024);
    assert!(sent < 160 * 1024 * 1024, "{sent} bytes are somewhere");
    assert_eq!(Noise::new(6).check_from(client.reader(), sent), sent);
}

mod refused {
    use super::*;

    #[test]
    fn an_answer_that_is_no_switch_passes() {
        for (status, reason) in [(200, "OK"), (400, "Bad Request"), (426, "Upgrade Required")] {
            let backend = Backend::answering(format!(
                "HTTP/1.1 {status} {reason}\r\nContent-Length: 2\r\n\r\nno"
            ));
            let splitter = Splitter::before(&backend);
            let mut client = splitter.client();
            for _ in 0..2 {
                client.send(ASK);
                let answer = client.answer("GET");
                assert_eq!((answer.status, answer.text()), (status, "no".to_owned()));
            }
            assert_eq!(backend.connections(), 1);
        }
    }

    #[test]
    fn a_switch_that_nobody_asked_for_is_no_answer() {
        let backend = Backend::answering(SWITCH);
        let splitter = Splitter::before(&backend);
        let mut client = splitter.client();
        client.get("a.test", "/").assert_own(502);
    }

    /// The backend would then answer requests that nobody has looked at.
    #[test]
    fn cleartext_http2_is_never_offered_to_the_backend() {
        for upgrade in ["h2c", "H2C", "websocket, h2c", "h2c, websocket", "h2"] {
            let backend = Backend::named("main");
            let splitter = Splitter::before(&backend);
            let answer = splitter.get_with(
                "a.test",
                "/",
                &format!(
                    "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: {upgrade}\r\n\
                     HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n"
                ),
            );
            assert_eq!((answer.status, answer.text()), (200, "main".to_owned()));
            let seen = backend.last();
            for name in ["upgrade", "connection", "http2-settings"] {
                assert_eq!(seen.all(name), Vec::<&str>::new(), "{upgrade}: {name}");
            }
        }
    }

    #[test]
    fn upgrade_without_connection_is_not_passed_on() {
        let backend = Backend::named("main");
        let splitter = Splitter::before(&backend);
        let answer = splitter.get_with("a.test", "/", "Upgrade: websocket\r\n");
        assert_eq!(answer.status, 200);
        assert_eq!(backend.last().field("upgrade"), None);
    }

    /// RFC 9110 7.8: Upgrade means nothing in HTTP/1.0.
    #[test]
    fn http10_cannot_upgrade() {
        let backend = Backend::named("main");
        let splitter = Splitter::before(&backend);
        let mut client = splitter.client();
        client.send(ASK.replace("HTTP/1.1", "HTTP/1.0"));
        assert_eq!(client.answer("GET").text(), "main");
        assert_eq!(backend.last().field("upgrade"), None);
    }

    #[test]
    fn an_unknown_location_is_told_as_ever() {
        let backend = echoing();
        let splitter = Splitter::before(&backend);
        let mut client = splitter.client();
        client.send(ASK.replace("a.test", "b.test"));
        client.answer("GET").assert_own(404);
    }
}

#[test]
fn a_tunnel_survives_changes_of_other_hosts_and_of_its_own() {
    let backend = echoing();
    let manifests = Manifests::new()
        .main("chat", "a.test", "/", "chat")
        .service("chat", &[backend.addr()]);
    let splitter = Splitter::start(&manifests);
    let mut client = upgraded(&splitter);
    round(&mut client, "before");
    let other = Backend::named("other");
    let others = Manifests::new()
        .main("other", "b.test", "/", "other")
        .service("other", &[other.addr()]);
    splitter.apply(&manifests.raw(others.yaml()));
    eventually("the other host is served", || {
        splitter.get("b.test", "/").status == 200
    });
    round(&mut client, "after");
    splitter.apply(&others);
    eventually("the tunnel's own host is gone", || {
        splitter.get("a.test", "/").status == 404
    });
    round(&mut client, "still here");
}

#[test]
fn a_quiet_tunnel_ends_after_its_own_time_only() {
    let backend = echoing();
    let splitter = Splitter::before_with(&backend, |settings| {
        settings.timeouts.read = Duration::from_millis(250);
        settings.timeouts.send = Duration::from_millis(250);
        settings.timeouts.header = Duration::from_millis(250);
        settings.timeouts.keep_alive = Duration::from_millis(250);
        settings.timeouts.upstream_idle = Duration::from_millis(250);
        settings.timeouts.tunnel = Duration::from_millis(1500);
    });
    let mut client = upgraded(&splitter);
    round(&mut client, "hello");
    // Longer than every other time there is.
    assert!(!client.hears_within(Duration::from_millis(1100)));
    round(&mut client, "hello");
    assert!(client.is_cut());
}

#[test]
fn a_tunnel_ends_with_the_time_to_drain() {
    let backend = echoing();
    let mut splitter = Splitter::before_with(&backend, |settings| {
        settings.drain_timeout = Duration::from_millis(300);
    });
    let mut client = upgraded(&splitter);
    splitter.begin_stop();
    round(&mut client, "hello");
    assert!(client.is_cut());
    splitter.stop();
    let _ = client.stream().shutdown(Shutdown::Both);
}
