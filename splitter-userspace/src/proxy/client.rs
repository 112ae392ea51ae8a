//! What is known about one client connection, shared by its reader and its requests.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue};

use super::codec::{Head, write_interim};
use super::fault::Fault;
use super::guard::{Guard, Phase};
use super::headers;
use super::limiter::Hold;
use super::policy::{Verdict, same_host};
use super::real_ip;
use super::socket::{HOLD, HOLD_MAX, Socket};
use super::tunnel::Tunnel;
use crate::config::{Limits, RealIp, Timeouts};

/// What every HTTP/2 client sends first (RFC 9113 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The first byte of a TLS connection, which no HTTP message begins with.
const TLS_HANDSHAKE: u8 = 0x16;

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

/// Who is on the other side of a connection, and for whom it speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The other end of the socket.
    pub peer: SocketAddr,
    /// The client: the peer, or whom a believed PROXY header names. Never IPv4-mapped.
    pub client: IpAddr,
    /// The port that the client connected to.
    pub port: u16,
    /// What the client speaks, as far as the connection tells: `http` or `https`.
    pub scheme: &'static str,
    /// Whether the peer is believed what it says of requests in header fields.
    pub forwards: bool,
    /// Whether these name the client as well: not where a PROXY header does.
    pub names_client: bool,
}

/// One client connection.
pub struct Client {
    /// The connection.
    pub socket: Rc<Socket>,
    /// Who is on the other side.
    pub origin: Origin,
    /// Where the other side is, by its address.
    pub class: &'static str,
    /// The client's address as header value, made once.
    pub forwarded_for: HeaderValue,
    /// The port that the client connected to as header value, made once.
    pub forwarded_port: HeaderValue,
    /// The field lines that every request of this connection gets on its way to a backend.
    pub forwarded_lines: Box<[u8]>,
    timeouts: Rc<Timeouts>,
    guard: RefCell<Guard>,
    protocol: Cell<Protocol>,
    prefix: RefCell<BytesMut>,
    at_end: Cell<bool>,
    /// Requests in hand: at most one for HTTP/1.
    requests: Cell<u32>,
    /// Requests that have ever begun.
    begun: Cell<u64>,
    /// Whether an answer is not handed over to the socket yet.
    answering: Cell<bool>,
    /// Whether the answer before the one in hand is not handed over yet.
    behind: Cell<bool>,
    /// Whether the end of the answer is told by the close alone.
    until_close: Cell<bool>,
    refused: Cell<Option<Fault>>,
    /// Who waits for the answer to be handed over.
    waiting: RefCell<Option<Waker>>,
    tunnel: RefCell<Option<(Tunnel, Duration)>>,
    /// What its certificate is worth, once somebody asked.
    verdict: RefCell<Option<Rc<Verdict>>>,
    /// Counts the tunnel among the requests that its client has in hand.
    held: RefCell<Option<Hold>>,
}

impl Client {
    /// A connection of which nothing has been read.
    pub fn new(
        socket: Rc<Socket>,
        origin: Origin,
        class: &'static str,
        timeouts: &Rc<Timeouts>,
        limits: &Limits,
    ) -> Rc<Self> {
        socket.wait_at_most(timeouts.header);
        let forwarded_for = text_value(&origin.client.to_string());
        let forwarded_port = text_value(&origin.port.to_string());
        let lines = headers::forwarded_lines(&forwarded_for, &forwarded_port, origin.scheme);
        Rc::new(Client {
            socket,
            class,
            forwarded_for,
            forwarded_port,
            forwarded_lines: lines.into(),
            origin,
            timeouts: timeouts.clone(),
            guard: RefCell::new(Guard::new(limits.max_head_bytes, limits.max_headers)),
            protocol: Cell::new(Protocol::Unknown),
            prefix: RefCell::default(),
            at_end: Cell::new(false),
            requests: Cell::new(0),
            begun: Cell::new(0),
            until_close: Cell::new(false),
            answering: Cell::new(false),
            behind: Cell::new(false),
            refused: Cell::new(None),
            waiting: RefCell::default(),
            tunnel: RefCell::default(),
            verdict: RefCell::default(),
            held: RefCell::default(),
        })
    }

    /// Whether a request for `host` belongs on this connection: the client has named this host, or
    /// none, in its handshake.
    pub fn is_named(&self, host: &str) -> bool {
        let named = self.socket.tls(|tls| match tls {
            rustls::Connection::Server(tls) => tls.server_name().is_none_or(|name| {
                let name = name.strip_suffix('.').unwrap_or(name);
                same_host(name, host)
            }),
            rustls::Connection::Client(_) => false,
        });
        named.unwrap_or(false)
    }

    /// What the client's certificate was found to be worth.
    pub fn verdict(&self) -> Option<Rc<Verdict>> {
        self.verdict.borrow().clone()
    }

    /// Keeps it for the next request.
    pub fn set_verdict(&self, verdict: Rc<Verdict>) {
        *self.verdict.borrow_mut() = Some(verdict);
    }

    /// Notes that the handshake has settled the protocol.
    pub fn speaks_http2(&self) {
        self.protocol.set(Protocol::Http2);
    }

    /// The address that a request is from.
    pub fn address(&self, headers: &HeaderMap, settings: &RealIp) -> IpAddr {
        match self.origin.names_client {
            true => real_ip::client(headers, self.origin.client, &settings.trusted),
            false => self.origin.client,
        }
    }

    /// Which protocol it turned out to be.
    pub fn protocol(&self) -> Protocol {
        self.protocol.get()
    }

