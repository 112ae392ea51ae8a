use super::*;

fn post(splitter: &Splitter) -> Answer {
    let mut client = splitter.client();
    client.send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\n\r\nhello");
    client.answer("POST")
}

#[test]
fn what_does_no_harm_is_asked_of_another_endpoint() {
    let (bad, good) = (closing(), Backend::answering(OK));
    let splitter = Splitter::start(&service(&[bad.addr(), good.addr()]));
    let mut client = splitter.client();
    for method in ["GET", "HEAD", "OPTIONS", "PUT", "DELETE"]
        .into_iter()
        .cycle()
        .take(20)
    {
        client.send(format!("{method} / HTTP/1.1\r\nHost: a.test\r\n\r\n"));
        let answer = match method {
            "HEAD" => client.head(),
            _ => client.answer(method),
        };
        assert_ok(&answer);
        if method == "HEAD" {
            // The backend's mistake: it sends the body all the same. Not on this connection.
            client = splitter.client();
        }
    }
    assert!(bad.connections() > 0, "the bad endpoint was tried");
}

#[test]
fn twice_and_no_more() {
    let backends = [closing(), closing(), closing(), closing()];
    let addrs: Vec<_> = backends.iter().map(Backend::addr).collect();
    let splitter = Splitter::start(&service(&addrs));
    splitter.get("a.test", "/").assert_own(502);
    let asked: usize = backends.iter().map(|backend| backend.seen().len()).sum();
    assert_eq!(asked, 3);
}

#[test]
fn the_only_endpoint_is_not_asked_twice() {
    let backend = closing();
    let splitter = Splitter::before(&backend);
    splitter.get("a.test", "/").assert_own(502);
    assert_eq!(backend.seen().len(), 1);
}

#[test]
fn what_may_have_been_done_is_not_done_again() {
    for request in [
        "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\n\r\nhello",
        "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 0\r\n\r\n",
        "PATCH / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\n\r\nhello",
        "BREW / HTTP/1.1\r\nHost: a.test\r\n\r\n",
    ] {
        let backends = [closing(), closing()];
        let splitter = Splitter::start(&service(&[backends[0].addr(), backends[1].addr()]));
        let mut client = splitter.client();
        client.send(request);
        client.answer("POST").assert_own(502);
        let asked = backends[0].seen().len() + backends[1].seen().len();
        assert_eq!(asked, 1, "{request}");
    }
}

/// The body has gone with the first try, and was not kept.
#[test]
fn a_sent_body_is_not_sent_again() {
    let backends = [closing(), closing()];
    let splitter = Splitter::start(&service(&[backends[0].addr(), backends[1].addr()]));
    let mut client = splitter.client();
    client.send("PUT / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\n\r\nhello");
    client.answer("PUT").assert_own(502);
    assert_eq!(backends[0].seen().len() + backends[1].seen().len(), 1);
}

#[test]
fn an_answer_that_had_begun_is_not_asked_for_again() {
    let cut = || {
        Backend::scripted(|conversation| {
            conversation.request();
            conversation.send("HTTP/1.1 200 OK\r\nContent-Le");
        })
    };
    let backends = [cut(), cut()];
    let splitter = Splitter::start(&service(&[backends[0].addr(), backends[1].addr()]));
    splitter.get("a.test", "/").assert_own(502);
    assert_eq!(backends[0].seen().len() + backends[1].seen().len(), 1);
}

/// A connection that the backend closed while it was kept says nothing about the request.
#[test]
fn a_kept_connection_that_was_closed_is_replaced() {
    let (line, told, go) = Line::new();
    let backend = Backend::scripted(move |conversation| {
        if conversation.request().is_some() {
            conversation.send(OK);
            line.wait();
            conversation.finish();
            line.say("closed");
        }
    });
    let splitter = Splitter::before(&backend);
    let mut client = splitter.client();
    assert_ok(&client.get("a.test", "/"));
    for _ in 0..5 {
        go.send(()).expect("the backend waits");
        assert_eq!(told.recv_timeout(PATIENCE), Ok("closed"));
        assert_ok(&post(&splitter));
    }
    assert_eq!(backend.connections(), 6);
    let bodies = backend
        .seen()
        .iter()
        .filter(|seen| seen.body == b"hello")
        .count();
    assert_eq!(bodies, 5);
}

#[test]
fn a_kept_connection_that_was_reset_is_replaced() {
    let (line, told, go) = Line::new();
    let line = std::sync::Arc::new(line);
    let backend = Backend::scripted(move |conversation| {
        if conversation.request().is_some() {
            conversation.send(OK);
            line.wait();
            conversation.end_with_reset();
            let line = line.clone();
            conversation.at_end(move || line.say("closed"));
        }
    });
    let splitter = Splitter::before(&backend);
    assert_ok(&splitter.get("a.test", "/"));
    for _ in 0..5 {
        go.send(()).expect("the backend waits");
        assert_eq!(told.recv_timeout(PATIENCE), Ok("closed"));
        assert_ok(&post(&splitter));
    }
    assert_eq!(backend.connections(), 6);
}

/// What comes on a kept connection without having been asked for is no answer to anything.
#[test]
fn an_answer_to_nothing_is_not_an_answer() {
    let (line, told, go) = Line::new();
    let backend = Backend::scripted(move |conversation| {
        if conversation.request().is_some() {
            conversation.send(OK);
            line.wait();
            conversation.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil");
            line.say("sent");
            conversation.wait_for_close();
        }
    });
    let splitter = Splitter::before(&backend);
    let mut client = splitter.client();
    assert_eq!(client.get("a.test", "/").text(), "ok");
    go.send(()).expect("the backend waits");
    assert_eq!(told.recv_timeout(PATIENCE), Ok("sent"));
    assert_eq!(client.get("a.test", "/").text(), "ok");
    assert_eq!(backend.connections(), 2);
}

#[test]
fn bytes_behind_an_answer_are_not_the_next_answer() {
    let backend = Backend::scripted(|conversation| {
        while conversation.request().is_some() {
            conversation.send(format!(
                "{OK}HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
            ));
        }
    });
    let splitter = Splitter::before(&backend);
    for _ in 0..5 {
        assert_eq!(splitter.get("a.test", "/").text(), "ok");
    }
    assert_eq!(backend.connections(), 5);
}
