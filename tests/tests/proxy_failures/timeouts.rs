use super::*;

fn short(change: impl FnOnce(&mut splitter::config::Timeouts)) -> impl FnOnce(&mut Settings) {
    |settings| change(&mut settings.timeouts)
}

#[test]
fn a_backend_that_does_not_answer_is_504() {
    let (backend, told) = silent();
    let splitter = Splitter::before_with(&backend, short(|t| t.read = SHORT));
    let mut client = splitter.client();
    client.get("a.test", "/").assert_own(504);
    assert_eq!(told.recv_timeout(PATIENCE), Ok("asked"));
    assert_eq!(told.recv_timeout(PATIENCE), Ok("left"));
    eventually("the fault is counted", || {
        splitter.faults("upstream-timeout") == 1.0
    });
    // The client may go on.
    client.get("a.test", "/").assert_own(504);
}

/// It may have been done already, only slowly.
#[test]
fn a_timeout_is_not_tried_again() {
    let ((a, _a), (b, _b)) = (silent(), silent());
    let splitter = Splitter::start_with(&service(&[a.addr(), b.addr()]), short(|t| t.read = SHORT));
    splitter.get("a.test", "/").assert_own(504);
    assert_eq!(a.seen().len() + b.seen().len(), 1);
}

#[test]
fn a_body_that_stops_is_a_cut() {
    let backend = Backend::scripted(|conversation| {
        conversation.request();
        conversation.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello");
        conversation.wait_for_close();
    });
    let splitter = Splitter::before_with(&backend, short(|t| t.read = SHORT));
    let mut client = splitter.client();
    client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
    assert_eq!(client.try_answer("GET"), None);
    eventually("the fault is counted", || {
        splitter.faults("upstream-timeout") == 1.0
    });
}

/// The time is for each step, not for the whole.
#[test]
fn an_answer_that_moves_may_take_its_time() {
    let backend = Backend::scripted(|conversation| {
        conversation.request();
        conversation.send("HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n");
        for _ in 0..12 {
            // A pace, not a wait for something: nobody else sends here.
            conversation.pause(SHORT / 2);
            conversation.send("x");
        }
    });
    let splitter = Splitter::before_with(&backend, short(|t| t.read = SHORT));
    assert_eq!(splitter.get("a.test", "/").text(), "xxxxxxxxxxxx");
}

/// The kernel answers no further connection once a listener's queue is full.
#[test]
fn a_backend_that_does_not_accept_is_504() {
    // Held, but not accepted from.
    let listener = Refusing::new().listen(0);
    let addr = listener.local_addr().expect("an address");
    let mut queue = Vec::new();
    while let Ok(stream) = std::net::TcpStream::connect_timeout(&addr, Duration::from_millis(100)) {
        queue.push(stream);
    }
    let splitter = Splitter::start_with(&service(&[addr]), short(|t| t.connect = SHORT));
    splitter.get("a.test", "/").assert_own(504);
    eventually("the fault is counted", || {
        splitter.faults("connect-timeout") == 1.0
    });
}

#[test]
fn a_head_that_does_not_end_is_408() {
    let backend = Backend::named("main");
    let splitter = Splitter::before_with(&backend, short(|t| t.header = SHORT));
    let mut client = splitter.client();
    client.send("GET / HTTP/1.1\r\nHost: a");
    client.answer("GET").assert_own(408);
    assert!(client.is_closed());
    eventually("the fault is counted", || {
        splitter.faults("head-timeout") == 1.0
    });
}

#[test]
fn a_head_that_drips_is_408_all_the_same() {
    let backend = Backend::named("main");
    let splitter = Splitter::before_with(&backend, short(|t| t.header = SHORT * 2));
    let mut client = splitter.client();
    client.send("GET / HTTP/1.1\r\nX: ");
    let answered = (0..400).any(|_| {
        client.send("x");
        client.hears_within(Duration::from_millis(20))
    });
    assert!(answered, "the time runs from the first byte");
    client.answer("GET").assert_own(408);
}

#[test]
fn the_next_head_has_its_own_time() {
    let backend = Backend::named("main");
    let splitter = Splitter::before_with(&backend, short(|t| t.header = SHORT));
    let mut client = splitter.client();
    assert_ok(&client.get("a.test", "/"));
    client.send("GET / HTTP/1.1\r\n");
    client.answer("GET").assert_own(408);
}

