//! One connection to an Endpoint, driven by the task of the request that uses it.
//!
//! Dropping the request drops the connection, so that cancelling costs nothing, and no second task
//! or channel hop is paid. hyper's channels inside get a waker that only notes that it was called:
//! the driver polls the connection first and the channels after it, so that progress needs no
//! wake-up; the note tells when hyper wants to go on by itself (it yields after some rounds, and
//! tokio's budget can run out).

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http1::{Builder, Connection, SendRequest};

use super::body::RequestBody;
use super::clock::Clock;
use super::flush::Flusher;
use super::io::{Link, UpstreamIo};
use super::socket::Socket;
use super::terms::Terms;
use super::tunnel::Tunnel;

/// The most that hyper buffers of an answer, head or body, in bytes.
const BUFFER_MAX: usize = 256 * 1024;

/// The most header lines that a backend's answer may have.
const HEADERS_MAX: usize = 256;

/// Notes that it was woken.
#[derive(Default)]
struct Note(AtomicBool);

impl Wake for Note {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// See the module's text.
pub struct Upstream {
    sender: SendRequest<RequestBody>,
    /// None when it broke.
    connection: Option<Connection<UpstreamIo, RequestBody>>,
    /// Whether hyper is done with it: the peer closed it, or it has left HTTP.
    finished: bool,
    link: Rc<Link>,
    note: Arc<Note>,
    waker: Waker,
    endpoint: SocketAddr,
}

/// A request that could not be exchanged.
pub struct Failed {
    /// The request itself if no byte of it was written.
    pub unsent: Option<Request<RequestBody>>,
    /// Whether the backend had sent anything of an answer.
    pub answered: bool,
    /// Whether a deadline ended it.
    pub timed_out: bool,
    /// What happened.
    pub error: hyper::Error,
}

impl Upstream {
    /// Connects to `endpoint`.
    pub async fn connect(
        endpoint: SocketAddr,
        terms: &Terms,
        clock: &Rc<Clock>,
        flusher: &Rc<Flusher>,
    ) -> io::Result<Box<Self>> {
        let (connect, send) = (terms.connect, terms.send);
        let socket = Socket::connect(endpoint, connect, send, clock, flusher).await?;
        let link = Link::new(socket, terms.read);
        let (sender, connection) = Builder::new()
            .max_buf_size(BUFFER_MAX)
            .max_headers(HEADERS_MAX)
            .handshake(UpstreamIo(link.clone()))
            .await
            .map_err(io::Error::other)?;
        let note = Arc::<Note>::default();
        Ok(Box::new(Upstream {
            sender,
            connection: Some(connection),
            finished: false,
            link,
            waker: note.clone().into(),
            note,
            endpoint,
        }))
    }

    /// Where it is connected to.
    pub fn endpoint(&self) -> SocketAddr {
        self.endpoint
    }

    /// What the connection shares with its driver.
    pub fn link(&self) -> &Rc<Link> {
        &self.link
    }

    /// Moves the connection on; its events wake the task of `cx`.
    fn advance(&mut self, cx: &Context<'_>) {
        self.link.drive(cx.waker());
        self.note.0.store(false, Ordering::Relaxed);
        let Some(connection) = self.connection.as_mut().filter(|_| !self.finished) else {
            return;
        };
        let mut inner = Context::from_waker(&self.waker);
        match connection.poll_without_shutdown(&mut inner) {
            Poll::Pending => {}
            // Not dropped: an answer with 101 ends here too, and `into_tunnel` takes it apart.
            Poll::Ready(Ok(())) => self.finished = true,
            // The error itself has gone to the answer or to its body.
            Poll::Ready(Err(_)) => self.connection = None,
        }
    }

    /// Called before Pending is returned: goes on soon if hyper asked for it.
    fn settle(&self, cx: &Context<'_>) {
        if self.note.0.load(Ordering::Relaxed) {
            cx.waker().wake_by_ref();
        }
    }

    /// Sends `request` and waits for the answer's head.
    ///
    /// # Errors
    /// With the request, when nothing of it was written.
    pub async fn exchange(
        &mut self,
        request: Request<RequestBody>,
    ) -> Result<Response<Incoming>, Box<Failed>> {
        self.link.begin();
        let mut answer = pin!(self.sender.try_send_request(request));
        let answer = std::future::poll_fn(|cx| {
            self.advance(cx);
            let mut inner = Context::from_waker(&self.waker);
            let polled = answer.as_mut().poll(&mut inner);
            if polled.is_ready() || !self.finished {
                if polled.is_pending() {
                    self.settle(cx);
                }
                return polled;
            }
            // Dropping the connection gives a request that it never took back to its sender.
            self.connection = None;
            answer.as_mut().poll(&mut inner)
        })
        .await;
        answer.map_err(|mut e| {
            Box::new(Failed {
                unsent: e.take_message(),
                answered: self.link.has_answered(),
                timed_out: self.link.socket.is_expired(),
                error: e.into_error(),
            })
        })
    }

    /// The next frame of the answer's body.
    pub fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
        body: &mut Incoming,
    ) -> Poll<Option<Result<hyper::body::Frame<bytes::Bytes>, hyper::Error>>> {
        use hyper::body::Body;
        let waker = self.waker.clone();
        let mut inner = Context::from_waker(&waker);
        let mut body = pin!(body);
        // Asking first tells the connection that a frame is wanted.
        if let Poll::Ready(frame) = body.as_mut().poll_frame(&mut inner) {
            return Poll::Ready(frame);
        }
        self.advance(cx);
        let frame = body.poll_frame(&mut inner);
        if frame.is_pending() {
            self.settle(cx);
        }
        frame
    }

    /// Whether the exchange is over and the connection can take another request.
    pub fn is_ready(&self) -> bool {
        self.connection.is_some() && !self.finished && self.sender.is_ready()
    }

    /// Whether a kept connection still stands. Costs no system call unless something happened.
    pub fn is_alive(&mut self) -> bool {
        if self.link.socket.is_expired() {
            return false;
        }
        // Idle, with nothing received: as it was when it was kept.
        if self.link.socket.is_quiet() {
            return self.is_ready();
        }
        self.advance(&Context::from_waker(Waker::noop()));
        self.is_ready()
    }

    /// Takes the connection apart once it has answered 101.
    pub fn into_tunnel(mut self: Box<Self>) -> Option<Tunnel> {
        self.advance(&Context::from_waker(Waker::noop()));
        let parts = self.connection?.into_parts();
        Some(Tunnel {
            socket: self.link.socket.clone(),
            early: parts.read_buf,
        })
    }
}
