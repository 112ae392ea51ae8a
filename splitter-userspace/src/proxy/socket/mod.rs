//! One TCP connection of a worker: reads without needless system calls, writes held back.
//!
//! - A read that fills less than was offered has emptied the kernel's buffer, so the next one waits
//!   for an event instead of asking again. tokio keeps a seen end-of-stream as readiness, so that
//!   the FIN that came with the data is not lost.
//! - The socket is registered with epoll only when something must wait. While a request is in hand
//!   only the client's leaving would be noticed, so that waits for the next tick of the clock: most
//!   short connections are over by then and never cost a registration.
//! - Written bytes are held and sent by the [`Flusher`](super::flush::Flusher) at the end of the
//!   turn.
//! - One deadline, pushed on by every progress, ends whatever waits with `TimedOut`.

mod connect;
mod deadline;
mod held;
mod pipe;
mod session;
mod write;

use std::cell::{Cell, OnceCell, RefCell};
use std::io;
use std::mem::MaybeUninit;
use std::net::TcpStream;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use rustix::net::RecvFlags;
use tokio::io::unix::AsyncFd;

use super::clock::{Clock, Tick};
use super::flush::Flusher;
use held::Held;
pub use held::{HOLD, HOLD_MAX, Spare};
pub use pipe::{PIPE, Pipe, Pipes};
pub use session::{HandshakeError, Session};

/// How a flush ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Nothing is left, or the connection is broken.
    Done,
    /// The kernel takes no more for now.
    Blocked,
}

/// A number for the reactor; the stream itself stays in the [`Socket`].
struct Registered(RawFd);

impl AsRawFd for Registered {
    fn as_raw_fd(&self) -> RawFd {
        self.0
    }
}

/// See the module's text. Belongs to one worker thread.
pub struct Socket {
    // Dropped before the stream, so that the reactor forgets the number while it is still ours.
    registration: OnceCell<AsyncFd<Registered>>,
    stream: TcpStream,
    clock: Rc<Clock>,
    flusher: Rc<Flusher>,
    /// False when a short read showed that the kernel has nothing more.
    readable: Cell<bool>,
    /// Whether a read that must wait can wait for the next tick before it is registered.
    lazy: Cell<bool>,
    /// Whether what is held is the last that is sent.
    closing: Cell<bool>,
    held: RefCell<Held>,
    /// Where bytes come from that are sent without having been here.
    source: RefCell<Option<Rc<Pipe>>>,
    dirty: Cell<bool>,
    blocked: Cell<bool>,
    error: RefCell<Option<io::Error>>,
    read_waker: RefCell<Option<Waker>>,
    write_waker: RefCell<Option<Waker>>,
    /// When the wait is over; zero for never.
    deadline: Cell<Tick>,
    /// How far each progress pushes the deadline on; zero for not at all.
    patience: Cell<Duration>,
    /// The same for a peer that does not read what is sent to it.
    send_deadline: Cell<Tick>,
    send_timeout: Cell<Duration>,
    expired: Cell<bool>,
    /// Whether anything has been sent since [`Socket::begin`].
    sent: Cell<bool>,
    /// What is between the bytes here and those on the wire; nothing for a cleartext connection.
    session: OnceCell<Box<Session>>,
}

impl Socket {
    /// Takes over a non-blocking stream. A peer that takes nothing for `send_timeout` is given up.
    pub fn new(
        stream: TcpStream,
        send_timeout: Duration,
        clock: &Rc<Clock>,
        flusher: &Rc<Flusher>,
    ) -> Rc<Self> {
        let socket = Rc::new(Socket {
            registration: OnceCell::new(),
            stream,
            clock: clock.clone(),
            flusher: flusher.clone(),
            readable: Cell::new(true),
            lazy: Cell::new(false),
            closing: Cell::new(false),
            held: RefCell::default(),
            source: RefCell::default(),
            dirty: Cell::new(false),
            blocked: Cell::new(false),
            error: RefCell::default(),
            read_waker: RefCell::default(),
            write_waker: RefCell::default(),
            deadline: Cell::new(0),
            patience: Cell::new(Duration::ZERO),
            send_deadline: Cell::new(0),
            send_timeout: Cell::new(send_timeout),
            expired: Cell::new(false),
            sent: Cell::new(false),
            session: OnceCell::new(),
        });
        clock.watch(&socket);
        socket
    }

    fn registered(&self) -> io::Result<&AsyncFd<Registered>> {
        if let Some(fd) = self.registration.get() {
            return Ok(fd);
        }
        let fd = register(self.stream.as_raw_fd())?;
        Ok(self.registration.get_or_init(|| fd))
    }

    /// Reads once. `Ready(Ok(0))` is the end of the stream; over TLS, an end that the peer did not
    /// announce is `UnexpectedEof`.
    pub fn poll_read(
        self: &Rc<Self>,
        cx: &mut Context<'_>,
        buf: &mut [MaybeUninit<u8>],
    ) -> Poll<io::Result<usize>> {
        match self.session.get() {
            None => self.poll_receive(cx, buf),
            Some(session) => self.poll_decrypt(session, cx, buf),
        }
    }

    /// Reads once from the wire.
    fn poll_receive(
        &self,
        cx: &mut Context<'_>,
        buf: &mut [MaybeUninit<u8>],
    ) -> Poll<io::Result<usize>> {
        self.poll_take(cx, Some(buf.len()), || {
            let received = rustix::net::recv(&self.stream, &mut *buf, RecvFlags::empty());
            received.map(|(init, _)| init.0.len())
        })
    }

