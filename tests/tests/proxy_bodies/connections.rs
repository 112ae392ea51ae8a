use super::*;

#[test]
fn a_thousand_requests_share_one_connection_each_side() {
    let backend = Backend::reflecting();
    let splitter = Splitter::before(&backend);
    let mut client = splitter.client();
    for i in 0..1000 {
        let path = format!("/{i}");
        assert_eq!(client.get("a.test", &path).text(), path);
    }
    assert_eq!(backend.connections(), 1);
}

#[test]
fn clients_share_kept_connections_to_the_backend() {
    for answer in [
        OK,
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ] {
        let (backend, splitter) = answering(answer);
        for _ in 0..10 {
            assert!(splitter.get("a.test", "/").status < 300);
        }
        assert_eq!(backend.connections(), 1, "{answer}");
    }
}

#[test]
fn a_complete_answer_counts_as_one() {
    for answer in [
        OK,
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n0\r\nX: y\r\n\r\n",
    ] {
        let (_backend, splitter) = answering(answer);
        assert_eq!(splitter.get("a.test", "/").status, 200);
        eventually("the request is counted", || {
            splitter.metrics().sum("splitter_requests_total", &[]) == 1.0
        });
        assert_eq!(splitter.faults("client-gone"), 0.0, "{answer}");
    }
}

#[test]
fn a_client_that_asks_for_a_close_gets_it() {
    let backend = Backend::named("main");
    let splitter = Splitter::before(&backend);
    for fields in ["Connection: close\r\n", "Connection: foo, Close\r\n"] {
        let mut client = splitter.client();
        let answer = client.get_with("a.test", "/", fields);
        assert_eq!(answer.text(), "main");
        assert_eq!(answer.field("connection"), Some("close"));
        assert!(client.is_closed());
    }
    // Which is no business of the backend.
    assert_eq!(backend.connections(), 1);
    assert_ne!(backend.last().field("connection"), Some("close"));
}

#[test]
fn a_backend_that_closes_does_not_close_the_client() {
    let backend = Backend::scripted(|conversation| {
        if conversation.request().is_some() {
            conversation
                .send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
        }
    });
    let splitter = Splitter::before(&backend);
    let mut client = splitter.client();
    for _ in 0..3 {
        let answer = client.get("a.test", "/");
        assert_eq!(answer.text(), "ok");
        assert_eq!(answer.field("connection"), None);
    }
    assert_eq!(backend.connections(), 3);
}

#[test]
fn a_http10_backend_is_asked_anew_each_time() {
    let backend = Backend::scripted(|conversation| {
        if conversation.request().is_some() {
            conversation.send("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok");
        }
    });
    let splitter = Splitter::before(&backend);
    let mut client = splitter.client();
    for _ in 0..3 {
        assert_eq!(client.get("a.test", "/").text(), "ok");
    }
}

#[test]
fn requests_at_the_same_time_have_connections_of_their_own() {
    let (arrived, arrivals) = channel();
    let (go, gone) = channel::<()>();
    let shared = Mutex::new((arrived, gone));
    let backend = Backend::scripted(move |conversation| {
        while conversation.request().is_some() {
            let shared = shared.lock().unwrap_or_else(|e| e.into_inner());
            let _ = shared.0.send(());
            drop(shared);
            conversation.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n");
            // Holds the answer until the other request is here too.
            conversation.send("ok");
        }
    });
    let splitter = Splitter::before(&backend);
    let mut clients = [splitter.client(), splitter.client()];
    for client in &mut clients {
        client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
    }
    for _ in 0..2 {
        arrivals.recv_timeout(PATIENCE).expect("a request arrives");
    }
    let _ = go.send(());
    for client in &mut clients {
        assert_eq!(client.answer("GET").text(), "ok");
    }
}
