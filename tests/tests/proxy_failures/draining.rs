use super::*;

#[test]
fn what_is_in_hand_is_finished_and_nothing_new_is_taken() {
    let (line, told, go) = Line::new();
    let backend = Backend::scripted(move |conversation| {
        while let Some(request) = conversation.request() {
            if request.target() == "/slow" {
                line.say("asked");
                line.wait();
            }
            conversation.send(OK);
        }
    });
    let mut splitter = Splitter::before(&backend);
    let mut idle = splitter.client();
    assert_ok(&idle.get("a.test", "/"));
    let mut busy = splitter.client();
    busy.send("GET /slow HTTP/1.1\r\nHost: a.test\r\n\r\n");
    assert_eq!(told.recv_timeout(PATIENCE), Ok("asked"));

    splitter.begin_stop();
    assert!(idle.is_closed(), "idle connections end at once");
    eventually("new connections are refused", || {
        std::net::TcpStream::connect(splitter.http()).is_err()
    });
    go.send(()).expect("the backend waits");
    let answer = busy.answer("GET");
    assert_ok(&answer);
    assert_eq!(answer.field("connection"), Some("close"));
    assert!(busy.is_closed());
    splitter.stop();
}

#[test]
fn an_upload_in_hand_is_finished() {
    let backend = Backend::answering(OK);
    let mut splitter = Splitter::before(&backend);
    let mut client = splitter.client();
    client.send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 10\r\n\r\nhello");
    eventually("the upload has begun", || backend.connections() == 1);
    splitter.begin_stop();
    eventually("new connections are refused", || {
        std::net::TcpStream::connect(splitter.http()).is_err()
    });
    client.send("world");
    assert_ok(&client.answer("POST"));
    assert_eq!(backend.last().body, b"helloworld");
    splitter.stop();
}

#[test]
fn what_takes_too_long_is_cut() {
    let (backend, told) = silent();
    let mut splitter = Splitter::before_with(&backend, |settings| settings.drain_timeout = SHORT);
    let mut client = splitter.client();
    client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
    assert_eq!(told.recv_timeout(PATIENCE), Ok("asked"));
    splitter.begin_stop();
    assert_eq!(client.try_answer("GET"), None);
    assert_eq!(told.recv_timeout(PATIENCE), Ok("left"));
    splitter.stop();
}

#[test]
fn a_connection_without_a_request_does_not_hold_it_up() {
    let backend = Backend::named("main");
    let mut splitter = Splitter::before_with(&backend, |settings| {
        settings.drain_timeout = Duration::from_secs(60);
    });
    let mut silent = splitter.client();
    let mut idle = splitter.client();
    assert_ok(&idle.get("a.test", "/"));
    let began = std::time::Instant::now();
    splitter.begin_stop();
    assert!(idle.is_closed());
    // The kernel kept it for itself and says nothing until it is spoken to.
    silent.send("GET");
    assert!(silent.is_cut());
    splitter.stop();
    assert!(
        began.elapsed() < Duration::from_secs(10),
        "{:?}",
        began.elapsed()
    );
}

#[test]
fn a_request_of_which_half_has_come_is_served() {
    let backend = Backend::named("main");
    let mut splitter = Splitter::before(&backend);
    let mut client = splitter.client();
    client.send("GET / HTTP/1.1\r\nHo");
    eventually("the half request is read", || {
        splitter.metrics().sum("splitter_connections_open", &[]) == 1.0
    });
    splitter.begin_stop();
    eventually("new connections are refused", || {
        std::net::TcpStream::connect(splitter.http()).is_err()
    });
    client.send("st: a.test\r\n\r\n");
    let answer = client.answer("GET");
    assert_ok(&answer);
    assert_eq!(answer.field("connection"), Some("close"));
    assert!(client.is_closed());
    splitter.stop();
}
