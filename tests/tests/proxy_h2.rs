//! Cleartext HTTP/2 with prior knowledge (RFC 9113 3.3): the same service, many streams.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::{Body, Frame, Incoming};
use hyper::client::conn::http2::{self, SendRequest};
use hyper::header::{HOST, HeaderMap, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use splitter_tests::backend::Backend;
use splitter_tests::instance::Splitter;
use splitter_tests::noise::Noise;
use splitter_tests::{PATIENCE, eventually};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

type AnyBody = BoxBody<Bytes, Infallible>;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];

/// `GET /` of `a.test`, ending the stream: indexed fields of RFC 7541, authority as a literal.
fn headers(stream: u8) -> Vec<u8> {
    let head = [0, 0, 11, 1, 5, 0, 0, 0, stream];
    [&head, &b"\x82\x86\x84\x41\x06a.test"[..]].concat()
}

/// One HTTP/2 connection.
struct Connection {
    sender: SendRequest<AnyBody>,
    driver: JoinHandle<hyper::Result<()>>,
}

impl Connection {
    async fn open(splitter: &Splitter) -> Self {
        let stream = TcpStream::connect(splitter.http()).await.expect("accepted");
        let (sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .expect("HTTP/2 is spoken");
        Connection {
            sender,
            driver: tokio::spawn(connection),
        }
    }

    async fn send(&mut self, request: Request<AnyBody>) -> hyper::Result<Response<Incoming>> {
        self.sender.ready().await?;
        self.sender.send_request(request).await
    }

    async fn get(&mut self, path: &str) -> Response<Incoming> {
        self.send(get(path)).await.expect("an answer")
    }
}

/// Runs a test's future; none takes long unless something is wrong.
fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let done = tokio::time::timeout(PATIENCE, test).await;
        done.expect("the test ends");
    });
}

/// A body of these frames, its length untold.
struct Frames(VecDeque<Frame<Bytes>>);

impl Body for Frames {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.pop_front().map(Ok))
    }
}

fn empty() -> AnyBody {
    Empty::new().boxed()
}

fn request(method: Method, path: &str, body: AnyBody) -> Request<AnyBody> {
    Request::builder()
        .method(method)
        .uri(format!("http://a.test{path}"))
        .body(body)
        .expect("a request")
}

fn get(path: &str) -> Request<AnyBody> {
    request(Method::GET, path, empty())
}

async fn text(response: Response<Incoming>) -> String {
    let body = response.into_body().collect().await.expect("a body");
    String::from_utf8_lossy(&body.to_bytes()).into_owned()
}

/// What the proxy says by itself on HTTP/2.
async fn assert_own(response: Response<Incoming>, status: u16) {
    assert_eq!(response.status(), status);
    assert_eq!(response.headers()["server"], "splitter");
    let length = response.headers()["content-length"].clone();
    assert_eq!(text(response).await.len().to_string(), length);
}

#[test]
fn a_request_becomes_http1_for_the_backend() {
    let backend = Backend::reflecting();
    let splitter = Splitter::before(&backend);
    run(async {
        let mut connection = Connection::open(&splitter).await;
        let response = connection.get("/x?y=z").await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["server"], "splitter");
        assert!(response.headers().contains_key("date"));
        assert_eq!(response.headers()["content-length"], "6");
        assert_eq!(text(response).await, "/x?y=z");
    });
    let seen = backend.last();
    assert_eq!(seen.line, "GET /x?y=z HTTP/1.1");
    assert_eq!(seen.field("host"), Some("a.test"));
    assert_eq!(seen.field("x-forwarded-for"), Some("127.0.0.1"));
    assert_eq!(seen.field("transfer-encoding"), None);
}

#[test]
fn many_streams_run_at_once() {
    let (arrived, arrivals) = channel();
    let shared = Mutex::new(arrived);
    let gate = std::sync::Arc::new((Mutex::new(false), std::sync::Condvar::new()));
    let held = gate.clone();
    let backend = Backend::scripted(move |conversation| {
        while let Some(request) = conversation.request() {
            let _ = shared.lock().unwrap_or_else(|e| e.into_inner()).send(());
            let open = held.0.lock().unwrap_or_else(|e| e.into_inner());
            drop(held.1.wait_while(open, |open| !*open));
            let body = request.target();
            conversation.send(format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            ));
        }
    });
    let splitter = Splitter::before(&backend);
    run(async {
        let mut connection = Connection::open(&splitter).await;
        let mut streams = Vec::new();
        for i in 0..100 {
            connection.sender.ready().await.expect("ready");
            let answer = connection.sender.send_request(get(&format!("/{i}")));
            streams.push(tokio::spawn(answer));
        }
        // All are at the backend before any is answered.
        tokio::task::spawn_blocking(move || {
            for _ in 0..100 {
                arrivals.recv_timeout(PATIENCE).expect("a request arrives");
            }
            *gate.0.lock().unwrap_or_else(|e| e.into_inner()) = true;
            gate.1.notify_all();
        })
        .await
        .expect("all arrive");
        for (i, stream) in streams.into_iter().enumerate() {
            let response = stream.await.expect("no panic").expect("an answer");
            assert_eq!(text(response).await, format!("/{i}"));
        }
    });
}

