//! One connection to an Endpoint, driven by the task of the request that uses it.
//!
//! Dropping the request drops the connection, so that cancelling costs nothing, and no second task
//! or channel is paid. The request's body goes out whenever the answer is asked for, so each side
//! moves at the other's pace.

use std::io;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use http::Method;
use hyper::body::Frame;

use super::body::RequestBody;
use super::clock::Clock;
use super::codec::{Broken, Chunks, Head, HeadParser, Invalid, Length, Outgoing, Sending, Step};
use super::flush::Flusher;
use super::io::Wire;
use super::socket::{HandshakeError, PIPE, Pipe, Socket};
use super::terms::Terms;
use super::tunnel::Tunnel;

/// How much is read at once, in bytes: more after a read that was filled, as a large body comes.
const READ: usize = 8 * 1024;
const READ_MAX: usize = 256 * 1024;

/// From how many bytes that are still to come a pipe is cheaper than copies, which cost a system call
/// less.
const PIPED: u64 = 32 * 1024;

/// How many interim answers (1xx) one answer may have.
const INTERIM_MAX: u32 = 16;

/// Where an answer's body is.
enum Reading {
    /// There is none, or it has been read.
    Over,
    /// This much is to come.
    Known(u64),
    /// It comes in chunks.
    Chunks(Chunks),
    /// It lasts until the end of the connection.
    UntilClose,
}

/// See the module's text.
pub struct Upstream {
    wire: Wire,
    endpoint: SocketAddr,
    identity: u64,
    /// What has come and is not taken.
    buf: BytesMut,
    read_size: usize,
    parser: HeadParser,
    sending: Option<Sending>,
    reading: Reading,
    /// Whether another request may follow the one in hand.
    keep: bool,
    /// Whether the backend has sent anything since the request in hand began.
    answered: bool,
    /// How long the backend may be silent while it is its turn.
    timeout: Duration,
}

/// An exchange that ended without an answer.
pub struct Failed {
    /// The request's body, if nothing of it is lost.
    pub body: Option<RequestBody>,
    /// Whether no byte of the request has left.
    pub unsent: bool,
    /// Whether the backend had sent anything of an answer.
    pub answered: bool,
    /// Whether a deadline ended it.
    pub timed_out: bool,
    /// What happened.
    pub error: Broken,
}

/// A handshake with an Endpoint that failed otherwise than by taking too long.
#[derive(Debug, thiserror::Error)]
#[error("no TLS: {0}")]
struct NoTls(io::Error);

fn tls_failure(error: HandshakeError) -> io::Error {
    match io::Error::from(error) {
        error if error.kind() == io::ErrorKind::TimedOut => error,
        error => io::Error::other(NoTls(error)),
    }
}

/// Whether a connection could not be made for want of TLS.
pub fn is_tls_failure(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|error| error.is::<NoTls>())
}

/// A connection that failed in the same way, for those who waited for it.
pub fn same_failure(error: &io::Error) -> io::Error {
    match is_tls_failure(error) {
        true => io::Error::other(NoTls(error.kind().into())),
        false => error.kind().into(),
    }
}

/// A new connection to `endpoint`, with TLS if `terms` want it. It may hold writes for `send`.
pub async fn connect(
    endpoint: SocketAddr,
    terms: &Terms,
    send: Duration,
    clock: &Rc<Clock>,
    flusher: &Rc<Flusher>,
) -> io::Result<Rc<Socket>> {
    let until = Instant::now() + terms.connect;
    let socket = Socket::connect(endpoint, terms.connect, send, clock, flusher).await?;
    if let Some(tls) = &terms.tls {
        let tls = tls.connection().map_err(HandshakeError::Tls);
        let left = until.saturating_duration_since(Instant::now());
        let secured = match tls {
            Ok(tls) => socket.secure_as_client(tls, left).await,
            Err(error) => Err(error),
        };
        secured.map_err(tls_failure)?;
    }
    Ok(socket)
}

impl Upstream {
    /// Connects to `endpoint`, with TLS if `terms` want it.
    pub async fn connect(
        endpoint: SocketAddr,
        terms: &Terms,
        clock: &Rc<Clock>,
        flusher: &Rc<Flusher>,
    ) -> io::Result<Box<Self>> {
        let socket = connect(endpoint, terms, terms.send, clock, flusher).await?;
        Ok(Box::new(Upstream {
            wire: Wire(socket),
            endpoint,
            identity: terms.identity(),
            buf: BytesMut::new(),
            read_size: READ,
            parser: HeadParser::default(),
            sending: None,
            reading: Reading::Over,
            keep: true,
            answered: false,
            timeout: terms.read,
        }))
    }

    /// Where it is connected to.
    pub fn endpoint(&self) -> SocketAddr {
        self.endpoint
    }

    /// What it was secured with, see [`Terms::identity`].
    pub fn identity(&self) -> u64 {
        self.identity
    }

    /// The connection below.
    pub fn socket(&self) -> &Rc<Socket> {
        self.wire.socket()
    }

    /// Sets the times of the request that begins: between two reads, and between two writes.
    pub fn set_patience(&mut self, read: Duration, send: Duration) {
        self.timeout = read;
        self.socket().set_send_timeout(send);
        self.socket().wait_while_moving(read);
    }

