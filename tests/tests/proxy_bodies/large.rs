use super::*;

/// In no step with any buffer.
const CHUNK: usize = 30_011;

#[test]
fn an_answer_of_known_length_arrives_whole() {
    let backend = Backend::scripted(|conversation| {
        while conversation.request().is_some() {
            conversation.send(format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {LARGE}\r\n\r\n"
            ));
            Noise::new(1).write_to(conversation.stream(), LARGE);
        }
    });
    let splitter = Splitter::before(&backend);
    let mut client = splitter.client();
    for _ in 0..2 {
        client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
        assert_eq!(client.head().status, 200);
        assert_eq!(Noise::new(1).check_from(client.reader(), LARGE), LARGE);
    }
    assert_eq!(backend.connections(), 1);
}

#[test]
fn a_chunked_answer_arrives_whole() {
    let backend = Backend::scripted(|conversation| {
        while conversation.request().is_some() {
            conversation.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
            let mut noise = Noise::new(2);
            for _ in 0..LARGE / CHUNK {
                conversation.send(format!("{CHUNK:x}\r\n"));
                conversation.send(noise.next(CHUNK));
                conversation.send("\r\n");
            }
            conversation.send("0\r\n\r\n");
        }
    });
    let splitter = Splitter::before(&backend);
    let body = splitter.get("a.test", "/").body;
    let length = LARGE / CHUNK * CHUNK;
    assert_eq!(body.len(), length);
    assert_eq!(Noise::new(2).check_from(&body[..], length), length);
}

#[test]
fn an_upload_of_known_length_arrives_whole() {
    let backend = Backend::scripted(|conversation| {
        while conversation.head().is_some() {
            let good = Noise::new(3).check_from(conversation.reader(), LARGE);
            let body = good.to_string();
            let length = body.len();
            conversation.send(format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}"
            ));
        }
    });
    let splitter = Splitter::before(&backend);
    let mut client = splitter.client();
    for _ in 0..2 {
        client.send(format!(
            "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: {LARGE}\r\n\r\n"
        ));
        assert_eq!(Noise::new(3).write_to(client.stream(), LARGE), LARGE);
        assert_eq!(client.answer("POST").text(), LARGE.to_string());
    }
    assert_eq!(backend.connections(), 1);
}

#[test]
fn a_chunked_upload_arrives_whole() {
    let (backend, splitter) = answering(OK);
    let mut client = splitter.client();
    client.send("POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n");
    let mut noise = Noise::new(4);
    for _ in 0..LARGE / CHUNK {
        client.send(format!("{CHUNK:x}\r\n"));
        client.send(noise.next(CHUNK));
        client.send("\r\n");
    }
    client.send("0\r\n\r\n");
    assert_eq!(client.answer("POST").text(), "ok");
    let body = backend.last().body;
    let length = LARGE / CHUNK * CHUNK;
    assert_eq!(body.len(), length);
    assert_eq!(Noise::new(4).check_from(&body[..], length), length);
}

/// Answers that go through pipes, and others, one after the other.
#[test]
fn long_and_short_answers_keep_their_order() {
    const MEDIUM: usize = 300_007;
    let backend = Backend::scripted(|conversation| {
        while let Some(seen) = conversation.request() {
            let seed = seen.target().len();
            match seen.target() {
                "/short" => conversation.send(OK),
                "/chunked/" => {
                    conversation.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
                    conversation.send(format!("{MEDIUM:x}\r\n"));
                    Noise::new(seed).write_to(conversation.stream(), MEDIUM);
                    conversation.send("\r\n0\r\n\r\n");
                }
                _ => {
                    conversation.send(format!(
                        "HTTP/1.1 200 OK\r\nContent-Length: {MEDIUM}\r\n\r\n"
                    ));
                    Noise::new(seed).write_to(conversation.stream(), MEDIUM);
                }
            }
        }
    });
    let splitter = Splitter::before(&backend);
    let mut client = splitter.client();
    let order = ["/", "/long", "/short", "/chunked/", "/long/", "/", "/short"];
    for _ in 0..3 {
        // All at once: each may be on its way when the next is asked for.
        let requests = order.map(|path| format!("GET {path} HTTP/1.1\r\nHost: a.test\r\n\r\n"));
        client.send(requests.concat());
        for path in order {
            let answer = client.answer("GET");
            match path {
                "/short" => assert_eq!(answer.text(), "ok"),
                _ => {
                    let good = Noise::new(path.len()).check_from(&answer.body[..], MEDIUM);
                    assert_eq!((good, answer.body.len()), (MEDIUM, MEDIUM), "{path}");
                }
            }
        }
    }
    let piped = splitter
        .metrics()
        .sum("splitter_pipes_total", &[("result", "taken")]);
    assert!(piped >= 1.0, "{piped}");
}

#[test]
fn a_long_answer_of_a_request_with_a_body_arrives_whole() {
    const MEDIUM: usize = 700_001;
    let backend = Backend::scripted(|conversation| {
        while conversation.head().is_some() {
            conversation.send(format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {MEDIUM}\r\n\r\n"
            ));
            // The answer begins before the request has come.
            Noise::new(5).write_to(conversation.stream(), MEDIUM);
            assert_eq!(conversation.read(MEDIUM).len(), MEDIUM);
        }
    });
    let splitter = Splitter::before(&backend);
    let mut client = splitter.client();
    client.send(format!(
        "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: {MEDIUM}\r\n\r\n"
    ));
    assert_eq!(client.head().status, 200);
    assert_eq!(
        Noise::new(5).check_from(client.reader(), MEDIUM),
        MEDIUM,
        "while nothing of the request's body is there"
    );
    assert_eq!(Noise::new(6).write_to(client.stream(), MEDIUM), MEDIUM);
}
