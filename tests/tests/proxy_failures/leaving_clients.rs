use super::*;

#[test]
fn a_client_that_leaves_cancels_its_request() {
    let (backend, told) = silent();
    let splitter = Splitter::before(&backend);
    let mut client = splitter.client();
    client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
    assert_eq!(told.recv_timeout(PATIENCE), Ok("asked"));
    let began = std::time::Instant::now();
    drop(client);
    assert_eq!(told.recv_timeout(PATIENCE), Ok("left"));
    assert!(
        began.elapsed() < Duration::from_secs(2),
        "{:?}",
        began.elapsed()
    );
    eventually("the fault is counted", || {
        splitter.faults("client-gone") == 1.0
    });
    assert_eq!(
        splitter.metrics().sum("splitter_requests_in_flight", &[]),
        0.0
    );
}

#[test]
fn a_client_that_leaves_amid_the_answer_cancels_it() {
    let (line, told, _go) = Line::new();
    let backend = Backend::scripted(move |conversation| {
        conversation.request();
        conversation.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n");
        conversation.wait_for_close();
        line.say("left");
    });
    let splitter = Splitter::before(&backend);
    let mut client = splitter.client();
    client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
    assert_eq!(client.head().status, 200);
    assert_eq!(client.chunk().as_deref(), Some(&b"x"[..]));
    drop(client);
    assert_eq!(told.recv_timeout(PATIENCE), Ok("left"));
    eventually("the fault is counted", || {
        splitter.faults("client-gone") == 1.0
    });
}

#[test]
fn a_client_that_leaves_amid_its_upload_cancels_it() {
    let (line, told, _go) = Line::new();
    let backend = Backend::scripted(move |conversation: &mut Conversation<'_>| {
        if conversation.head().is_some() {
            line.say("asked");
            conversation.wait_for_close();
            line.say("left");
        }
    });
    let splitter = Splitter::before(&backend);
    let mut client = splitter.client();
    client.send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 100\r\n\r\nhello");
    assert_eq!(told.recv_timeout(PATIENCE), Ok("asked"));
    drop(client);
    assert_eq!(told.recv_timeout(PATIENCE), Ok("left"));
    eventually("the fault is counted", || {
        splitter.faults("client-gone") == 1.0
    });
}
