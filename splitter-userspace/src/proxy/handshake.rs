//! The first part of a connection to a TLS listener: from its first byte to the end of the handshake.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::rc::Rc;

use rustls::server::{self, Acceptor};
use rustls::{AlertDescription, Connection, Error, HandshakeKind, ProtocolVersion};

use super::fault::Fault;
use super::own;
use super::socket::{HandshakeError, Session, Socket};
use super::worker::{Current, Worker};
use crate::model::LocationId;
use crate::routing::Live;
use crate::telemetry::{Counter, Registry, TLS_HANDSHAKES};
use crate::tls::{Peek, Peeked};

/// The first byte of every TLS connection: a handshake record.
const HANDSHAKE: u8 = 0x16;

/// How much is read at a time before the hello is whole, in bytes; with post-quantum keys it has
/// about 1.7 KiB.
const CHUNK: usize = 4096;

/// What was agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agreed {
    /// Whether the connection speaks HTTP/2.
    pub http2: bool,
}

/// How a connection to a TLS listener goes on.
pub enum Accepted {
    /// With TLS that ends here.
    Secured(Agreed),
    /// With TLS that ends at a pod.
    Untouched(Untouched),
}

/// A connection of which nothing was answered.
pub struct Untouched {
    /// The name in its hello.
    pub name: String,
    /// All that has come.
    pub received: Vec<u8>,
    /// The state that says where it goes.
    pub current: Rc<Current>,
    /// The Location whose pods it is for.
    pub location: LocationId,
}

/// Makes the handshake, or leaves it to a pod; none when it failed, which is counted and told to the
/// client by then.
pub async fn accept(worker: &Rc<Worker>, socket: &Rc<Socket>) -> Option<Accepted> {
    let _open = worker.handshakes().open()?;
    socket.wait_at_most(worker.timeouts().handshake);
    let failure = match attempt(worker, socket).await {
        Ok(accepted) => {
            socket.wait_for_ever();
            return Some(accepted);
        }
        Err(failure) => failure,
    };
    if let Failure::Fault(fault) = failure {
        worker.count_fault(fault);
        let text = own::raw_answer(fault);
        let slices = [IoSlice::new(text.as_bytes())];
        // A failure shows again where the connection is closed.
        let _ = std::future::poll_fn(|cx| socket.poll_write(cx, &slices)).await;
    }
    let reason = failure.reason(socket.is_expired());
    worker.handshakes().failed(reason);
    super::conn::linger_on(socket).await;
    None
}

async fn attempt(worker: &Rc<Worker>, socket: &Rc<Socket>) -> Result<Accepted, Failure> {
    let current = worker.current();
    let (accepted, rest) = match hello(socket, &current.live).await? {
        Hello::Ours(accepted, rest) => (accepted, rest),
        Hello::Theirs {
            name,
            received,
            location,
        } => {
            worker.handshakes().count(["", "", "passed", ""]);
            return Ok(Accepted::Untouched(Untouched {
                name,
                received,
                current,
                location,
            }));
        }
    };
    let name = accepted.client_hello().server_name().map(str::to_owned);
    let certificates = worker.certificates();
    let config = certificates.config(name.as_deref().unwrap_or_default());
    let Some(config) = config.cloned() else {
        return Err(Failure::Tls(Error::General("no configuration".to_owned())));
    };
    let tls = match accepted.into_connection(config) {
        Ok(tls) => tls,
        Err((error, mut alert)) => {
            let mut bytes = Vec::new();
            // Cannot fail: memory takes all.
            let _ = alert.write_all(&mut bytes);
            return Err(refused(socket, error, &bytes).await);
        }
    };
    socket.secure(Session::new(Connection::Server(tls), &rest));
    std::future::poll_fn(|cx| socket.poll_handshake(cx)).await?;
    socket.tls(|tls| worker.handshakes().made(tls));
    let http2 = socket.tls(|tls| tls.alpn_protocol() == Some(b"h2"));
    Ok(Accepted::Secured(Agreed {
        http2: http2.unwrap_or(false),
    }))
}

