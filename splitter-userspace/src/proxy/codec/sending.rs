use std::io::IoSlice;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use http::HeaderMap;
use hyper::body::Frame;

use super::broken::Broken;
use super::fields::is_trailer;
use super::request::{BodyLength, write_field};
use crate::proxy::body::Stream;
use crate::proxy::fault::Fault;
use crate::proxy::io::Wire;

/// A request's body on its way to the backend.
pub struct Sending {
    stream: Box<Stream>,
    /// How much is to come; none for chunks.
    left: Option<u64>,
    /// What came and is not taken yet.
    rest: Bytes,
    /// Whether the end of a chunk is to follow.
    in_chunk: bool,
}

impl Sending {
    /// A body of which nothing has been sent.
    pub fn new(stream: Box<Stream>, length: BodyLength) -> Self {
        let left = match length {
            BodyLength::Known(length) => Some(length),
            BodyLength::None => Some(0),
            BodyLength::Chunked => None,
        };
        Sending {
            stream,
            left,
            rest: Bytes::new(),
            in_chunk: false,
        }
    }

    /// The body, if nothing of it has been taken.
    pub fn into_untouched(self) -> Option<Box<Stream>> {
        let untouched = self.stream.is_untouched() && self.rest.is_empty();
        untouched.then_some(self.stream)
    }

    /// Sends what comes; ready when all is sent. The backend may take `patience` after each part.
    pub fn poll(
        &mut self,
        cx: &mut Context<'_>,
        wire: &Wire,
        patience: Duration,
    ) -> Poll<Result<(), Broken>> {
        loop {
            while self.rest.has_remaining() {
                let n = ready!(wire.poll_write(cx, &[IoSlice::new(&self.rest)]))?;
                self.rest.advance(n);
            }
            if std::mem::take(&mut self.in_chunk) {
                wire.write_with(|out| out.extend_from_slice(b"\r\n"));
            }
            if self.left == Some(0) {
                return Poll::Ready(Ok(()));
            }
            match ready!(self.stream.poll(cx, wire.socket(), patience)) {
                Some(Ok(frame)) => {
                    if let Some(trailers) = self.take(frame, wire)? {
                        self.end(Some(&trailers), wire)?;
                        return Poll::Ready(Ok(()));
                    }
                }
                Some(Err(e)) => return Poll::Ready(Err(Broken::Body(e))),
                None => {
                    self.end(None, wire)?;
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }

    /// Takes a frame; returns trailers.
    fn take(&mut self, frame: Frame<Bytes>, wire: &Wire) -> Result<Option<HeaderMap>, Broken> {
        let data = match frame.into_data() {
            Ok(data) => data,
            Err(frame) => return Ok(frame.into_trailers().ok()),
        };
        if data.is_empty() {
            return Ok(None);
        }
        match &mut self.left {
            Some(left) => {
                let more = left.checked_sub(data.len() as u64);
                *left = more.ok_or_else(|| self.stream.fail(Fault::BadBody))?;
            }
            None => {
                wire.write_with(|out| write_size(data.len(), out));
                self.in_chunk = true;
            }
        }
        self.rest = data;
        Ok(None)
    }

    /// Writes the end, if the body may end here.
    fn end(&mut self, trailers: Option<&HeaderMap>, wire: &Wire) -> Result<(), Broken> {
        if self.left.is_some() {
            return Err(self.stream.fail(Fault::BadBody));
        }
        wire.write_with(|out| {
            out.extend_from_slice(b"0\r\n");
            for (name, value) in trailers.into_iter().flatten() {
                let name = name.as_str();
                if is_trailer(name) && !name.contains('_') {
                    write_field(name.as_bytes(), value, out);
                }
            }
            out.extend_from_slice(b"\r\n");
        });
        Ok(())
    }
}

/// Appends the line before a chunk of `size` bytes.
fn write_size(size: usize, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = (usize::BITS - size.leading_zeros()).div_ceil(4).max(1);
    for place in (0..digits).rev() {
        out.push(DIGITS[(size >> (4 * place)) & 0xf]);
    }
    out.extend_from_slice(b"\r\n");
}
