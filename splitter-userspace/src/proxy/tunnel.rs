//! Upgraded connections (WebSocket and the like): bytes both ways, each at the other's pace.

use std::cell::Cell;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};

use super::socket::Socket;

/// How much one direction reads at a time, in bytes.
const CHUNK: usize = 16 * 1024;

/// The backend's half of a tunnel that is to be.
pub struct Tunnel {
    /// The connection to the backend.
    pub socket: Rc<Socket>,
    /// What the backend sent right behind its answer.
    pub early: Bytes,
}

/// The bytes that a tunnel has carried so far, from the client and to it.
#[derive(Debug, Default)]
pub struct Carried {
    /// From the client.
    pub up: Cell<u64>,
    /// To the client.
    pub down: Cell<u64>,
}

/// Carries bytes both ways until both sides have ended, one breaks, or neither moves for `idle`.
/// Returns whether both sides have ended.
pub async fn run(
    client: &Rc<Socket>,
    early: Bytes,
    tunnel: Tunnel,
    idle: Duration,
    carried: &Carried,
) -> bool {
    let upstream = &tunnel.socket;
    for side in [client, upstream] {
        side.probe_peer();
        side.wait_while_moving(idle);
    }
    let mut up = Direction::new(early, &carried.up);
    let mut down = Direction::new(tunnel.early, &carried.down);
    let ended = std::future::poll_fn(|cx| {
        let up = up.poll(cx, client, upstream)?;
        let down = down.poll(cx, upstream, client)?;
        if up.is_ready() && down.is_ready() {
            return Poll::Ready(Ok(()));
        }
        Poll::<io::Result<()>>::Pending
    })
    .await;
    if let Err(e) = &ended {
        // A cut stream must not look like one that ended.
        tracing::debug!(error = %e, "a tunnel broke");
        client.reset_on_close();
        upstream.reset_on_close();
    }
    ended.is_ok()
}

struct Direction<'c> {
    pending: Bytes,
    carried: &'c Cell<u64>,
    ended: bool,
    done: bool,
}

impl<'c> Direction<'c> {
    fn new(pending: Bytes, carried: &'c Cell<u64>) -> Self {
        Direction {
            pending,
            carried,
            ended: false,
            done: false,
        }
    }

    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        from: &Rc<Socket>,
        to: &Rc<Socket>,
    ) -> Poll<io::Result<()>> {
        while !self.done {
            if self.pending.has_remaining() {
                let n = ready!(to.poll_write(cx, &[IoSlice::new(&self.pending)]))?;
                self.pending.advance(n);
                self.carried.set(self.carried.get() + n as u64);
                // Traffic one way keeps the whole tunnel.
                from.progress();
            } else if self.ended {
                ready!(to.poll_shutdown(cx))?;
                self.done = true;
            } else {
                let mut buf = [MaybeUninit::<u8>::uninit(); CHUNK];
                let n = ready!(from.poll_read(cx, &mut buf))?;
                to.progress();
                self.ended = n == 0;
                self.pending = copy_out(buf.get(..n).unwrap_or_default());
            }
        }
        Poll::Ready(Ok(()))
    }
}

/// The bytes that a read has just initialised.
#[allow(unsafe_code, reason = "the length is the one that the read returned")]
fn copy_out(filled: &[MaybeUninit<u8>]) -> Bytes {
    // SAFETY: `filled` is the prefix that `Socket::poll_read` wrote.
    Bytes::copy_from_slice(unsafe { filled.assume_init_ref() })
}
