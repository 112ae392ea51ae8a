use super::*;

#[track_caller]
fn invalid(bytes: impl Into<Vec<u8>>) {
    let bytes = bytes.into();
    let backend = Backend::scripted(move |conversation| {
        if conversation.request().is_some() {
            conversation.send(&bytes);
            conversation.finish();
            conversation.wait_for_close();
        }
    });
    let splitter = Splitter::before(&backend);
    let mut client = splitter.client();
    client.get("a.test", "/").assert_own(502);
    eventually("the fault is counted", || {
        splitter.metrics().sum("splitter_faults_total", &[]) == 1.0
    });
    // It was the backend's fault: the client goes on.
    client.get("a.test", "/").assert_own(502);
}

macro_rules! invalid {
    ($($name:ident: $bytes:expr;)*) => {$(
        #[test]
        fn $name() {
            invalid($bytes);
        }
    )*};
}

invalid! {
    garbage: "garbage\r\n\r\n";
    binary: &b"\x15\x03\x01\x00\x02\x02\x46"[..];
    a_greeting_of_another_protocol: "220 mail.test ESMTP\r\n";
    only_a_body: "<html>hello</html>";
    half_a_head: "HTTP/1.1 200 OK\r\nContent-Le";
    a_status_that_is_no_number: "HTTP/1.1 abc OK\r\n\r\n";
    a_status_out_of_range: "HTTP/1.1 99 Low\r\nContent-Length: 0\r\n\r\n";
    a_version_that_is_none: "HTTP/3.7 200 OK\r\nContent-Length: 0\r\n\r\n";
    a_field_without_a_colon: "HTTP/1.1 200 OK\r\nnonsense\r\nContent-Length: 0\r\n\r\n";
    a_nul_in_a_field: "HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 0\r\n\r\n";
    a_bare_cr_in_a_field: "HTTP/1.1 200 OK\r\nX: a\rSet-Cookie: b\r\nContent-Length: 0\r\n\r\n";
    two_lengths: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc";
    a_length_that_is_none: "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n";
    a_coding_that_nobody_asked_for:
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    a_coding_that_is_not_chunked:
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nabc";
    only_an_interim_answer: "HTTP/1.1 100 Continue\r\n\r\n";
    a_head_too_large: format!(
        "HTTP/1.1 200 OK\r\nX: {}\r\nContent-Length: 0\r\n\r\n",
        "x".repeat(600 * 1024)
    );
    too_many_fields: format!(
        "HTTP/1.1 200 OK\r\n{}Content-Length: 0\r\n\r\n",
        "X: y\r\n".repeat(2000)
    );
}

/// Nobody reads the body of an answer to HEAD; it must not pass for a client that left.
#[test]
fn an_answer_to_head_is_the_backends_fault_too() {
    let backend = Backend::answering("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n");
    let splitter = Splitter::before(&backend);
    let mut client = splitter.client();
    client.send("HEAD / HTTP/1.1\r\nHost: a.test\r\n\r\n");
    assert_eq!(client.answer("HEAD").status, 502);
    eventually("the fault is counted", || {
        splitter.faults("upstream-invalid") == 1.0
    });
    assert_eq!(splitter.faults("client-gone"), 0.0);
}

/// RFC 9112 6.3: such an answer may be an attempt to have two programs disagree about its end.
#[test]
fn a_length_beside_a_coding_is_no_answer_and_ends_the_connection() {
    let backend = Backend::answering(
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n\
         5\r\nhello\r\n0\r\n\r\n",
    );
    let splitter = Splitter::before(&backend);
    for _ in 0..3 {
        splitter.get("a.test", "/").assert_own(502);
    }
    assert_eq!(backend.connections(), 3);
}
