//! How fast answers go: `limit-rate`, `limit-rate-after`.

use std::time::{Duration, Instant};

use splitter_tests::backend::Backend;
use splitter_tests::noise::Noise;

use super::before;

/// Bytes that look like no others.
fn noise(count: usize) -> Vec<u8> {
    let mut noise = Noise::new(7);
    let pieces = (0..count / 1024).flat_map(|_| noise.next(1024).to_vec());
    pieces.collect()
}

/// A pod that answers with so many bytes.
fn pod(body: Vec<u8>, chunked: bool) -> Backend {
    Backend::scripted(move |conversation| {
        while conversation.request().is_some() {
            let length = body.len();
            if chunked {
                conversation.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
                conversation.send(format!("{length:x}\r\n"));
                conversation.send(&body);
                conversation.send("\r\n0\r\n\r\n");
            } else {
                conversation.send(format!(
                    "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n"
                ));
                conversation.send(&body);
            }
        }
    })
}

#[test]
fn an_answer_goes_no_faster_than_it_may() {
    for chunked in [false, true] {
        let body = noise(96 * 1024);
        let backend = pod(body.clone(), chunked);
        let notes = [("limit-rate", "64"), ("limit-rate-after", "32")];
        let splitter = before(&backend, &notes);
        assert_eq!(splitter.problems(), [""; 0]);
        let mut client = splitter.client();
        for _ in 0..2 {
            let began = Instant::now();
            let answer = client.get("a.test", "/");
            // 32 KiB at once and 64 KiB in a second, measured by another clock.
            let took = began.elapsed();
            assert!(took >= Duration::from_millis(950), "{took:?}");
            assert!(answer.body == body, "chunked: {chunked}");
        }
        assert_eq!(backend.connections(), 1, "the pod's connection is kept");
    }
}

#[test]
fn what_is_short_enough_goes_at_once_and_nothing_limits_nothing() {
    let body = noise(30 * 1024);
    for notes in [
        &[("limit-rate", "1"), ("limit-rate-after", "32")][..],
        &[("limit-rate", "0"), ("limit-rate-after", "1")],
        &[("limit-rate-after", "1")],
        &[("limit-rate", "-1")],
        &[("limit-rate", "1k")],
    ] {
        let backend = pod(body.clone(), false);
        let splitter = before(&backend, notes);
        let began = Instant::now();
        assert!(splitter.get("a.test", "/").body == body);
        // At 1 KiB a second it would be half a minute.
        assert!(began.elapsed() < Duration::from_secs(15), "{notes:?}");
    }
}

#[test]
fn a_client_that_leaves_ends_a_slow_answer() {
    let backend = pod(noise(1 << 20), false);
    let splitter = before(&backend, &[("limit-rate", "1")]);
    let mut client = splitter.client();
    client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
    client.read(100);
    drop(client);
    splitter_tests::eventually("it is noticed", || splitter.faults("client-gone") == 1.0);
}
