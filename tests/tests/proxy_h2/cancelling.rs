use super::*;

/// A backend that tells when it was asked and when it was left, and never answers.
fn silent() -> (Backend, Receiver<&'static str>) {
    let (tell, told) = channel();
    let tell = Mutex::new(tell);
    let backend = Backend::scripted(move |conversation| {
        let say = |what| {
            let tell = tell.lock().unwrap_or_else(|e| e.into_inner());
            let _ = tell.send(what);
        };
        if conversation.request().is_some() {
            say("asked");
            conversation.wait_for_close();
            say("left");
        }
    });
    (backend, told)
}

#[test]
fn a_reset_stream_leaves_the_backend_and_not_the_connection() {
    let (backend, told) = silent();
    let quick = Backend::answering(OK);
    let splitter = Splitter::start(
        &splitter_tests::manifests::Manifests::new()
            .main("slow", "a.test", "/slow", "slow")
            .main("quick", "a.test", "/", "quick")
            .service("slow", &[backend.addr()])
            .service("quick", &[quick.addr()]),
    );
    run(async {
        let mut connection = Connection::open(&splitter).await;
        connection.sender.ready().await.expect("ready");
        let slow = tokio::spawn(connection.sender.send_request(get("/slow")));
        let told = tokio::task::spawn_blocking(move || {
            assert_eq!(told.recv_timeout(PATIENCE), Ok("asked"));
            told
        });
        let told = told.await.expect("the backend is asked");
        // Dropping the answer's future resets the stream.
        slow.abort();
        let left = tokio::task::spawn_blocking(move || told.recv_timeout(PATIENCE));
        assert_eq!(left.await.expect("no panic"), Ok("left"));
        assert_eq!(text(connection.get("/").await).await, "ok");
        assert!(!connection.driver.is_finished());
    });
    eventually("a client that left is counted", || {
        splitter.faults("client-gone") == 1.0
    });
}

#[test]
fn a_lost_connection_leaves_every_backend() {
    let (backend, told) = silent();
    let splitter = Splitter::before(&backend);
    let mut client = splitter.client();
    client.send([PREFACE, SETTINGS].concat());
    for stream in [1, 3, 5, 7, 9] {
        client.send(headers(stream));
        assert_eq!(told.recv_timeout(PATIENCE), Ok("asked"));
    }
    drop(client);
    for _ in 0..5 {
        assert_eq!(told.recv_timeout(PATIENCE), Ok("left"));
    }
}
