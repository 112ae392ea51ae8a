use super::*;

#[test]
fn streams_in_hand_end_and_the_connection_goes_away() {
    let (go, gone) = channel::<()>();
    let (asked, asks) = channel();
    let shared = Mutex::new((gone, asked));
    let backend = Backend::scripted(move |conversation| {
        while conversation.request().is_some() {
            let shared = shared.lock().unwrap_or_else(|e| e.into_inner());
            let _ = shared.1.send(());
            let _ = shared.0.recv_timeout(PATIENCE);
            conversation.send(OK);
        }
    });
    let mut splitter = Splitter::before(&backend);
    run(async {
        let mut connection = Connection::open(&splitter).await;
        connection.sender.ready().await.expect("ready");
        let answer = tokio::spawn(connection.sender.send_request(get("/")));
        tokio::task::spawn_blocking(move || asks.recv_timeout(PATIENCE))
            .await
            .expect("no panic")
            .expect("the backend is asked");
        splitter.begin_stop();
        let addr = splitter.http();
        tokio::task::spawn_blocking(move || {
            eventually("new connections are refused", || {
                std::net::TcpStream::connect(addr).is_err()
            });
        })
        .await
        .expect("no panic");
        go.send(()).expect("the backend waits");
        let response = answer.await.expect("no panic").expect("an answer");
        assert_eq!(text(response).await, "ok");
        connection
            .driver
            .await
            .expect("no panic")
            .expect("a good end");
    });
    splitter.stop();
}

#[test]
fn an_idle_connection_ends_at_once() {
    let backend = Backend::named("main");
    let mut splitter = Splitter::before(&backend);
    run(async {
        let mut connection = Connection::open(&splitter).await;
        assert_eq!(text(connection.get("/").await).await, "main");
        splitter.begin_stop();
        connection
            .driver
            .await
            .expect("no panic")
            .expect("a good end");
    });
    splitter.stop();
}
