use super::*;

const TOTAL: usize = 96 * 1024 * 1024;

/// All buffers of the kernel on the way (two connections) and of the proxy hold less.
const BUFFERS: usize = 40 * 1024 * 1024;

/// When a side that sends as fast as it can counts as stopped.
const STALL: Duration = Duration::from_millis(700);

/// Writes up to `n` bytes, until the peer takes no more for `stall`.
fn push(mut stream: &TcpStream, n: usize, stall: Duration) -> usize {
    stream.set_write_timeout(Some(stall)).expect("a timeout");
    let piece = [b'x'; 64 * 1024];
    let mut written = 0;
    while written < n {
        match stream.write(&piece[..piece.len().min(n - written)]) {
            Ok(n) if n > 0 => written += n,
            _ => break,
        }
    }
    written
}

fn drain(mut from: impl Read, n: usize) -> usize {
    let mut buf = vec![0; 256 * 1024];
    let mut read = 0;
    while read < n {
        match from.read(&mut buf) {
            Ok(n) if n > 0 => read += n,
            _ => break,
        }
    }
    read
}

#[test]
fn a_client_that_does_not_read_stops_the_backend() {
    let (stalled, stalls) = channel();
    let stalled = Mutex::new(stalled);
    let backend = Backend::scripted(move |conversation| {
        conversation.request();
        conversation.send(format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {TOTAL}\r\n\r\n"
        ));
        let written = push(conversation.stream(), TOTAL, STALL);
        let tell = stalled.lock().unwrap_or_else(|e| e.into_inner());
        let _ = tell.send(written);
        push(conversation.stream(), TOTAL - written, PATIENCE);
    });
    let splitter = Splitter::before(&backend);
    let mut client = splitter.client();
    client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
    let taken = stalls.recv_timeout(PATIENCE).expect("the backend stops");
    assert!(taken < BUFFERS, "{taken} bytes are somewhere");
    assert_eq!(client.head().status, 200);
    assert_eq!(drain(client.reader(), TOTAL), TOTAL);
}

#[test]
fn a_backend_that_does_not_read_stops_the_client() {
    let (go, gone) = channel::<()>();
    let gone = Mutex::new(gone);
    let backend = Backend::scripted(move |conversation| {
        if conversation.head().is_some() {
            let wait = gone.lock().unwrap_or_else(|e| e.into_inner());
            let _ = wait.recv_timeout(PATIENCE);
            drain(conversation.reader(), TOTAL);
            conversation.send(OK);
        }
    });
    let splitter = Splitter::before(&backend);
    let mut client = splitter.client();
    client.send(format!(
        "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: {TOTAL}\r\n\r\n"
    ));
    let taken = push(client.stream(), TOTAL, STALL);
    assert!(taken < BUFFERS, "{taken} bytes are somewhere");
    go.send(()).expect("the backend waits");
    assert_eq!(
        push(client.stream(), TOTAL - taken, PATIENCE),
        TOTAL - taken
    );
    assert_eq!(client.answer("POST").text(), "ok");
}
