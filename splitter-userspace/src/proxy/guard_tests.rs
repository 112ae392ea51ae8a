use proptest::prelude::*;

use super::*;

const MAX_HEAD: usize = 64 * 1024;

/// Feeds `stream` in one piece and byte by byte; both must agree.
fn judge(stream: &[u8]) -> Result<Phase, Fault> {
    let mut whole = Guard::new(MAX_HEAD, 100);
    let at_once = whole.observe(stream).map(|()| whole.phase());
    let mut single = Guard::new(MAX_HEAD, 100);
    let by_byte = stream
        .iter()
        .try_for_each(|byte| single.observe(std::slice::from_ref(byte)))
        .map(|()| single.phase());
    assert_eq!(at_once, by_byte, "the cut into reads changed the verdict");
    at_once
}

#[test]
fn good_streams_pass_and_end_where_they_should() {
    for (stream, phase) in [
        ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", Phase::Idle),
        ("\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", Phase::Idle),
        ("GET / HTTP/1.1\r\nHost", Phase::Head),
        (
            "POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nab",
            Phase::Body,
        ),
        (
            "POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcGET",
            Phase::Head,
        ),
        (
            "POST / HTTP/1.1\r\ncontent-length:\t0 \r\n\r\n",
            Phase::Idle,
        ),
        (
            "POST / HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n3;x=\"y\"\r\na\nb\r\n0\r\nT: v\r\n\r\n",
            Phase::Idle,
        ),
        (
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nA\r\n0123456789\r\n0\r\n",
            Phase::Body,
        ),
        // Two pipelined requests, the second body full of what would be refused in a head.
        (
            "GET / HTTP/1.1\r\n\r\nPOST / HTTP/1.1\r\nContent-Length: 4\r\n\r\n\0\n\r\n",
            Phase::Idle,
        ),
    ] {
        assert_eq!(judge(stream.as_bytes()), Ok(phase), "{stream:?}");
    }
}

#[test]
fn what_two_parsers_could_read_in_two_ways_is_refused() {
    for (stream, fault) in [
        ("GET / HTTP/1.1\nHost: a\r\n\r\n", Fault::BadHead),
        ("GET / HTTP/1.1\r\nHost: a\n\r\n", Fault::BadHead),
        ("GET / HTTP/1.1\r\nHost: a\r\n\n", Fault::BadHead),
        ("GET / HTTP/1.1\r\nA: b\rc\r\n\r\n", Fault::BadHead),
        ("GET / HTTP/1.1\r\nA: b\0c\r\n\r\n", Fault::BadHead),
        ("GET / HTTP/1.1\r\nA: b\r\n c\r\n\r\n", Fault::BadHead),
        ("GET / HTTP/1.1\r\n\tA: b\r\n\r\n", Fault::BadHead),
        ("GET / HTTP/1.1\r\nA : b\r\n\r\n", Fault::BadHead),
        ("GET / HTTP/1.1\r\n: b\r\n\r\n", Fault::BadHead),
        ("GET / HTTP/1.1\r\nA b\r\n\r\n", Fault::BadHead),
        ("GET / HTTP/1.1\r\nA: b\x01\r\n\r\n", Fault::BadHead),
        ("GET  / HTTP/1.1\r\n\r\n", Fault::BadHead),
        ("GET /a b HTTP/1.1\r\n\r\n", Fault::BadHead),
        ("GET / HTTP/2.0\r\n\r\n", Fault::BadHead),
        ("GET /\r\n\r\n", Fault::BadHead),
        ("G(T / HTTP/1.1\r\n\r\n", Fault::BadHead),
        (
            "POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            Fault::BadFraming,
        ),
        (
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n",
            Fault::BadFraming,
        ),
        (
            "POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
            Fault::BadFraming,
        ),
        (
            "POST / HTTP/1.1\r\nContent-Length: 1, 1\r\n\r\n",
            Fault::BadFraming,
        ),
        (
            "POST / HTTP/1.1\r\nContent-Length: +1\r\n\r\n",
            Fault::BadFraming,
        ),
        (
            "POST / HTTP/1.1\r\nContent-Length: 0x1\r\n\r\n",
            Fault::BadFraming,
        ),
        (
            "POST / HTTP/1.1\r\nContent-Length:\r\n\r\n",
            Fault::BadFraming,
        ),
        (
            "POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
            Fault::BadFraming,
        ),
        (
            "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
            Fault::BadFraming,
        ),
        (
            "POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
            Fault::UnknownCoding,
        ),
        (
            "POST / HTTP/1.1\r\nTransfer-Encoding: xchunked\r\n\r\n",
            Fault::UnknownCoding,
        ),
        (
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
            Fault::BadFraming,
        ),
    ] {
        assert_eq!(judge(stream.as_bytes()), Err(fault), "{stream:?}");
    }
}

#[test]
fn broken_chunks_are_refused() {
    for body in [
        "\r\n",
        "g\r\n",
        "-1\r\n",
        "3\nabc\r\n",
        "3\r\nabcd\r\n",
        "3\r\nabc\n",
        "3 x\r\nabc\r\n",
        "11111111111111111\r\n",
        "0\r\n folded: x\r\n\r\n",
        "0\r\n\n",
    ] {
        let stream = format!("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{body}");
        assert_eq!(judge(stream.as_bytes()), Err(Fault::BadBody), "{body:?}");
    }
}

#[test]
fn heads_are_bounded_in_bytes_and_fields() {
    let fields = |n| format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(n));
    assert_eq!(judge(fields(100).as_bytes()), Ok(Phase::Idle));
    assert_eq!(judge(fields(101).as_bytes()), Err(Fault::HeadTooLarge));
    let bytes = |n: usize| format!("GET / HTTP/1.1\r\nA: {}\r\n\r\n", "b".repeat(n));
    assert_eq!(judge(bytes(MAX_HEAD - 23).as_bytes()), Ok(Phase::Idle));
    assert_eq!(
        judge(bytes(MAX_HEAD - 22).as_bytes()),
        Err(Fault::HeadTooLarge)
    );
}

#[test]
fn lines_without_end_are_bounded() {
    let mut guard = Guard::new(MAX_HEAD, 100);
    assert_eq!(
        guard.observe(&vec![b'a'; MAX_HEAD + 1]),
        Err(Fault::HeadTooLarge)
    );
    let mut guard = Guard::new(MAX_HEAD, 100);
    let head = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1;";
    assert_eq!(guard.observe(head), Ok(()));
    assert_eq!(
        guard.observe(&vec![b'a'; CHUNK_LINE_MAX]),
        Err(Fault::BadBody)
    );
}

proptest! {
    #[test]
    fn any_bytes_in_any_pieces_give_one_verdict(
        stream in proptest::collection::vec(
            prop_oneof![Just(b'\r'), Just(b'\n'), Just(0u8), Just(b' '), Just(b':'), any::<u8>()],
            0..200,
        )
    ) {
        let _ = judge(&stream);
    }
}
