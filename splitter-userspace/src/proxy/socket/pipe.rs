//! Pipes of the kernel's, through which bytes go from one connection to another without being
//! copied to this process and back.

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::OnceLock;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};

use super::{Socket, remember, wake};
use crate::telemetry::Counter;

/// How much a pipe is asked to hold, in bytes. The kernel may give less (64 KiB), as for users with
/// many pipes.
pub const PIPE: usize = 1024 * 1024;

/// Pipes that a worker keeps for later use.
const KEPT: usize = 16;

/// Pipes that a worker has in use at most. A client that takes nothing keeps what is in its pipe in
/// the kernel, where no limit of sockets counts it.
const MOST: usize = 128;

/// Memory that is never read or written: a part of it stands for as many bytes that are in a pipe.
/// Whoever hands bytes on by slices hands it on like any other.
fn stand_in() -> &'static [u8] {
    static STAND_IN: OnceLock<&'static [u8]> = OnceLock::new();
    STAND_IN.get_or_init(|| Vec::leak(vec![0; PIPE]))
}

/// Whether a slice stands for bytes in a pipe.
fn stands_in(slice: &[u8]) -> bool {
    stand_in().as_ptr_range().contains(&slice.as_ptr())
}

/// How many bytes in a pipe the first of these slices stand for.
pub(super) fn piped(bufs: &[io::IoSlice<'_>]) -> usize {
    let piped = bufs.iter().take_while(|buf| stands_in(buf));
    piped.map(|buf| buf.len()).sum()
}

/// The slices before the first that stands for bytes in a pipe.
pub(super) fn plain<'a, 'b>(bufs: &'a [io::IoSlice<'b>]) -> &'a [io::IoSlice<'b>] {
    let end = bufs.iter().position(|buf| stands_in(buf));
    bufs.get(..end.unwrap_or(bufs.len())).unwrap_or_default()
}

/// See the module's text. It is filled by one side when the other has emptied it.
pub struct Pipe {
    ends: Option<Ends>,
    filled: Cell<usize>,
    /// Who waits for it to be empty.
    filler: RefCell<Option<Waker>>,
    home: Rc<Pipes>,
}

struct Ends {
    read: OwnedFd,
    write: OwnedFd,
}

impl Ends {
    fn new() -> Result<Self, Errno> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        // A smaller one does as well, in more steps.
        let _ = fcntl_setpipe_size(&write, PIPE);
        Ok(Ends { read, write })
    }
}

impl Pipe {
    /// Waits until everything has gone that was put in.
    pub fn poll_empty(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.filled.get() == 0 {
            return Poll::Ready(());
        }
        remember(&self.filler, cx.waker());
        Poll::Pending
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.filled.get() == 0
    }

    /// Takes up to `most` bytes that `socket` has received.
    pub(super) fn pull(&self, socket: &Socket, most: usize) -> Result<usize, Errno> {
        let Some(ends) = &self.ends else {
            return Err(Errno::BADF);
        };
        let n = splice(&socket.stream, None, &ends.write, None, most, FLAGS)?;
        self.filled.set(self.filled.get() + n);
        Ok(n)
    }

    /// Gives up to `most` bytes to `socket` to send.
    pub(super) fn push(&self, socket: &Socket, most: usize) -> Result<usize, Errno> {
        let Some(ends) = &self.ends else {
            return Err(Errno::BADF);
        };
        let most = most.min(self.filled.get());
        let n = splice(&ends.read, None, &socket.stream, None, most, FLAGS)?;
        let left = self.filled.get() - n.min(most);
        self.filled.set(left);
        if left == 0 {
            wake(&self.filler);
        }
        Ok(n)
    }

    /// What stands for `n` bytes that were just put in.
    pub fn stand_in(n: usize) -> Bytes {
        Bytes::from_static(stand_in().get(..n).unwrap_or_default())
    }
}

const FLAGS: SpliceFlags = SpliceFlags::NONBLOCK.union(SpliceFlags::MOVE);

impl Drop for Pipe {
    fn drop(&mut self) {
        self.home
            .in_use
            .set(self.home.in_use.get().saturating_sub(1));
        // With bytes in it, it is of no use to anybody else.
        if self.filled.get() == 0
            && let Some(ends) = self.ends.take()
        {
            self.home.keep(ends);
        }
    }
}

/// The pipes of one worker that nobody uses.
pub struct Pipes {
    idle: RefCell<Vec<Ends>>,
    in_use: Cell<usize>,
    /// Of those that were taken, of those that could not be made, and of those that were too many.
    counters: [Counter; 3],
}

impl Pipes {
    /// None yet.
    pub fn new(counters: [Counter; 3]) -> Self {
        Pipes {
            idle: RefCell::default(),
            in_use: Cell::new(0),
            counters,
        }
    }

    /// An empty pipe; none when there are no descriptors left, or [`MOST`] are in use.
    pub fn take(self: &Rc<Self>) -> Option<Rc<Pipe>> {
        let [taken, failed, busy] = &self.counters;
        if self.in_use.get() >= MOST {
            busy.inc();
            return None;
        }
        let kept = self.idle.borrow_mut().pop();
        let made = kept.map_or_else(Ends::new, Ok);
        match made {
            Ok(ends) => {
                taken.inc();
                self.in_use.set(self.in_use.get() + 1);
                Some(Rc::new(Pipe {
                    ends: Some(ends),
                    filled: Cell::new(0),
                    filler: RefCell::default(),
                    home: self.clone(),
                }))
            }
            Err(error) => {
                failed.inc();
                tracing::debug!(%error, "no pipe, a long answer is copied");
                None
            }
        }
    }

    fn keep(&self, ends: Ends) {
        let mut idle = self.idle.borrow_mut();
        if idle.len() < KEPT {
            idle.push(ends);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::IoSlice;

    use super::*;
    use crate::telemetry::{ControllerLabels, PIPES, Registry};

    #[test]
    fn slices_are_told_apart() {
        let own = *b"head";
        let (a, b) = (Pipe::stand_in(7), Pipe::stand_in(5));
        let mut rest = a.clone();
        let _ = rest.split_to(3);
        let bufs = [&own[..], &rest, &b, &own].map(IoSlice::new);
        assert_eq!(plain(&bufs).len(), 1);
        assert_eq!(piped(&bufs), 0);
        assert_eq!(piped(&bufs[1..]), 9);
        assert_eq!(plain(&bufs[3..]).len(), 1);
    }

    fn pipes() -> Rc<Pipes> {
        let registry = Registry::new(&ControllerLabels::default());
        let counter = |it| registry.counter(&PIPES, &[("result", it)]);
        Rc::new(Pipes::new(["taken", "failed", "busy"].map(counter)))
    }

    #[test]
    fn clients_that_take_nothing_cannot_have_all_pipes() {
        let pipes = pipes();
        let mut taken: Vec<_> = (0..MOST).map(|_| pipes.take()).collect();
        assert!(taken.iter().all(Option::is_some));
        assert!(pipes.take().is_none());
        taken.pop();
        assert!(pipes.take().is_some(), "there is room again");
    }

    #[test]
    fn an_empty_pipe_is_used_again() {
        let pipes = pipes();
        drop(pipes.take());
        assert_eq!(pipes.idle.borrow().len(), 1);
        let pipe = pipes.take();
        assert!(pipes.idle.borrow().is_empty());
        if let Some(pipe) = &pipe {
            pipe.filled.set(1);
        }
        drop(pipe);
        assert!(pipes.idle.borrow().is_empty(), "not with bytes in it");
    }
}
