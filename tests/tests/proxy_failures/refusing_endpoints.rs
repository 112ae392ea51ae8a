use super::*;

#[test]
fn the_next_endpoint_answers() {
    let backend = Backend::named("main");
    let splitter = Splitter::start(&service(&[refusing(), backend.addr()]));
    for _ in 0..20 {
        assert_ok(&splitter.get("a.test", "/"));
    }
    assert_eq!(backend.seen().len(), 20);
}

#[test]
fn a_body_is_not_lost_by_it() {
    let backend = Backend::answering(OK);
    for _ in 0..4 {
        // Anew each time, so that the refusing one is tried first at least once.
        let splitter = Splitter::start(&service(&[refusing(), backend.addr()]));
        let mut client = splitter.client();
        client.send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\n\r\nhello");
        assert_ok(&client.answer("POST"));
        client.send(
            "POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n\
             5\r\nhello\r\n0\r\n\r\n",
        );
        assert_ok(&client.answer("POST"));
    }
    assert_eq!(backend.seen().len(), 8);
    assert!(backend.seen().iter().all(|seen| seen.body == b"hello"));
}

#[test]
fn it_is_left_alone_for_a_while() {
    let backend = Backend::named("main");
    let splitter = Splitter::start(&service(&[refusing(), backend.addr()]));
    for _ in 0..50 {
        assert_ok(&splitter.get("a.test", "/"));
    }
    let count = |name: &str| splitter.metrics().sum(name, &[]);
    eventually("the retry is counted", || {
        count("splitter_retries_total") == 1.0
    });
    assert_eq!(count("splitter_endpoint_ejections_total"), 1.0);
}

#[test]
fn all_refusing_is_502() {
    let splitter = Splitter::start(&service(&[refusing(), refusing(), refusing()]));
    let mut client = splitter.client();
    for _ in 0..3 {
        client.get("a.test", "/").assert_own(502);
    }
    eventually("the faults are counted", || {
        splitter.faults("upstream-refused") == 3.0
    });
}

/// Better an endpoint that refused a moment ago than none.
#[test]
fn a_service_that_comes_back_is_used_at_once() {
    let down = Refusing::new();
    let splitter = Splitter::start(&service(&[down.addr()]));
    splitter.get("a.test", "/").assert_own(502);
    let backend = Backend::listening(down.listen(16), |conversation| {
        while conversation.request().is_some() {
            conversation.send(OK);
        }
    });
    assert_ok(&splitter.get("a.test", "/"));
    assert_eq!(backend.seen().len(), 1);
}

/// canary-issues 38: with many at once, too, a retry goes to another endpoint.
#[test]
fn no_request_of_many_is_lost() {
    let backend = Backend::named("main");
    let splitter = Splitter::start_with(&service(&[refusing(), backend.addr()]), |settings| {
        settings.workers = 2;
    });
    let addr = splitter.http();
    let threads: Vec<_> = (0..8)
        .map(|_| {
            std::thread::spawn(move || {
                let mut client = splitter_tests::client::Client::connect(addr);
                (0..50).all(|_| client.get("a.test", "/").status == 200)
            })
        })
        .collect();
    for thread in threads {
        assert_eq!(thread.join().ok(), Some(true));
    }
}