#[test]
fn a_body_that_does_not_come_is_408() {
    for head in [
        "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 10\r\n\r\nhello",
        "POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
    ] {
        let backend = Backend::named("main");
        let splitter = Splitter::before_with(&backend, short(|t| t.read = SHORT));
        let mut client = splitter.client();
        client.send(head);
        client.answer("POST").assert_own(408);
        assert!(client.is_closed());
        assert_eq!(backend.seen(), []);
        eventually("the fault is counted", || {
            splitter.faults("body-timeout") == 1.0
        });
    }
}

#[test]
fn an_idle_connection_is_closed_without_a_word() {
    let backend = Backend::named("main");
    let splitter = Splitter::before_with(&backend, short(|t| t.keep_alive = SHORT));
    let mut client = splitter.client();
    assert_ok(&client.get("a.test", "/"));
    assert!(client.is_closed());
    for fault in ["head-timeout", "client-gone"] {
        assert_eq!(splitter.faults(fault), 0.0, "{fault}");
    }
}

#[test]
fn a_slow_backend_does_not_count_as_idle() {
    let (line, told, go) = Line::new();
    let backend = Backend::scripted(move |conversation| {
        while conversation.request().is_some() {
            line.say("asked");
            line.wait();
            conversation.send(OK);
        }
    });
    let splitter = Splitter::before_with(
        &backend,
        short(|t| (t.keep_alive, t.header) = (SHORT, SHORT)),
    );
    let mut client = splitter.client();
    client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
    assert_eq!(told.recv_timeout(PATIENCE), Ok("asked"));
    let early = client.hears_within(SHORT * 4);
    assert!(!early, "{:?}", client.try_answer("GET"));
    go.send(()).expect("the backend waits");
    assert_ok(&client.answer("GET"));
}

#[test]
fn a_client_that_does_not_read_is_given_up() {
    let (line, told, _go) = Line::new();
    let backend = Backend::scripted(move |conversation| {
        conversation.request();
        conversation.send("HTTP/1.1 200 OK\r\nContent-Length: 500000000\r\n\r\n");
        let sent =
            splitter_tests::noise::Noise::new(1).write_to(conversation.stream(), 500_000_000);
        line.say(match sent {
            500_000_000 => "all taken",
            _ => "cut",
        });
    });
    let splitter = Splitter::before_with(&backend, short(|t| t.send = SHORT));
    let mut client = splitter.client();
    client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
    assert_eq!(told.recv_timeout(PATIENCE), Ok("cut"));
    eventually("the connection is given up", || {
        splitter.metrics().sum("splitter_connections_open", &[]) == 0.0
    });
}

#[test]
fn a_backend_that_does_not_read_is_504() {
    let (line, told, go) = Line::new();
    let backend = Backend::scripted(move |conversation| {
        conversation.head();
        line.say("asked");
        line.wait();
    });
    let splitter = Splitter::before_with(&backend, short(|t| t.send = SHORT));
    let mut client = splitter.client();
    client.send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 500000000\r\n\r\n");
    let mut up = client.stream().try_clone().expect("a second handle");
    let sender = std::thread::spawn(move || {
        splitter_tests::noise::Noise::new(1).write_to(&mut up, 500_000_000)
    });
    assert_eq!(told.recv_timeout(PATIENCE), Ok("asked"));
    client.answer("POST").assert_own(504);
    drop(client);
    go.send(()).expect("the backend waits");
    assert!(sender.join().is_ok_and(|sent| sent < 500_000_000));
}

#[test]
fn an_idle_connection_to_a_backend_is_closed() {
    let (line, told, _go) = Line::new();
    let backend = Backend::scripted(move |conversation| {
        while conversation.request().is_some() {
            conversation.send(OK);
        }
        line.say("left");
    });
    let splitter = Splitter::before_with(&backend, short(|t| t.upstream_idle = SHORT));
    let mut client = splitter.client();
    assert_ok(&client.get("a.test", "/"));
    assert_eq!(told.recv_timeout(PATIENCE), Ok("left"));
    assert_ok(&client.get("a.test", "/"));
    assert_eq!(backend.connections(), 2);
}
