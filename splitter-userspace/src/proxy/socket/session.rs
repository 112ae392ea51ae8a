//! A socket's TLS: what the socket's users read and write is plain, what it holds and sends is not.
//!
//! rustls keeps what is to be sent, and the flusher sends it from there: nothing is copied in
//! between. What is received goes through a buffer of the thread, so that an idle connection keeps
//! none, and whole records are read with one system call.

use std::cell::RefCell;
use std::io::{self, BufRead as _, IoSlice, Write as _};
use std::mem::MaybeUninit;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use rustls::{Connection, ProtocolVersion};

use super::{HOLD, HOLD_MAX, Progress, Socket, remember};

/// How much one read from the wire takes, in bytes: a whole record and then some.
const READ: usize = 32 * 1024;

/// How much one write encrypts at most, in bytes.
const WRITE: usize = 64 * 1024;

/// The most slices that one write takes.
const SLICES: usize = 16;

thread_local! {
    /// What was received and is not decrypted yet; used within one call only.
    static RECEIVED: RefCell<Box<[MaybeUninit<u8>]>> =
        RefCell::new(Box::new_uninit_slice(READ));
}

/// See the module's text.
pub struct Session(RefCell<Inner>);

struct Inner {
    tls: Connection,
    /// Received, but rustls has no room for it until somebody reads.
    stash: Vec<u8>,
    /// Whether the wire has ended.
    at_end: bool,
    /// Plain bytes taken since everything was sent last.
    unsent: usize,
    /// Whether the wire is broken for good.
    broken: bool,
}

impl Session {
    /// A session of which `received` has come from the wire already.
    pub fn new(mut tls: Connection, received: &[u8]) -> Self {
        // What a connection holds is bounded here, as for cleartext.
        tls.set_buffer_limit(None);
        Session(RefCell::new(Inner {
            tls,
            stash: received.to_vec(),
            at_end: false,
            unsent: 0,
            broken: false,
        }))
    }
}

impl Session {
    /// Takes `plain` to be sent, however much that is.
    pub fn hold(&self, plain: &[u8]) {
        let mut inner = self.0.borrow_mut();
        inner.unsent += plain.len();
        // Cannot fail: rustls has no limit here, and only holds it.
        let _ = inner.tls.writer().write_all(plain);
    }

    /// How many plain bytes wait to be sent.
    pub fn held(&self) -> usize {
        self.0.borrow().unsent
    }

    /// Whether the next read needs nothing from the wire.
    pub fn has_unread(&self) -> bool {
        let inner = self.0.borrow();
        !inner.stash.is_empty() || !inner.tls.wants_read()
    }

    /// Sends nothing more.
    pub fn give_up(&self) {
        self.0.borrow_mut().broken = true;
    }
}

impl Inner {
    /// Hands what was received to rustls, until there is something to read or nothing is left.
    fn feed(&mut self, mut received: &[u8]) -> Result<(), rustls::Error> {
        while !received.is_empty() {
            match self.tls.read_tls(&mut received) {
                Ok(0) => return Ok(()),
                Ok(_) => self.tls.process_new_packets()?,
                // Full: the rest waits until it is read.
                Err(_) => {
                    self.stash.extend_from_slice(received);
                    return Ok(());
                }
            };
        }
        Ok(())
    }

    /// The same with what waited.
    fn feed_stash(&mut self) -> Result<(), rustls::Error> {
        if self.stash.is_empty() {
            return Ok(());
        }
        let stash = std::mem::take(&mut self.stash);
        self.feed(&stash)
    }