    /// Moves up to `most` bytes from the wire into a pipe. `Ready(Ok(0))` is the end of the stream.
    /// Not where there is TLS, and not into a pipe that is not empty.
    pub fn poll_pull(
        &self,
        cx: &mut Context<'_>,
        pipe: &Pipe,
        most: usize,
    ) -> Poll<io::Result<usize>> {
        // A pipe that is full of small pieces takes less than there is.
        self.poll_take(cx, None, || pipe.pull(self, most))
    }

    /// Takes once from the wire; less than `offered` shows that the kernel has nothing more.
    fn poll_take(
        &self,
        cx: &mut Context<'_>,
        offered: Option<usize>,
        mut take: impl FnMut() -> Result<usize, rustix::io::Errno>,
    ) -> Poll<io::Result<usize>> {
        loop {
            if self.expired.get() {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            let mut guard = None;
            if !self.readable.get() && self.lazy.get() && self.registration.get().is_none() {
                remember(&self.read_waker, cx.waker());
                return Poll::Pending;
            }
            if !self.readable.get() || self.registration.get().is_some() {
                match self.registered()?.poll_read_ready(cx) {
                    Poll::Ready(ready) => guard = Some(ready?),
                    Poll::Pending => {
                        remember(&self.read_waker, cx.waker());
                        return Poll::Pending;
                    }
                }
            }
            match take() {
                Ok(n) => {
                    if 0 < n && offered.is_some_and(|offered| n < offered) {
                        self.readable.set(false);
                        if let Some(guard) = &mut guard {
                            guard.clear_ready();
                        }
                    } else {
                        self.readable.set(true);
                        if let Some(guard) = &mut guard {
                            guard.retain_ready();
                        }
                    }
                    self.progress();
                    return Poll::Ready(Ok(n));
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => {
                    self.readable.set(false);
                    if let Some(guard) = &mut guard {
                        guard.clear_ready();
                    }
                }
                Err(e) => return Poll::Ready(Err(e.into())),
            }
        }
    }

    /// Whether the peer has ended its side; else `cx`'s task is woken when it does.
    pub fn poll_gone(&self, cx: &mut Context<'_>) -> bool {
        if self.lazy.get() && self.is_unregistered() {
            remember(&self.read_waker, cx.waker());
            return false;
        }
        let Ok(fd) = self.registered() else {
            return true;
        };
        match fd.poll_read_ready(cx) {
            Poll::Ready(Ok(mut guard)) => {
                guard.retain_ready();
                guard.ready().is_read_closed()
            }
            Poll::Ready(Err(_)) => true,
            Poll::Pending => {
                remember(&self.read_waker, cx.waker());
                false
            }
        }
    }

    /// Has the kernel notice when the peer is gone without a word.
    pub fn probe_peer(&self) {
        if let Err(e) = socket2::SockRef::from(&self.stream.as_fd()).set_keepalive(true) {
            tracing::debug!(error = %e, "keep-alive probes are not available");
        }
    }

    /// Makes the close a reset, so that the peer cannot take a cut answer for a whole one.
    pub fn reset_on_close(&self) {
        let linger = socket2::SockRef::from(&self.stream.as_fd()).set_linger(Some(Duration::ZERO));
        if let Err(e) = linger {
            tracing::debug!(error = %e, "a connection could not be set to reset");
        }
    }

    /// Has the end of the stream go with the last bytes. The socket must be dropped in this turn.
    pub fn close_after_flush(self: &Rc<Self>) {
        self.announce_end();
        self.closing.set(true);
    }

    /// Whether a read that must wait may be registered late; one that waits already is told.
    pub fn set_lazy(&self, lazy: bool) {
        self.lazy.set(lazy);
        if !lazy && self.is_unregistered() {
            wake(&self.read_waker);
        }
    }

    /// Whether the reactor does not know it yet.
    pub fn is_unregistered(&self) -> bool {
        self.registration.get().is_none()
    }

    /// The tick's call: a wait that has lasted this long is worth its registration.
    pub fn end_laziness(&self) {
        if self.lazy.get() && self.is_unregistered() {
            self.set_lazy(false);
        }
    }

    /// Whether there is TLS between its users and the wire.
    pub fn is_secure(&self) -> bool {
        self.session.get().is_some()
    }

    /// Whether nothing has come since the last read, as far as the reactor knows.
    pub fn is_quiet(&self) -> bool {
        let Some(fd) = self.registration.get() else {
            return false;
        };
        let mut nobody = Context::from_waker(Waker::noop());
        let unread = self.session.get().is_some_and(|it| it.has_unread());
        !unread && !self.readable.get() && fd.poll_read_ready(&mut nobody).is_pending()
    }

    /// Whether the last read leaves it open that the kernel has more.
    pub fn may_have_more(&self) -> bool {
        self.readable.get()
    }
}

#[allow(unsafe_code, reason = "the reactor is given a number, not the stream")]
fn register(fd: RawFd) -> io::Result<AsyncFd<Registered>> {
    // SAFETY: the number stays open and the same for as long as it is registered: the socket that
    // owns the stream drops the registration first.
    unsafe { AsyncFd::register(Registered(fd)) }.map_err(io::Error::from)
}

fn remember(slot: &RefCell<Option<Waker>>, waker: &Waker) {
    let mut slot = slot.borrow_mut();
    if !matches!(&*slot, Some(known) if known.will_wake(waker)) {
        *slot = Some(waker.clone());
    }
}

fn wake(slot: &RefCell<Option<Waker>>) {
    if let Some(waker) = slot.borrow_mut().take() {
        waker.wake();
    }
}
