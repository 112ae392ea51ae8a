//! HTTP over TLS for one client, the API server.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use socket2::{Domain, Socket, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::{interval, sleep, timeout};
use tokio_rustls::TlsAcceptor;

use super::certificate::{Current, Files, LOOK_EVERY};
use super::turns::{Turns, Unheard};
use crate::config::WebhookSettings;
use crate::k8s::{AdmissionAnswer, AdmissionQuestion, Opinion, Reviewer};
use crate::telemetry::{Counter, Family, Registry};

/// The longest question, in bytes. An object of the API server is at most 1.5 MiB, and a question
/// may hold it twice.
pub const MAX_BODY_BYTES: usize = 4 * 1024 * 1024;

/// Connections at a time; further ones wait in the kernel.
pub const MAX_CONNECTIONS: usize = 32;

/// For which an object is thought about; then it is allowed. Below the API server's own patience.
pub const PATIENCE: Duration = Duration::from_secs(2);

/// For a handshake, and for a question to come.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// Between two tries to accept when the system has no room for a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 128;

const ASKED: Family = Family::counter(
    "splitter_admission_reviews_total",
    "Questions of the API server about objects, by result: allowed, refused, late (allowed, as it \
     took too long), busy (allowed, as too many waited), unread (no question that is understood), \
     no-certificate (a connection that was closed for lack of one)",
);

const RESULTS: [&str; 6] = [
    "allowed",
    "refused",
    "late",
    "busy",
    "unread",
    "no-certificate",
];

/// Why there is no webhook.
#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    /// The address cannot be had.
    #[error("cannot listen on --webhook {addr}: {error}; free it or choose another")]
    Listen {
        /// The address.
        addr: SocketAddr,
        /// The kernel's reason.
        error: std::io::Error,
    },
}

/// The webhook, listening.
pub struct Webhook {
    listener: TcpListener,
    certificate: Current,
}

impl Webhook {
    /// Reads the certificate and listens. The address is shared with an instance that is being
    /// taken over. Files that are not what they should be are looked at again while it serves: they
    /// are no reason for traffic to stop.
    ///
    /// # Errors
    /// When the address cannot be had.
    pub fn open(settings: &WebhookSettings) -> Result<Webhook, WebhookError> {
        let certificate = Current::read(Files {
            certificate: settings.certificate.clone(),
            key: settings.key.clone(),
        });
        let addr = settings.addr;
        let listener = listen(addr).map_err(|error| WebhookError::Listen { addr, error })?;
        Ok(Webhook {
            listener,
            certificate,
        })
    }

    /// Where it listens, with the port that was chosen.
    ///
    /// # Errors
    /// The kernel's.
    pub fn addr(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

fn listen(addr: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = Socket::new(
        Domain::for_address(addr),
        Type::STREAM.nonblocking().cloexec(),
        None,
    )?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    socket.bind(&addr.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

struct Server {
    reviewer: Reviewer,
    turns: Turns,
    /// In the order of [`RESULTS`].
    results: [Counter; 6],
}

/// Answers until `stop` says true or is gone. `note` is told how it is, whenever that has changed.
pub async fn serve(
    webhook: Webhook,
    reviewer: Reviewer,
    registry: Registry,
    note: impl Fn(String),
    mut stop: watch::Receiver<bool>,
) {
    let server = Arc::new(Server {
        reviewer,
        turns: Turns::default(),
        results: RESULTS.map(|result| registry.counter(&ASKED, &[("result", result)])),
    });
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut look = interval(LOOK_EVERY);
    let mut noted = None;
    loop {
        let accepted = tokio::select! {
            biased;
            () = told(&mut stop) => return,
            _ = look.tick() => {
                webhook.certificate.look();
                let fault = webhook.certificate.fault();
                if noted.as_ref() != Some(&fault) {
                    note(fault.clone().unwrap_or_else(|| "answering".to_owned()));
                    noted = Some(fault);
                }
                continue;
            }
            accepted = async {
                // Closed never: it is ours.
                let permit = room.clone().acquire_owned().await.ok();
                (permit, webhook.listener.accept().await)
            } => accepted,
        };
        match accepted {
            (Some(permit), Ok((stream, _))) => {
                let Some(config) = webhook.certificate.config() else {
                    server.count("no-certificate");
                    continue;
                };
                let acceptor = TlsAcceptor::from(config);
                let server = server.clone();
                tokio::spawn(async move {
                    connection(server, acceptor, stream).await;
                    drop(permit);
                });
            }
            (_, Err(error)) => {
                tracing::warn!(%error, "cannot accept a connection to the webhook");
                sleep(ACCEPT_PAUSE).await;
            }
            (None, Ok(_)) => return,
        }
    }
}

/// Waits until it is told to stop, or nobody can tell it any more.
async fn told(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

async fn connection(server: Arc<Server>, acceptor: TlsAcceptor, stream: TcpStream) {
    let stream = match timeout(READ_TIMEOUT, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => {
            // Above all when the API server was told another authority.
            tracing::warn!(%error, "a TLS handshake with the webhook failed");
            return;
        }
        Err(_) => return,
    };
    let service = service_fn(move |request| answer(server.clone(), request));
    // Whatever goes wrong here is the client's.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(READ_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn answer(
    server: Arc<Server>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    if request.method() != Method::POST {
        let text = "POST an AdmissionReview\n";
        return Ok(plain(StatusCode::METHOD_NOT_ALLOWED, text.to_owned()));
    }
    let body = Limited::new(request.into_body(), MAX_BODY_BYTES).collect();
    let question = match timeout(READ_TIMEOUT, body).await {
        Ok(Ok(body)) => AdmissionQuestion::read(&body.to_bytes()),
        Ok(Err(error)) => Err(format!(
            "the body cannot be read, or has more than {MAX_BODY_BYTES} bytes: {error}"
        )),
        Err(_) => Err("the body did not come in time".to_owned()),
    };
    let question = match question {
        Ok(question) => question,
        Err(why) => {
            server.count("unread");
            tracing::warn!(why, "no question of an API server");
            return Ok(plain(StatusCode::BAD_REQUEST, why));
        }
    };
    Ok(json(&server.decide(question).await))
}

impl Server {
    async fn decide(&self, question: AdmissionQuestion) -> AdmissionAnswer {
        let Some((new, old)) = question.ingress() else {
            self.count("allowed");
            return question.answer(&Opinion::default());
        };
        let reviewer = self.reviewer.clone();
        let review = move || reviewer.review(new, old.as_ref());
        let opinion = self.turns.think(review).await;
        let answer = question.answer(opinion.as_ref().unwrap_or(&Opinion::default()));
        self.count(match (&opinion, answer.is_allowed()) {
            (Err(Unheard::Busy), _) => "busy",
            (Err(Unheard::Late), _) => "late",
            (Ok(_), true) => "allowed",
            (Ok(_), false) => "refused",
        });
        answer
    }

    fn count(&self, result: &str) {
        let place = RESULTS.iter().position(|it| *it == result);
        if let Some(counter) = place.and_then(|place| self.results.get(place)) {
            counter.inc();
        }
    }
}

fn plain(status: StatusCode, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(text.into()));
    *response.status_mut() = status;
    response
}

fn json(answer: &AdmissionAnswer) -> Response<Full<Bytes>> {
    match serde_json::to_vec(answer) {
        Ok(body) => {
            let mut response = Response::new(Full::new(body.into()));
            let kind = http::HeaderValue::from_static("application/json");
            response
                .headers_mut()
                .insert(http::header::CONTENT_TYPE, kind);
            response
        }
        Err(error) => plain(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
    }
}
