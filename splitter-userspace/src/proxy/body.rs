//! Bodies on their way through: streamed, never collected.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};

use super::client::Client;
use super::fault::Fault;
use super::http2::Hold;
use super::io::Link;
use super::journal::Journal;
use super::pool::UpstreamPool;
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

/// Why a request's body ends early, for hyper; what it means is in [`Upload::fault`].
pub type BodyError = Box<dyn std::error::Error + Send + Sync>;

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
    link: Option<Rc<Link>>,
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
            link: None,
            timeout,
        }))
    }

    /// Names the connection that the body goes to.
    pub fn send_to(&mut self, link: &Rc<Link>) {
        if let RequestBody::Stream(stream) = self {
            stream.link = Some(link.clone());
        }
    }

    /// Breaks the body off when more than `most` bytes come.
    pub fn limit(&self, most: u64) {
        if let RequestBody::Stream(stream) = self {
            stream.upload.left.set(most);
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

    fn poll(&mut self) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let Some(link) = self.link.clone() else {
            return Poll::Ready(None);
        };
        // hyper's context belongs to the connection's channels; the body wakes the request's task.
        let frame = link.with_task(|cx| self.poll_taken(cx));
        match &frame {
            Poll::Pending => link.socket.wait_at_most(self.timeout + SLACK),
            Poll::Ready(Some(Err(_))) => {}
            Poll::Ready(_) => link.socket.wait_while_moving(link.patience()),
        }
        frame
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

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match self.get_mut() {
            RequestBody::Empty => Poll::Ready(None),
            RequestBody::Stream(stream) => stream.poll(),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            RequestBody::Empty => true,
            RequestBody::Stream(stream) => stream.body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            RequestBody::Empty => SizeHint::with_exact(0),
            RequestBody::Stream(stream) => stream.body.size_hint(),
        }
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
        body: Incoming,
        upstream: Option<Box<Upstream>>,
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

    /// An answer that the backend still sends; its connection goes back to `pool` afterwards.
    pub fn stream(
        body: Incoming,
        upstream: Box<Upstream>,
        pool: Rc<UpstreamPool>,
        journal: Box<Journal>,
    ) -> Self {
        let mut answer = AnswerBody {
            source: Source::Stream {
                body,
                upstream: Some(upstream),
                pool,
            },
            journal: Some(journal),
        };
        answer.release_if_over(false);
        answer
    }

    /// An answer that the backend still sends on a stream.
    pub fn http2(body: Incoming, hold: Hold, journal: Box<Journal>) -> Self {
        AnswerBody {
            source: Source::Http2 { body, hold },
            journal: Some(journal),
        }
    }

    /// Gives the connection back as soon as the answer is complete: its length has come, or its
    /// trailers have (`last`), behind which nobody may ask for more.
    fn release_if_over(&mut self, last: bool) {
        if let Source::Stream {
            body,
            upstream,
            pool,
        } = &mut self.source
            && (last || body.is_end_stream())
            && let Some(mut upstream) = upstream.take()
            && (!last || upstream.is_alive())
        {
            pool.put(upstream);
        }
    }

    fn poll_source(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut self.source {
            Source::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Source::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Source::Stream { body, upstream, .. } => match upstream {
                Some(upstream) => upstream.poll_frame(cx, body).map_err(BodyError::from),
                // The connection went back with everything already in the body's channel.
                None => Pin::new(body).poll_frame(cx).map_err(BodyError::from),
            },
            Source::Http2 { body, hold } => hold.poll_frame(cx, body),
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
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = self.get_mut();
        let frame = this.poll_source(cx);
        match &frame {
            Poll::Pending => {}
            Poll::Ready(None) => {
                if let Source::Stream { upstream, pool, .. } = &mut this.source
                    && let Some(upstream) = upstream.take()
                {
                    pool.put(upstream);
                }
                this.close(None);
            }
            Poll::Ready(Some(Ok(frame))) => {
                if let (Some(journal), Some(data)) = (&mut this.journal, frame.data_ref()) {
                    journal.sent(data.len());
                }
                let last = frame.is_trailers();
                this.release_if_over(last);
                if last || this.is_end_stream() {
                    this.close(None);
                }
            }
            Poll::Ready(Some(Err(_))) => {
                let upload = this.journal.as_ref().and_then(|it| it.upload.as_ref());
                let clients = upload.and_then(|upload| upload.fault.get());
                let timed_out = match &this.source {
                    Source::Stream {
                        upstream: Some(upstream),
                        ..
                    } => upstream.link().socket.is_expired(),
                    Source::Http2 { hold, .. } => hold.is_expired(),
                    _ => false,
                };
                this.close(Some(match (clients, timed_out) {
                    (Some(fault), _) => fault,
                    (None, true) => Fault::UpstreamTimeout,
                    (None, false) => Fault::UpstreamInvalid,
                }));
            }
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            Source::Whole(bytes) => bytes.is_empty(),
            Source::Stream { body, .. } | Source::Http2 { body, .. } => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Source::Stream { body, .. } | Source::Http2 { body, .. } => body.size_hint(),
        }
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
