use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};

use crate::model::Pace;
use crate::proxy::codec::Broken;
use crate::proxy::fault::Fault;
use crate::proxy::http2::Hold;
use crate::proxy::journal::Journal;
use crate::proxy::policy::Pacer;
use crate::proxy::pool::UpstreamPool;
use crate::proxy::socket::{Pipe, Pipes, Socket};
use crate::proxy::upstream::Upstream;

/// An answer's body, from the backend (or from us) to the client.
pub struct AnswerBody {
    source: Source,
    /// How fast it may go, where its Location says so.
    pacer: Option<Box<Pacer>>,
    journal: Option<Box<Journal>>,
}

/// How long an answer must be for a pipe to be fetched, in bytes.
const WORTH_A_PIPE: u64 = 64 * 1024;

/// A pipe that leads to a client.
struct Piped {
    pipe: Rc<Pipe>,
    client: Rc<Socket>,
}

impl Piped {
    fn new(pipe: Rc<Pipe>, client: &Rc<Socket>) -> Self {
        client.set_pipe(&pipe);
        Piped {
            pipe,
            client: client.clone(),
        }
    }
}

impl Drop for Piped {
    fn drop(&mut self) {
        // Else it does so when it has sent what is left in it.
        self.client.leave_pipe();
    }
}

enum Source {
    /// All of it, or nothing more.
    Whole(Bytes),
    /// As the backend sends it.
    Stream {
        upstream: Box<Upstream>,
        pool: Rc<UpstreamPool>,
        /// Through which what is long goes past this process.
        pipe: Option<Piped>,
    },
    /// As the backend sends it on a stream.
    Http2 { body: Incoming, hold: Hold },
}

impl AnswerBody {
    /// An answer that is all here. Its journal ends when it has been handed over.
    pub fn whole(bytes: Bytes, journal: Box<Journal>) -> Self {
        AnswerBody {
            source: Source::Whole(bytes),
            pacer: None,
            journal: Some(journal),
        }
    }

    /// An answer that the backend still sends. Its connection goes back to `pool` as soon as all of
    /// the answer has come.
    pub fn stream(
        mut upstream: Box<Upstream>,
        pool: &Rc<UpstreamPool>,
        journal: Box<Journal>,
    ) -> Self {
        if let Some(bytes) = upstream.take_whole() {
            pool.put(upstream);
            return Self::whole(bytes, journal);
        }
        let pool = pool.clone();
        AnswerBody {
            source: Source::Stream {
                upstream,
                pool,
                pipe: None,
            },
            pacer: None,
            journal: Some(journal),
        }
    }

    /// An answer that the backend still sends on a stream.
    pub fn http2(body: Incoming, hold: Hold, journal: Box<Journal>) -> Self {
        AnswerBody {
            source: Source::Http2 { body, hold },
            pacer: None,
            journal: Some(journal),
        }
    }

    /// The same answer, by a pipe to `client` as far as that is possible: HTTP/1 in the clear.
    pub fn piped(mut self, client: &Rc<Socket>, pipes: &Rc<Pipes>) -> Self {
        if let Source::Stream { upstream, pipe, .. } = &mut self.source
            && upstream.left().is_some_and(|left| left >= WORTH_A_PIPE)
            && !upstream.socket().is_secure()
            && !client.is_secure()
            // The end of the answer before this one may still be in a pipe.
            && !client.has_pipe()
        {
            *pipe = pipes.take().map(|taken| Piped::new(taken, client));
        }
        self
    }

    /// The same answer, no faster than this.
    pub fn paced(mut self, pace: Option<Pace>) -> Self {
        self.pacer = pace.map(Pacer::new);
        self
    }

