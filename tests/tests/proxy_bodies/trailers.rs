use super::*;

const ANSWER: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n\
    3\r\nabc\r\n0\r\nX-Sum: 900150983cd24fb0\r\n\r\n";

#[test]
fn go_to_a_client_that_takes_them() {
    let (backend, splitter) = answering(ANSWER);
    let answer = splitter.get_with("a.test", "/", "TE: trailers\r\nConnection: TE\r\n");
    assert_eq!(answer.text(), "abc");
    let sum = ("x-sum".to_owned(), "900150983cd24fb0".to_owned());
    assert_eq!(answer.trailers, [sum]);
    assert_eq!(backend.last().field("te"), Some("trailers"));
}

#[test]
fn do_not_disturb_a_client_that_does_not() {
    let (backend, splitter) = answering(ANSWER);
    let mut client = splitter.client();
    for _ in 0..2 {
        assert_eq!(client.get("a.test", "/").text(), "abc");
    }
    assert_eq!(backend.last().field("te"), None);
    assert_eq!(backend.connections(), 1);
}

#[test]
fn go_to_the_backend() {
    let (backend, splitter) = answering(OK);
    let mut client = splitter.client();
    client.send(
        "POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\
         \r\n3\r\nabc\r\n0\r\nX-Sum: 12\r\n\r\n",
    );
    assert_eq!(client.answer("POST").text(), "ok");
    let seen = backend.last();
    assert_eq!(seen.body, b"abc");
    assert_eq!(seen.trailers, [("x-sum".to_owned(), "12".to_owned())]);
}

/// RFC 9110 6.5.1: what frames, routes or authenticates a message does not stand in a trailer.
#[test]
fn do_not_change_the_message() {
    let (backend, splitter) = answering(OK);
    let mut client = splitter.client();
    client.send(
        "POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\
         Trailer: Content-Length, Host, Transfer-Encoding\r\n\r\n\
         3\r\nabc\r\n0\r\nContent-Length: 99\r\nHost: b.test\r\n\
         Transfer-Encoding: gzip\r\n\r\n",
    );
    let answer = client.answer("POST");
    if answer.status == 200 {
        assert_eq!(backend.last().trailers, []);
    } else {
        answer.assert_own(400);
    }
}
