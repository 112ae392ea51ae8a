//! What is known about one client connection, shared by its reader and its requests.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::{Bytes, BytesMut};
use http::HeaderValue;

use super::fault::Fault;
use super::guard::{Guard, Phase};
use super::socket::Socket;
use super::tunnel::Tunnel;
use crate::config::{Limits, Timeouts};

/// What every HTTP/2 client sends first (RFC 9113 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Which protocol a connection speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Nothing has come that decides it.
    Unknown,
    /// HTTP/1.0 or 1.1.
    Http1,
    /// HTTP/2 with prior knowledge.
    Http2,
}

/// One client connection.
pub struct Client {
    /// The connection.
    pub socket: Rc<Socket>,
    /// Who is on the other side.
    pub peer: SocketAddr,
    /// `peer`'s address as header value, made once.
    pub forwarded_for: HeaderValue,
    /// `local`'s port as header value, made once.
    pub forwarded_port: HeaderValue,
    timeouts: Rc<Timeouts>,
    guard: RefCell<Guard>,
    protocol: Cell<Protocol>,
    prefix: RefCell<BytesMut>,
    at_end: Cell<bool>,
    /// Requests in hand: at most one for HTTP/1.
    requests: Cell<u32>,
    refused: Cell<Option<Fault>>,
    /// Who waits for the request in hand to end.
    waiting: RefCell<Option<Waker>>,
    tunnel: RefCell<Option<Tunnel>>,
}

impl Client {
    /// A connection of which nothing has been read.
    pub fn new(
        socket: Rc<Socket>,
        peer: SocketAddr,
        local: SocketAddr,
        timeouts: &Rc<Timeouts>,
        limits: &Limits,
    ) -> Rc<Self> {
        socket.wait_at_most(timeouts.header);
        Rc::new(Client {
            socket,
            peer,
            forwarded_for: text_value(&peer.ip().to_canonical().to_string()),
            forwarded_port: text_value(&local.port().to_string()),
            timeouts: timeouts.clone(),
            guard: RefCell::new(Guard::new(limits.max_head_bytes, limits.max_headers)),
            protocol: Cell::new(Protocol::Unknown),
            prefix: RefCell::default(),
            at_end: Cell::new(false),
            requests: Cell::new(0),
            refused: Cell::new(None),
            waiting: RefCell::default(),
            tunnel: RefCell::default(),
        })
    }

    /// Which protocol it turned out to be.
    pub fn protocol(&self) -> Protocol {
        self.protocol.get()
    }

    /// Looks at what came and returns how much of it the HTTP/1 parser may have.
    pub fn inspect(&self, data: &[u8]) -> io::Result<usize> {
        match self.protocol.get() {
            Protocol::Http2 => Ok(data.len()),
            Protocol::Http1 => self.judge(data).map(|()| data.len()),
            Protocol::Unknown => self.recognise(data),
        }
    }

    /// Tells HTTP/2 from HTTP/1 by the first bytes, which may come one by one.
    fn recognise(&self, data: &[u8]) -> io::Result<usize> {
        let mut prefix = self.prefix.borrow_mut();
        if prefix.is_empty() && !data.is_empty() && !PREFACE.starts_with(first(data, PREFACE.len()))
        {
            drop(prefix);
            self.protocol.set(Protocol::Http1);
            return self.judge(data).map(|()| data.len());
        }
        self.at_end.set(data.is_empty() && prefix.is_empty());
        prefix.extend_from_slice(data);
        if prefix.len() >= PREFACE.len() && prefix.starts_with(PREFACE) {
            self.protocol.set(Protocol::Http2);
            return Err(io::Error::other("the client speaks HTTP/2"));
        }
        if data.is_empty() || !PREFACE.starts_with(first(&prefix, PREFACE.len())) {
            // HTTP/1 after all: the parser gets what was kept aside with the next read.
            self.protocol.set(Protocol::Http1);
            let kept = prefix.split().freeze();
            drop(prefix);
            self.judge(&kept)?;
            self.prefix.borrow_mut().extend_from_slice(&kept);
        }
        Ok(0)
    }

