//! Connections that we make.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use rustls::ClientConnection;

use super::super::clock::Clock;
use super::super::flush::Flusher;
use super::{HandshakeError, Session, Socket, remember};

impl Socket {
    /// Connects to `addr`; ends with `TimedOut` after `timeout`.
    pub async fn connect(
        addr: SocketAddr,
        timeout: Duration,
        send_timeout: Duration,
        clock: &Rc<Clock>,
        flusher: &Rc<Flusher>,
    ) -> io::Result<Rc<Self>> {
        let stream = socket2::Socket::new(
            socket2::Domain::for_address(addr),
            socket2::Type::STREAM.nonblocking().cloexec(),
            None,
        )?;
        stream.set_tcp_nodelay(true)?;
        let connected = stream.connect(&addr.into());
        let socket = Socket::new(stream.into(), send_timeout, clock, flusher);
        match connected {
            Ok(()) => return Ok(socket),
            Err(e) if e.raw_os_error() == Some(libc::EINPROGRESS) => {}
            Err(e) => return Err(e),
        }
        socket.wait_at_most(timeout);
        std::future::poll_fn(|cx| socket.poll_connected(cx)).await?;
        socket.wait_for_ever();
        Ok(socket)
    }

    /// Puts TLS on top, as its client, within `timeout`. All that the handshake sends has left
    /// then.
    ///
    /// # Errors
    /// With `TimedOut` after `timeout`; else whatever is wrong.
    pub async fn secure_as_client(
        self: &Rc<Self>,
        tls: ClientConnection,
        timeout: Duration,
    ) -> Result<(), HandshakeError> {
        self.secure(Session::new(tls.into(), &[]));
        self.wait_at_most(timeout);
        std::future::poll_fn(|cx| self.poll_handshake(cx)).await?;
        std::future::poll_fn(|cx| self.poll_drained(cx)).await?;
        self.wait_for_ever();
        Ok(())
    }

    fn poll_connected(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.expired.get() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        match self.registered()?.poll_write_ready(cx) {
            Poll::Ready(ready) => ready?.retain_ready(),
            Poll::Pending => {
                remember(&self.write_waker, cx.waker());
                return Poll::Pending;
            }
        }
        Poll::Ready(match self.stream.take_error()? {
            Some(e) => Err(e),
            None => Ok(()),
        })
    }
}
