use super::*;

const LARGE: usize = 20 * 1024 * 1024;

#[test]
fn an_upload_keeps_its_length() {
    let backend = Backend::answering(OK);
    let splitter = Splitter::before(&backend);
    run(async {
        let mut connection = Connection::open(&splitter).await;
        let body = Full::new(Bytes::from_static(b"hello")).boxed();
        let response = connection.send(request(Method::POST, "/", body)).await;
        assert_eq!(response.expect("an answer").status(), 200);
    });
    let seen = backend.last();
    assert_eq!(seen.body, b"hello");
    assert_eq!(seen.field("content-length"), Some("5"));
    assert_eq!(seen.field("transfer-encoding"), None);
}

#[test]
fn an_upload_of_unknown_length_is_chunked() {
    for method in [Method::POST, Method::GET] {
        let backend = Backend::answering(OK);
        let splitter = Splitter::before(&backend);
        run(async {
            let mut connection = Connection::open(&splitter).await;
            let frames = ["he", "llo"].map(|part| Frame::data(Bytes::from(part)));
            let body = Frames(frames.into()).boxed();
            let response = connection.send(request(method, "/", body)).await;
            assert_eq!(response.expect("an answer").status(), 200);
        });
        let seen = backend.last();
        assert_eq!(seen.body, b"hello");
        assert_eq!(seen.field("transfer-encoding"), Some("chunked"));
    }
}

#[test]
fn a_large_answer_arrives_whole() {
    let backend = Backend::scripted(|conversation| {
        while conversation.request().is_some() {
            conversation.send(format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {LARGE}\r\n\r\n"
            ));
            Noise::new(7).write_to(conversation.stream(), LARGE);
        }
    });
    let splitter = Splitter::before(&backend);
    run(async {
        let mut connection = Connection::open(&splitter).await;
        let response = connection.get("/").await;
        let body = response.into_body().collect().await.expect("a body");
        let body = body.to_bytes();
        assert_eq!(body.len(), LARGE);
        assert_eq!(Noise::new(7).check_from(&body[..], LARGE), LARGE);
    });
}

#[test]
fn a_large_upload_arrives_whole() {
    let backend = Backend::answering(OK);
    let splitter = Splitter::before(&backend);
    let mut body = vec![0; LARGE];
    Noise::new(8).write_to(&mut body[..], LARGE);
    run(async {
        let mut connection = Connection::open(&splitter).await;
        let body = Full::new(Bytes::from(body)).boxed();
        let response = connection.send(request(Method::PUT, "/", body)).await;
        assert_eq!(text(response.expect("an answer")).await, "ok");
    });
    let body = backend.last().body;
    assert_eq!(body.len(), LARGE);
    assert_eq!(Noise::new(8).check_from(&body[..], LARGE), LARGE);
}

#[test]
fn trailers_go_both_ways() {
    let backend = Backend::answering(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n\
         3\r\nabc\r\n0\r\nX-Sum: 12\r\n\r\n",
    );
    let splitter = Splitter::before(&backend);
    run(async {
        let mut connection = Connection::open(&splitter).await;
        let mut trailers = HeaderMap::new();
        trailers.insert("x-check", HeaderValue::from_static("34"));
        let frames = [
            Frame::data(Bytes::from_static(b"hello")),
            Frame::trailers(trailers),
        ];
        let body = Frames(frames.into()).boxed();
        let mut request = request(Method::POST, "/", body);
        let headers = request.headers_mut();
        headers.insert("te", HeaderValue::from_static("trailers"));
        headers.insert("trailer", HeaderValue::from_static("x-check"));
        let response = connection.send(request).await.expect("an answer");
        let body = response.into_body().collect().await.expect("a body");
        let trailers = body.trailers().cloned().unwrap_or_default();
        assert_eq!(trailers.get("x-sum"), Some(&HeaderValue::from_static("12")));
        assert_eq!(body.to_bytes(), "abc");
    });
    let seen = backend.last();
    assert_eq!(seen.body, b"hello");
    assert_eq!(seen.trailers, [("x-check".to_owned(), "34".to_owned())]);
    assert_eq!(seen.field("te"), Some("trailers"));
}

