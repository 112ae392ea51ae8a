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
mod session;

use std::cell::{Cell, OnceCell, RefCell};
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::net::TcpStream;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use rustix::net::{RecvFlags, SendFlags};
use tokio::io::unix::AsyncFd;

use super::clock::{Clock, Tick};
use super::flush::Flusher;
use held::Held;
pub use held::{HOLD, HOLD_MAX};
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
        let offered = buf.len();
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
            match rustix::net::recv(&self.stream, &mut *buf, RecvFlags::empty()) {
                Ok((init, _)) => {
                    let n = init.0.len();
                    if 0 < n && n < offered {
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

    /// Takes `bufs` to send: holds what is small, sends what is large. Never takes part of a slice
    /// and fails; `Ready(Ok(n))` means that `n` bytes are taken.
    pub fn poll_write(
        self: &Rc<Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.take_error()?;
        if let Some(session) = self.session.get() {
            return self.poll_encrypt(session, cx, bufs);
        }
        let len: usize = bufs.iter().map(|buf| buf.len()).sum();
        let mut held = self.held.borrow_mut();
        let pending = held.pending().len();
        if pending + len <= HOLD || (self.blocked.get() && pending + len <= HOLD_MAX) {
            for buf in bufs {
                held.bytes.extend_from_slice(buf);
            }
            drop(held);
            self.mark_dirty();
            return Poll::Ready(Ok(len));
        }
        if self.blocked.get() {
            remember(&self.write_waker, cx.waker());
            return Poll::Pending;
        }
        match self.send(held.pending(), bufs) {
            Ok(sent) => {
                let own = sent.min(pending);
                held.consume(own);
                drop(held);
                if sent < pending + len {
                    self.block();
                }
                if sent > own {
                    return Poll::Ready(Ok(sent - own));
                }
            }
            Err(rustix::io::Errno::AGAIN) => {
                drop(held);
                self.block();
            }
            Err(e) => return Poll::Ready(Err(e.into())),
        }
        remember(&self.write_waker, cx.waker());
        Poll::Pending
    }

    /// One gathering write of what is held and what comes after it.
    fn send(&self, held: &[u8], bufs: &[IoSlice<'_>]) -> Result<usize, rustix::io::Errno> {
        const SLICES: usize = 16;
        let mut slices = [IoSlice::new(&[]); SLICES];
        let mut used = 0;
        let parts = std::iter::once(held).chain(bufs.iter().map(|buf| &**buf));
        for (slot, part) in slices.iter_mut().zip(parts.filter(|part| !part.is_empty())) {
            *slot = IoSlice::new(part);
            used += 1;
        }
        let slices = slices.get(..used).unwrap_or_default();
        loop {
            let sent = match slices {
                // Most sends have one slice, for which this call is cheaper.
                [slice] => rustix::net::send(&self.stream, slice, self.flags()),
                slices => rustix::net::sendmsg(
                    &self.stream,
                    slices,
                    &mut rustix::net::SendAncillaryBuffer::default(),
                    self.flags(),
                ),
            };
            if sent != Err(rustix::io::Errno::INTR) {
                if sent.is_ok() {
                    self.sent.set(true);
                    self.progress();
                    self.send_deadline.set(0);
                }
                return sent;
            }
        }
    }

    /// The last bytes wait in the kernel for the end of the stream, which then goes with them.
    fn flags(&self) -> SendFlags {
        match self.closing.get() {
            true => SendFlags::NOSIGNAL | SendFlags::MORE,
            false => SendFlags::NOSIGNAL,
        }
    }

    fn mark_dirty(self: &Rc<Self>) {
        if !self.dirty.replace(true) && !self.blocked.get() {
            self.flusher.push(self.clone());
        }
    }

    fn block(self: &Rc<Self>) {
        if !self.set_blocked() {
            self.flusher.push_blocked(self.clone());
        }
    }

    /// Notes that the kernel takes no more, and since when; returns whether that was known.
    fn set_blocked(&self) -> bool {
        if self.send_deadline.get() == 0 {
            self.send_deadline
                .set(self.clock.after(self.send_timeout.get()));
        }
        self.blocked.replace(true)
    }

    /// The flusher's call at the end of the turn.
    pub fn flush_dirty(&self) -> Progress {
        if self.blocked.get() {
            // Already in the other list.
            return Progress::Done;
        }
        let progress = self.flush_held();
        if progress == Progress::Blocked {
            self.set_blocked();
        }
        progress
    }

    /// The flusher's call while the kernel took no more.
    pub fn poll_blocked(&self, cx: &mut Context<'_>) -> Progress {
        let writable = self.registered().map(|fd| fd.poll_write_ready(cx));
        match writable {
            Ok(Poll::Pending) if !self.expired.get() => return Progress::Blocked,
            Ok(Poll::Pending) => self.fail(io::ErrorKind::TimedOut.into()),
            Ok(Poll::Ready(Ok(mut guard))) => {
                self.blocked.set(false);
                if self.flush_held() == Progress::Blocked {
                    self.set_blocked();
                    guard.clear_ready();
                    // Asked again, so that the next event wakes the flusher.
                    return self.poll_blocked(cx);
                }
                guard.retain_ready();
            }
            Ok(Poll::Ready(Err(e))) | Err(e) => self.fail(e),
        }
        self.blocked.set(false);
        wake(&self.write_waker);
        Progress::Done
    }

    fn flush_held(&self) -> Progress {
        self.dirty.set(false);
        if let Some(session) = self.session.get() {
            return self.flush_session(session);
        }
        loop {
            let mut held = self.held.borrow_mut();
            if held.pending().is_empty() {
                return Progress::Done;
            }
            match self.send(held.pending(), &[]) {
                Ok(sent) => held.consume(sent),
                Err(rustix::io::Errno::AGAIN) => return Progress::Blocked,
                Err(e) => {
                    drop(held);
                    self.fail(e.into());
                    return Progress::Done;
                }
            }
        }
    }

    /// Breaks the connection: the next call says why.
    fn fail(&self, error: io::Error) {
        self.drop_held();
        *self.error.borrow_mut() = Some(error);
        wake(&self.write_waker);
        wake(&self.read_waker);
    }

    fn take_error(&self) -> io::Result<()> {
        match self.error.borrow_mut().take() {
            Some(e) => Err(e),
            None => Ok(()),
        }
    }

    /// Sends all that is held, waiting if need be.
    pub fn poll_drained(self: &Rc<Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.take_error()?;
        if !self.blocked.get() && self.flush_held() == Progress::Blocked {
            self.block();
        }
        self.take_error()?;
        if self.blocked.get() {
            remember(&self.write_waker, cx.waker());
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }

    /// Sends all that is held, then the end of the stream.
    pub fn poll_shutdown(self: &Rc<Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.announce_end();
        ready!(self.poll_drained(cx))?;
        Poll::Ready(match self.stream.shutdown(std::net::Shutdown::Write) {
            Err(e) if e.kind() == io::ErrorKind::NotConnected => Ok(()),
            result => result,
        })
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
