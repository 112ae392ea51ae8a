//! What a client's bytes must be like to become a request: RFC 9110 and 9112 on the raw stream.
//! Whatever two parsers could read in two ways is refused, counted, and never reaches a backend.

mod chunks;
mod heads;
mod hosts;
mod http10;
mod lengths;
mod pipelining;
mod random;
mod request_lines;
mod smuggling;

use splitter_tests::backend::Backend;
use splitter_tests::client::Client;
use splitter_tests::eventually;
use splitter_tests::instance::Splitter;

/// Behind everything that is refused: a request that must not be taken for one.
const SMUGGLED: &str = "GET /smuggled HTTP/1.1\r\nHost: a.test\r\n\r\n";

/// Sends `bytes`: the proxy answers `status` itself, closes, counts `fault` once, and the backend
/// never hears of it.
#[track_caller]
fn refused(bytes: impl AsRef<[u8]>, status: u16, fault: &str) {
    let backend = Backend::named("main");
    let splitter = Splitter::before(&backend);
    let mut client = splitter.client();
    client.send([bytes.as_ref(), SMUGGLED.as_bytes()].concat());
    client.answer("GET").assert_own(status);
    assert!(client.is_closed(), "the connection is closed");
    assert_eq!(backend.connections(), 0, "{:?}", backend.seen());
    eventually("the fault is counted", || splitter.faults(fault) == 1.0);
}

/// The same for a request of these fields and no body.
#[track_caller]
fn refused_fields(fields: &str, status: u16, fault: &str) {
    let request = format!("POST / HTTP/1.1\r\nHost: a.test\r\n{fields}\r\n");
    refused(request, status, fault);
}

/// Sends `bytes`, which hold one request: it is passed on, alone.
#[track_caller]
fn accepted(bytes: impl AsRef<[u8]>) -> splitter_tests::backend::Seen {
    let backend = Backend::named("main");
    let splitter = Splitter::before(&backend);
    let mut client = splitter.client();
    client.send(bytes);
    let answer = client.answer("GET");
    assert_eq!((answer.status, answer.text()), (200, "main".to_owned()));
    assert_eq!(backend.seen().len(), 1);
    backend.last()
}