#[test]
fn a_thousand_requests_share_one_connection() {
    let backend = Backend::reflecting();
    let splitter = Splitter::before(&backend);
    run(async {
        let mut connection = Connection::open(&splitter).await;
        for i in 0..1000 {
            let path = format!("/{i}");
            assert_eq!(text(connection.get(&path).await).await, path);
        }
    });
    assert_eq!(backend.connections(), 1);
}

mod bodies {
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
}

mod cancelling {
    use super::*;

    /// A backend that tells when it was asked and when it was left, and never answers.
    fn silent() -> (Backend, Receiver<&'static str>) {
        let (tell, told) = channel();
        let tell = Mutex::new(tell);
        let backend = Backend::scripted(move |conversation| {
            let say = |what| {
                let tell = tell.lock().unwrap_or_else(|e| e.into_inner());
                let _ = tell.send(what);
            };
            if conversation.request().is_some() {
                say("asked");
                conversation.wait_for_close();
                say("left");
            }
        });
        (backend, told)
    }

    #[test]
    fn a_reset_stream_leaves_the_backend_and_not_the_connection() {
        let (backend, told) = silent();
        let quick = Backend::answering(OK);
        let splitter = Splitter::start(
            &splitter_tests::manifests::Manifests::new()
                .main("slow", "a.test", "/slow", "slow")
                .main("quick", "a.test", "/", "quick")
                .service("slow", &[backend.addr()])
                .service("quick", &[quick.addr()]),
        );
        run(async {
            let mut connection = Connection::open(&splitter).await;
            connection.sender.ready().await.expect("ready");
            let slow = tokio::spawn(connection.sender.send_request(get("/slow")));
            let told = tokio::task::spawn_blocking(move || {
                assert_eq!(told.recv_timeout(PATIENCE), Ok("asked"));
                told
            });
            let told = told.await.expect("the backend is asked");
            // Dropping the answer's future resets the stream.
            slow.abort();
            let left = tokio::task::spawn_blocking(move || told.recv_timeout(PATIENCE));
            assert_eq!(left.await.expect("no panic"), Ok("left"));
            assert_eq!(text(connection.get("/").await).await, "ok");
            assert!(!connection.driver.is_finished());
        });
        eventually("a client that left is counted", || {
            splitter.faults("client-gone") == 1.0
        });
    }

    #[test]
    fn a_lost_connection_leaves_every_backend() {
        let (backend, told) = silent();
        let splitter = Splitter::before(&backend);
        let mut client = splitter.client();
        client.send([PREFACE, SETTINGS].concat());
        for stream in [1, 3, 5, 7, 9] {
            client.send(headers(stream));
            assert_eq!(told.recv_timeout(PATIENCE), Ok("asked"));
        }
        drop(client);
        for _ in 0..5 {
            assert_eq!(told.recv_timeout(PATIENCE), Ok("left"));
        }
    }
}

mod checks {
    use super::*;

    #[test]
    fn an_unknown_location_is_404() {
        let backend = Backend::named("main");
        let splitter = Splitter::before(&backend);
        run(async {
            let mut connection = Connection::open(&splitter).await;
            let mut request = get("/");
            *request.uri_mut() = "http://nobody.test/".parse().expect("a URI");
            assert_own(connection.send(request).await.expect("an answer"), 404).await;
            // The connection goes on.
            assert_eq!(text(connection.get("/").await).await, "main");
        });
    }

    #[test]
    fn authority_and_host_must_not_disagree() {
        let backend = Backend::named("main");
        let splitter = Splitter::before(&backend);
        run(async {
            let mut connection = Connection::open(&splitter).await;
            let mut request = get("/");
            let host = HeaderValue::from_static("b.test");
            request.headers_mut().insert(HOST, host);
            assert_own(connection.send(request).await.expect("an answer"), 400).await;
            let mut request = get("/");
            let host = HeaderValue::from_static("a.test");
            request.headers_mut().insert(HOST, host);
            let response = connection.send(request).await.expect("an answer");
            assert_eq!(text(response).await, "main");
        });
        assert_eq!(backend.seen().len(), 1);
        assert_eq!(backend.last().field("host"), Some("a.test"));
    }

    #[test]
    fn odd_paths_are_judged_alike() {
        let (main, admin) = (Backend::named("main"), Backend::named("admin"));
        let splitter = Splitter::start(
            &splitter_tests::manifests::Manifests::new()
                .main("main", "a.test", "/", "main")
                .main("admin", "a.test", "/admin", "admin")
                .service("main", &[main.addr()])
                .service("admin", &[admin.addr()]),
        );
        run(async {
            let mut connection = Connection::open(&splitter).await;
            for path in ["/x/../admin", "//admin", "/x/%2e%2e/admin"] {
                assert_own(connection.get(path).await, 400).await;
            }
        });
        assert_eq!(main.seen(), []);
    }

