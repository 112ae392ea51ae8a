use super::*;

/// Everything sent is one request with its body; whatever looks like another is part of it.
#[track_caller]
fn one_request(client: &mut Client, backend: &Backend, request: &str, body: &str) {
    client.send(request);
    assert_eq!(client.answer("POST").status, 200);
    assert_eq!(backend.seen().len(), 1, "{:?}", backend.seen());
    assert_eq!(backend.last().body, body.as_bytes());
}

#[test]
fn a_get_with_a_length_has_a_body() {
    let backend = Backend::named("main");
    let splitter = Splitter::before(&backend);
    let length = SMUGGLED.len();
    let request =
        format!("GET / HTTP/1.1\r\nHost: a.test\r\nContent-Length: {length}\r\n\r\n{SMUGGLED}");
    one_request(&mut splitter.client(), &backend, &request, SMUGGLED);
}

#[test]
fn a_get_with_chunks_has_a_body() {
    let backend = Backend::named("main");
    let splitter = Splitter::before(&backend);
    let length = SMUGGLED.len();
    let request = format!(
        "GET / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n\
         {length:x}\r\n{SMUGGLED}\r\n0\r\n\r\n"
    );
    one_request(&mut splitter.client(), &backend, &request, SMUGGLED);
}

#[test]
fn framing_cannot_be_named_away() {
    for name in ["Content-Length", "content-length, close"] {
        let backend = Backend::named("main");
        let splitter = Splitter::before(&backend);
        let length = SMUGGLED.len();
        let request = format!(
            "POST / HTTP/1.1\r\nHost: a.test\r\nConnection: {name}\r\n\
             Content-Length: {length}\r\n\r\n{SMUGGLED}"
        );
        one_request(&mut splitter.client(), &backend, &request, SMUGGLED);
    }
    let backend = Backend::named("main");
    let splitter = Splitter::before(&backend);
    let length = SMUGGLED.len();
    let request = format!(
        "POST / HTTP/1.1\r\nHost: a.test\r\nConnection: Transfer-Encoding\r\n\
         Transfer-Encoding: chunked\r\n\r\n{length:x}\r\n{SMUGGLED}\r\n0\r\n\r\n"
    );
    one_request(&mut splitter.client(), &backend, &request, SMUGGLED);
}

/// A backend that answers before it has read the body must not make the rest of the body a
/// request: neither for us nor for itself.
#[test]
fn the_rest_of_an_answered_upload_is_no_request() {
    let backend = Backend::scripted(|conversation| {
        while conversation.head().is_some() {
            conversation.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nearly");
        }
    });
    let splitter = Splitter::before(&backend);
    let mut client = splitter.client();
    let body = SMUGGLED.repeat(3);
    let length = body.len() + 10;
    client.send(format!(
        "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: {length}\r\n\r\n{SMUGGLED}"
    ));
    assert_eq!(client.answer("POST").text(), "early");
    client.send(SMUGGLED.repeat(2));
    // What is left of the body has no answer: either the connection ends or it waits for more.
    client.finish();
    assert_eq!(client.try_answer("GET"), None);
}

#[test]
fn two_codings_of_which_one_is_odd() {
    for fields in [
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: cow\r\n",
        "Transfer-Encoding: cow\r\nTransfer-Encoding: chunked\r\n",
        "Content-Length: 3\r\nTransfer-Encoding: cow\r\n",
        "Content-Length: 3\r\nTransfer-Encoding: xchunked\r\n",
    ] {
        let backend = Backend::named("main");
        let splitter = Splitter::before(&backend);
        let mut client = splitter.client();
        client.send(format!(
            "POST / HTTP/1.1\r\nHost: a.test\r\n{fields}\r\n{SMUGGLED}"
        ));
        let answer = client.answer("POST");
        assert!(matches!(answer.status, 400 | 501), "{fields}: {answer:?}");
        assert!(client.is_closed());
        assert_eq!(backend.connections(), 0);
    }
}

/// `Transfer_Encoding` is Transfer-Encoding, and `X_Real_IP` is X-Real-IP, to programs that take
/// fields as environment variables. ingress-nginx lets no name with `_` through.
#[test]
fn names_that_a_backend_could_take_for_others_do_not_pass() {
    let seen = accepted(
        "POST / HTTP/1.1\r\nHost: a.test\r\nTransfer_Encoding: chunked\r\n\
         X_Forwarded_For: 9.9.9.9\r\nX_Real_IP: 9.9.9.9\r\nContent-Length: 3\r\n\r\nabc",
    );
    assert_eq!(seen.body, b"abc");
    let odd = seen.fields.iter().find(|(name, _)| name.contains('_'));
    assert_eq!(odd, None);
}
