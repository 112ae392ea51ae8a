use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue, SERVER};
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
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
}

/// Answers on `listener` until the future is dropped, which ends every connection.
pub async fn serve(listener: TcpListener, state: AdminState) -> Infallible {
    let refused = state.registry.counter(&REFUSED, &[]);
    let server = Arc::new(Server {
        scrape: Scrape::new(&state.registry),
        state,
    });
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => admit(&mut connections, &server, stream, &refused),
                Err(error) => pause(&error).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

fn admit(
    connections: &mut JoinSet<()>,
    server: &Arc<Server>,
    stream: TcpStream,
    refused: &Counter,
) {
    if connections.len() >= MAX_CONNECTIONS {
        refused.inc();
        return;
    }
    connections.spawn(connection(server.clone(), stream));
}

/// A connection that is gone again is no reason to wait; a lack of descriptors is.
async fn pause(error: &io::Error) {
    if error.kind() != io::ErrorKind::ConnectionAborted {
        tracing::warn!(%error, "cannot accept a connection to the admin address; trying again");
        sleep(ACCEPT_PAUSE).await;
    }
}

async fn connection(server: Arc<Server>, stream: TcpStream) {
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
        () = sleep(LIFETIME) => {
            connection.as_mut().graceful_shutdown();
            let _ = timeout(GRACE, connection).await;
        }
    }
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
