//! Pipes, through which bytes go from socket to socket without coming into the process's memory.

use std::cell::RefCell;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with, splice};
use tokio::io::Interest;
use tokio::net::TcpStream;

/// The most that one call moves, in bytes: what a pipe holds unless somebody has changed that.
const CHUNK: usize = 64 * 1024;

/// Empty pipes that a worker keeps. A connection has one only while bytes are on their way.
const KEPT: usize = 64;

/// A worker's empty pipes.
#[derive(Clone, Default)]
pub struct Pipes(Rc<RefCell<Vec<Pipe>>>);

/// A pipe.
pub struct Pipe {
    read: OwnedFd,
    write: OwnedFd,
}

impl Pipes {
    /// An empty pipe.
    ///
    /// # Errors
    /// When the process has no descriptor left.
    pub fn take(&self) -> io::Result<Pipe> {
        if let Some(pipe) = self.0.borrow_mut().pop() {
            return Ok(pipe);
        }
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        Ok(Pipe { read, write })
    }

    /// Takes back a pipe, which must be empty.
    pub fn give(&self, pipe: Pipe) {
        let mut kept = self.0.borrow_mut();
        if kept.len() < KEPT {
            kept.push(pipe);
        }
    }
}

impl Pipe {
    /// Fills the pipe, which must be empty, with what a socket has; 0 at the end of its stream.
    ///
    /// # Errors
    /// `WouldBlock` when it has nothing yet.
    pub fn fill(&self, from: &TcpStream) -> io::Result<usize> {
        from.try_io(Interest::READABLE, || moved(from, &self.write, CHUNK))
    }

    /// Empties the pipe, which holds `held` bytes, into a socket as far as that takes them.
    ///
    /// # Errors
    /// `WouldBlock` when it takes none now.
    pub fn drain(&self, to: &TcpStream, held: usize) -> io::Result<usize> {
        to.try_io(Interest::WRITABLE, || moved(&self.read, to, held))
    }
}

fn moved(
    from: impl std::os::fd::AsFd,
    to: impl std::os::fd::AsFd,
    most: usize,
) -> io::Result<usize> {
    let flags = SpliceFlags::NONBLOCK | SpliceFlags::MOVE;
    Ok(splice(from, None, to, None, most, flags)?)
}