    /// Sends `request` with `body` and waits for the answer's head; interim answers go to `early`.
    ///
    /// # Errors
    /// With the body, if it can still be sent elsewhere.
    pub async fn exchange(
        &mut self,
        request: &Outgoing<'_>,
        body: RequestBody,
        early: &mut dyn FnMut(&Head),
    ) -> Result<Head, Box<Failed>> {
        let to_head = request.parts.method == Method::HEAD;
        self.answered = false;
        self.keep = request.keeps();
        // What is read with the head is copied, and most of a long answer need not be.
        self.read_size = READ;
        self.socket().begin();
        self.wire.write_with(|out| request.write(out));
        self.sending = match body {
            RequestBody::Empty => None,
            RequestBody::Stream(stream) => Some(Sending::new(stream, request.length)),
        };
        let has_body = self.sending.is_some();
        let mut interim = 0;
        let head = std::future::poll_fn(|cx| self.poll_head(cx, to_head, &mut interim, early));
        match head.await {
            Ok(head) => {
                self.begin_body(&head);
                Ok(head)
            }
            Err(error) => Err(self.fail(error, has_body)),
        }
    }

    /// The end of an exchange without an answer.
    fn fail(&mut self, error: Broken, has_body: bool) -> Box<Failed> {
        self.keep = false;
        let socket = self.wire.socket();
        // A request that goes elsewhere must not be sent here too.
        socket.discard();
        let body = match has_body {
            false => Some(RequestBody::Empty),
            true => {
                let untouched = self.sending.take().and_then(Sending::into_untouched);
                untouched.map(RequestBody::Stream)
            }
        };
        Box::new(Failed {
            body,
            unsent: !socket.has_sent(),
            answered: self.answered,
            timed_out: socket.is_expired(),
            error,
        })
    }

    fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
        to_head: bool,
        interim: &mut u32,
        early: &mut dyn FnMut(&Head),
    ) -> Poll<Result<Head, Broken>> {
        loop {
            self.poll_sending(cx)?;
            while let Some(head) = self.parser.parse(&mut self.buf, to_head)? {
                if !head.is_interim() {
                    return Poll::Ready(Ok(head));
                }
                *interim += 1;
                if *interim > INTERIM_MAX {
                    return Poll::Ready(Err(Invalid("it has too many interim answers").into()));
                }
                early(&head);
            }
            if ready!(self.poll_fill(cx))? == 0 {
                return Poll::Ready(Err(Broken::Cut));
            }
        }
    }

    fn begin_body(&mut self, head: &Head) {
        self.keep &= head.keep;
        self.reading = match head.length {
            Length::None => Reading::Over,
            Length::Known(length) => Reading::Known(length),
            Length::Chunked => Reading::Chunks(Chunks::default()),
            Length::UntilClose => Reading::UntilClose,
        };
    }

    /// Sends what there is of the request's body. Fails only when the client's side does: a backend
    /// that takes no more may have answered all the same.
    fn poll_sending(&mut self, cx: &mut Context<'_>) -> Result<(), Broken> {
        let Some(sending) = &mut self.sending else {
            return Ok(());
        };
        match sending.poll(cx, &self.wire, self.timeout) {
            Poll::Pending => return Ok(()),
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(error @ Broken::Body(_))) => {
                self.keep = false;
                return Err(error);
            }
            Poll::Ready(Err(error)) => {
                tracing::debug!(endpoint = %self.endpoint, %error, "a request's body was not taken");
                self.keep = false;
            }
        }
        self.sending = None;
        Ok(())
    }

    /// Reads once.
    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let offered = self.read_size;
        let polled = self.wire.poll_fill(cx, &mut self.buf, offered);
        let socket = self.wire.socket();
        // The time runs only while somebody waits to read: a client that is slow to take the answer
        // is not the backend's fault. Writing pushes it on, so that a long upload is none either.
        match &polled {
            Poll::Pending if socket.has_deadline() => {}
            Poll::Pending => socket.wait_while_moving(self.timeout),
            Poll::Ready(read) => {
                socket.wait_for_ever();
                match read {
                    Ok(0) | Err(_) => {}
                    Ok(n) => {
                        self.answered = true;
                        self.read_size = match *n {
                            n if n == offered => (offered * 2).min(READ_MAX),
                            n if n < offered / 4 => (offered / 2).max(READ),
                            _ => offered,
                        };
                    }
                }
            }
        }
        polled
    }

    /// The next frame of the answer's body.
    pub fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let polled = self.poll_next(cx);
        if let Poll::Ready(Some(Err(_))) = polled {
            self.keep = false;
        }
        polled
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        loop {
            self.poll_sending(cx)?;
            if let Some(frame) = self.take_frame()? {
                return Poll::Ready(Some(Ok(frame)));
            }
            if self.is_over() {
                return Poll::Ready(None);
            }
            if ready!(self.poll_fill(cx))? == 0 {
                let whole = matches!(self.reading, Reading::UntilClose);
                self.reading = Reading::Over;
                self.keep = false;
                return Poll::Ready(match whole {
                    true => None,
                    false => Some(Err(Broken::Cut)),
                });
            }
        }
    }

    /// Whether what comes next of the body is worth going through a pipe.
    pub fn is_pipeable(&self) -> bool {
        let long = matches!(self.reading, Reading::Known(left) if left >= PIPED);
        long && self.buf.is_empty() && !self.socket().is_secure()
    }

    /// The next frame of the answer's body, which stands for bytes in `pipe`: see
    /// [`Self::is_pipeable`].
    pub fn poll_piped(
        &mut self,
        cx: &mut Context<'_>,
        pipe: &Pipe,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let polled = self.poll_pull(cx, pipe);
        if let Poll::Ready(Err(_)) = polled {
            self.keep = false;
        }
        polled.map(|pulled| Some(pulled.map(|n| Frame::data(Pipe::stand_in(n)))))
    }

    fn poll_pull(&mut self, cx: &mut Context<'_>, pipe: &Pipe) -> Poll<Result<usize, Broken>> {
        self.poll_sending(cx)?;
        ready!(pipe.poll_empty(cx));
        let Reading::Known(left) = self.reading else {
            return Poll::Ready(Err(Broken::Cut));
        };
        let most = usize::try_from(left).map_or(PIPE, |left| left.min(PIPE));
        let socket = self.wire.socket();
        let polled = socket.poll_pull(cx, pipe, most);
        match &polled {
            Poll::Pending if socket.has_deadline() => {}
            Poll::Pending => socket.wait_while_moving(self.timeout),
            Poll::Ready(_) => socket.wait_for_ever(),
        }
        let pulled = ready!(polled)?;
        if pulled == 0 {
            self.reading = Reading::Over;
            return Poll::Ready(Err(Broken::Cut));
        }
        self.reading = match left - pulled as u64 {
            0 => Reading::Over,
            left => Reading::Known(left),
        };
        Poll::Ready(Ok(pulled))
    }

    /// What has come of the body.
    fn take_frame(&mut self) -> Result<Option<Frame<Bytes>>, Invalid> {
        let data = match &mut self.reading {
            Reading::Over => return Ok(None),
            Reading::Known(left) => {
                let most = usize::try_from(*left).unwrap_or(usize::MAX);
                let data = self.buf.split_to(most.min(self.buf.len()));
                *left -= data.len() as u64;
                if *left == 0 {
                    self.reading = Reading::Over;
                }
                data.freeze()
            }
            Reading::UntilClose => self.buf.split().freeze(),
            Reading::Chunks(chunks) => match chunks.next(&mut self.buf)? {
                Step::More => return Ok(None),
                Step::Data(data) => data,
                Step::End(trailers) => {
                    self.reading = Reading::Over;
                    let none = trailers.is_empty();
                    return Ok((!none).then(|| Frame::trailers(trailers)));
                }
            },
        };
        Ok((!data.is_empty()).then(|| Frame::data(data)))
    }

    /// The whole body, if it has come with the head: none otherwise.
    pub fn take_whole(&mut self) -> Option<Bytes> {
        match self.reading {
            Reading::Over => Some(Bytes::new()),
            Reading::Known(length) if self.buf.len() as u64 >= length => {
                self.reading = Reading::Over;
                // It fits, as it is there.
                let length = usize::try_from(length).unwrap_or(usize::MAX);
                Some(self.buf.split_to(length.min(self.buf.len())).freeze())
            }
            _ => None,
        }
    }

    /// Whether the answer has been read to its end.
    pub fn is_over(&self) -> bool {
        matches!(self.reading, Reading::Over)
    }

    /// How much is still to come, if that is known.
    pub fn left(&self) -> Option<u64> {
        match self.reading {
            Reading::Over => Some(0),
            Reading::Known(left) => Some(left),
            Reading::Chunks(_) | Reading::UntilClose => None,
        }
    }

    /// Whether the exchange is over and the connection can take another request. Not with bytes left
    /// over, which belong to no answer.
    pub fn is_ready(&self) -> bool {
        let idle = self.is_over() && self.sending.is_none() && self.buf.is_empty();
        self.keep && idle && !self.socket().is_expired() && !self.socket().is_blocked()
    }

    /// Whether a kept connection still stands. Costs no system call unless something happened.
    pub fn is_alive(&self) -> bool {
        let socket = self.wire.socket();
        if socket.is_expired() {
            return false;
        }
        // Idle, with nothing received: as it was when it was kept.
        if socket.is_quiet() {
            return true;
        }
        // Whatever comes unasked, be it bytes or the end, ends its use.
        let mut byte = [MaybeUninit::uninit()];
        let mut nobody = Context::from_waker(Waker::noop());
        socket.poll_read(&mut nobody, &mut byte).is_pending()
    }

    /// Takes the connection apart once it has answered 101 and the request has gone out.
    pub fn into_tunnel(self: Box<Self>) -> Option<Tunnel> {
        if self.sending.is_some() {
            return None;
        }
        let Wire(socket) = self.wire;
        Some(Tunnel {
            socket,
            early: self.buf.freeze(),
        })
    }
}
