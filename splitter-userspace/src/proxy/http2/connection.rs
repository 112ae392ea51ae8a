//! One HTTP/2 connection to an Endpoint, shared by the requests of one worker.

use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use hyper::client::conn::http2::{self, Builder, SendRequest};
use hyper::rt::{Read, ReadBufCursor, Write};
use tokio::sync::Notify;

use super::stream::{Stream, Upload};
use crate::proxy::clock::{Clock, Tick};
use crate::proxy::conn::LocalExecutor;
use crate::proxy::flush::Flusher;
use crate::proxy::io::poll_fill;
use crate::proxy::socket::Socket;
use crate::proxy::terms::Terms;
use crate::proxy::upstream;

/// Streams on one connection, unless the pod allows fewer.
const STREAMS_MAX: usize = 100;

/// How much a pod may send on one stream before the client has taken it, in bytes.
const STREAM_WINDOW: u32 = 128 * 1024;

/// The same for all streams of a connection: as much as they can come to, so that a client that
/// takes nothing holds up nobody else.
const CONNECTION_WINDOW: u32 = STREAM_WINDOW * STREAMS_MAX as u32;

/// How much of a request's body is held for a pod that takes none, in bytes.
const SEND_BUFFER: usize = 64 * 1024;

/// The most bytes of an answer's head.
const HEAD_MAX: u32 = 256 * 1024;

/// See the module's text.
pub struct Connection {
    sender: SendRequest<Upload>,
    socket: Rc<Socket>,
    clock: Rc<Clock>,
    /// How many streams the pod allows, and we.
    limit: Cell<usize>,
    /// No further stream is begun on it.
    retired: Cell<bool>,
    /// Told once, when the pod has said what it allows, or the connection has ended.
    settled: Notify,
    ear: Rc<Ear>,
    /// Since when it has no stream.
    idle_since: Cell<Tick>,
    streams: RefCell<Vec<Rc<Stream>>>,
}

impl Connection {
    /// Connects to `endpoint` and has a task of this worker drive the connection. A pod that takes
    /// nothing at all for `send` is given up.
    pub async fn connect(
        endpoint: SocketAddr,
        terms: &Terms,
        send: Duration,
        clock: &Rc<Clock>,
        flusher: &Rc<Flusher>,
    ) -> io::Result<Rc<Self>> {
        let socket = upstream::connect(endpoint, terms, send, clock, flusher).await?;
        socket.probe_peer();
        let ear = Rc::<Ear>::default();
        let io = Http2Io {
            socket: socket.clone(),
            clock: clock.clone(),
            ear: ear.clone(),
        };
        let (sender, driver) = Builder::new(LocalExecutor)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .initial_max_send_streams(STREAMS_MAX)
            .max_send_buf_size(SEND_BUFFER)
            .max_header_list_size(HEAD_MAX)
            .handshake(io)
            .await
            .map_err(io::Error::other)?;
        let connection = Rc::new(Connection {
            sender,
            socket,
            clock: clock.clone(),
            limit: Cell::new(STREAMS_MAX),
            retired: Cell::new(false),
            settled: Notify::new(),
            ear,
            idle_since: Cell::new(clock.now()),
            streams: RefCell::default(),
        });
        // Weak: a connection that nobody knows any more ends.
        tokio::task::spawn_local(drive(driver, Rc::downgrade(&connection), endpoint));
        connection.settle(terms.connect).await?;
        Ok(connection)
    }

    /// Waits until the pod has said what it allows, which is the first that HTTP/2 has it say. So
    /// no request is sent to somebody who speaks another protocol, or nothing.
    async fn settle(&self, time: Duration) -> io::Result<()> {
        self.socket.wait_at_most(time);
        self.settled.notified().await;
        if self.is_open() {
            self.socket.wait_for_ever();
            return Ok(());
        }
        Err(match self.socket.is_expired() {
            true => io::ErrorKind::TimedOut.into(),
            false => io::ErrorKind::ConnectionAborted.into(),
        })
    }

    /// Sends requests.
    pub fn sender(&self) -> SendRequest<Upload> {
        self.sender.clone()
    }

