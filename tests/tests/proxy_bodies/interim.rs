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

const HINTS: &str = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nLink: </b.js>\r\n\
    Connection: X-Own\r\nX-Own: 1\r\nKeep-Alive: 5\r\n\r\n";

/// Counted by what became of them.
fn interim(splitter: &Splitter, result: &str) -> f64 {
    splitter
        .metrics()
        .sum("splitter_interim_answers_total", &[("result", result)])
}

/// RFC 9110 15.2: a proxy forwards 1xx answers.
#[test]
fn hints_reach_the_client_before_the_answer_is_there() {
    let (go, gone) = channel::<()>();
    let gone = Mutex::new(gone);
    let backend = Backend::scripted(move |conversation| {
        while conversation.request().is_some() {
            conversation.send(HINTS);
            let wait = gone.lock().unwrap_or_else(|e| e.into_inner());
            let _ = wait.recv_timeout(PATIENCE);
            conversation.send(OK);
        }
    });
    let splitter = Splitter::before(&backend);
    let mut client = splitter.client();
    for _ in 0..2 {
        client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
        let hints = client.head();
        assert_eq!(hints.line, "HTTP/1.1 103 Early Hints");
        let expected = [("link", "</a.css>; rel=preload"), ("link", "</b.js>")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(hints.fields, expected);
        go.send(()).expect("the backend waits");
        assert_eq!(client.answer("GET").text(), "ok");
    }
    assert_eq!(interim(&splitter, "passed"), 2.0);
    assert_eq!(interim(&splitter, "dropped"), 0.0);
}

/// Raw bytes: nothing of an answer stands in the midst of another.
#[test]
fn hints_stand_between_the_answers_of_pipelined_requests() {
    let (_backend, splitter) = answering(&format!("{HINTS}HTTP/1.1 102 Processing\r\n\r\n{OK}"));
    let mut client = splitter.client();
    client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n".repeat(20));
    for _ in 0..20 {
        assert_eq!(client.head().status, 103);
        assert_eq!(client.head().line, "HTTP/1.1 102 Processing");
        let answer = client.answer("GET");
        assert_eq!((answer.status, answer.text()), (200, "ok".to_owned()));
    }
    assert_eq!(interim(&splitter, "passed"), 40.0);
}

/// The proxy has its own dialogue with its client about 100, and the backend has another.
#[test]
fn a_continue_of_the_backend_is_not_for_the_client() {
    let (_backend, splitter) = answering(&format!("HTTP/1.1 100 Continue\r\n\r\n{OK}"));
    let mut client = splitter.client();
    assert_eq!(client.get("a.test", "/").status, 200);
    client.send(
        "POST / HTTP/1.1\r\nHost: a.test\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n",
    );
    assert_eq!(client.answer("POST").status, 100);
    client.send("hello");
    assert_eq!(client.answer("POST").status, 200);
    assert_eq!(interim(&splitter, "passed"), 0.0);
}

#[test]
fn too_many_are_no_answer() {
    let (_backend, splitter) = answering(&format!("{}{OK}", "HTTP/1.1 102 P\r\n\r\n".repeat(17)));
    let mut client = splitter.client();
    client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
    for _ in 0..16 {
        assert_eq!(client.head().status, 102);
    }
    client.answer("GET").assert_own(502);
    eventually("the fault is counted", || {
        splitter.faults("upstream-invalid") == 1.0
    });
}

#[test]
fn large_ones_are_left_out_and_counted() {
    let field = "x".repeat(20 * 1024);
    let (_backend, splitter) = answering(&format!(
        "HTTP/1.1 103 Early Hints\r\nX: {field}\r\n\r\n{OK}"
    ));
    assert_eq!(splitter.get("a.test", "/").text(), "ok");
    assert_eq!(interim(&splitter, "dropped"), 1.0);
}

#[test]
fn a_broken_one_is_no_answer() {
    for bytes in [
        "HTTP/1.1 103 Early Hints\nLink: </a>\n\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 103 Early Hints\r\nX: a\rb\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    ] {
        let (_backend, splitter) = answering(bytes);
        splitter.get("a.test", "/").assert_own(502);
    }
}