/// A client's hello, and what came behind it.
enum Hello {
    Ours(Box<server::Accepted>, Vec<u8>),
    Theirs {
        name: String,
        received: Vec<u8>,
        location: LocationId,
    },
}

/// Reads the client's hello, which may come byte by byte. Where hosts leave TLS to their pods nothing
/// is judged before it is whole: half a hello has no name, and must not be taken for one without.
async fn hello(socket: &Rc<Socket>, live: &Live) -> Result<Hello, Failure> {
    let mut acceptor = Acceptor::default();
    let mut peek = (!live.snapshot.passthrough.is_empty()).then(Peek::default);
    let mut first = true;
    loop {
        let mut buf = [MaybeUninit::<u8>::uninit(); CHUNK];
        let received = std::future::poll_fn(|cx| match socket.poll_receive_init(cx, &mut buf) {
            std::task::Poll::Ready(Ok(received)) => std::task::Poll::Ready(Ok(received.to_vec())),
            std::task::Poll::Ready(Err(e)) => std::task::Poll::Ready(Err(e)),
            std::task::Poll::Pending => std::task::Poll::Pending,
        })
        .await?;
        let Some(byte) = received.first() else {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        };
        if std::mem::take(&mut first) && *byte != HANDSHAKE {
            // Letters are a method, and whoever sent it understands an answer.
            return Err(match byte.is_ascii_uppercase() {
                true => Failure::Fault(Fault::PlainOnTls),
                false => Failure::Garbage,
            });
        }
        let mut received = received;
        if let Some(mut peeking) = peek.take() {
            match peeking.push(&received) {
                Peeked::More => {
                    peek = Some(peeking);
                    continue;
                }
                Peeked::Named(name) => {
                    let found = name.as_deref().and_then(|it| live.passthrough(it));
                    received = peeking.into_raw();
                    if let (Some(location), Some(name)) = (found, name) {
                        return Ok(Hello::Theirs {
                            name,
                            received,
                            location,
                        });
                    }
                }
                // The library says what is wrong with it; it has no name that it could belong by.
                Peeked::Garbage => {
                    let mut raw = peeking.into_raw();
                    acceptor
                        .read_tls(&mut raw.as_slice())
                        .map_err(|_| Failure::Garbage)?;
                    raw.clear();
                    return Err(match acceptor.accept() {
                        Err((error, mut alert)) => {
                            let mut bytes = Vec::new();
                            // Cannot fail: memory takes all.
                            let _ = alert.write_all(&mut bytes);
                            refused(socket, error, &bytes).await
                        }
                        Ok(_) => Failure::Garbage,
                    });
                }
            }
        }
        let mut rest = received.as_slice();
        while !rest.is_empty() {
            acceptor.read_tls(&mut rest).map_err(|_| Failure::Garbage)?;
            match acceptor.accept() {
                Ok(None) => {}
                Ok(Some(accepted)) => return Ok(Hello::Ours(Box::new(accepted), rest.to_vec())),
                Err((error, mut alert)) => {
                    let mut bytes = Vec::new();
                    // Cannot fail: memory takes all.
                    let _ = alert.write_all(&mut bytes);
                    return Err(refused(socket, error, &bytes).await);
                }
            }
        }
    }
}

/// Sends the alert that says why.
async fn refused(socket: &Rc<Socket>, error: Error, alert: &[u8]) -> Failure {
    let slices = [IoSlice::new(alert)];
    // A failure shows again where the connection is closed.
    let _ = std::future::poll_fn(|cx| socket.poll_write(cx, &slices)).await;
    Failure::Tls(error)
}

/// Why there is no session.
#[derive(Debug)]
enum Failure {
    /// What can be told in HTTP.
    Fault(Fault),
    /// Neither TLS nor HTTP.
    Garbage,
    Io(io::Error),
    Tls(Error),
}

