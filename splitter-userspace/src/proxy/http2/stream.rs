//! One request's stream: its deadline, its body on the way to the pod, its end.

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};

use super::connection::Connection;
use crate::proxy::body::{BodyError, RequestBody};
use crate::proxy::clock::{Clock, Tick};
use crate::proxy::terms::Terms;

/// What the two directions of a stream share.
pub struct Stream {
    clock: Rc<Clock>,
    read: Duration,
    send: Duration,
    began: Tick,
    /// When the wait is over; zero for never.
    deadline: Cell<Tick>,
    expired: Cell<bool>,
    /// Nobody waits for the answer any more.
    over: Cell<bool>,
    answer: RefCell<Option<Waker>>,
    upload: RefCell<Option<Waker>>,
}

impl Stream {
    /// A stream that begins now and waits for the pod.
    pub fn new(clock: &Rc<Clock>, terms: &Terms) -> Rc<Self> {
        Rc::new(Stream {
            clock: clock.clone(),
            read: terms.read,
            send: terms.send,
            began: clock.now(),
            deadline: Cell::new(clock.after(terms.read)),
            expired: Cell::new(false),
            over: Cell::new(false),
            answer: RefCell::default(),
            upload: RefCell::default(),
        })
    }

    /// When it began.
    pub fn began(&self) -> Tick {
        self.began
    }

    fn wait_at_most(&self, time: Duration) {
        self.deadline.set(self.clock.after(time));
    }

    /// Whether its deadline has passed at `now`.
    pub fn is_due(&self, now: Tick) -> bool {
        let deadline = self.deadline.get();
        deadline != 0 && deadline <= now
    }

    /// Ends whatever waits for it.
    pub fn expire(&self) {
        self.deadline.set(0);
        self.expired.set(true);
        wake(&self.answer);
        wake(&self.upload);
    }

    /// Whether a deadline ended it.
    pub fn is_expired(&self) -> bool {
        self.expired.get()
    }

    /// Whether a deadline ended it; if not, the task of `cx` is woken when one does.
    pub fn poll_expired(&self, cx: &Context<'_>) -> bool {
        remember(&self.answer, cx.waker());
        self.expired.get()
    }

    /// Has what is left of the request's body not be sent.
    fn end(&self) {
        self.deadline.set(0);
        self.over.set(true);
        wake(&self.upload);
    }
}

/// A request's body on its way to a pod.
pub struct Upload {
    body: RequestBody,
    stream: Rc<Stream>,
}

impl Upload {
    /// The body of the request of `stream`.
    pub fn new(body: RequestBody, stream: &Rc<Stream>) -> Self {
        Upload {
            body,
            stream: stream.clone(),
        }
    }

    /// The body, if nothing of it was taken.
    pub fn into_body(self) -> RequestBody {
        self.body
    }
}

impl Body for Upload {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = self.get_mut();
        let stream = &this.stream;
        if stream.over.get() || stream.expired.get() {
            return Poll::Ready(Some(Err("nobody waits for the answer".into())));
        }
        remember(&stream.upload, cx.waker());
        let frame = this.body.poll_taken(cx);
        match &frame {
            Poll::Pending => stream.wait_at_most(this.body.patience()),
            // hyper asks no more behind the last frame.
            Poll::Ready(Some(Ok(_))) if this.body.is_end_stream() => {
                stream.wait_at_most(stream.read);
            }
            Poll::Ready(Some(Ok(_))) => stream.wait_at_most(stream.send),
            Poll::Ready(Some(Err(_))) => {}
            Poll::Ready(None) => stream.wait_at_most(stream.read),
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A request's hold on a stream. Dropping it ends the stream, and frees its place on the
/// connection.
pub struct Hold {
    stream: Rc<Stream>,
    connection: Rc<Connection>,
}

impl Hold {
    /// Takes a place for `stream`.
    pub fn new(connection: &Rc<Connection>, stream: &Rc<Stream>) -> Self {
        connection.add(stream);
        Hold {
            stream: stream.clone(),
            connection: connection.clone(),
        }
    }

    /// The stream.
    pub fn stream(&self) -> &Rc<Stream> {
        &self.stream
    }

    /// Whether a deadline ended it.
    pub fn is_expired(&self) -> bool {
        self.stream.is_expired() || self.connection.is_expired()
    }

    /// The connection.
    pub fn connection(&self) -> &Rc<Connection> {
        &self.connection
    }

    /// The next frame of the answer. The pod's time runs only while somebody waits for it.
    pub fn poll_frame(
        &self,
        cx: &mut Context<'_>,
        body: &mut Incoming,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let stream = &self.stream;
        if stream.poll_expired(cx) {
            return Poll::Ready(Some(Err("the pod took too long".into())));
        }
        let frame = Pin::new(body).poll_frame(cx);
        match &frame {
            Poll::Pending if stream.deadline.get() == 0 => stream.wait_at_most(stream.read),
            Poll::Pending => {}
            Poll::Ready(_) => stream.deadline.set(0),
        }
        frame.map_err(BodyError::from)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.stream.end();
        self.connection.remove(&self.stream);
    }
}

fn remember(slot: &RefCell<Option<Waker>>, waker: &Waker) {
    let mut slot = slot.borrow_mut();
    if !matches!(&*slot, Some(known) if known.will_wake(waker)) {
        *slot = Some(waker.clone());
    }
}

fn wake(slot: &RefCell<Option<Waker>>) {
    let waker = slot.borrow_mut().take();
    if let Some(waker) = waker {
        waker.wake();
    }
}
