//! Messages with bytes changed at random, from clients and from backends: whatever they become, the
//! proxy answers or closes, and serves the next one.
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use std::io::Read;
use std::sync::{Arc, Mutex};

use fastrand::Rng;
use splitter_tests::backend::Backend;
use splitter_tests::eventually;
use splitter_tests::instance::Splitter;

/// Bytes that mean something somewhere.
const TELLING: &[u8] = b"\r\n\0 \t:;,=/?#%.-+0123456789abfxACGHPT\x7f\x80\xff\"'\\*@[]";

/// Changes, inserts, removes or doubles some bytes.
fn mutate(rng: &mut Rng, bytes: &[u8]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    for _ in 0..rng.usize(1..4) {
        let at = rng.usize(..out.len());
        let byte = TELLING[rng.usize(..TELLING.len())];
        match rng.u8(..5) {
            0 | 1 => out[at] = byte,
            2 => out.insert(at, byte),
            3 => {
                out.remove(at);
            }
            _ => {
                let end = (at + rng.usize(1..30)).min(out.len());
                let again = out[at..end].to_vec();
                out.splice(at..at, again);
            }
        }
    }
    out
}

/// Sends all of it and waits for the end, which must come.
fn converse(splitter: &Splitter, bytes: &[u8]) -> Vec<u8> {
    let mut client = splitter.client();
    client.send(bytes);
    // The peer may have closed already.
    let _ = client.stream().shutdown(std::net::Shutdown::Write);
    let mut answer = Vec::new();
    let end = client.reader().read_to_end(&mut answer);
    let waited = end.is_err_and(|e| {
        matches!(
            e.kind(),
            std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
        )
    });
    assert!(!waited, "no end to {:?}", String::from_utf8_lossy(bytes));
    answer
}

#[test]
fn requests() {
    const GOOD: [&str; 4] = [
        "GET /x?y=z HTTP/1.1\r\nHost: a.test\r\nAccept: */*\r\nConnection: close\r\n\r\n",
        "POST /x HTTP/1.1\r\nHost: a.test\r\nContent-Length: 11\r\n\r\nhello world",
        "POST /x HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n\
         5;a=b\r\nhello\r\n6\r\n world\r\n0\r\nX: y\r\n\r\n",
        "GET http://a.test/x HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\n\
         Upgrade: websocket\r\nExpect: 100-continue\r\nTE: trailers\r\n\r\n",
    ];
    let backend = Backend::reflecting();
    let splitter = Splitter::before(&backend);
    let mut rng = Rng::with_seed(1);
    for round in 0..2000 {
        let bytes = mutate(&mut rng, GOOD[round % GOOD.len()].as_bytes());
        let answer = converse(&splitter, &bytes);
        assert!(
            // A client of HTTP/1.0 is answered in its own version.
            answer.is_empty() || answer.starts_with(b"HTTP/1."),
            "{:?}",
            String::from_utf8_lossy(&bytes)
        );
    }
    assert_eq!(splitter.get("a.test", "/x").status, 200);
    eventually("nothing is left in hand", || {
        let metrics = splitter.metrics();
        metrics.sum("splitter_connections_open", &[]) == 0.0
            && metrics.sum("splitter_requests_in_flight", &[]) == 0.0
    });
}

#[test]
fn http2_frames() {
    let backend = Backend::reflecting();
    let splitter = Splitter::before(&backend);
    let good = [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        vec![0, 0, 0, 4, 0, 0, 0, 0, 0],
        vec![0, 0, 11, 1, 5, 0, 0, 0, 1],
        b"\x82\x86\x84\x41\x06a.test".to_vec(),
        vec![0, 0, 11, 1, 4, 0, 0, 0, 3],
        b"\x83\x86\x84\x41\x06a.test".to_vec(),
        vec![0, 0, 5, 0, 1, 0, 0, 0, 3],
        b"hello".to_vec(),
        vec![0, 0, 4, 8, 0, 0, 0, 0, 0, 0, 0, 1, 0],
    ]
    .concat();
    let mut rng = Rng::with_seed(2);
    for _ in 0..1000 {
        let bytes = mutate(&mut rng, &good);
        converse(&splitter, &bytes);
    }
    assert_eq!(splitter.get("a.test", "/x").status, 200);
    eventually("nothing is left in hand", || {
        let metrics = splitter.metrics();
        metrics.sum("splitter_connections_open", &[]) == 0.0
            && metrics.sum("splitter_requests_in_flight", &[]) == 0.0
    });
}

