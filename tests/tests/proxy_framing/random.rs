//! Streams of many requests, cut into pieces at random: every request is passed on once, whole and
//! in order, up to the first bad one.

use fastrand::Rng;

use super::*;

/// One request and what the backend is to see of it.
struct Sent {
    bytes: Vec<u8>,
    target: String,
    body: Vec<u8>,
}

fn good(rng: &mut Rng, index: usize) -> Sent {
    let target = format!("/{index}?{}", rng.u32(..));
    let length = match rng.u8(..4) {
        0 => 0,
        1 => rng.usize(..10),
        2 => rng.usize(..1000),
        _ => rng.usize(..40_000),
    };
    // Full of what would be a head, or the end of a chunk.
    let body: Vec<u8> = b"GET /evil HTTP/1.1\r\nHost: a.test\r\n\r\n0\r\n\r\n"
        .iter()
        .copied()
        .cycle()
        .skip(rng.usize(..20))
        .take(length)
        .collect();
    let mut bytes = match rng.u8(..8) {
        0 => b"\r\n".to_vec(),
        _ => Vec::new(),
    };
    let method = ["GET", "POST", "PUT", "DELETE"][rng.usize(..4)];
    bytes.extend(format!("{method} {target} HTTP/1.1\r\nHost: a.test\r\n").into_bytes());
    if rng.bool() {
        bytes.extend(format!("X-Fill: {}\r\n", "x".repeat(rng.usize(..3000))).into_bytes());
    }
    if rng.bool() {
        bytes.extend(b"Transfer-Encoding: chunked\r\n\r\n");
        let mut rest = &body[..];
        while !rest.is_empty() {
            let (chunk, after) = rest.split_at(rng.usize(1..=rest.len().min(5000)));
            let extension = ["", ";x=y", " ; a"][rng.usize(..3)];
            bytes.extend(format!("{:X}{extension}\r\n", chunk.len()).into_bytes());
            bytes.extend(chunk);
            bytes.extend(b"\r\n");
            rest = after;
        }
        bytes.extend(match rng.bool() {
            true => &b"0\r\n\r\n"[..],
            false => b"000\r\nX-Trailer: y\r\n\r\n",
        });
    } else {
        if !body.is_empty() || rng.bool() {
            bytes.extend(format!("Content-Length: {}\r\n", body.len()).into_bytes());
        }
        bytes.extend(b"\r\n");
        bytes.extend(&body);
    }
    Sent {
        bytes,
        target,
        body,
    }
}

fn bad(rng: &mut Rng) -> &'static str {
    [
        "GET /bad HTTP/1.1\r\nHost : a.test\r\n\r\n",
        "GET /bad HTTP/1.1\nHost: a.test\n\n",
        "POST /bad HTTP/1.1\r\nHost: a.test\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
        "POST /bad HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: gzip\r\n\r\n",
        "GET /bad HTTP/1.1\r\nHost: a.test\r\nHost: a.test\r\n\r\n",
        "POST /bad HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloX",
        "\x00\r\n",
    ][rng.usize(..7)]
}

#[test]
fn every_good_request_is_served_before_the_bad_one_is_refused() {
    let backend = Backend::reflecting();
    let splitter = Splitter::before(&backend);
    for seed in 0..150 {
        let mut rng = Rng::with_seed(seed);
        let before = backend.seen().len();
        let requests: Vec<_> = (0..rng.usize(1..12)).map(|i| good(&mut rng, i)).collect();
        let mut stream: Vec<u8> = requests.iter().flat_map(|it| it.bytes.clone()).collect();
        let ends_badly = rng.bool();
        if ends_badly {
            stream.extend(bad(&mut rng).as_bytes());
            stream.extend(SMUGGLED.as_bytes());
        }
        let mut client = splitter.client();
        let mut rest = &stream[..];
        while !rest.is_empty() {
            let most = [3, 100, 10_000, 1_000_000][rng.usize(..4)].max(rest.len() / 40);
            let (piece, after) = rest.split_at(rng.usize(1..=rest.len().min(most)));
            client.send(piece);
            rest = after;
        }
        for request in &requests {
            let answer = client.answer("POST");
            assert_eq!(answer.text(), request.target, "seed {seed}");
        }
        if ends_badly {
            let answer = client.answer("GET");
            assert!(
                matches!(answer.status, 400 | 501),
                "seed {seed}: {answer:?}"
            );
            assert!(client.is_closed(), "seed {seed}");
        }
        let seen = backend.seen().split_off(before);
        assert_eq!(seen.len(), requests.len(), "seed {seed}");
        for (seen, request) in seen.iter().zip(&requests) {
            assert_eq!(seen.target(), request.target, "seed {seed}");
            assert!(seen.body == request.body, "seed {seed}: {}", request.target);
        }
    }
}
