use super::*;

#[test]
fn requests_are_answered_in_order() {
    let backend = Backend::reflecting();
    let splitter = Splitter::before(&backend);
    let mut client = splitter.client();
    let requests: String = (0..50)
        .map(|i| format!("GET /{i} HTTP/1.1\r\nHost: a.test\r\n\r\n"))
        .collect();
    client.send(requests);
    for i in 0..50 {
        assert_eq!(client.answer("GET").text(), format!("/{i}"));
    }
    assert_eq!(client.get("a.test", "/last").text(), "/last");
}

#[test]
fn bodies_do_not_run_into_the_next_request() {
    let backend = Backend::reflecting();
    let splitter = Splitter::before(&backend);
    let mut client = splitter.client();
    client.send(
        "POST /1 HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\n\r\n12345\
         POST /2 HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n\
         2\r\nab\r\n0\r\n\r\n\
         GET /3 HTTP/1.1\r\nHost: a.test\r\n\r\n",
    );
    for path in ["/1", "/2", "/3"] {
        assert_eq!(client.answer("GET").text(), path);
    }
    let bodies: Vec<_> = backend.seen().into_iter().map(|seen| seen.body).collect();
    assert_eq!(bodies, [b"12345".to_vec(), b"ab".to_vec(), Vec::new()]);
}

#[track_caller]
fn good_then_bad(bad: &str, status: u16) {
    let backend = Backend::reflecting();
    let splitter = Splitter::before(&backend);
    let mut client = splitter.client();
    client.send(format!(
        "GET /1 HTTP/1.1\r\nHost: a.test\r\n\r\n\
         POST /2 HTTP/1.1\r\nHost: a.test\r\nContent-Length: 3\r\n\r\nabc{bad}{SMUGGLED}"
    ));
    assert_eq!(client.answer("GET").text(), "/1");
    assert_eq!(client.answer("POST").text(), "/2");
    client.answer("GET").assert_own(status);
    assert!(client.is_closed());
    assert_eq!(backend.seen().len(), 2, "{:?}", backend.seen());
}

#[test]
fn a_malformed_request_behind_good_ones() {
    good_then_bad("GET /3 HTTP/1.1\r\nHost : a.test\r\n\r\n", 400);
}

#[test]
fn garbage_behind_good_ones() {
    good_then_bad("}\r\n", 400);
}

#[test]
fn bad_framing_behind_good_ones() {
    good_then_bad(
        "POST /3 HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1\r\n\
         Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        400,
    );
}

#[test]
fn an_unknown_coding_behind_good_ones() {
    good_then_bad(
        "POST /3 HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: gzip\r\n\r\n",
        501,
    );
}

#[test]
fn two_hosts_behind_good_ones() {
    good_then_bad(
        "GET /3 HTTP/1.1\r\nHost: a.test\r\nHost: b.test\r\n\r\n",
        400,
    );
}

/// The first answer takes long; the refusal behind it must wait for it.
#[test]
fn a_refusal_does_not_overtake_a_slow_answer() {
    let backend = Backend::scripted(|conversation| {
        if conversation.request().is_some() {
            conversation.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
            for _ in 0..2000 {
                conversation.send("400\r\n".to_owned() + &"x".repeat(0x400) + "\r\n");
            }
            conversation.send("0\r\n\r\n");
        }
    });
    let splitter = Splitter::before(&backend);
    let mut client = splitter.client();
    client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\nGET / HTTP/9.9\r\n\r\n");
    assert_eq!(client.answer("GET").body.len(), 2000 * 0x400);
    client.answer("GET").assert_own(400);
    assert!(client.is_closed());
}

/// A request that is refused by itself, but whose end is known, does not end the connection.
#[test]
fn an_unknown_location_leaves_the_connection() {
    let backend = Backend::reflecting();
    let splitter = Splitter::before(&backend);
    let mut client = splitter.client();
    client.get("b.test", "/").assert_own(404);
    assert_eq!(client.get("a.test", "/x").text(), "/x");
}
