//! Bodies on their way through: streamed, never collected.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};

use super::client::Client;
use super::codec::{BodyLength, Broken};
use super::fault::Fault;
use super::http2::Hold;
use super::journal::Journal;
use super::pool::UpstreamPool;
use super::socket::Socket;
use super::upstream::Upstream;

/// How much longer than the client's own deadline the backend's connection waits for a body, so
/// that the client is the one that is blamed.
const SLACK: Duration = Duration::from_secs(2);

/// What happened to a request's body.
#[derive(Default)]
pub struct Upload {
    /// Bytes passed on.
    pub bytes: Cell<u64>,
    /// Why it broke.
    pub fault: Cell<Option<Fault>>,
    /// Whether more of it is being waited for.
    pub waiting: Cell<bool>,
    /// How many bytes may still come.
    left: Cell<u64>,
}

/// A request's body, from the client to the backend.
pub enum RequestBody {
    /// The request has none.
    Empty,
    /// It comes as the client sends it.
    Stream(Box<Stream>),
}

/// A body that comes as the client sends it.
pub struct Stream {
    body: Incoming,
    client: Rc<Client>,
    upload: Rc<Upload>,
    touched: bool,
    timeout: Duration,
}

impl RequestBody {
    /// Wraps what hyper gives; `timeout` is for the next bytes to come.
    pub fn new(body: Incoming, client: &Rc<Client>, timeout: Duration) -> Self {
        if body.is_end_stream() {
            return RequestBody::Empty;
        }
        RequestBody::Stream(Box::new(Stream {
            body,
            client: client.clone(),
            upload: Rc::new(Upload {
                left: Cell::new(u64::MAX),
                ..Upload::default()
            }),
            touched: false,
            timeout,
        }))
    }

    /// Breaks the body off when more than `most` bytes come.
    pub fn limit(&self, most: u64) {
        if let RequestBody::Stream(stream) = self {
            stream.upload.left.set(most);
        }
    }

    /// Whether nothing more comes.
    pub fn is_end_stream(&self) -> bool {
        match self {
            RequestBody::Empty => true,
            RequestBody::Stream(stream) => stream.body.is_end_stream(),
        }
    }

    /// What is known of its length.
    pub fn size_hint(&self) -> SizeHint {
        match self {
            RequestBody::Empty => SizeHint::with_exact(0),
            RequestBody::Stream(stream) => stream.body.size_hint(),
        }
    }

    /// How the backend is told the end of the body. `given` says that the client gave a length.
    pub fn length(&self, given: bool) -> BodyLength {
        match self {
            RequestBody::Empty if given => BodyLength::Known(0),
            RequestBody::Empty => BodyLength::None,
            RequestBody::Stream(stream) => match stream.body.size_hint().exact() {
                Some(length) => BodyLength::Known(length),
                None => BodyLength::Chunked,
            },
        }
    }

    /// The next frame of the body, for whoever looks after its deadline.
    pub fn poll_taken(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match self {
            RequestBody::Empty => Poll::Ready(None),
            RequestBody::Stream(stream) => stream.poll_taken(cx),
        }
    }

    /// How long the client may be waited for, and a little longer.
    pub fn patience(&self) -> Duration {
        match self {
            RequestBody::Empty => SLACK,
            RequestBody::Stream(stream) => stream.timeout + SLACK,
        }
    }

    /// What happens to the body, if there is one.
    pub fn upload(&self) -> Option<Rc<Upload>> {
        match self {
            RequestBody::Empty => None,
            RequestBody::Stream(stream) => Some(stream.upload.clone()),
        }
    }
}

/// Why a request's body ends early; what that means is in [`Upload::fault`].
pub type BodyError = Box<dyn std::error::Error + Send + Sync>;

impl Stream {
    /// The next frame, counted and judged.
    fn poll_taken(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        self.upload.waiting.set(frame.is_pending());
        match &frame {
            Poll::Ready(Some(Ok(frame))) => {
                self.touched = true;
                let n = frame.data_ref().map_or(0, Bytes::len) as u64;
                let Some(left) = self.upload.left.get().checked_sub(n) else {
                    self.upload.fault.set(Some(Fault::BodyTooLarge));
                    return Poll::Ready(Some(Err(Fault::BodyTooLarge.text().into())));
                };
                self.upload.left.set(left);
                self.upload.bytes.set(self.upload.bytes.get() + n);
            }
            Poll::Ready(Some(Err(e))) => self.upload.fault.set(Some(self.blame(e))),
            Poll::Pending | Poll::Ready(None) => {}
        }
        frame.map_err(BodyError::from)
    }

    /// The same. The backend's connection, `socket`, waits no longer for it than the client may take,
    /// and after it for `patience`.
    pub fn poll(
        &mut self,
        cx: &mut Context<'_>,
        socket: &Socket,
        patience: Duration,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let frame = self.poll_taken(cx);
        match &frame {
            Poll::Pending => socket.wait_at_most(self.timeout + SLACK),
            Poll::Ready(Some(Err(_))) => {}
            Poll::Ready(_) => socket.wait_while_moving(patience),
        }
        frame
    }

    /// Whether nothing of it has been taken.
    pub fn is_untouched(&self) -> bool {
        !self.touched
    }

    /// Breaks it off: it is not what its head said.
    pub fn fail(&self, fault: Fault) -> Broken {
        self.upload.fault.set(Some(fault));
        Broken::Body(fault.text().into())
    }

    /// Why the body broke.
    fn blame(&self, error: &hyper::Error) -> Fault {
        match self.client.refused() {
            Some(fault) => fault,
            None if is_malformed(error) => Fault::BadBody,
            None if self.client.socket.is_expired() => Fault::BodyTimeout,
            None => Fault::ClientGone,
        }
    }
}

/// Whether hyper found the bytes wrong, rather than missing.
fn is_malformed(error: &hyper::Error) -> bool {
    let cause = std::error::Error::source(error);
    let cause = cause.and_then(|cause| cause.downcast_ref::<io::Error>());
    cause.is_some_and(|cause| {
        matches!(
            cause.kind(),
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput
        )
    })
}

impl RequestBody {
    /// Whether there is nothing to come.
    pub fn is_empty(&self) -> bool {
        matches!(self, RequestBody::Empty)
    }
}

/// An answer's body, from the backend (or from us) to the client.
pub struct AnswerBody {
    source: Source,
    journal: Option<Box<Journal>>,
}

enum Source {
    /// All of it, or nothing more.
    Whole(Bytes),
    /// As the backend sends it.
    Stream {
        upstream: Box<Upstream>,
        pool: Rc<UpstreamPool>,
    },
    /// As the backend sends it on a stream.
    Http2 { body: Incoming, hold: Hold },
}

impl AnswerBody {
    /// An answer that is all here. Its journal ends when it has been handed over.
    pub fn whole(bytes: Bytes, journal: Box<Journal>) -> Self {
        AnswerBody {
            source: Source::Whole(bytes),
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
            source: Source::Stream { upstream, pool },
            journal: Some(journal),
        }
    }

    /// An answer that the backend still sends on a stream.
    pub fn http2(body: Incoming, hold: Hold, journal: Box<Journal>) -> Self {
        AnswerBody {
            source: Source::Http2 { body, hold },
            journal: Some(journal),
        }
    }

    fn poll_source(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        match &mut self.source {
            Source::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Source::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
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
            && let Source::Stream { upstream, pool } =
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
        let frame = this.poll_source(cx);
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
            Source::Http2 { body, .. } => return body.size_hint(),
        };
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