    /// Fills `buf` with what is decrypted; none when more must be received. 0 is the end.
    fn read(&mut self, buf: &mut [MaybeUninit<u8>]) -> io::Result<Option<usize>> {
        let mut filled = 0;
        while let Some(rest) = buf.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            let mut reader = self.tls.reader();
            let chunk = match reader.fill_buf() {
                Ok(chunk) => chunk,
                Err(_) if filled > 0 => break,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(e) => return Err(e),
            };
            if chunk.is_empty() {
                break;
            }
            let n = chunk.len().min(rest.len());
            let (from, to) = (chunk.get(..n), rest.get_mut(..n));
            if let (Some(from), Some(to)) = (from, to) {
                to.write_copy_of_slice(from);
            }
            reader.consume(n);
            filled += n;
        }
        Ok(Some(filled))
    }

    /// Whether all that is to be sent are tickets, and the client has asked something already: they
    /// go with the answer, which saves a system call and a packet. Anything else, and tickets for a
    /// client that says nothing, must not wait.
    fn can_wait(&mut self) -> bool {
        let is_server = matches!(self.tls, Connection::Server(_));
        // In TLS 1.2 the end of the handshake goes with the ticket.
        let has_ended = !self.tls.is_handshaking()
            && self.tls.protocol_version() == Some(ProtocolVersion::TLSv1_3);
        is_server && has_ended && self.tls.reader().fill_buf().is_ok_and(|it| !it.is_empty())
    }

    /// Notes that the wire has ended.
    fn end(&mut self) -> Result<(), rustls::Error> {
        self.at_end = true;
        // Cannot fail: there is nothing to read.
        let _ = self.tls.read_tls(&mut io::empty());
        self.tls.process_new_packets().map(drop)
    }
}

impl Socket {
    /// Puts TLS between the socket's users and the wire. Only once.
    pub fn secure(&self, session: Session) {
        // A second one would be a fault of ours; the first one stays.
        let _ = self.session.set(Box::new(session));
    }

    /// Asks the connection's TLS something; none for cleartext.
    pub fn tls<R>(&self, ask: impl FnOnce(&Connection) -> R) -> Option<R> {
        let session = self.session.get()?;
        Some(ask(&session.0.borrow().tls))
    }

