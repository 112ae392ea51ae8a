use super::*;

const GOOD: [&str; 7] = [
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX: y\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n\
     3;a=\"b\"\r\nhel\r\n002\r\nlo\r\n0;z\r\nX: y\r\n\r\n",
    "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
    "HTTP/1.0 200\r\nServer:\t old \r\n\r\nhello",
    "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
    "HTTP/1.1 599 Odd\r\nConnection: X, close\r\nX: y\r\nKeep-Alive: 5\r\nY:\r\n\r\nhello",
];

/// Wherever a piece ends, an answer is the same.
#[test]
fn pieces_do_not_matter() {
    for good in GOOD.map(str::as_bytes) {
        let expected = whole(good).unwrap().expect("it is whole");
        assert_eq!(expected.left, b"");
        for first in 0..=good.len() {
            for second in (first..=good.len()).step_by(7) {
                let pieces = [&good[..first], &good[first..second], &good[second..]];
                assert_eq!(read(&pieces, false).unwrap().as_ref(), Some(&expected));
            }
        }
        let bytes: Vec<&[u8]> = good.chunks(1).collect();
        assert_eq!(read(&bytes, false).unwrap(), Some(expected));
    }
}

/// And one that is cut is never a whole one.
#[test]
fn a_cut_answer_is_not_whole() {
    for good in GOOD.map(str::as_bytes) {
        let until_close = good.windows(4).position(|it| it == b"\r\n\r\n").unwrap() + 4;
        let told = !good.starts_with(b"HTTP/1.0") && !good.starts_with(b"HTTP/1.1 599");
        for cut in 0..good.len() {
            let answer = whole(&good[..cut]).unwrap();
            assert!(answer.is_none() || (!told && cut >= until_close), "{cut}");
        }
    }
}

#[track_caller]
fn field<'a>(answer: &'a Answer, name: &str) -> Option<&'a str> {
    answer
        .headers
        .get(name)
        .map(|value| value.to_str().unwrap())
}

#[test]
fn fields_of_the_hop_are_left_out() {
    let answer = whole(
        "HTTP/1.1 200 OK\r\nConnection: X-Own , , keep-alive,Content-Length\r\nX-Own: 1\r\n\
         Keep-Alive: 5\r\nProxy-Connection: x\r\nUpgrade: h2c\r\nTE: x\r\nContent-Length: 1\r\n\
         x-kept: \t a b\t \r\n\r\nx",
    )
    .unwrap()
    .unwrap();
    let mut names: Vec<_> = answer.headers.keys().map(|name| name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["content-length", "x-kept"]);
    assert_eq!(field(&answer, "x-kept"), Some("a b"));
}

/// What two programs could read in two ways is no answer (RFC 9112 2.2, 5, 6).
#[test]
fn what_can_be_read_in_two_ways_is_refused() {
    for bytes in [
        "HTTP/1.1 200 OK\nContent-Length: 0\n\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 0\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX: a\rSet-Cookie: b\r\n\r\n",
        "HTTP/1.1 200 O\rK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX: a\0b\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX: a\x7fb\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX: a\r\n\tb\r\n\r\n",
        "HTTP/1.1 200 OK\r\n X: a\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX : a\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length : 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\n: a\r\n\r\n",
        "HTTP/1.1 200 OK\r\nXa\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding:\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: \x0bchunked\r\n\r\n",
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\na",
        "HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\na",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\na",
        "HTTP/1.1 200 OK\r\nContent-Length: 0x1\r\n\r\na",
        "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\na",
        "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551617\r\n\r\na",
        "HTTP/1.1 204 No Content\r\nContent-Length: x\r\n\r\n",
    ] {
        assert!(whole(bytes).is_err(), "{bytes:?}");
    }
}

#[test]
fn what_does_not_begin_like_an_answer_is_refused_at_once() {
    for bytes in [
        "garbage",
        "\r\nHTTP/1.1 200 OK",
        "http/1.1 200",
        "HTTP/2 200",
        "H ",
        "220 mail",
    ] {
        assert!(whole(bytes).is_err(), "{bytes:?}");
    }
    for line in [
        "HTTP/1.2 200 OK",
        "HTTP/1.10 200 OK",
        "HTTP/1.1  200 OK",
        "HTTP/1.1 20 OK",
        "HTTP/1.1 2000 OK",
        "HTTP/1.1 099 OK",
        "HTTP/1.1 abc OK",
        "HTTP/1.1 200OK",
        "HTTP/1.1",
        "HTTP/1.1 200\tOK",
        "HTTP/1.1 200 O\u{1}K",
    ] {
        assert!(whole(format!("{line}\r\n\r\n")).is_err(), "{line:?}");
    }
}