impl Failure {
    /// The name in metrics.
    fn reason(&self, expired: bool) -> &'static str {
        match self {
            _ if expired => "timeout",
            Failure::Fault(fault) => fault.name(),
            Failure::Garbage => "garbage",
            Failure::Io(e) => {
                tracing::debug!(error = %e, "a client left during its handshake");
                "client-gone"
            }
            Failure::Tls(e) => {
                tracing::debug!(error = %e, "a handshake failed");
                tls_reason(e)
            }
        }
    }
}

fn tls_reason(error: &Error) -> &'static str {
    match error {
        Error::AlertReceived(
            AlertDescription::UnknownCA
            | AlertDescription::BadCertificate
            | AlertDescription::CertificateUnknown
            | AlertDescription::CertificateExpired,
        ) => "certificate-refused",
        Error::AlertReceived(_) => "client-alert",
        Error::PeerIncompatible(_) => "nothing-in-common",
        Error::NoApplicationProtocol => "no-protocol",
        Error::InvalidMessage(_) | Error::DecryptError => "garbage",
        Error::InappropriateMessage { .. }
        | Error::InappropriateHandshakeMessage { .. }
        | Error::PeerMisbehaved(_)
        | Error::PeerSentOversizedRecord => "misbehaved",
        Error::NoCertificatesPresented | Error::InvalidCertificate(_) => "client-certificate",
        _ => "other",
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::Io(error)
    }
}

impl From<HandshakeError> for Failure {
    fn from(error: HandshakeError) -> Self {
        match error {
            HandshakeError::Io(error) => Failure::Io(error),
            HandshakeError::Tls(error) => Failure::Tls(error),
        }
    }
}

/// Labels of a handshake: version, group, result, reason.
type Labels = [&'static str; 4];

/// The handshakes of one worker: how many are open, and what became of them.
pub struct Handshakes {
    registry: Registry,
    pool: &'static str,
    most: usize,
    open: Rc<()>,
    counters: RefCell<HashMap<Labels, Counter>>,
}

/// A handshake that is open until this is dropped.
pub struct OpenHandshake(#[allow(dead_code, reason = "counted by being there")] Rc<()>);

impl Handshakes {
    /// None yet; at most `most` at once.
    pub fn new(registry: Registry, pool: &'static str, most: usize) -> Self {
        Handshakes {
            registry,
            pool,
            most,
            open: Rc::new(()),
            counters: RefCell::default(),
        }
    }

    /// One more, if there is room.
    fn open(&self) -> Option<OpenHandshake> {
        if Rc::strong_count(&self.open) > self.most {
            self.failed("overloaded");
            return None;
        }
        Some(OpenHandshake(self.open.clone()))
    }

    fn made(&self, tls: &Connection) {
        let version = match tls.protocol_version() {
            Some(ProtocolVersion::TLSv1_3) => "1.3",
            Some(ProtocolVersion::TLSv1_2) => "1.2",
            _ => "",
        };
        let group = tls.negotiated_key_exchange_group();
        let group = group.and_then(|group| group.name().as_str()).unwrap_or("");
        let result = match tls.handshake_kind() {
            Some(HandshakeKind::Resumed) => "resumed",
            _ => "full",
        };
        self.count([version, group, result, ""]);
    }

    fn failed(&self, reason: &'static str) {
        self.count(["", "", "failed", reason]);
    }

    fn count(&self, labels: Labels) {
        let mut counters = self.counters.borrow_mut();
        let counter = counters.entry(labels).or_insert_with(|| {
            let [version, group, result, reason] = labels;
            let labels = [
                ("pool", self.pool),
                ("version", version),
                ("group", group),
                ("result", result),
                ("reason", reason),
            ];
            self.registry.counter(&TLS_HANDSHAKES, &labels)
        });
        counter.inc();
    }
}
