use std::io::Read;

use super::*;

/// The status of stream 1's answer, as HPACK's first byte; none if the stream is reset or the
/// connection ends.
pub fn status(stream: &mut std::net::TcpStream) -> Option<u8> {
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).ok()?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        stream.read_exact(&mut payload).ok()?;
        match head[3] {
            // HEADERS.
            1 => return payload.first().copied(),
            // RST_STREAM and GOAWAY.
            3 | 7 => return None,
            _ => {}
        }
    }
}

#[test]
fn may_come_byte_by_byte() {
    let backend = Backend::named("main");
    let splitter = Splitter::before(&backend);
    let mut client = splitter.client();
    for byte in [PREFACE, SETTINGS, &headers(1)].concat() {
        client.send([byte]);
    }
    assert_eq!(status(client.stream()), Some(0x88), ":status 200");
    assert_eq!(backend.seen().len(), 1);
}

#[test]
fn may_come_with_the_first_request() {
    let backend = Backend::named("main");
    let splitter = Splitter::before(&backend);
    let mut client = splitter.client();
    client.send([PREFACE, SETTINGS, &headers(1)].concat());
    assert_eq!(status(client.stream()), Some(0x88), ":status 200");
}

#[test]
fn half_of_one_may_be_http1_after_all() {
    let backend = Backend::named("main");
    let splitter = Splitter::before(&backend);
    for cut in 1..5 {
        let mut client = splitter.client();
        let request = b"PRINT / HTTP/1.1\r\nHost: a.test\r\n\r\n";
        client.send(&request[..cut]);
        // Gives the proxy the chance to read the first part by itself.
        assert_eq!(splitter.get("a.test", "/").status, 200);
        client.send(&request[cut..]);
        assert_eq!(client.answer("PRINT").text(), "main");
        assert_eq!(backend.last().line, "PRINT / HTTP/1.1");
    }
}

#[test]
fn a_broken_one_is_refused() {
    let backend = Backend::named("main");
    let splitter = Splitter::before(&backend);
    let mut client = splitter.client();
    client.send("PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n");
    let answer = client.answer("PRI");
    answer.assert_own(400);
    assert!(client.is_closed());
}

#[test]
fn nonsense_behind_it_ends_the_connection() {
    let backend = Backend::named("main");
    let splitter = Splitter::before(&backend);
    let mut client = splitter.client();
    client.send([PREFACE, b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"].concat());
    let mut rest = Vec::new();
    // GOAWAY, then the end; a reset is as good.
    let _ = client.stream().read_to_end(&mut rest);
    assert_eq!(backend.connections(), 0);
}
