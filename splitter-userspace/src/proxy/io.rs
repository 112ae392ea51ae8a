//! The two sides of a worker's sockets as hyper sees them.
#![allow(
    unsafe_code,
    reason = "hyper hands out its read buffer uninitialised; filling it in place saves a copy"
)]

use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use hyper::rt::{Read, ReadBufCursor, Write};

use super::client::{Client, Protocol};
use super::socket::Socket;

/// Reads into `cursor` and shows what came to `inspect` before hyper can see it.
pub fn poll_fill(
    socket: &Rc<Socket>,
    cx: &mut Context<'_>,
    cursor: &mut ReadBufCursor<'_>,
    inspect: impl FnOnce(&[u8]) -> io::Result<usize>,
) -> Poll<io::Result<()>> {
    // SAFETY: nothing is de-initialised: `poll_read` only writes bytes.
    let buf = unsafe { cursor.as_mut() };
    let n = match ready!(socket.poll_read(cx, buf)) {
        // HTTP has its own ends, and many peers do not announce that of TLS.
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => 0,
        read => read?,
    };
    let filled = buf.get(..n).unwrap_or_default();
    // SAFETY: `poll_read` has initialised the first `n` bytes, and `filled` is no longer.
    let filled = unsafe { filled.assume_init_ref() };
    let taken = inspect(filled)?.min(n);
    // SAFETY: these bytes are among the `n` that are initialised.
    unsafe { cursor.advance(taken) };
    Poll::Ready(Ok(()))
}

/// The client's side: every byte is judged before hyper parses it.
pub struct ClientIo(pub Rc<Client>);

impl Read for ClientIo {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let client = &self.0;
        loop {
            if let Some(prefix) = client.take_prefix(buf.remaining()) {
                buf.put_slice(&prefix);
                return Poll::Ready(Ok(()));
            }
            ready!(client.poll_allowed(cx))?;
            // Set when bytes are kept aside until it is known which protocol this is.
            let mut kept = false;
            let polled = poll_fill(&client.socket, cx, &mut buf, |data| {
                let known = client.protocol() != Protocol::Unknown;
                let taken = client.inspect(data)?;
                kept = !known && taken == 0;
                Ok(taken)
            });
            match polled {
                Poll::Pending => {
                    client.arm();
                    return Poll::Pending;
                }
                Poll::Ready(Ok(())) if kept && !client.at_end() => {}
                ready => return ready,
            }
        }
    }
}

impl Write for ClientIo {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0.socket.poll_write(cx, &[IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.0.socket.poll_write(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Ready although bytes are held: the flusher sends them at the end of the turn, and a failure
    /// is told at the next call.
    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.flushed();
        Poll::Ready(Ok(()))
    }

    /// Only drains: how the connection is closed is decided where it is served.
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.socket.poll_drained(cx)
    }
}

/// What an upstream connection and the task that drives it share.
pub struct Link {
    /// The connection.
    pub socket: Rc<Socket>,
    /// The task that drives it now; a kept connection changes hands.
    task: RefCell<Waker>,
    /// Whether the peer has sent anything since the last request began.
    answered: Cell<bool>,
    /// How long the peer may be silent while it is its turn.
    timeout: Cell<Duration>,
}

impl Link {
    /// A link that nobody drives yet. The peer may be silent for `timeout` while it is its turn.
    pub fn new(socket: Rc<Socket>, timeout: Duration) -> Rc<Self> {
        Rc::new(Link {
            socket,
            task: RefCell::new(Waker::noop().clone()),
            answered: Cell::new(false),
            timeout: Cell::new(timeout),
        })
    }

    /// How long the peer may be silent while it is its turn.
    pub fn patience(&self) -> Duration {
        self.timeout.get()
    }

    /// Sets the times of the request that begins: between two reads, and between two writes.
    pub fn set_patience(&self, read: Duration, send: Duration) {
        self.timeout.set(read);
        self.socket.set_send_timeout(send);
        self.socket.wait_while_moving(read);
    }

    /// Has the socket's events wake `waker` from now on.
    pub fn drive(&self, waker: &Waker) {
        let known = self.task.borrow().will_wake(waker);
        if !known {
            *self.task.borrow_mut() = waker.clone();
        }
    }

    /// Calls `f` with a context of the driving task.
    pub fn with_task<R>(&self, f: impl FnOnce(&mut Context<'_>) -> R) -> R {
        let waker = self.task.borrow();
        f(&mut Context::from_waker(&waker))
    }

    /// Forgets what has been received: a new request begins.
    pub fn begin(&self) {
        self.answered.set(false);
    }

    /// Whether the peer has sent anything since [`Self::begin`].
    pub fn has_answered(&self) -> bool {
        self.answered.get()
    }
}

/// The backend's side. hyper's own context is not used: it belongs to channels that never need to
/// wake anybody, while the socket must wake the task that drives the request.
pub struct UpstreamIo(pub Rc<Link>);

impl Read for UpstreamIo {
    fn poll_read(
        self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        mut buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let link = &self.0;
        let polled = link.with_task(|cx| {
            poll_fill(&link.socket, cx, &mut buf, |data| {
                // The end of the stream is no answer.
                if !data.is_empty() {
                    link.answered.set(true);
                }
                Ok(data.len())
            })
        });
        // The time runs only while somebody waits to read: a client that is slow to take the answer
        // is not the backend's fault. Writing pushes it on, so that a long upload is none either.
        match polled {
            Poll::Pending if link.socket.has_deadline() => {}
            Poll::Pending => link.socket.wait_while_moving(link.patience()),
            Poll::Ready(_) => link.socket.wait_for_ever(),
        }
        polled
    }
}

impl Write for UpstreamIo {
    fn poll_write(
        self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let link = &self.0;
        link.with_task(|cx| link.socket.poll_write(cx, &[IoSlice::new(buf)]))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let link = &self.0;
        link.with_task(|cx| link.socket.poll_write(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let link = &self.0;
        link.with_task(|cx| link.socket.poll_shutdown(cx))
    }
}
