use std::convert::Infallible;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue, SERVER};
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{HttpService, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::AdminState;
use super::pages::{Page, Route};
use super::scrape::Scrape;
use crate::telemetry::{Counter, Family};

/// Connections at a time; further ones are closed at once and counted.
pub const MAX_CONNECTIONS: usize = 64;

/// For a client to send a request's head, the wait between two requests included.
pub const HEADER_TIMEOUT: Duration = Duration::from_secs(30);

/// The longest head of a request, in bytes.
pub const MAX_HEAD_BYTES: usize = 16 * 1024;

/// After this a connection is ended with its current answer, so that one that reads slowly does
/// not stay for ever.
pub const LIFETIME: Duration = Duration::from_secs(600);

/// For the last answer of a connection whose lifetime is over.
const GRACE: Duration = Duration::from_secs(30);

/// Between two tries to accept when the system has no room for a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

const REFUSED: Family = Family::counter(
    "splitter_admin_connections_refused_total",
    "Connections to the admin address closed at once because there were too many",
);

/// What every connection shares.
struct Server {
    state: AdminState,
    scrape: Scrape,
    stop: watch::Receiver<bool>,
}

/// Where admin connections come from.
pub enum Listener {
    /// The admin address.
    Tcp(TcpListener),
    /// A path that belongs to this instance alone.
    Unix(UnixListener),
}

enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Listener {
    async fn accept(&self) -> io::Result<Stream> {
        match self {
            Listener::Tcp(listener) => listener.accept().await.map(|(it, _)| Stream::Tcp(it)),
            Listener::Unix(listener) => listener.accept().await.map(|(it, _)| Stream::Unix(it)),
        }
    }
}

/// Answers on `listener` until `stop` says true or is gone: then no connection is accepted any more,
/// and those that are open end with their present answer. Dropping the future ends every
/// connection.
pub async fn serve(listener: Listener, state: AdminState, mut stop: watch::Receiver<bool>) {
    let refused = state.registry.counter(&REFUSED, &[]);
    let server = Arc::new(Server {
        scrape: Scrape::new(&state.registry),
        state,
        stop: stop.clone(),
    });
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = told(&mut stop) => break,
            accepted = listener.accept() => match accepted {
                Ok(stream) => admit(&mut connections, &server, stream, &refused),
                Err(error) => pause(&error).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// Waits until it is told to stop, or nobody can tell it any more.
async fn told(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

fn admit(connections: &mut JoinSet<()>, server: &Arc<Server>, stream: Stream, refused: &Counter) {
    if connections.len() >= MAX_CONNECTIONS {
        refused.inc();
        return;
    }
    match stream {
        Stream::Tcp(stream) => connections.spawn(connection(server.clone(), stream)),
        Stream::Unix(stream) => connections.spawn(connection(server.clone(), stream)),
    };
}

/// A connection that is gone again is no reason to wait; a lack of descriptors is.
async fn pause(error: &io::Error) {
    if error.kind() != io::ErrorKind::ConnectionAborted {
        tracing::warn!(%error, "cannot accept a connection to the admin address; trying again");
        sleep(ACCEPT_PAUSE).await;
    }
}

async fn connection(
    server: Arc<Server>,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) {
    let mut stop = server.stop.clone();
    let service = service_fn(move |request| answer(server.clone(), request));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(MAX_HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    // Whatever goes wrong here is the client's: it closed, was too slow or sent what is no HTTP,
    // which hyper has answered.
    tokio::select! {
        _ = connection.as_mut() => {}
        () = sleep(LIFETIME) => end(connection).await,
        () = told(&mut stop) => end(connection).await,
    }
}

/// Lets the present answer of a connection be its last.
async fn end<I, S>(mut connection: Pin<&mut http1::Connection<I, S>>)
where
    I: hyper::rt::Read + hyper::rt::Write + Unpin,
    S: HttpService<Incoming, ResBody = Full<Bytes>>,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    connection.as_mut().graceful_shutdown();
    let _ = timeout(GRACE, connection).await;
}

async fn answer(
    server: Arc<Server>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let route = Route::of(request.method(), request.uri().path());
    let make = {
        let server = server.clone();
        move || route.page(&server.state, &server.scrape)
    };
    let page = if route.is_long() {
        let made = tokio::task::spawn_blocking(make).await;
        made.unwrap_or_else(|error| Page::failed(&error))
    } else {
        make()
    };
    Ok(response(route, page))
}

fn response(route: Route, page: Page) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(page.body.into()));
    *response.status_mut() = page.status;
    let headers = response.headers_mut();
    headers.insert(SERVER, HeaderValue::from_static("splitter"));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(page.kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if route == Route::WrongMethod {
        headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    }
    response
}
