//! The two sides of a worker's sockets: the client's as hyper sees it, the backend's as the codec
//! does.
#![allow(
    unsafe_code,
    reason = "read buffers are filled in place, before which they are uninitialised"
)]

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::BytesMut;
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

    /// Leaves what is held where it is: how the connection is closed is decided where it is served,
    /// and there the end of the stream can go with the last bytes.
    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// The backend's side: where the HTTP/1 codec reads and writes. Whether there is TLS is the
/// socket's business.
pub struct Wire(pub Rc<Socket>);

impl Wire {
    /// The connection below, for its deadlines.
    pub fn socket(&self) -> &Rc<Socket> {
        &self.0
    }

    /// Reads up to `most` bytes to the end of `buf`. `Ready(Ok(0))` is the end of the stream.
    pub fn poll_fill(
        &self,
        cx: &mut Context<'_>,
        buf: &mut BytesMut,
        most: usize,
    ) -> Poll<io::Result<usize>> {
        buf.reserve(most);
        let spare = buf.spare_capacity_mut();
        let offered = spare.len().min(most);
        let spare = spare.get_mut(..offered).unwrap_or_default();
        let n = ready!(self.0.poll_read(cx, spare))?;
        let filled = buf.len() + n.min(offered);
        // SAFETY: `poll_read` has initialised the first `n` bytes behind the old length, and no more
        // than it was offered.
        unsafe { buf.set_len(filled) };
        Poll::Ready(Ok(n))
    }

    /// Takes `bufs` to send, as [`Socket::poll_write`].
    pub fn poll_write(
        &self,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.0.poll_write(cx, bufs)
    }

    /// Has `write` append what is to be sent at the end of the turn: heads and other small things,
    /// which are taken even when the peer does not read.
    pub fn write_with(&self, write: impl FnOnce(&mut Vec<u8>)) {
        self.0.hold(write);
    }
}