    /// Makes the handshake.
    pub fn poll_handshake(
        self: &Rc<Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), HandshakeError>> {
        let Some(session) = self.session.get() else {
            return Poll::Ready(Ok(()));
        };
        loop {
            self.take_error()?;
            let mut inner = session.0.borrow_mut();
            let fed = inner.feed_stash();
            if fed.is_err() || !inner.can_wait() {
                self.want_flush(&inner);
            }
            fed?;
            if !inner.tls.is_handshaking() {
                return Poll::Ready(Ok(()));
            }
            if inner.at_end {
                return Poll::Ready(Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()));
            }
            if let Err(error) = ready!(self.poll_fill(&mut inner, cx)) {
                // The alert that says why it cannot go on.
                self.want_flush(&inner);
                return Poll::Ready(Err(error));
            }
        }
    }

    /// Receives once and hands it to rustls; what that has to say is still to be flushed.
    fn poll_fill(
        self: &Rc<Self>,
        inner: &mut Inner,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), HandshakeError>> {
        RECEIVED.with_borrow_mut(|buf| {
            let received = ready!(self.poll_receive_init(cx, buf))?;
            let fed = match received {
                [] => inner.end(),
                received => inner.feed(received),
            };
            Poll::Ready(fed.map_err(HandshakeError::from))
        })
    }

    /// Receives once, past any TLS.
    pub fn poll_receive_init<'b>(
        &self,
        cx: &mut Context<'_>,
        buf: &'b mut [MaybeUninit<u8>],
    ) -> Poll<io::Result<&'b [u8]>> {
        let n = ready!(self.poll_receive(cx, buf))?;
        let filled = buf.get(..n).unwrap_or_default();
        #[allow(unsafe_code, reason = "the length is the one that the read returned")]
        // SAFETY: `filled` is the prefix that `poll_receive` has just initialised.
        let filled = unsafe { filled.assume_init_ref() };
        Poll::Ready(Ok(filled))
    }

    fn want_flush(self: &Rc<Self>, inner: &Inner) {
        if inner.tls.wants_write() && !inner.broken {
            self.mark_dirty();
        }
    }

    pub(super) fn poll_decrypt(
        self: &Rc<Self>,
        session: &Session,
        cx: &mut Context<'_>,
        buf: &mut [MaybeUninit<u8>],
    ) -> Poll<io::Result<usize>> {
        if buf.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let mut inner = session.0.borrow_mut();
        loop {
            if let Some(n) = inner.read(buf)? {
                return Poll::Ready(Ok(n));
            }
            if !inner.stash.is_empty() {
                let fed = inner.feed_stash();
                self.want_flush(&inner);
                fed.map_err(broken)?;
                continue;
            }
            let filled = ready!(self.poll_fill(&mut inner, cx));
            // Also the alert that says why it cannot go on.
            self.want_flush(&inner);
            filled?;
        }
    }

    pub(super) fn poll_encrypt(
        self: &Rc<Self>,
        session: &Session,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut inner = session.0.borrow_mut();
        if self.blocked.get() && inner.unsent >= HOLD_MAX {
            remember(&self.write_waker, cx.waker());
            return Poll::Pending;
        }
        let taken = write(&mut inner.tls, bufs)?;
        inner.unsent += taken;
        let hold = inner.unsent <= HOLD || self.blocked.get();
        drop(inner);
        if hold {
            self.mark_dirty();
        } else if self.flush_held() == Progress::Blocked {
            self.block();
        }
        Poll::Ready(Ok(taken))
    }

    /// Sends what rustls holds.
    pub(super) fn flush_session(&self, session: &Session) -> Progress {
        let mut inner = session.0.borrow_mut();
        while inner.tls.wants_write() && !inner.broken {
            match inner.tls.write_tls(&mut Wire(self)) {
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Progress::Blocked,
                Err(e) => {
                    inner.broken = true;
                    drop(inner);
                    self.fail(e);
                    return Progress::Done;
                }
            }
        }
        inner.unsent = 0;
        Progress::Done
    }

    /// Tells the peer that nothing more will be sent, so that a cut is not taken for an end.
    pub fn announce_end(self: &Rc<Self>) {
        if let Some(session) = self.session.get() {
            let mut inner = session.0.borrow_mut();
            inner.tls.send_close_notify();
            self.want_flush(&inner);
        }
    }
}

/// Encrypts as much of `bufs` as one write takes.
fn write(tls: &mut Connection, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
    let mut slices = [IoSlice::new(&[]); SLICES];
    let (mut used, mut room) = (0, WRITE);
    let parts = bufs.iter().filter(|buf| !buf.is_empty());
    for (slot, part) in slices.iter_mut().zip(parts) {
        let part = part.get(..room).unwrap_or(part);
        *slot = IoSlice::new(part);
        used += 1;
        room -= part.len();
        if room == 0 {
            break;
        }
    }
    let mut writer = tls.writer();
    match slices.get(..used).unwrap_or_default() {
        [slice] => writer.write(slice),
        slices => writer.write_vectored(slices),
    }
}

/// The socket as rustls writes to it.
struct Wire<'a>(&'a Socket);

impl io::Write for Wire<'_> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(buf)])
    }

    fn write_vectored(&mut self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        Ok(self.0.send(&[], bufs, false)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Why a handshake, or a session after it, cannot go on.
#[derive(Debug)]
pub enum HandshakeError {
    /// The wire.
    Io(io::Error),
    /// What came over it, or what we have to say to it.
    Tls(rustls::Error),
}

impl From<io::Error> for HandshakeError {
    fn from(error: io::Error) -> Self {
        HandshakeError::Io(error)
    }
}

impl From<rustls::Error> for HandshakeError {
    fn from(error: rustls::Error) -> Self {
        HandshakeError::Tls(error)
    }
}

impl From<HandshakeError> for io::Error {
    fn from(error: HandshakeError) -> Self {
        match error {
            HandshakeError::Io(error) => error,
            HandshakeError::Tls(error) => broken(error),
        }
    }
}

fn broken(error: rustls::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
