use super::*;

#[test]
fn a_length_stays_a_length() {
    let (backend, splitter) = answering(OK);
    let mut client = splitter.client();
    client.send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\n\r\nhello");
    let answer = client.answer("POST");
    assert_eq!(answer.text(), "ok");
    assert_eq!(answer.field("content-length"), Some("2"));
    assert_eq!(answer.field("transfer-encoding"), None);
    let seen = backend.last();
    assert_eq!(seen.body, b"hello");
    assert_eq!(seen.field("content-length"), Some("5"));
    assert_eq!(seen.field("transfer-encoding"), None);
}

#[test]
fn chunks_stay_chunks() {
    let (backend, splitter) = answering(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
    );
    let mut client = splitter.client();
    client.send(
        "POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n\
         1\r\nx\r\n2\r\nyz\r\n0\r\n\r\n",
    );
    let answer = client.answer("POST");
    assert_eq!(answer.text(), "abcde");
    assert_eq!(answer.field("transfer-encoding"), Some("chunked"));
    assert_eq!(answer.field("content-length"), None);
    let seen = backend.last();
    assert_eq!(seen.body, b"xyz");
    assert_eq!(seen.field("transfer-encoding"), Some("chunked"));
    assert_eq!(seen.field("content-length"), None);
}

#[test]
fn a_get_may_have_chunks() {
    let (backend, splitter) = answering(OK);
    let mut client = splitter.client();
    client.send(
        "GET /search HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n\
         5\r\nquery\r\n0\r\n\r\n",
    );
    assert_eq!(client.answer("GET").text(), "ok");
    assert_eq!(backend.last().body, b"query");
    assert_eq!(client.get("a.test", "/").text(), "ok");
}

#[test]
fn a_delete_may_have_a_length() {
    let (backend, splitter) = answering(OK);
    let mut client = splitter.client();
    client.send("DELETE / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 3\r\n\r\nall");
    assert_eq!(client.answer("DELETE").text(), "ok");
    assert_eq!(backend.last().body, b"all");
}

#[test]
fn an_empty_body_stays_empty() {
    let (backend, splitter) = answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let mut client = splitter.client();
    client.send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 0\r\n\r\n");
    let answer = client.answer("POST");
    assert_eq!(answer.field("content-length"), Some("0"));
    assert_eq!(backend.last().field("content-length"), Some("0"));
    client.send("POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
    assert_eq!(client.answer("POST").status, 200);
    assert_eq!(backend.last().body, b"");
}

#[test]
fn an_answer_that_ends_with_its_connection_is_complete() {
    for head in ["HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.0 200 OK\r\n\r\n"] {
        let backend = Backend::scripted(move |conversation| {
            if conversation.request().is_some() {
                conversation.send(format!("{head}hello"));
            }
        });
        let splitter = Splitter::before(&backend);
        let mut client = splitter.client();
        for _ in 0..3 {
            let answer = client.get("a.test", "/");
            assert_eq!(answer.text(), "hello");
            assert_eq!(answer.field("transfer-encoding"), Some("chunked"));
        }
        assert_eq!(backend.connections(), 3);
    }
}

#[test]
fn http10_gets_an_unknown_length_until_the_close() {
    let (_backend, splitter) =
        answering("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n");
    for fields in ["", "Connection: keep-alive\r\n"] {
        let mut client = splitter.client();
        client.send(format!("GET / HTTP/1.0\r\nHost: a.test\r\n{fields}\r\n"));
        let answer = client.answer("GET");
        assert_eq!(answer.text(), "hello");
        assert_eq!(answer.field("transfer-encoding"), None);
        assert_eq!(answer.field("content-length"), None);
        assert_ne!(answer.field("connection"), Some("keep-alive"));
    }
}

#[test]
fn http10_may_keep_a_connection_when_the_length_is_known() {
    let (_backend, splitter) = answering(OK);
    let mut client = splitter.client();
    for _ in 0..2 {
        client.send("GET / HTTP/1.0\r\nHost: a.test\r\nConnection: keep-alive\r\n\r\n");
        let answer = client.answer("GET");
        assert_eq!(answer.text(), "ok");
        assert_eq!(answer.field("connection"), Some("keep-alive"));
    }
    client.send("GET / HTTP/1.0\r\nHost: a.test\r\n\r\n");
    assert_eq!(client.answer("GET").text(), "ok");
    assert!(client.is_closed());
}

#[test]
fn http10_uploads_pass() {
    let (backend, splitter) = answering(OK);
    let mut client = splitter.client();
    client.send("POST / HTTP/1.0\r\nHost: a.test\r\nContent-Length: 5\r\n\r\nhello");
    assert_eq!(client.answer("POST").text(), "ok");
    assert_eq!(backend.last().body, b"hello");
    assert!(client.is_closed());
}
