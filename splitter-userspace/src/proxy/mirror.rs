//! Copies of requests to canaries, whose answers are dropped (`splitter.io/mirror`).
//!
//! A copy is sent by a task of its own, so the request that it was made of waits for nothing of it:
//! not for a connection, not for an answer. A body is copied while it comes (`copied`), up to a
//! size. A copy is tried at one Endpoint, once; it is counted as a copy, and never as a request of
//! the Location.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use http::header::UPGRADE;
use http::request;
use hyper::body::Body;

use super::body::{AnswerBody, RequestBody};
use super::codec::{BodyLength, Outgoing};
use super::copied::{BODY_MAX, End, Outcome};
use super::forward::{Exchanged, forward};
use super::journal::Journal;
use super::terms::Terms;
use super::worker::Worker;
use crate::model::{Backend, Mirror};
use crate::telemetry::{Counter, MIRRORED, Registry};

/// The most copies that one worker has under way. Those beyond are not sent.
const MOST: u32 = 64;

/// How much of an answer is read, in bytes, before its connection is closed instead.
const ANSWER_MAX: u64 = 1 << 20;

/// What one worker knows of its copies.
pub struct Mirrors {
    under_way: Cell<u32>,
    /// How much of bodies waits for copies, in bytes.
    held: Rc<Cell<usize>>,
    /// Answered, with whatever status.
    answered: Counter,
    /// Not answered.
    failed: Counter,
    /// Not sent, or broken off, as there was too much under way.
    dropped: Counter,
    /// Not sent, or broken off, as the body was too large.
    too_large: Counter,
    /// Not sent, as the request asked for another protocol.
    unfit: Counter,
}

impl Mirrors {
    /// Counts under the name of this pool.
    pub fn new(registry: &Registry, pool: &'static str) -> Self {
        let counter = |result| registry.counter(&MIRRORED, &[("pool", pool), ("result", result)]);
        Mirrors {
            under_way: Cell::new(0),
            held: Rc::default(),
            answered: counter("answered"),
            failed: counter("failed"),
            dropped: counter("dropped"),
            too_large: counter("too-large"),
            unfit: counter("unfit"),
        }
    }
}

/// One copy under way.
struct UnderWay(Rc<Worker>);

impl UnderWay {
    fn begin(worker: &Rc<Worker>) -> Option<Self> {
        let under_way = &worker.mirrors().under_way;
        if under_way.get() >= MOST {
            worker.mirrors().dropped.inc();
            return None;
        }
        under_way.set(under_way.get() + 1);
        Some(UnderWay(worker.clone()))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let under_way = &self.0.mirrors().under_way;
        under_way.set(under_way.get().saturating_sub(1));
    }
}

/// Sends the copies that the Location wants of this request, which another Variant answers.
pub fn copy(
    worker: &Rc<Worker>,
    mirrors: &[Mirror],
    parts: &request::Parts,
    body: &mut RequestBody,
    length: BodyLength,
    terms: &Terms,
    journal: &Journal,
) {
    for mirror in mirrors {
        let variant = usize::from(mirror.variant);
        let answers = journal.decision.map(|decision| decision.variant);
        if answers == Some(variant) || !worker.chance(mirror.per_million) {
            continue;
        }
        if parts.headers.contains_key(UPGRADE) {
            worker.mirrors().unfit.inc();
            continue;
        }
        if matches!(length, BodyLength::Known(length) if length > BODY_MAX) {
            worker.mirrors().too_large.inc();
            continue;
        }
        let backend = backend(journal, variant);
        if let (Some(backend), Some(under_way)) = (backend, UnderWay::begin(worker)) {
            let (body, outcome) = body.copy(&worker.mirrors().held);
            let mut journal = journal.silent();
            journal.upload = body.upload();
            let copy = Copy {
                under_way,
                backend,
                parts: parts.clone(),
                body,
                outcome,
                length,
                terms: once(terms),
                journal,
            };
            tokio::task::spawn_local(copy.send());
        }
    }
}

/// Who is sent a copy.
fn backend(journal: &Journal, variant: usize) -> Option<Arc<Backend>> {
    let snapshot = &journal.current().live.snapshot;
    let variant = journal.location()?.split.variants.get(variant)?;
    snapshot.backend(variant.backend).cloned()
}

/// The same terms, but nothing is tried twice.
fn once(terms: &Terms) -> Terms {
    let mut once = terms.clone();
    once.retry.tries = 1;
    once
}

/// A request that is sent once more.
struct Copy {
    under_way: UnderWay,
    backend: Arc<Backend>,
    parts: request::Parts,
    body: RequestBody,
    /// What came of the body, if there is one.
    outcome: Option<Outcome>,
    length: BodyLength,
    terms: Terms,
    journal: Box<Journal>,
}

impl Copy {
    async fn send(mut self) {
        let worker = self.under_way.0.clone();
        let copy = Outgoing {
            parts: &self.parts,
            added: None,
            length: self.length,
        };
        let (backend, terms, body) = (&self.backend, &self.terms, self.body);
        let answer = forward(&worker, backend, &copy, body, terms, &mut self.journal).await;
        match answer {
            Ok(exchanged) => {
                worker.mirrors().answered.inc();
                read_away(&worker, exchanged, self.journal).await;
            }
            Err(fault) => {
                tracing::debug!(fault = fault.name(), "a mirrored request was not answered");
                let mirrors = worker.mirrors();
                match self.outcome.and_then(|outcome| outcome.end()) {
                    Some(End::TooLarge) => mirrors.too_large.inc(),
                    Some(End::NoRoom) => mirrors.dropped.inc(),
                    _ => mirrors.failed.inc(),
                }
            }
        }
    }
}

/// Reads an answer to its end, so that the connection can be used again.
pub async fn read_away(worker: &Rc<Worker>, exchanged: Exchanged, journal: Box<Journal>) {
    let mut body = match exchanged {
        Exchanged::Http1 { upstream, .. } => AnswerBody::stream(upstream, worker.pool(), journal),
        Exchanged::Http2 { response, hold } => {
            AnswerBody::http2(response.into_body(), hold, journal)
        }
    };
    let mut left = ANSWER_MAX;
    while let Some(Ok(frame)) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        let size = frame.data_ref().map_or(0, |data| data.len() as u64);
        match left.checked_sub(size) {
            Some(rest) => left = rest,
            None => return,
        }
    }
}