    /// Whether a deadline ended it.
    pub fn is_expired(&self) -> bool {
        self.socket.is_expired()
    }

    /// Whether another stream can be begun.
    pub fn has_room(&self) -> bool {
        self.is_open() && self.streams.borrow().len() < self.limit.get()
    }

    /// Whether it is of any use for further requests.
    pub fn is_open(&self) -> bool {
        !self.retired.get() && !self.sender.is_closed() && !self.socket.is_expired()
    }

    /// Begins no further stream on it.
    pub fn retire(&self) {
        self.retired.set(true);
    }

    /// Whether it has had no stream for `ticks`.
    pub fn is_idle(&self, ticks: Tick) -> bool {
        let idle = self.clock.now().saturating_sub(self.idle_since.get());
        !self.is_used() && idle > ticks
    }

    /// Whether it has a stream.
    pub fn is_used(&self) -> bool {
        !self.streams.borrow().is_empty()
    }

    /// Takes a place.
    pub fn add(&self, stream: &Rc<Stream>) {
        self.streams.borrow_mut().push(stream.clone());
    }

    /// Frees a place.
    pub fn remove(&self, stream: &Rc<Stream>) {
        let mut streams = self.streams.borrow_mut();
        if let Some(index) = streams.iter().position(|it| Rc::ptr_eq(it, stream)) {
            streams.swap_remove(index);
        }
        if streams.is_empty() {
            self.idle_since.set(self.clock.now());
        }
    }

    /// Expires the streams that are due. When nothing at all has come since such a stream began,
    /// the pod is most likely gone without a word, and the connection is not used again.
    pub fn tick(&self) {
        let now = self.clock.now();
        // Waking runs nothing at once, so the list stays as it is.
        for stream in self.streams.borrow().iter().filter(|it| it.is_due(now)) {
            if self.ear.heard.get() <= stream.began() {
                self.retire();
            }
            stream.expire();
        }
    }
}

/// What is known of the bytes that have come.
#[derive(Default)]
struct Ear {
    /// When the last came; zero when none have.
    heard: Cell<Tick>,
    /// The driver, to be woken by the first: hyper reads in another task.
    driver: RefCell<Option<Waker>>,
}

impl Ear {
    fn hear(&self, now: Tick) {
        if self.heard.replace(now) == 0
            && let Some(driver) = self.driver.borrow_mut().take()
        {
            driver.wake();
        }
    }
}

/// Drives a connection to its end.
async fn drive(
    driver: http2::Connection<Http2Io, Upload, LocalExecutor>,
    told: Weak<Connection>,
    endpoint: SocketAddr,
) {
    let mut driver = pin!(driver);
    let ended = std::future::poll_fn(|cx| {
        let polled = driver.as_mut().poll(cx);
        if let Some(connection) = told.upgrade() {
            let allowed = driver.current_max_send_streams();
            connection.limit.set(allowed.min(STREAMS_MAX));
            match connection.ear.heard.get() {
                0 => *connection.ear.driver.borrow_mut() = Some(cx.waker().clone()),
                _ => connection.settled.notify_one(),
            }
        }
        polled
    })
    .await;
    if let Err(error) = ended {
        tracing::debug!(%endpoint, %error, "an HTTP/2 connection to an endpoint broke");
    }
    if let Some(connection) = told.upgrade() {
        connection.retire();
        connection.settled.notify_one();
    }
}

/// The pod's side as hyper sees it. The connection's own task is woken.
struct Http2Io {
    socket: Rc<Socket>,
    clock: Rc<Clock>,
    ear: Rc<Ear>,
}

impl Read for Http2Io {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        poll_fill(&self.socket, cx, &mut buf, |data| {
            // The end of the stream is no word.
            if !data.is_empty() {
                self.ear.hear(self.clock.now());
            }
            Ok(data.len())
        })
    }
}

impl Write for Http2Io {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.socket.poll_write(cx, &[IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.socket.poll_write(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Ready although bytes are held: the flusher sends them at the end of the turn.
    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket.poll_shutdown(cx)
    }
}
