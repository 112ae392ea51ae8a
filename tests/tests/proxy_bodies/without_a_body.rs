use super::*;

#[test]
fn head_keeps_the_length_that_get_would_have() {
    let (backend, splitter) = answering("HTTP/1.1 200 OK\r\nContent-Length: 12345\r\n\r\n");
    let mut client = splitter.client();
    for _ in 0..2 {
        client.send("HEAD / HTTP/1.1\r\nHost: a.test\r\n\r\n");
        let answer = client.answer("HEAD");
        assert_eq!(answer.field("content-length"), Some("12345"));
    }
    assert_eq!(backend.connections(), 1);
    assert_eq!(backend.last().method(), "HEAD");
}

#[test]
fn head_gets_no_length_that_nobody_told() {
    for fields in ["", "Transfer-Encoding: chunked\r\n"] {
        let (backend, splitter) = answering(&format!("HTTP/1.1 200 OK\r\n{fields}\r\n"));
        let mut client = splitter.client();
        for _ in 0..2 {
            client.send("HEAD / HTTP/1.1\r\nHost: a.test\r\n\r\n");
            let answer = client.answer("HEAD");
            assert_eq!(answer.status, 200);
            assert_eq!(answer.field("content-length"), None);
        }
        assert_eq!(backend.connections(), 1);
    }
}

#[test]
fn head_of_an_own_answer_has_no_body() {
    let (_backend, splitter) = answering(OK);
    let mut client = splitter.client();
    for _ in 0..2 {
        client.send("HEAD / HTTP/1.1\r\nHost: nobody.test\r\n\r\n");
        let answer = client.answer("HEAD");
        assert_eq!(answer.status, 404);
        let get = splitter.get("nobody.test", "/");
        assert_eq!(answer.field("content-length"), get.field("content-length"));
    }
}

/// A backend that sends a body all the same must not have it taken for the next answer.
#[test]
fn a_body_that_must_not_be_there_goes_nowhere() {
    for (method, answer) in [
        ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"),
        ("GET", "HTTP/1.1 204 No Content\r\n\r\nevil"),
        (
            "GET",
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 4\r\n\r\nevil",
        ),
    ] {
        let (backend, splitter) = answering(answer);
        let mut client = splitter.client();
        for _ in 0..3 {
            client.send(format!("{method} / HTTP/1.1\r\nHost: a.test\r\n\r\n"));
            assert!(client.answer(method).status < 400, "{answer}");
        }
        assert_eq!(backend.seen().len(), 3);
    }
}

#[test]
fn no_content_has_neither_body_nor_length() {
    let (backend, splitter) = answering("HTTP/1.1 204 No Content\r\nX: y\r\n\r\n");
    let mut client = splitter.client();
    for _ in 0..2 {
        let answer = client.get("a.test", "/");
        assert_eq!(answer.status, 204);
        assert_eq!(answer.field("content-length"), None);
        assert_eq!(answer.field("transfer-encoding"), None);
        assert_eq!(answer.field("x"), Some("y"));
    }
    assert_eq!(backend.connections(), 1);
}

#[test]
fn not_modified_keeps_what_it_says_of_the_body_it_has_not() {
    for (fields, length) in [("Content-Length: 7\r\n", Some("7")), ("", None)] {
        let (backend, splitter) = answering(&format!(
            "HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n{fields}\r\n"
        ));
        let mut client = splitter.client();
        for _ in 0..2 {
            let answer = client.get("a.test", "/");
            assert_eq!(answer.status, 304);
            assert_eq!(answer.field("etag"), Some("\"x\""));
            // It may be left away, but not changed.
            let told = answer.field("content-length");
            assert!(told.is_none() || told == length, "{told:?}");
            assert_eq!(answer.field("transfer-encoding"), None);
        }
        assert_eq!(backend.connections(), 1);
    }
}
