//! One client connection, from its first byte to its close.

use std::io;
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpStream};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;

use super::client::{Client, Protocol};
use super::fault::Fault;
use super::guard::Phase;
use super::handshake::{self, Accepted};
use super::io::ClientIo;
use super::listen::Local;
use super::origin;
use super::own;
use super::passthrough;
use super::service;
use super::socket::Socket;
use super::tunnel;
use super::worker::Worker;

/// How long a refused client is listened to, so that the close does not destroy the answer that it
/// has not read.
const LINGER: Duration = Duration::from_secs(2);

/// How much a refused client may still send in that time, in bytes.
const LINGER_BYTES: usize = 1024 * 1024;

/// The least that hyper takes as buffer size, in bytes.
const BUFFER_MIN: usize = 8192;

/// Fields that hyper has room for without asking for memory.
const HEADERS_ON_STACK: usize = 100;

/// Streams of one HTTP/2 connection that may be in hand at once.
const STREAMS_MAX: u32 = 128;

/// Serves `stream` until it ends. What only some connections do is boxed: a task is moved several
/// times before it runs, and idle connections are many.
pub async fn serve(worker: Rc<Worker>, stream: TcpStream, peer: SocketAddr, local: Local) {
    let Some((stream, mut origin)) = origin::find(&worker, stream, peer, local.addr).await else {
        return;
    };
    let timeouts = worker.timeouts().clone();
    let socket = Socket::new(stream, timeouts.send, worker.clock(), worker.flusher());
    let class = worker.class_of(peer.ip());
    let agreed = match local.tls {
        false => None,
        true => match Box::pin(handshake::accept(&worker, &socket)).await {
            None => return,
            Some(Accepted::Secured(agreed)) => Some(agreed),
            Some(Accepted::Untouched(hello)) => {
                let passed = passthrough::serve(&worker, &socket, origin, class, hello);
                Box::pin(passed).await;
                return;
            }
        },
    };
    if agreed.is_some() {
        origin.scheme = "https";
    }
    let client = Client::new(socket, origin, class, &timeouts, worker.limits());
    if agreed.is_some_and(|it| it.http2) {
        client.speaks_http2();
    } else {
        serve_http1(&worker, &client).await;
    }
    if client.protocol() == Protocol::Http2 {
        Box::pin(serve_http2(&worker, &client)).await;
    }
}

async fn serve_http1(worker: &Rc<Worker>, client: &Rc<Client>) {
    let service = service_fn(|request| service::serve(worker.clone(), client.clone(), request));
    let limits = worker.limits();
    let mut builder = http1::Builder::new();
    // The guard has counted by then; hyper only needs room. Until it is told how much it has enough on its
    // stack, for each head.
    if limits.max_headers > HEADERS_ON_STACK {
        builder.max_headers(limits.max_headers);
    }
    let mut connection = builder
        // Whether the client has left is looked at here, once a turn: hyper would try to read in
        // every round of its loop.
        .half_close(true)
        .max_buf_size((limits.max_head_bytes * 2).max(BUFFER_MIN))
        .serve_connection(ClientIo(client.clone()), service);
    let (mut told, mut gone) = (false, false);
    let ended = std::future::poll_fn(|cx| {
        if worker.ends_idle() && !std::mem::replace(&mut told, true) {
            Pin::new(&mut connection).graceful_shutdown();
        }
        let polled = Pin::new(&mut connection).poll(cx);
        if polled.is_pending() && client.poll_gone(cx) {
            gone = true;
            return Poll::Ready(Ok(()));
        }
        polled
    })
    .await;
    if gone {
        // Dropping the request cancels it.
        return;
    }
    let early = connection.into_parts().read_buf;
    if client.protocol() == Protocol::Http2 {
        return;
    }
    match client.take_tunnel() {
        Some((tunnel, idle)) => {
            let carried = tunnel::Carried::default();
            let run = tunnel::run(&client.socket, early, tunnel, idle, &carried);
            Box::pin(run).await;
        }
        None => finish(worker, client, ended.err()).await,
    }
}

