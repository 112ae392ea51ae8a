use super::*;

/// Lets a script, which may run more than once, receive.
struct Shared(Mutex<Receiver<()>>);

impl Shared {
    fn wait(&self) {
        let receiver = self.0.lock().unwrap_or_else(|e| e.into_inner());
        let _ = receiver.recv_timeout(PATIENCE);
    }
}

#[test]
fn each_part_of_an_answer_arrives_before_the_next_is_sent() {
    let (go, gone) = channel();
    let gone = Shared(Mutex::new(gone));
    let backend = Backend::scripted(move |conversation| {
        conversation.request();
        conversation.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        for i in 0..3 {
            gone.wait();
            conversation.send(format!("1\r\n{i}\r\n"));
        }
        gone.wait();
        conversation.send("0\r\n\r\n");
    });
    let splitter = Splitter::before(&backend);
    let mut client = splitter.client();
    client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
    // The head alone, too.
    assert_eq!(client.head().status, 200);
    for i in 0..3 {
        go.send(()).expect("the backend waits");
        assert_eq!(client.chunk(), Some(format!("{i}").into_bytes()));
    }
    go.send(()).expect("the backend waits");
    assert_eq!(client.chunk(), Some(Vec::new()));
}

#[test]
fn each_part_of_an_upload_arrives_before_the_next_is_sent() {
    let (seen, sees) = channel();
    let seen = Mutex::new(seen);
    let backend = Backend::scripted(move |conversation| {
        let Some(head) = conversation.head() else {
            return;
        };
        let tell = |bytes: Vec<u8>| {
            let seen = seen.lock().unwrap_or_else(|e| e.into_inner());
            let _ = seen.send(bytes);
        };
        tell(head.method().into());
        for _ in 0..3 {
            tell(conversation.read(2));
        }
        conversation.send(OK);
    });
    let splitter = Splitter::before(&backend);
    let mut client = splitter.client();
    client.send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 6\r\n\r\n");
    assert_eq!(sees.recv_timeout(PATIENCE).as_deref(), Ok(&b"POST"[..]));
    for part in ["ab", "cd", "ef"] {
        client.send(part);
        assert_eq!(sees.recv_timeout(PATIENCE).as_deref(), Ok(part.as_bytes()));
    }
    assert_eq!(client.answer("POST").text(), "ok");
}

/// A dialogue within one request, as some RPC protocols have it.
#[test]
fn an_answer_may_begin_before_the_upload_ends() {
    let backend = Backend::scripted(|conversation| {
        if conversation.head().is_none() {
            return;
        }
        conversation.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        for _ in 0..3 {
            let part = String::from_utf8_lossy(&conversation.read(2)).into_owned();
            conversation.send(format!("4\r\n<{part}>\r\n"));
        }
        conversation.send("0\r\n\r\n");
    });
    let splitter = Splitter::before(&backend);
    let mut client = splitter.client();
    client.send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 6\r\n\r\n");
    assert_eq!(client.head().status, 200);
    for part in ["ab", "cd", "ef"] {
        client.send(part);
        assert_eq!(client.chunk(), Some(format!("<{part}>").into_bytes()));
    }
    assert_eq!(client.chunk(), Some(Vec::new()));
}

#[test]
fn an_early_answer_reaches_a_client_that_still_sends() {
    let backend = Backend::scripted(|conversation| {
        if conversation.head().is_some() {
            conversation.send(
                "HTTP/1.1 413 Content Too Large\r\nContent-Length: 4\r\n\
                 Connection: close\r\n\r\nmuch",
            );
            conversation.finish();
            conversation.wait_for_close();
        }
    });
    let splitter = Splitter::before(&backend);
    let mut client = splitter.client();
    client.send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 50000000\r\n\r\n");
    client.send(vec![b'x'; 200 * 1024]);
    let answer = client.answer("POST");
    assert_eq!((answer.status, answer.text()), (413, "much".to_owned()));
    // Nothing else can come on this connection before 50 MB have gone.
    assert!(client.is_cut());
    // And the next one is served.
    assert_eq!(splitter.get("a.test", "/").status, 413);
}