    /// Looks at what came and returns how much of it the HTTP/1 parser may have.
    pub fn inspect(&self, data: &[u8]) -> io::Result<usize> {
        match self.protocol.get() {
            Protocol::Http2 => Ok(data.len()),
            Protocol::Http1 => self.judge(data),
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
            if data.first() == Some(&TLS_HANDSHAKE) {
                self.refused.set(Some(Fault::TlsOnPlain));
                return Err(refusal(Fault::TlsOnPlain));
            }
            return self.judge(data);
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
            let good = self.judge(&kept)?;
            let good = kept.get(..good).unwrap_or_default();
            self.prefix.borrow_mut().extend_from_slice(good);
        }
        Ok(0)
    }

    /// How many of these bytes the parser may have. What came before a refused message is served;
    /// only then is the refusal told.
    fn judge(&self, data: &[u8]) -> io::Result<usize> {
        let mut guard = self.guard.borrow_mut();
        let before = guard.phase();
        if let Err(fault) = guard.observe(data) {
            self.refused.set(Some(fault));
            self.socket.wait_for_ever();
            return match guard.good() {
                0 => Err(refusal(fault)),
                good => Ok(good),
            };
        }
        match guard.phase() {
            // The time for a head runs from its first byte.
            Phase::Head if before == Phase::Head => {}
            Phase::Head => self.socket.wait_at_most(self.timeouts.header),
            Phase::Body | Phase::Idle => self.socket.wait_for_ever(),
        }
        Ok(data.len())
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

    /// Waits while an answer is on its way if the next request is to be refused: the refusal must
    /// not cut into it.
    pub fn poll_allowed(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.refused.get() {
            None => Poll::Ready(Ok(())),
            Some(_) if self.is_answering() => {
                *self.waiting.borrow_mut() = Some(cx.waker().clone());
                Poll::Pending
            }
            Some(fault) => Poll::Ready(Err(refusal(fault))),
        }
    }

    /// Whether a request that was let through has not been begun or not been answered. One whose
    /// body is refused does not count: its reader is to be told.
    fn is_answering(&self) -> bool {
        self.phase() != Phase::Body && (self.answering.get() || self.is_begun_late())
    }

    /// Whether a request that was let through has not begun.
    fn is_begun_late(&self) -> bool {
        self.begun.get() < self.guard.borrow().heads()
    }

    /// Whether the client has left while its only request is in hand; else the task is woken when
    /// it does. A client that ends only its own side has left too, as for nginx.
    pub fn poll_gone(&self, cx: &mut Context<'_>) -> bool {
        let waits = self.requests.get() > 0 && self.phase() == Phase::Idle;
        waits && !self.is_begun_late() && self.socket.poll_gone(cx)
    }

    /// Sets the deadline for what the connection waits for now, unless one runs.
    pub fn arm(&self) {
        if self.socket.has_deadline() {
            return;
        }
        match self.phase() {
            // hyper reads on before the request that it has just parsed begins.
            Phase::Idle if self.requests.get() > 0 || self.is_begun_late() => {}
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
        self.begun.set(self.begun.get() + 1);
        self.behind.set(self.answering.replace(true));
        match self.protocol.get() {
            Protocol::Http2 => self.socket.wait_for_ever(),
            // Only the client's leaving can be left to the clock: a body is waited for.
            _ => self.socket.set_lazy(self.phase() == Phase::Idle),
        }
    }

    /// A request has been answered, or given up.
    pub fn end(&self) {
        self.requests.set(self.requests.get().saturating_sub(1));
        if self.requests.get() == 0 {
            self.socket.set_lazy(false);
        }
    }

    /// The server has handed over all that it had to send.
    pub fn flushed(&self) {
        self.behind.set(false);
        if self.requests.get() == 0 && self.answering.replace(false) {
            self.arm();
            let waker = self.waiting.borrow_mut().take();
            waker.map(Waker::wake).unwrap_or_default();
        }
    }

    /// Sends an interim answer (1xx) ahead of the answer in hand, if it may and can be sent: hyper
    /// cannot do it. Returns whether it is on its way.
    pub fn send_interim(&self, head: &Head) -> bool {
        let fits = head.size() <= HOLD && self.socket.held() + head.size() <= HOLD_MAX;
        let may = self.protocol.get() == Protocol::Http1 && !self.behind.get();
        if may && fits {
            self.socket.hold(|out| write_interim(head, out));
        }
        may && fits
    }

    /// Whether nothing that the client has sent is unread, as far as can be known without asking.
    pub fn has_read_all(&self) -> bool {
        self.refused.get().is_none() && self.phase() == Phase::Idle && !self.socket.may_have_more()
    }

    /// Notes that only the close tells the client the end of this answer.
    pub fn answer_until_close(&self) {
        self.until_close.set(true);
    }

    /// Whether a close now would be taken for the end of an answer.
    pub fn is_answered_until_close(&self) -> bool {
        self.until_close.get()
    }

    /// Has the connection become a tunnel once its answer is sent, to be kept for `idle` without a
    /// byte either way. Until it ends it counts as `held`.
    pub fn set_tunnel(&self, tunnel: Tunnel, idle: Duration, held: Option<Hold>) {
        *self.tunnel.borrow_mut() = Some((tunnel, idle));
        *self.held.borrow_mut() = held;
    }

    /// The tunnel that the connection is to become, if any.
    pub fn take_tunnel(&self) -> Option<(Tunnel, Duration)> {
        self.tunnel.borrow_mut().take()
    }

    /// Whether the client left without a word.
    pub fn at_end(&self) -> bool {
        self.at_end.get()
    }
}

fn refusal(fault: Fault) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, fault.text())
}

fn first(data: &[u8], n: usize) -> &[u8] {
    data.get(..n).unwrap_or(data)
}

/// A text that we make as a header value.
pub fn text_value(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static("unknown"))
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