/// Tells the client why its connection ends, if it can be told.
async fn finish(worker: &Rc<Worker>, client: &Rc<Client>, error: Option<hyper::Error>) {
    if error.is_some() && client.is_answered_until_close() {
        client.socket.reset_on_close();
        return;
    }
    let late = client.socket.is_expired() && client.phase() == Phase::Head;
    let fault = match (client.refused(), late) {
        // A body that breaks has been told to its request.
        (Some(Fault::BadBody), _) => None,
        (Some(fault), _) => Some(fault),
        (None, true) => Some(Fault::HeadTimeout),
        (None, false) => None,
    };
    if let Some(fault) = fault {
        worker.count_fault(fault);
        if fault == Fault::TlsOnPlain {
            // It could not read an answer.
            return;
        }
        let text = own::raw_answer(fault);
        let slices = [io::IoSlice::new(text.as_bytes())];
        // A failure shows again where the connection is closed.
        let _ = std::future::poll_fn(|cx| client.socket.poll_write(cx, &slices)).await;
    } else if error.is_some_and(|e| e.is_parse()) {
        // hyper has answered what only it found wrong.
        worker.count_fault(Fault::BadHead);
    }
    linger(client).await;
}

/// Closes without destroying what the client has not read yet: with bytes unread, a close is a
/// reset, and the reset overtakes the answer.
async fn linger(client: &Rc<Client>) {
    let socket = &client.socket;
    if client.has_read_all() && !socket.is_blocked() {
        // The flusher sends the rest of this turn and lets the socket go.
        socket.close_after_flush();
        return;
    }
    Box::pin(linger_on(socket)).await;
}

/// The same for a connection of which nothing more is wanted. What comes is not looked at.
pub async fn linger_on(socket: &Rc<Socket>) {
    if std::future::poll_fn(|cx| socket.poll_shutdown(cx))
        .await
        .is_err()
        || socket.is_expired()
    {
        return;
    }
    socket.wait_at_most(LINGER);
    let mut left = LINGER_BYTES;
    let mut buf = [MaybeUninit::<u8>::uninit(); 4096];
    while left > 0 {
        let received = std::future::poll_fn(|cx| {
            socket
                .poll_receive_init(cx, &mut buf)
                .map_ok(|received| received.len())
        });
        match received.await {
            Ok(n) if n > 0 => left = left.saturating_sub(n),
            _ => return,
        }
    }
}

async fn serve_http2(worker: &Rc<Worker>, client: &Rc<Client>) {
    let service = service_fn(|request| {
        // Each stream is a task of its own, which is moved before it runs.
        Box::pin(service::serve(worker.clone(), client.clone(), request))
    });
    let limits = worker.limits();
    let head_max = u32::try_from(limits.max_head_bytes).unwrap_or(u32::MAX);
    let connection = http2::Builder::new(LocalExecutor)
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(head_max)
        .serve_connection(ClientIo(client.clone()), service);
    let mut connection = pin!(connection);
    let mut told = false;
    let ended = std::future::poll_fn(|cx| {
        if worker.is_draining() && !std::mem::replace(&mut told, true) {
            connection.as_mut().graceful_shutdown();
        }
        match connection.as_mut().poll(cx) {
            Poll::Ready(result) => Poll::Ready(result),
            Poll::Pending => Poll::Pending,
        }
    })
    .await;
    if let Err(e) = ended {
        tracing::debug!(error = %e, client = %client.origin.peer, "an HTTP/2 connection broke");
    }
    client.socket.announce_end();
    let _ = std::future::poll_fn(|cx| client.socket.poll_drained(cx)).await;
}

/// Runs hyper's tasks on this worker.
#[derive(Clone, Copy)]
pub struct LocalExecutor;

impl<F> hyper::rt::Executor<F> for LocalExecutor
where
    F: Future<Output = ()> + 'static,
{
    fn execute(&self, future: F) {
        tokio::task::spawn_local(future);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a call's future takes, in bytes.
    fn size<A, B, C, D, F>(_: impl Fn(A, B, C, D) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn a_connection_is_small() {
        assert!(size(serve) <= 2048, "{} bytes", size(serve));
        let request = size(|worker, client, request, ()| service::serve(worker, client, request));
        assert!(request <= 6144, "{request} bytes");
    }
}
