//! Answers that come in pieces and end anywhere: a client sees the whole, or sees that it does not.

use fastrand::Rng;

use super::*;

/// An answer, its body, and whether the end of the stream ends it.
fn answer(rng: &mut Rng) -> (Vec<u8>, Vec<u8>, bool) {
    let length = [0, 1, 500, 30_000][rng.usize(..4)];
    let body: Vec<u8> = b"0\r\n\r\nHTTP/1.1 200 OK\r\n"
        .iter()
        .copied()
        .cycle()
        .take(length)
        .collect();
    let mut bytes = b"HTTP/1.1 200 OK\r\nX-Fill: y\r\n".to_vec();
    match rng.u8(..3) {
        0 => {
            bytes.extend(format!("Content-Length: {length}\r\n\r\n").into_bytes());
            bytes.extend(&body);
            (bytes, body, false)
        }
        1 => {
            bytes.extend(b"Transfer-Encoding: chunked\r\n\r\n");
            let mut rest = &body[..];
            while !rest.is_empty() {
                let (chunk, after) = rest.split_at(rng.usize(1..=rest.len().min(9000)));
                bytes.extend(format!("{:x}\r\n", chunk.len()).into_bytes());
                bytes.extend(chunk);
                bytes.extend(b"\r\n");
                rest = after;
            }
            bytes.extend(b"0\r\n\r\n");
            (bytes, body, false)
        }
        _ => {
            bytes.extend(b"\r\n");
            bytes.extend(&body);
            (bytes, body, true)
        }
    }
}

#[test]
fn a_cut_answer_is_never_taken_for_a_whole_one() {
    /// What the backend does next: these pieces, then perhaps the end.
    type Plan = Mutex<Option<(Vec<Vec<u8>>, bool)>>;
    let plan = std::sync::Arc::<Plan>::default();
    let next = plan.clone();
    let backend = Backend::scripted(move |conversation| {
        while conversation.request().is_some() {
            let next = next.lock().unwrap_or_else(|e| e.into_inner()).clone();
            let (pieces, ends) = next.unwrap_or_default();
            for piece in pieces {
                conversation.send(piece);
            }
            if ends {
                return;
            }
        }
    });
    let splitter = Splitter::before(&backend);
    let mut client = splitter.client();
    for seed in 0..400 {
        let mut rng = Rng::with_seed(seed);
        let (bytes, body, until_close) = answer(&mut rng);
        let cut = match rng.bool() {
            true => rng.usize(..bytes.len()),
            false => bytes.len(),
        };
        let mut pieces = Vec::new();
        let mut rest = &bytes[..cut];
        while !rest.is_empty() {
            let most = [1, 50, 100_000][rng.usize(..3)].max(rest.len() / 40);
            let (piece, after) = rest.split_at(rng.usize(1..=rest.len().min(most)));
            pieces.push(piece.to_vec());
            rest = after;
        }
        let whole = cut == bytes.len();
        *plan.lock().expect("a plan") = Some((pieces, !whole || until_close));
        // A body until the close is whole wherever it ends.
        let head = bytes
            .windows(4)
            .position(|end| end == b"\r\n\r\n")
            .unwrap_or_default()
            + 4;
        client.send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 0\r\n\r\n");
        match client.try_answer("POST") {
            Some(answer) if answer.status == 200 => {
                let good = whole || (until_close && cut >= head);
                assert!(good, "seed {seed}: cut at {cut} of {}", bytes.len());
                let expected = body.get(..answer.body.len()).unwrap_or_default();
                assert!(answer.body == expected, "seed {seed}");
                assert!(!whole || answer.body.len() == body.len(), "seed {seed}");
            }
            Some(answer) => {
                assert!(!whole, "seed {seed}");
                answer.assert_own(502);
            }
            None => {
                assert!(!whole, "seed {seed}");
                client = splitter.client();
            }
        }
    }
}