    /// The next part that may go.
    fn poll_paced(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        if !self.pacer.as_ref().is_some_and(|pacer| pacer.holds()) {
            let frame = match ready!(self.poll_source(cx)) {
                Some(Ok(frame)) => frame,
                ended => return Poll::Ready(ended),
            };
            // All that has to be read has been, however long it takes to go.
            self.release();
            match (frame.into_data(), &mut self.pacer) {
                (Ok(data), Some(pacer)) => pacer.hold(data),
                (Ok(data), None) => return Poll::Ready(Some(Ok(Frame::data(data)))),
                (Err(trailers), _) => return Poll::Ready(Some(Ok(trailers))),
            }
        }
        match &mut self.pacer {
            Some(pacer) if pacer.holds() => {
                let part = ready!(pacer.poll_part(cx));
                Poll::Ready(Some(Ok(Frame::data(part))))
            }
            _ => Poll::Ready(Some(Ok(Frame::data(Bytes::new())))),
        }
    }

    fn poll_source(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        match &mut self.source {
            Source::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Source::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Source::Stream {
                upstream,
                pipe: Some(piped),
                ..
            } if upstream.is_pipeable() => upstream.poll_piped(cx, &piped.pipe),
            Source::Stream { upstream, .. } => upstream.poll_frame(cx),
            Source::Http2 { body, hold } => {
                let frame = ready!(hold.poll_frame(cx, body));
                Poll::Ready(frame.map(|frame| frame.map_err(Broken::Stream)))
            }
        }
    }

    /// Gives the connection back if the answer has come to its end.
    fn release(&mut self) {
        let over = matches!(&self.source, Source::Stream { upstream, .. } if upstream.is_over());
        if over
            && let Source::Stream { upstream, pool, .. } =
                std::mem::replace(&mut self.source, Source::Whole(Bytes::new()))
        {
            pool.put(upstream);
        }
    }

    /// Ends the journal: the answer is complete, or broken by `fault`.
    fn close(&mut self, fault: Option<Fault>) {
        if let Some(mut journal) = self.journal.take() {
            match fault {
                Some(fault) => journal.break_off(fault),
                None => journal.complete(),
            }
        }
    }

    /// Whose fault it is that the answer broke: the client's, if its own body did.
    fn blame(&self) -> Fault {
        let upload = self.journal.as_ref().and_then(|it| it.upload.as_ref());
        if let Some(fault) = upload.and_then(|upload| upload.fault.get()) {
            return fault;
        }
        let timed_out = match &self.source {
            Source::Whole(_) => false,
            Source::Stream { upstream, .. } => upstream.socket().is_expired(),
            Source::Http2 { hold, .. } => hold.is_expired(),
        };
        match timed_out {
            true => Fault::UpstreamTimeout,
            false => Fault::UpstreamInvalid,
        }
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let this = self.get_mut();
        let frame = match this.pacer {
            None => this.poll_source(cx),
            Some(_) => this.poll_paced(cx),
        };
        match &frame {
            Poll::Pending => {}
            Poll::Ready(None) => {
                this.release();
                this.close(None);
            }
            Poll::Ready(Some(Ok(frame))) => {
                if let (Some(journal), Some(data)) = (&mut this.journal, frame.data_ref()) {
                    journal.sent(data.len());
                }
                this.release();
                if this.is_end_stream() {
                    this.close(None);
                }
            }
            Poll::Ready(Some(Err(_))) => {
                let fault = this.blame();
                this.close(Some(fault));
            }
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        if self.pacer.as_ref().is_some_and(|pacer| pacer.holds()) {
            return false;
        }
        match &self.source {
            Source::Whole(bytes) => bytes.is_empty(),
            Source::Stream { upstream, .. } => upstream.is_over(),
            Source::Http2 { body, .. } => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        let left = match &self.source {
            Source::Whole(bytes) => Some(bytes.len() as u64),
            Source::Stream { upstream, .. } => upstream.left(),
            Source::Http2 { body, .. } => body.size_hint().exact(),
        };
        let held = self.pacer.as_ref().map_or(0, |pacer| pacer.held());
        let left = left.map(|left| left + held);
        left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

impl Drop for AnswerBody {
    fn drop(&mut self) {
        // hyper does not ask for a body that it knows to be empty.
        if self.is_end_stream() {
            self.close(None);
        } else {
            self.close(Some(Fault::ClientGone));
        }
    }
}