    #[test]
    fn connect_is_not_served() {
        let backend = Backend::named("main");
        let splitter = Splitter::before(&backend);
        run(async {
            let mut connection = Connection::open(&splitter).await;
            let mut request = get("/");
            *request.method_mut() = Method::CONNECT;
            *request.uri_mut() = "a.test:80".parse().expect("a URI");
            let response = connection.send(request).await.expect("an answer");
            assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
        });
        assert_eq!(backend.connections(), 0);
    }

    #[test]
    fn a_head_beyond_the_limit_is_refused() {
        let backend = Backend::named("main");
        let splitter = Splitter::before(&backend);
        run(async {
            let mut connection = Connection::open(&splitter).await;
            let mut request = get("/");
            for i in 0..20 {
                let name = hyper::header::HeaderName::try_from(format!("x-{i}"));
                let value = HeaderValue::try_from("y".repeat(5000));
                request
                    .headers_mut()
                    .insert(name.expect("a name"), value.expect("a value"));
            }
            match connection.send(request).await {
                Ok(response) => assert_eq!(response.status(), 431),
                Err(e) => assert!(!e.is_timeout(), "{e:?}"),
            }
        });
        assert_eq!(backend.connections(), 0);
    }

    /// RFC 9113 8.2.3: HTTP/2 may split Cookie; HTTP/1 servers expect it whole.
    #[test]
    fn a_split_cookie_is_joined() {
        let backend = Backend::named("main");
        let splitter = Splitter::before(&backend);
        run(async {
            let mut connection = Connection::open(&splitter).await;
            let mut request = get("/");
            for crumb in ["a=1", "b=2", "c=3"] {
                let crumb = HeaderValue::from_static(crumb);
                request.headers_mut().append("cookie", crumb);
            }
            connection.send(request).await.expect("an answer");
        });
        assert_eq!(backend.last().all("cookie"), ["a=1; b=2; c=3"]);
    }
}

mod preface {
    use std::io::Read;

    use super::*;

    /// The status of stream 1's answer, as HPACK's first byte.
    fn answer(stream: &mut std::net::TcpStream) -> u8 {
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        loop {
            let mut head = [0; 9];
            stream.read_exact(&mut head).expect("a frame");
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let mut payload = vec![0; length as usize];
            stream.read_exact(&mut payload).expect("a frame");
            if head[3] == 1 {
                return payload[0];
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
        assert_eq!(answer(client.stream()), 0x88, ":status 200");
        assert_eq!(backend.seen().len(), 1);
    }

    #[test]
    fn may_come_with_the_first_request() {
        let backend = Backend::named("main");
        let splitter = Splitter::before(&backend);
        let mut client = splitter.client();
        client.send([PREFACE, SETTINGS, &headers(1)].concat());
        assert_eq!(answer(client.stream()), 0x88, ":status 200");
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
}

mod draining {
    use super::*;

    #[test]
    fn streams_in_hand_end_and_the_connection_goes_away() {
        let (go, gone) = channel::<()>();
        let (asked, asks) = channel();
        let shared = Mutex::new((gone, asked));
        let backend = Backend::scripted(move |conversation| {
            while conversation.request().is_some() {
                let shared = shared.lock().unwrap_or_else(|e| e.into_inner());
                let _ = shared.1.send(());
                let _ = shared.0.recv_timeout(PATIENCE);
                conversation.send(OK);
            }
        });
        let mut splitter = Splitter::before(&backend);
        run(async {
            let mut connection = Connection::open(&splitter).await;
            connection.sender.ready().await.expect("ready");
            let answer = tokio::spawn(connection.sender.send_request(get("/")));
            tokio::task::spawn_blocking(move || asks.recv_timeout(PATIENCE))
                .await
                .expect("no panic")
                .expect("the backend is asked");
            splitter.begin_stop();
            let addr = splitter.http();
            tokio::task::spawn_blocking(move || {
                eventually("new connections are refused", || {
                    std::net::TcpStream::connect(addr).is_err()
                });
            })
            .await
            .expect("no panic");
            go.send(()).expect("the backend waits");
            let response = answer.await.expect("no panic").expect("an answer");
            assert_eq!(text(response).await, "ok");
            connection
                .driver
                .await
                .expect("no panic")
                .expect("a good end");
        });
        splitter.stop();
    }

    #[test]
    fn an_idle_connection_ends_at_once() {
        let backend = Backend::named("main");
        let mut splitter = Splitter::before(&backend);
        run(async {
            let mut connection = Connection::open(&splitter).await;
            assert_eq!(text(connection.get("/").await).await, "main");
            splitter.begin_stop();
            connection
                .driver
                .await
                .expect("no panic")
                .expect("a good end");
        });
        splitter.stop();
    }
}
