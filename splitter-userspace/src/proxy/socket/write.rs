//! What goes out: held, gathered, spliced, and waited for when the kernel takes no more.

use std::io::{self, IoSlice};
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::SendFlags;

use super::pipe::{self, Pipe};
use super::{HOLD, HOLD_MAX, Progress, Socket, remember, wake};

impl Socket {
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
        let source = self.source.borrow().clone();
        let bufs = match source {
            None => bufs,
            Some(pipe) => match pipe::piped(bufs) {
                0 => pipe::plain(bufs),
                n => return self.poll_forward(cx, &pipe, n),
            },
        };
        let len: usize = bufs.iter().map(|buf| buf.len()).sum();
        let mut held = self.held.borrow_mut();
        let pending = held.pending().len();
        if pending + len <= HOLD || (self.blocked.get() && pending + len <= HOLD_MAX) {
            held.append(self.flusher.spare(), |bytes| {
                bufs.iter().for_each(|buf| bytes.extend_from_slice(buf));
            });
            drop(held);
            self.mark_dirty();
            return Poll::Ready(Ok(len));
        }
        if self.blocked.get() {
            remember(&self.write_waker, cx.waker());
            return Poll::Pending;
        }
        match self.send(held.pending(), bufs, false) {
            Ok(sent) => {
                let own = sent.min(pending);
                held.consume(own, self.flusher.spare());
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

    /// Sends what is held, then up to `n` bytes out of the pipe.
    fn poll_forward(
        self: &Rc<Self>,
        cx: &mut Context<'_>,
        pipe: &Rc<Pipe>,
        n: usize,
    ) -> Poll<io::Result<usize>> {
        if !self.blocked.get() && self.flush_before(true) == Progress::Blocked {
            self.block();
        }
        self.take_error()?;
        while !self.blocked.get() {
            match pipe.push(self, n) {
                Ok(0) => return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
                Ok(sent) => {
                    self.has_moved();
                    if Rc::strong_count(pipe) == 2 {
                        self.leave_pipe();
                    }
                    return Poll::Ready(Ok(sent));
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => self.block(),
                Err(e) => return Poll::Ready(Err(e.into())),
            }
        }
        remember(&self.write_waker, cx.waker());
        Poll::Pending
    }

    /// Whether slices stand for bytes in a pipe that are still to be sent.
    pub fn has_pipe(&self) -> bool {
        let source = self.source.borrow();
        source.as_ref().is_some_and(|pipe| !pipe.is_empty())
    }

    /// Has slices that stand for bytes in a pipe be taken from this one. Not while they are to be
    /// taken from another.
    pub fn set_pipe(&self, pipe: &Rc<Pipe>) {
        *self.source.borrow_mut() = Some(pipe.clone());
    }

    /// Forgets the pipe, if nothing is left in it.
    pub fn leave_pipe(&self) {
        self.source.borrow_mut().take_if(|pipe| pipe.is_empty());
    }

    /// One gathering write of what is held and what comes after it. `more`: what follows at once is
    /// to go in the same packet.
    pub(super) fn send(
        &self,
        held: &[u8],
        bufs: &[IoSlice<'_>],
        more: bool,
    ) -> Result<usize, rustix::io::Errno> {
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
                [slice] => rustix::net::send(&self.stream, slice, self.flags(more)),
                slices => rustix::net::sendmsg(
                    &self.stream,
                    slices,
                    &mut rustix::net::SendAncillaryBuffer::default(),
                    self.flags(more),
                ),
            };
            if sent != Err(rustix::io::Errno::INTR) {
                if sent.is_ok() {
                    self.has_moved();
                }
                return sent;
            }
        }
    }

    fn has_moved(&self) {
        self.sent.set(true);
        self.progress();
        self.send_deadline.set(0);
    }

    /// The last bytes wait in the kernel for the end of the stream, which then goes with them.
    fn flags(&self, more: bool) -> SendFlags {
        match more || self.closing.get() {
            true => SendFlags::NOSIGNAL | SendFlags::MORE,
            false => SendFlags::NOSIGNAL,
        }
    }

    pub(super) fn mark_dirty(self: &Rc<Self>) {
        if !self.dirty.replace(true) && !self.blocked.get() {
            self.flusher.push(self.clone());
        }
    }

    pub(super) fn block(self: &Rc<Self>) {
        if !self.set_blocked() {
            self.flusher.push_blocked(self.clone());
        }
    }

    /// Notes that the kernel takes no more, and since when; returns whether that was known.
    pub(super) fn set_blocked(&self) -> bool {
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
                if self.is_full() {
                    // The reactor remembers what was before the kernel took no more.
                    guard.clear_ready();
                    return self.poll_blocked(cx);
                }
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

    /// Whether the kernel takes no more, where nothing is held that would tell when it is sent.
    fn is_full(&self) -> bool {
        if self.session.get().is_some() || !self.held.borrow().pending().is_empty() {
            return false;
        }
        let mut polled = [PollFd::new(&self.stream, PollFlags::OUT)];
        rustix::event::poll(&mut polled, Some(&Timespec::default())) == Ok(0)
    }

    pub(super) fn flush_held(&self) -> Progress {
        self.flush_before(false)
    }

    /// Sends what is held; `more` as for [`Self::send`].
    fn flush_before(&self, more: bool) -> Progress {
        self.dirty.set(false);
        if let Some(session) = self.session.get() {
            return self.flush_session(session);
        }
        loop {
            let mut held = self.held.borrow_mut();
            if held.pending().is_empty() {
                return Progress::Done;
            }
            match self.send(held.pending(), &[], more) {
                Ok(sent) => held.consume(sent, self.flusher.spare()),
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
    pub(super) fn fail(&self, error: io::Error) {
        self.drop_held();
        *self.error.borrow_mut() = Some(error);
        wake(&self.write_waker);
        wake(&self.read_waker);
    }

    pub(super) fn take_error(&self) -> io::Result<()> {
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
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::cell::Cell;
    use std::future::poll_fn;
    use std::net::{TcpListener, TcpStream};
    use std::time::Duration;

    use tokio::task::LocalSet;
    use tokio::time::timeout;

    use super::*;
    use crate::proxy::clock::Clock;
    use crate::proxy::flush::Flusher;

    const PATIENCE: Duration = Duration::from_secs(60);

    /// Writes `bytes` to a peer that reads nothing; gives how often that was tried within a moment.
    async fn tries(bytes: &[u8]) -> u32 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        stream.set_nonblocking(true).unwrap();
        let _peer = listener.accept().unwrap();
        let flusher = Rc::new(Flusher::default());
        let socket = Socket::new(stream, PATIENCE, &Clock::new(), &flusher);
        tokio::task::spawn_local(flusher.run());
        // As in use: what may be written and read is known to the reactor.
        let _ = poll_fn(|cx| Poll::Ready(socket.poll_gone(cx))).await;
        let tries = Cell::new(0);
        let write = async {
            let mut sent = 0;
            while let Some(rest) = bytes.get(sent..).filter(|rest| !rest.is_empty()) {
                sent += poll_fn(|cx| {
                    tries.set(tries.get() + 1);
                    socket.poll_write(cx, &[IoSlice::new(rest)])
                })
                .await
                .unwrap();
            }
        };
        // Not a limit that it must keep: the longer it takes, the more tries there could be.
        let written = timeout(Duration::from_millis(300), write).await;
        assert!(written.is_err(), "it all went into the kernel's buffers");
        tries.get()
    }

    #[tokio::test]
    async fn a_peer_that_reads_nothing_costs_no_turns() {
        let bytes = vec![0; 64 * 1024 * 1024];
        let tries = LocalSet::new().run_until(tries(&bytes)).await;
        assert!(tries < 1000, "{tries}");
    }
}
