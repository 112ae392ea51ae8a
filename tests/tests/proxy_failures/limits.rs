use super::*;

#[test]
fn connections_beyond_the_limit_are_refused_and_counted() {
    let backend = Backend::named("main");
    let splitter = Splitter::before_with(&backend, |settings| settings.limits.max_connections = 2);
    let mut clients = [splitter.client(), splitter.client()];
    for client in &mut clients {
        assert_ok(&client.get("a.test", "/"));
    }
    let mut third = splitter.client();
    third.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
    assert_eq!(third.try_answer("GET"), None);
    eventually("the refusal is counted", || {
        let metrics = splitter.metrics();
        metrics.sum("splitter_connections_refused_total", &[]) == 1.0
            && metrics.sum("splitter_faults_total", &[("fault", "overloaded")]) == 1.0
    });
    // The others do not feel it, and a place that becomes free can be taken.
    for client in &mut clients {
        assert_ok(&client.get("a.test", "/"));
    }
    drop(clients);
    eventually("a place becomes free", || {
        splitter.metrics().sum("splitter_connections_open", &[]) == 0.0
    });
    assert_ok(&splitter.get("a.test", "/"));
}

#[test]
fn requests_beyond_the_limit_get_a_503_and_are_counted() {
    let (line, told, go) = Line::new();
    let backend = Backend::scripted(move |conversation| {
        while conversation.request().is_some() {
            line.say("asked");
            line.wait();
            conversation.send(OK);
        }
    });
    let splitter = Splitter::before_with(&backend, |settings| settings.limits.max_requests = 1);
    let (mut first, mut second) = (splitter.client(), splitter.client());
    first.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
    assert_eq!(told.recv_timeout(PATIENCE), Ok("asked"));
    for _ in 0..2 {
        let refused = second.get("a.test", "/");
        assert_eq!(refused.status, 503);
        assert!(refused.text().contains("too many requests"), "{refused:?}");
    }
    go.send(()).expect("the backend waits");
    assert_ok(&first.answer("GET"));
    eventually("the first is counted as done", || {
        splitter.metrics().sum("splitter_requests_in_flight", &[]) == 0.0
    });
    // The same connection goes on: only the request was refused.
    second.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
    assert_eq!(told.recv_timeout(PATIENCE), Ok("asked"));
    go.send(()).expect("the backend waits");
    assert_ok(&second.answer("GET"));
    let busy = [("fault", "busy"), ("pool", "all")];
    splitter.expect_sum("splitter_faults_total", &busy, 2.0);
}

#[test]
fn no_more_idle_connections_are_kept_than_the_limit() {
    let (line, told, go) = Line::new();
    let backend = Backend::scripted(move |conversation| {
        while conversation.request().is_some() {
            line.say("asked");
            line.wait();
            conversation.send(OK);
        }
        line.say("left");
    });
    let splitter = Splitter::before_with(&backend, |settings| {
        settings.limits.upstream_idle_per_endpoint = 1;
    });
    let mut clients = [splitter.client(), splitter.client(), splitter.client()];
    for client in &mut clients {
        client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
        assert_eq!(told.recv_timeout(PATIENCE), Ok("asked"));
    }
    for _ in 0..3 {
        go.send(()).expect("the backend waits");
    }
    for client in &mut clients {
        assert_ok(&client.answer("GET"));
    }
    for _ in 0..2 {
        assert_eq!(told.recv_timeout(PATIENCE), Ok("left"));
    }
    assert!(told.try_recv().is_err(), "one is kept");
}
