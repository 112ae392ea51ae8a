//! What hyper's client would not send: heads made by hand.

use super::*;

/// A field that is not in any table (RFC 7541 6.2.2).
fn literal(name: &str, value: &str) -> Vec<u8> {
    let (n, v) = (name.len() as u8, value.len() as u8);
    [&[0, n], name.as_bytes(), &[v], value.as_bytes()].concat()
}

/// Sends a GET with these fields behind `:method` and `:scheme`; what the backend sees, after
/// another request on the same connection (or another one) has been answered.
fn ask(fields: &[(&str, &str)]) -> (Option<u8>, Vec<splitter_tests::backend::Seen>) {
    let backend = Backend::named("main");
    let splitter = Splitter::before(&backend);
    let mut client = splitter.client();
    let mut block = vec![0x82, 0x86];
    for (name, value) in fields {
        block.extend(literal(name, value));
    }
    let head = [0, 0, block.len() as u8, 1, 5, 0, 0, 0, 1];
    client.send([PREFACE, SETTINGS, &head, &block].concat());
    let status = preface::status(client.stream());
    (status, backend.seen())
}

const PATH: (&str, &str) = (":path", "/x");
const AUTHORITY: (&str, &str) = (":authority", "a.test");

#[test]
fn host_may_stand_for_authority() {
    let (status, seen) = ask(&[PATH, ("host", "a.test")]);
    assert_eq!(status, Some(0x88), ":status 200");
    assert_eq!(seen[0].line, "GET /x HTTP/1.1");
    assert_eq!(seen[0].field("host"), Some("a.test"));
}

/// Refused by the proxy (`:status` 400 is 0x8c) or by HTTP/2 itself; never passed on.
#[track_caller]
fn refused(fields: &[(&str, &str)]) {
    let (status, seen) = ask(fields);
    assert!(matches!(status, None | Some(0x8c)), "{status:?}");
    assert_eq!(seen, []);
}

#[test]
fn a_host_is_needed() {
    refused(&[PATH]);
}

#[test]
fn authority_without_a_user() {
    refused(&[PATH, (":authority", "me@a.test")]);
}

#[test]
fn fields_of_http1_connections_are_malformed() {
    for field in [
        ("transfer-encoding", "chunked"),
        ("connection", "x-secret"),
        ("upgrade", "websocket"),
        ("keep-alive", "timeout=5"),
        ("te", "gzip"),
    ] {
        refused(&[PATH, AUTHORITY, field]);
    }
}

#[test]
fn line_ends_do_not_pass_as_text() {
    refused(&[PATH, AUTHORITY, ("x", "a\r\nevil: b")]);
    refused(&[PATH, AUTHORITY, ("x", "a\nevil: b")]);
    refused(&[PATH, AUTHORITY, ("x\r\nevil", "b")]);
    refused(&[AUTHORITY, (":path", "/x HTTP/1.1\r\nevil: b")]);
    refused(&[PATH, (":authority", "a.test\r\nevil: b")]);
    refused(&[PATH, AUTHORITY, ("X", "capital")]);
}

#[test]
fn targets_are_paths() {
    refused(&[AUTHORITY, (":path", "x")]);
    refused(&[AUTHORITY, (":path", "")]);
    refused(&[AUTHORITY, (":path", "*")]);
    refused(&[AUTHORITY]);
}

#[test]
fn a_length_must_fit_the_body() {
    // The stream ends with its head.
    refused(&[PATH, AUTHORITY, ("content-length", "5")]);
}
