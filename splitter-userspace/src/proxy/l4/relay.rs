//! Bytes both ways between two sockets, each at the other's pace.

use std::cell::Cell;
use std::io;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use socket2::SockRef;
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::pipe::{Pipe, Pipes};
use crate::telemetry::L4Guard;

/// How many times one connection moves bytes before others have their turn.
const TURN: usize = 16;

/// How a relay ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Both sides have ended their streams.
    Both,
    /// One side was reset.
    Reset,
    /// Nothing moved for too long.
    Idle,
}

/// A client and its Endpoint. Dropped before both have ended, it resets both: a cut stream must not look
/// like one that ended.
pub struct Relay {
    /// The client.
    pub client: TcpStream,
    /// Its Endpoint.
    pub endpoint: TcpStream,
    whole: bool,
}

impl Relay {
    /// Puts two connected sockets together.
    pub fn new(client: TcpStream, endpoint: TcpStream) -> Self {
        for side in [&client, &endpoint] {
            let socket = SockRef::from(side);
            // Each side alone would never notice that the other host is gone.
            let set = socket.set_tcp_nodelay(true).and(socket.set_keepalive(true));
            if let Err(error) = set {
                tracing::debug!(%error, "a socket option could not be set");
            }
        }
        Relay {
            client,
            endpoint,
            whole: false,
        }
    }

    /// Carries bytes until both sides have ended, one is reset, or neither moves for `idle`.
    pub async fn run(&mut self, pipes: &Pipes, idle: Duration, counts: &L4Guard) -> Ended {
        let (client, endpoint) = (&self.client, &self.endpoint);
        let moved = Cell::new(false);
        let mut up = Direction::default();
        let mut down = Direction::default();
        let mut timer = std::pin::pin!(tokio::time::sleep(idle));
        let ended = std::future::poll_fn(|cx| {
            let note = |bytes: u64| moved.set(bytes > 0 || moved.get());
            let up = up.poll(cx, client, endpoint, pipes, |bytes| {
                counts.received(bytes);
                note(bytes);
            })?;
            let down = down.poll(cx, endpoint, client, pipes, |bytes| {
                counts.sent(bytes);
                note(bytes);
            })?;
            if up.is_ready() && down.is_ready() {
                return Poll::Ready(Ok(Ended::Both));
            }
            // Looked at when it is over, and not set anew for each byte.
            while timer.as_mut().poll(cx).is_ready() {
                if !moved.replace(false) {
                    return Poll::Ready(Ok(Ended::Idle));
                }
                timer.as_mut().reset(Instant::now() + idle);
            }
            Poll::<io::Result<Ended>>::Pending
        })
        .await;
        self.whole = matches!(ended, Ok(Ended::Both));
        ended.unwrap_or_else(|error| {
            tracing::debug!(%error, "a connection was reset");
            Ended::Reset
        })
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        if !self.whole {
            reset(&self.client);
            reset(&self.endpoint);
        }
    }
}

/// Makes the close of a socket a reset.
pub fn reset(socket: &TcpStream) {
    if let Err(error) = SockRef::from(socket).set_linger(Some(Duration::ZERO)) {
        tracing::debug!(%error, "a connection could not be set to reset");
    }
}

#[derive(Default)]
struct Direction {
    /// With how much is in it.
    held: Option<(Pipe, usize)>,
    ended: bool,
    done: bool,
}

impl Direction {
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        from: &TcpStream,
        to: &TcpStream,
        pipes: &Pipes,
        count: impl Fn(u64),
    ) -> Poll<io::Result<()>> {
        for _ in 0..TURN {
            if self.done {
                return Poll::Ready(Ok(()));
            }
            if let Some((pipe, held)) = self.held.take() {
                match pipe.drain(to, held) {
                    Ok(sent) => {
                        count(sent as u64);
                        match held - sent.min(held) {
                            0 => pipes.give(pipe),
                            left => self.held = Some((pipe, left)),
                        }
                    }
                    Err(error) if is_pending(&error) => {
                        self.held = Some((pipe, held));
                        ready!(to.poll_write_ready(cx))?;
                    }
                    Err(error) => return Poll::Ready(Err(error)),
                }
            } else if self.ended {
                SockRef::from(to).shutdown(std::net::Shutdown::Write)?;
                self.done = true;
            } else {
                ready!(from.poll_read_ready(cx))?;
                let pipe = pipes.take()?;
                match pipe.fill(from) {
                    Ok(0) => {
                        self.ended = true;
                        pipes.give(pipe);
                    }
                    Ok(read) => self.held = Some((pipe, read)),
                    Err(error) if is_pending(&error) => pipes.give(pipe),
                    Err(error) => return Poll::Ready(Err(error)),
                }
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

fn is_pending(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}
