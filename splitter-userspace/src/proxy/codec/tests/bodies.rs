use super::*;

fn chunked(body: &str) -> Result<Option<Answer>, Invalid> {
    whole(format!(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{body}"
    ))
}

#[test]
fn chunks_that_are_none_are_refused() {
    for body in [
        "xyz\r\nabc\r\n0\r\n\r\n",
        "-3\r\nabc\r\n0\r\n\r\n",
        "+3\r\nabc\r\n0\r\n\r\n",
        "0x3\r\nabc\r\n0\r\n\r\n",
        " 3\r\nabc\r\n0\r\n\r\n",
        "\r\nabc\r\n0\r\n\r\n",
        "3 x\r\nabc\r\n0\r\n\r\n",
        "10000000000000003\r\nabc\r\n0\r\n\r\n",
        "3\nabc\r\n0\r\n\r\n",
        "3;x\nabc\r\n0\r\n\r\n",
        "3;x\ry\r\nabc\r\n0\r\n\r\n",
        "3;x\0y\r\nabc\r\n0\r\n\r\n",
        "3;x\x7fy\r\nabc\r\n0\r\n\r\n",
        "3\r\nabcd\r\n0\r\n\r\n",
        "3\r\nabc\n0\r\n\r\n",
        "3\r\nabc\r0\r\n\r\n",
        "3\r\nabc0\r\n\r\n",
        "3\r\nabc\r\n0\n\n",
        "3\r\nabc\r\n0\r\n\n",
        "3\r\nabc\r\n0\r\nX: a\r\n b\r\n\r\n",
        "3\r\nabc\r\n0\r\nX: a\0b\r\n\r\n",
        "3\r\nabc\r\n0\r\nXa\r\n\r\n",
        "3\r\nabc\r\n0\r\nX : a\r\n\r\n",
        "3\r\nabc\r\n0\r\nX: a\n\r\n",
    ] {
        assert!(chunked(body).is_err(), "{body:?}");
    }
}

#[test]
fn what_comes_beside_the_data_has_limits() {
    let line = |n| format!("3;{}\r\nabc\r\n0\r\n\r\n", "x".repeat(n));
    assert!(chunked(&line(4000)).unwrap().is_some());
    assert!(chunked(&line(5000)).is_err());
    let lines = |n| format!("3;{}\r\nabc\r\n", "x".repeat(4000)).repeat(n) + "0\r\n\r\n";
    assert!(chunked(&lines(4)).unwrap().is_some());
    assert!(chunked(&lines(5)).is_err());
    let trailers = |n| format!("0\r\n{}\r\n", "X: y\r\n".repeat(n));
    assert!(chunked(&trailers(256)).unwrap().is_some());
    assert!(chunked(&trailers(257)).is_err());
    let long = |n| format!("0\r\nX: {}\r\n\r\n", "y".repeat(n));
    assert!(chunked(&long(16_000)).unwrap().is_some());
    assert!(chunked(&long(17_000)).is_err());
    // Nor is an end awaited that would come too late.
    assert!(chunked(&format!("3;{}", "x".repeat(5000))).is_err());
    assert!(chunked(&format!("0\r\nX: {}", "y".repeat(17_000))).is_err());
}

/// RFC 9110 6.5.1: what frames, routes or authenticates a message does not stand in a trailer.
#[test]
fn trailers_that_change_the_message_are_left_out() {
    let answer = chunked(
        "0\r\nGrpc-Status: 0\r\nContent-Length: 9\r\nTransfer-Encoding: gzip\r\nHost: x\r\n\
         Set-Cookie: a\r\nConnection: close\r\nX-Real-IP: 1\r\nX-Sum: 2\r\n\r\n",
    );
    let trailers = answer.unwrap().unwrap().trailers;
    let mut names: Vec<_> = trailers.keys().map(|name| name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["grpc-status", "x-sum"]);
}

#[test]
fn bytes_behind_the_end_are_left() {
    let answer = chunked("1\r\na\r\n0\r\n\r\nHTTP/1.1 200 OK")
        .unwrap()
        .unwrap();
    assert_eq!(answer.left, b"HTTP/1.1 200 OK");
}