#[test]
fn answers() {
    const GOOD: [&str; 4] = [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX: y\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n\
         5\r\nhello\r\n0\r\nX: y\r\n\r\n",
        "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\nhello",
    ];
    let next = Arc::<Mutex<Vec<u8>>>::default();
    let plan = next.clone();
    let backend = Backend::scripted(move |conversation| {
        if conversation.request().is_some() {
            let bytes = plan.lock().unwrap_or_else(|e| e.into_inner()).clone();
            conversation.send(bytes);
            conversation.finish();
            conversation.wait_for_close();
        }
    });
    let splitter = Splitter::before(&backend);
    let mut rng = Rng::with_seed(3);
    let mut client = splitter.client();
    for round in 0..1500 {
        let bytes = mutate(&mut rng, GOOD[round % GOOD.len()].as_bytes());
        next.lock().expect("the next answer").clone_from(&bytes);
        // Not to be tried again, so that each answer is asked for once.
        client.send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 0\r\n\r\n");
        let answer = client.try_answer("POST");
        if answer.is_none_or(|answer| answer.field("connection") == Some("close")) {
            // Closed, and not only silent.
            assert!(client.is_cut(), "{:?}", String::from_utf8_lossy(&bytes));
            client = splitter.client();
        }
    }
    drop(client);
    eventually("nothing is left in hand", || {
        let metrics = splitter.metrics();
        metrics.sum("splitter_connections_open", &[]) == 0.0
            && metrics.sum("splitter_requests_in_flight", &[]) == 0.0
    });
}

/// Whatever a backend sends in place of an answer, the next client gets its own: no byte of it is
/// taken for another answer.
#[test]
fn answers_on_kept_connections() {
    const GOOD: [&str; 3] = [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX: y\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
    ];
    let next = Arc::<Mutex<Vec<u8>>>::default();
    let plan = next.clone();
    let backend = Backend::scripted(move |conversation| {
        while let Some(request) = conversation.request() {
            if request.target() == "/good" {
                conversation.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood");
                continue;
            }
            let bytes = plan.lock().unwrap_or_else(|e| e.into_inner()).clone();
            conversation.send(bytes);
            // Ends what waits for more, and leaves the connection to be used when nothing does.
            if request.target() == "/last" {
                conversation.finish();
                conversation.wait_for_close();
            }
        }
    });
    let splitter = Splitter::before_with(&backend, |settings| {
        settings.timeouts.read = std::time::Duration::from_millis(250);
    });
    let mut rng = Rng::with_seed(4);
    let mut client = splitter.client();
    for round in 0..600 {
        let bytes = mutate(&mut rng, GOOD[round % GOOD.len()].as_bytes());
        next.lock().expect("the next answer").clone_from(&bytes);
        let target = if rng.u8(..40) == 0 { "/open" } else { "/last" };
        client.send(format!(
            "POST {target} HTTP/1.1\r\nHost: a.test\r\nContent-Length: 0\r\n\r\n"
        ));
        loop {
            match client.try_answer("POST") {
                Some(answer) if answer.status < 200 => {}
                Some(answer) if answer.field("connection") != Some("close") => break,
                _ => {
                    client = splitter.client();
                    break;
                }
            }
        }
        let good = splitter.get("a.test", "/good");
        let text = String::from_utf8_lossy(&bytes).into_owned();
        assert_eq!(
            (good.status, good.text()),
            (200, "good".to_owned()),
            "{text:?}"
        );
    }
}