/// HTTP/2 needs no announcement of trailers, and gRPC makes none.
#[test]
fn trailers_need_no_announcement() {
    let backend = Backend::answering(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
         3\r\nabc\r\n0\r\ngrpc-status: 0\r\n\r\n",
    );
    let splitter = Splitter::before(&backend);
    run(async {
        let mut connection = Connection::open(&splitter).await;
        let response = connection.get("/").await;
        let body = response.into_body().collect().await.expect("a body");
        let trailers = body.trailers().cloned().unwrap_or_default();
        let status = HeaderValue::from_static("0");
        assert_eq!(trailers.get("grpc-status"), Some(&status));
    });
}

#[test]
fn head_and_no_content_have_no_body() {
    let backend = Backend::answering("HTTP/1.1 204 No Content\r\n\r\n");
    let splitter = Splitter::before(&backend);
    run(async {
        let mut connection = Connection::open(&splitter).await;
        let response = connection.get("/").await;
        assert_eq!(response.status(), 204);
        assert_eq!(text(response).await, "");
    });
    let backend = Backend::answering("HTTP/1.1 200 OK\r\nContent-Length: 12345\r\n\r\n");
    let splitter = Splitter::before(&backend);
    run(async {
        let mut connection = Connection::open(&splitter).await;
        for _ in 0..2 {
            let request = request(Method::HEAD, "/", empty());
            let response = connection.send(request).await.expect("an answer");
            assert_eq!(response.headers()["content-length"], "12345");
            assert_eq!(text(response).await, "");
        }
    });
    assert_eq!(backend.connections(), 1);
}

/// A stream that nobody reads holds up itself, not the connection.
#[test]
fn a_stream_that_is_not_read_does_not_stop_the_others() {
    let backend = Backend::scripted(|conversation| {
        while let Some(request) = conversation.request() {
            if request.target() == "/large" {
                conversation.send(format!(
                    "HTTP/1.1 200 OK\r\nContent-Length: {LARGE}\r\n\r\n"
                ));
                Noise::new(9).write_to(conversation.stream(), LARGE);
            } else {
                conversation.send(OK);
            }
        }
    });
    let splitter = Splitter::before(&backend);
    run(async {
        let mut connection = Connection::open(&splitter).await;
        let mut large = connection.get("/large").await;
        let first = large.frame().await.expect("a frame").expect("no error");
        for _ in 0..100 {
            assert_eq!(text(connection.get("/small").await).await, "ok");
        }
        let rest = large.into_body().collect().await.expect("a body");
        let first = first.into_data().map(|data| data.len()).unwrap_or_default();
        assert_eq!(first + rest.to_bytes().len(), LARGE);
    });
}

#[test]
fn a_cut_answer_is_an_error_of_its_stream_alone() {
    let backend = Backend::scripted(|conversation| {
        while let Some(request) = conversation.request() {
            if request.target() == "/cut" {
                conversation.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello");
                return;
            }
            conversation.send(OK);
        }
    });
    let splitter = Splitter::before(&backend);
    run(async {
        let mut connection = Connection::open(&splitter).await;
        match connection.send(get("/cut")).await {
            Ok(response) => assert!(response.into_body().collect().await.is_err()),
            Err(e) => assert!(!connection.driver.is_finished(), "{e:?}"),
        }
        assert_eq!(text(connection.get("/").await).await, "ok");
    });
}

/// hyper's HTTP/2 server cannot send them.
#[test]
fn interim_answers_are_left_out_and_counted() {
    let backend = Backend::answering(format!(
        "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n{OK}"
    ));
    let splitter = Splitter::before(&backend);
    run(async {
        let mut connection = Connection::open(&splitter).await;
        assert_eq!(text(connection.get("/").await).await, "ok");
    });
    let dropped = [("result", "dropped")];
    splitter.expect_sum("splitter_interim_answers_total", &dropped, 1.0);
}
