//! Cleartext HTTP/2 with prior knowledge (RFC 9113 3.3): the same service, many streams.
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

mod bodies;
mod cancelling;
mod checks;
mod draining;
mod preface;
mod raw;

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