    fn judge(&self, data: &[u8]) -> io::Result<()> {
        let mut guard = self.guard.borrow_mut();
        let before = guard.phase();
        if let Err(fault) = guard.observe(data) {
            self.refused.set(Some(fault));
            return Err(io::Error::new(io::ErrorKind::InvalidData, fault.text()));
        }
        match guard.phase() {
            // The time for a head runs from its first byte.
            Phase::Head if before == Phase::Head => {}
            Phase::Head => self.socket.wait_at_most(self.timeouts.header),
            Phase::Body | Phase::Idle => self.socket.wait_for_ever(),
        }
        Ok(())
    }

    /// Bytes that were read before the parser could have them.
    pub fn take_prefix(&self, most: usize) -> Option<Bytes> {
        if self.protocol.get() == Protocol::Unknown {
            return None;
        }
        let mut prefix = self.prefix.borrow_mut();
        let n = prefix.len().min(most);
        (n > 0).then(|| prefix.split_to(n).freeze())
    }

    /// Waits while a request is in hand if the next one is to be refused: the refusal must not cut
    /// into the answer before it.
    pub fn poll_allowed(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.refused.get() {
            None => Poll::Ready(Ok(())),
            Some(_) if self.requests.get() > 0 && self.phase() != Phase::Body => {
                *self.waiting.borrow_mut() = Some(cx.waker().clone());
                Poll::Pending
            }
            Some(fault) => Poll::Ready(Err(io::Error::new(
                io::ErrorKind::InvalidData,
                fault.text(),
            ))),
        }
    }

    /// Sets the deadline for what the connection waits for now, unless one runs.
    pub fn arm(&self) {
        if self.socket.has_deadline() {
            return;
        }
        match self.phase() {
            Phase::Idle if self.requests.get() > 0 => {}
            Phase::Idle => self.socket.wait_at_most(self.timeouts.keep_alive),
            Phase::Head => self.socket.wait_at_most(self.timeouts.header),
            Phase::Body => self.socket.wait_at_most(self.timeouts.read),
        }
    }

    /// What the connection waits for.
    pub fn phase(&self) -> Phase {
        self.guard.borrow().phase()
    }

    /// Why the stream was refused, if it was.
    pub fn refused(&self) -> Option<Fault> {
        self.refused.get()
    }

    /// A request begins.
    pub fn begin(&self) {
        self.requests.set(self.requests.get() + 1);
        self.socket.set_lazy(self.protocol.get() == Protocol::Http1);
        if self.protocol.get() == Protocol::Http2 {
            self.socket.wait_for_ever();
        }
    }

    /// A request has been answered, or given up.
    pub fn end(&self) {
        self.requests.set(self.requests.get().saturating_sub(1));
        if self.requests.get() == 0 {
            self.arm();
            self.socket.set_lazy(false);
            if let Some(waker) = self.waiting.borrow_mut().take() {
                waker.wake();
            }
        }
    }

    /// Whether nothing that the client has sent is unread, as far as can be known without asking.
    pub fn has_read_all(&self) -> bool {
        self.refused.get().is_none() && self.phase() == Phase::Idle && !self.socket.may_have_more()
    }

    /// Has the connection become a tunnel once its answer is sent.
    pub fn set_tunnel(&self, tunnel: Tunnel) {
        *self.tunnel.borrow_mut() = Some(tunnel);
    }

    /// The tunnel that the connection is to become, if any.
    pub fn take_tunnel(&self) -> Option<Tunnel> {
        self.tunnel.borrow_mut().take()
    }

    /// Whether the client left without a word.
    pub fn at_end(&self) -> bool {
        self.at_end.get()
    }
}

fn first(data: &[u8], n: usize) -> &[u8] {
    data.get(..n).unwrap_or(data)
}

fn text_value(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static("unknown"))
}