#[test]
fn heads_have_limits() {
    let fields = |n| format!("HTTP/1.1 204 No\r\n{}\r\n", "X: y\r\n".repeat(n));
    assert!(whole(fields(256)).unwrap().is_some());
    assert!(whole(fields(257)).is_err());
    let long = |n| format!("HTTP/1.1 204 No\r\nX: {}", "y".repeat(n));
    assert!(whole(long(200 * 1024) + "\r\n\r\n").unwrap().is_some());
    assert!(whole(long(260 * 1024) + "\r\n\r\n").is_err());
    // Nor is an end awaited that would come too late.
    assert!(whole(long(260 * 1024)).is_err());
}

#[test]
fn answers_without_a_body_have_none_whatever_they_say() {
    for (bytes, to_head) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil", true),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nevil",
            true,
        ),
        (
            "HTTP/1.1 204 No Content\r\nContent-Length: 4\r\n\r\nevil",
            false,
        ),
        (
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 4\r\n\r\nevil",
            false,
        ),
    ] {
        let answer = read(&[bytes.as_bytes()], to_head).unwrap().unwrap();
        assert_eq!((answer.body, answer.left), (Vec::new(), b"evil".to_vec()));
    }
}

#[test]
fn a_connection_is_kept_only_when_both_sides_know_the_end() {
    let keep = |bytes: &str| {
        let mut buf = BytesMut::from(bytes);
        let head = HeadParser::default().parse(&mut buf, false).unwrap();
        head.expect("it is whole").keep
    };
    assert!(keep("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
    assert!(keep(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    ));
    assert!(keep(
        "HTTP/1.1 204 No Content\r\nConnection: keep-alive\r\n\r\n"
    ));
    assert!(!keep("HTTP/1.1 200 OK\r\n\r\n"));
    assert!(!keep(
        "HTTP/1.1 204 No Content\r\nConnection: Close\r\n\r\n"
    ));
    assert!(!keep(
        "HTTP/1.1 204 No Content\r\nConnection: x,close\r\n\r\n"
    ));
    assert!(!keep("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n"));
    assert!(!keep(
        "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n"
    ));
}

#[test]
fn an_unusual_reason_is_kept() {
    let reason = |line: &str| {
        let mut buf = BytesMut::from(format!("{line}\r\n\r\n").as_str());
        let head = HeadParser::default().parse(&mut buf, false).unwrap();
        let reason = head.expect("it is whole").reason;
        reason.map(|reason| String::from_utf8(reason.as_bytes().to_vec()).unwrap())
    };
    assert_eq!(reason("HTTP/1.1 200 OK"), None);
    assert_eq!(reason("HTTP/1.1 200"), None);
    assert_eq!(reason("HTTP/1.1 200 "), None);
    assert_eq!(reason("HTTP/1.1 200 Fine").as_deref(), Some("Fine"));
    assert_eq!(reason("HTTP/1.1 499 Gone").as_deref(), Some("Gone"));
}

/// Bytes that mean something somewhere.
const TELLING: &[u8] = b"\r\n\0 \t:;,=0123456789abfxACHPT\x7f\x80\xff\"";

/// Whatever bytes become: no panic, the same in pieces as at once, and what is written to the client
/// of its fields has no line end in it.
#[test]
fn changed_bytes_are_read_the_same_way_in_pieces() {
    let mut rng = fastrand::Rng::with_seed(7);
    for round in 0..20_000 {
        let mut bytes = GOOD[round % GOOD.len()].as_bytes().to_vec();
        for _ in 0..rng.usize(1..4) {
            let at = rng.usize(..bytes.len());
            let byte = TELLING[rng.usize(..TELLING.len())];
            match rng.u8(..3) {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                _ => drop(bytes.remove(at)),
            }
        }
        let once = whole(&bytes);
        let cut = rng.usize(..=bytes.len());
        let twice = read(&[&bytes[..cut], &bytes[cut..]], false);
        // Which fault is seen first may differ.
        assert_eq!(once.as_ref().ok(), twice.as_ref().ok(), "{bytes:?}");
        if let Ok(Some(answer)) = once {
            let mut line = answer.headers.values().flat_map(|value| value.as_bytes());
            assert!(!line.any(|byte| matches!(byte, b'\r' | b'\n' | 0)));
        }
    }
}
