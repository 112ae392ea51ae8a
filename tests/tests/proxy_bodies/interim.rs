use super::*;

/// Reads answers until the final one.
fn last(client: &mut Client) -> splitter_tests::client::Answer {
    loop {
        let answer = client.answer("GET");
        if answer.status >= 200 {
            return answer;
        }
    }
}

#[test]
fn interim_answers_of_a_backend_do_not_stand_for_the_final_one() {
    for interim in [
        "HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n",
        "HTTP/1.1 102 Processing\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n",
    ] {
        let (backend, splitter) = answering(&format!("{interim}{OK}"));
        let mut client = splitter.client();
        for _ in 0..2 {
            client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
            let answer = last(&mut client);
            assert_eq!((answer.status, answer.text()), (200, "ok".to_owned()));
        }
        assert_eq!(backend.connections(), 1);
    }
}

#[test]
fn http10_gets_no_interim_answer() {
    let (_backend, splitter) = answering(&format!("HTTP/1.1 103 Early Hints\r\n\r\n{OK}"));
    let mut client = splitter.client();
    client.send("GET / HTTP/1.0\r\nHost: a.test\r\n\r\n");
    assert_eq!(client.answer("GET").status, 200);
}

#[test]
fn a_client_that_waits_is_told_to_continue() {
    let (backend, splitter) = answering(OK);
    let mut client = splitter.client();
    client.send(
        "POST / HTTP/1.1\r\nHost: a.test\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n",
    );
    assert_eq!(client.answer("POST").status, 100);
    client.send("hello");
    assert_eq!(client.answer("POST").text(), "ok");
    assert_eq!(backend.last().body, b"hello");
}

#[test]
fn a_client_that_does_not_wait_is_answered_all_the_same() {
    let (backend, splitter) = answering(OK);
    let mut client = splitter.client();
    client.send(
        "POST / HTTP/1.1\r\nHost: a.test\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n\
         hello",
    );
    let answer = last(&mut client);
    assert_eq!(answer.text(), "ok");
    assert_eq!(backend.last().body, b"hello");
}

#[test]
fn a_refused_client_is_not_told_to_continue() {
    let (_backend, splitter) = answering(OK);
    let mut client = splitter.client();
    client.send(
        "POST / HTTP/1.1\r\nHost: nobody.test\r\nExpect: 100-continue\r\n\
         Content-Length: 5\r\n\r\n",
    );
    client.answer("POST").assert_own(404);
}

/// RFC 9110 10.1.1: HTTP/1.0 knows no 100, whatever it expects.
#[test]
fn http10_is_not_told_to_continue() {
    let (backend, splitter) = answering(OK);
    let mut client = splitter.client();
    client.send(
        "POST / HTTP/1.0\r\nHost: a.test\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n\
         hello",
    );
    assert_eq!(client.answer("POST").text(), "ok");
    assert_eq!(backend.last().body, b"hello");
}

#[test]
fn chunks_may_be_waited_for_too() {
    let (backend, splitter) = answering(OK);
    let mut client = splitter.client();
    client.send(
        "PUT / HTTP/1.1\r\nHost: a.test\r\nExpect: 100-Continue\r\n\
         Transfer-Encoding: chunked\r\n\r\n",
    );
    assert_eq!(client.answer("PUT").status, 100);
    client.send("5\r\nhello\r\n0\r\n\r\n");
    assert_eq!(client.answer("PUT").text(), "ok");
    assert_eq!(backend.last().body, b"hello");
}
