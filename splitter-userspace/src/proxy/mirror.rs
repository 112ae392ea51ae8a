//! Copies of requests to canaries, whose answers are dropped (`splitter.io/mirror`).
//!
//! A copy is sent by a task of its own, so the request that it was made of waits for nothing of it:
//! not for a connection, not for an answer. Only requests without a body are copied. A copy is tried
//! at one Endpoint, once; it is counted as a copy, and never as a request of the Location.

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
    /// Answered, with whatever status.
    answered: Counter,
    /// Not answered.
    failed: Counter,
    /// Not sent, as there were too many under way.
    dropped: Counter,
    /// Not sent, as the request had a body or asked for another protocol.
    unfit: Counter,
}

impl Mirrors {
    /// Counts under the name of this pool.
    pub fn new(registry: &Registry, pool: &'static str) -> Self {
        let counter = |result| registry.counter(&MIRRORED, &[("pool", pool), ("result", result)]);
        Mirrors {
            under_way: Cell::new(0),
            answered: counter("answered"),
            failed: counter("failed"),
            dropped: counter("dropped"),
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
        let empty = matches!(length, BodyLength::None | BodyLength::Known(0));
        if !empty || parts.headers.contains_key(UPGRADE) {
            worker.mirrors().unfit.inc();
            continue;
        }
        let backend = backend(journal, variant);
        if let (Some(backend), Some(under_way)) = (backend, UnderWay::begin(worker)) {
            let (parts, journal) = (parts.clone(), journal.silent());
            let send = send(under_way, backend, parts, length, once(terms), journal);
            tokio::task::spawn_local(send);
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

async fn send(
    under_way: UnderWay,
    backend: Arc<Backend>,
    parts: request::Parts,
    length: BodyLength,
    terms: Terms,
    mut journal: Box<Journal>,
) {
    let worker = under_way.0.clone();
    let copy = Outgoing {
        parts: &parts,
        added: None,
        length,
    };
    let body = RequestBody::Empty;
    match forward(&worker, &backend, &copy, body, &terms, &mut journal).await {
        Ok(exchanged) => {
            worker.mirrors().answered.inc();
            read_away(&worker, exchanged, journal).await;
        }
        Err(fault) => {
            tracing::debug!(fault = fault.name(), "a mirrored request was not answered");
            worker.mirrors().failed.inc();
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
