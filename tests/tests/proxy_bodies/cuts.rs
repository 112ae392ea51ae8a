use super::*;

/// The backend sends this and, when told to, ends the connection by a close or a reset.
fn cutting(bytes: &'static str, reset: bool) -> (Backend, Splitter, Sender<()>) {
    let (cut, when) = channel::<()>();
    let when = Mutex::new(when);
    let backend = Backend::scripted(move |conversation| {
        if conversation.request().is_some() {
            conversation.send(bytes);
            let when = when.lock().unwrap_or_else(|e| e.into_inner());
            let _ = when.recv_timeout(PATIENCE);
            if reset {
                conversation.end_with_reset();
            }
        }
    });
    let splitter = Splitter::before(&backend);
    (backend, splitter, cut)
}

/// The client gets what came, and cannot take it for the whole.
#[track_caller]
fn is_cut(bytes: &'static str, version: &str) {
    for reset in [false, true] {
        let (_backend, splitter, cut) = cutting(bytes, reset);
        let mut client = splitter.client();
        client.send(format!("GET / {version}\r\nHost: a.test\r\n\r\n"));
        let head = client.head();
        assert_eq!(head.status, 200);
        let chunked = head.field("transfer-encoding").is_some();
        match chunked {
            true => assert_eq!(client.chunk().as_deref(), Some(&b"hello"[..])),
            false => assert_eq!(client.read(5), b"hello"),
        }
        cut.send(()).expect("the backend waits");
        let mut rest = Vec::new();
        let end = client.reader().read_to_end(&mut rest);
        assert_eq!(rest, b"", "nothing that could be an end");
        if head.field("content-length").is_none() && !chunked {
            assert!(end.is_err(), "a close would be the end of the answer");
        }
    }
}

const LENGTH: &str = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello";
const CHUNKS: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n";

#[test]
fn a_body_shorter_than_its_length_is_cut() {
    is_cut(LENGTH, "HTTP/1.1");
}

#[test]
fn chunks_without_the_last_are_cut() {
    is_cut(CHUNKS, "HTTP/1.1");
}

#[test]
fn http10_is_told_by_a_reset_when_it_knows_no_length() {
    is_cut(LENGTH, "HTTP/1.0");
    is_cut(CHUNKS, "HTTP/1.0");
}

#[test]
fn a_reset_is_not_the_end_of_an_answer() {
    let (_backend, splitter, cut) = cutting("HTTP/1.1 200 OK\r\n\r\nhello", true);
    let mut client = splitter.client();
    client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
    assert_eq!(client.head().status, 200);
    assert_eq!(client.chunk().as_deref(), Some(&b"hello"[..]));
    cut.send(()).expect("the backend waits");
    assert_eq!(client.chunk(), None);
}

#[test]
fn a_malformed_chunk_is_a_cut() {
    let (_backend, splitter) = answering(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nnonsense\r\n",
    );
    let mut client = splitter.client();
    client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
    assert_eq!(client.try_answer("GET"), None);
}
