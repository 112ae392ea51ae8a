//! Bodies on their way through: streamed, never collected.

mod answer;

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};

pub use answer::AnswerBody;

use super::client::Client;
use super::codec::{BodyLength, Broken};
use super::copied::{Copied, Feed, Outcome, copied};
use super::fault::Fault;
use super::socket::Socket;

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
    origin: Origin,
    /// Copies of it on their way elsewhere; none for most.
    feeds: Vec<Feed>,
    upload: Rc<Upload>,
    touched: bool,
    timeout: Duration,
}

/// Who sends a body.
enum Origin {
    /// The client itself.
    Client(Incoming, Rc<Client>),
    /// It is a copy of one.
    Copy(Copied),
}

impl RequestBody {
    /// Wraps what hyper gives; `timeout` is for the next bytes to come.
    pub fn new(body: Incoming, client: &Rc<Client>, timeout: Duration) -> Self {
        if body.is_end_stream() {
            return RequestBody::Empty;
        }
        Self::of(Origin::Client(body, client.clone()), timeout)
    }

    fn of(origin: Origin, timeout: Duration) -> Self {
        RequestBody::Stream(Box::new(Stream {
            origin,
            feeds: Vec::new(),
            upload: Rc::new(Upload {
                left: Cell::new(u64::MAX),
                ..Upload::default()
            }),
            touched: false,
            timeout,
        }))
    }

    /// A copy of what is to come, which keeps up with the original or is broken off. `total` counts
    /// what waits for copies in the whole worker.
    pub fn copy(&mut self, total: &Rc<Cell<usize>>) -> (Self, Option<Outcome>) {
        let RequestBody::Stream(stream) = self else {
            return (RequestBody::Empty, None);
        };
        let (feed, copied) = copied(total);
        let outcome = copied.outcome();
        stream.feeds.push(feed);
        (
            Self::of(Origin::Copy(copied), stream.timeout),
            Some(outcome),
        )
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
            RequestBody::Stream(stream) => stream.is_end_stream(),
        }
    }

    /// What is known of its length.
    pub fn size_hint(&self) -> SizeHint {
        match self {
            RequestBody::Empty => SizeHint::with_exact(0),
            RequestBody::Stream(stream) => stream.size_hint(),
        }
    }

    /// How the backend is told the end of the body. `given` says that the client gave a length.
    pub fn length(&self, given: bool) -> BodyLength {
        match self {
            RequestBody::Empty if given => BodyLength::Known(0),
            RequestBody::Empty => BodyLength::None,
            RequestBody::Stream(stream) => match stream.size_hint().exact() {
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
        let frame = self.poll_origin(cx);
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
            Poll::Ready(Some(Err(_)) | None) | Poll::Pending => {}
        }
        if !self.feeds.is_empty() {
            self.feed(&frame);
        }
        frame
    }

    fn poll_origin(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let fault = &self.upload.fault;
        match &mut self.origin {
            Origin::Client(body, client) => Pin::new(body).poll_frame(cx).map_err(|e| {
                fault.set(Some(blame(client, &e)));
                e.into()
            }),
            Origin::Copy(copied) => copied.poll_part(cx).map(|part| {
                let part = part?;
                Some(part.map(Frame::data).map_err(|end| {
                    fault.set(Some(Fault::ClientGone));
                    format!("the original has ended: {end:?}").into()
                }))
            }),
        }
    }

    /// Hands on to copies what has come.
    fn feed(&mut self, frame: &Poll<Option<Result<Frame<Bytes>, BodyError>>>) {
        let over = match frame {
            Poll::Pending => return,
            Poll::Ready(Some(Ok(frame))) => {
                if let Some(data) = frame.data_ref() {
                    self.feeds.iter().for_each(|feed| feed.push(data));
                }
                // Trailers stay with the original.
                frame.is_trailers() || self.is_end_stream()
            }
            Poll::Ready(None) => true,
            Poll::Ready(Some(Err(_))) => {
                self.feeds.clear();
                return;
            }
        };
        if over {
            self.feeds.drain(..).for_each(|feed| feed.end());
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.origin {
            Origin::Client(body, _) => body.is_end_stream(),
            Origin::Copy(copied) => copied.is_over(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.origin {
            Origin::Client(body, _) => body.size_hint(),
            Origin::Copy(_) => SizeHint::default(),
        }
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
}

/// Why a client's body broke.
fn blame(client: &Client, error: &hyper::Error) -> Fault {
    match client.refused() {
        Some(fault) => fault,
        None if is_malformed(error) => Fault::BadBody,
        None if client.socket.is_expired() => Fault::BodyTimeout,
        None => Fault::ClientGone,
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
