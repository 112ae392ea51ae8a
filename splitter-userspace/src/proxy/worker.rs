//! What one worker thread owns. Nothing of it is shared with another worker but the mapped weights,
//! and the published state, of which each worker keeps its own reference.

mod choose;

use std::cell::{Cell, RefCell};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderValue};
use tokio::sync::Notify;

use super::client::Client;
use super::clock::Clock;
use super::fault::Fault;
use super::flush::Flusher;
use super::handshake::Handshakes;
use super::headers::X_REQUEST_ID;
use super::hex;
use super::http2::Http2Pool;
use super::limiter::Limiter;
use super::mirror::Mirrors;
use super::policy::Gatekeeper;
use super::pool::UpstreamPool;
use super::socket::Pipes;
use super::terms::Terms;
use super::upstream::Upstream;
use crate::auth::Guards;
use crate::config::{Limits, RealIp, Timeouts};
use crate::model::{Backend, Location, LocationId};
use crate::routing::{Aim, Blocks, Live, Picker, SlotId, Tick, WeightSource};
use crate::telemetry::{ConnectionMetrics, Counter, Record, WorkerLog, WorkerMetrics};
use crate::tls::Certificates;

/// The longest X-Request-ID that is taken over from a trusted client, in bytes.
const REQUEST_ID_MAX: usize = 128;

/// One published state, referred to by the requests of one worker.
pub struct Current {
    /// The state.
    pub live: Arc<Live>,
}

/// Where a request belongs.
pub struct Place {
    current: Rc<Current>,
    id: LocationId,
}

impl Place {
    /// The Location.
    pub fn location(&self) -> Option<&Location> {
        self.current.live.snapshot.location(self.id).map(|it| &**it)
    }
}

/// Says where clients are.
pub trait Classes: Send + Sync {
    /// The name of a client's class, by its address alone. Asked once for each connection.
    fn class_of(&self, peer: IpAddr) -> &'static str;

    /// Whether an address is that of a pod or of the node itself, and callers from there belong to
    /// `pool`. Another node's is not: outsiders are hidden behind it by masquerading.
    fn is_inside(&self, addr: IpAddr, pool: &str) -> bool;
}

/// What a worker is made with.
pub struct WorkerParts {
    /// The state that it starts with.
    pub live: Arc<Live>,
    /// What handshakes are made with, to begin with.
    pub certificates: Arc<Certificates>,
    /// Who may call, to begin with.
    pub guards: Arc<Guards>,
    /// What is remembered of those who called.
    pub gatekeeper: Gatekeeper,
    /// The Strict-Transport-Security of answers over TLS.
    pub hsts: Option<HeaderValue>,
    /// Counts and bounds handshakes.
    pub handshakes: Handshakes,
    /// Where the weights are.
    pub weights: Arc<dyn WeightSource>,
    /// Where clients are.
    pub classes: Arc<dyn Classes>,
    /// How long things may take.
    pub timeouts: Timeouts,
    /// How much there may be of things.
    pub limits: Limits,
    /// Who is believed whom they speak for.
    pub real_ip: RealIp,
    /// How much clients have asked for.
    pub limiter: Arc<Limiter>,
    /// Whether this instance listens for https, on whatever address.
    pub https: bool,
    /// The pool's name.
    pub name: &'static str,
    /// Where requests are counted.
    pub metrics: WorkerMetrics,
    /// Where they are logged.
    pub log: WorkerLog,
    /// Counts Endpoints that are left alone for a while.
    pub ejections: Counter,
    /// Copies of requests.
    pub mirrors: Mirrors,
    /// Pipes for long answers.
    pub pipes: Pipes,
    /// Counts interim answers (1xx) that are passed on, and those that are not.
    pub interim: [Counter; 2],
}

/// See the module's text.
pub struct Worker {
    current: RefCell<Rc<Current>>,
    certificates: RefCell<Arc<Certificates>>,
    guards: RefCell<Arc<Guards>>,
    newer_guards: Notify,
    gatekeeper: Gatekeeper,
    handshakes: Handshakes,
    hsts: Option<HeaderValue>,
    weights: Arc<dyn WeightSource>,
    classes: Arc<dyn Classes>,
    clock: Rc<Clock>,
    flusher: Rc<Flusher>,
    pool: Rc<UpstreamPool>,
    pipes: Rc<Pipes>,
    http2: Rc<Http2Pool>,
    timeouts: Rc<Timeouts>,
    limits: Limits,
    https: bool,
    real_ip: RealIp,
    limiter: Arc<Limiter>,
    name: &'static str,
    chance: RefCell<fastrand::Rng>,
    blocks: RefCell<Blocks>,
    picker: RefCell<Picker>,
    metrics: RefCell<WorkerMetrics>,
    connections: ConnectionMetrics,
    log: RefCell<WorkerLog>,
    ejections: Counter,
    mirrors: Mirrors,
    interim: [Counter; 2],
    draining: Cell<bool>,
    /// Whether idle connections end now.
    ending: Cell<bool>,
}

impl Worker {
    /// Must be called on the worker's thread.
    pub fn new(parts: WorkerParts) -> Rc<Self> {
        let mut chance = fastrand::Rng::new();
        let (clock, flusher) = (Clock::new(), Rc::<Flusher>::default());
        Rc::new(Worker {
            current: RefCell::new(Rc::new(Current { live: parts.live })),
            certificates: RefCell::new(parts.certificates),
            guards: RefCell::new(parts.guards),
            newer_guards: Notify::new(),
            gatekeeper: parts.gatekeeper,
            handshakes: parts.handshakes,
            hsts: parts.hsts,
            weights: parts.weights,
            classes: parts.classes,
            http2: Http2Pool::new(&clock, &flusher, &parts.timeouts),
            clock,
            flusher,
            pipes: Rc::new(parts.pipes),
            pool: Rc::new(UpstreamPool::new(
                parts.limits.upstream_idle_per_endpoint,
                parts.timeouts.upstream_idle,
            )),
            timeouts: Rc::new(parts.timeouts),
            limits: parts.limits,
            real_ip: parts.real_ip,
            limiter: parts.limiter,
            https: parts.https,
            name: parts.name,
            blocks: RefCell::new(Blocks::new(chance.fork())),
            picker: RefCell::new(Picker::new(chance.fork())),
            chance: RefCell::new(chance),
            connections: parts.metrics.connections().clone(),
            metrics: RefCell::new(parts.metrics),
            log: RefCell::new(parts.log),
            ejections: parts.ejections,
            mirrors: parts.mirrors,
            interim: parts.interim,
            draining: Cell::new(false),
            ending: Cell::new(false),
        })
    }

    /// The state that a request that begins now is served by.
    pub fn current(&self) -> Rc<Current> {
        self.current.borrow().clone()
    }

    /// Takes over a newly published state. Requests in hand go on with theirs.
    pub fn publish(&self, live: Arc<Live>) {
        let before = self.current();
        let before = &before.live;
        // Most changes are of weights and Endpoints, after which there is nothing to do here.
        if !before
            .snapshot
            .same_backends(&live.snapshot, |one, other| one.key == other.key)
        {
            self.picker.borrow_mut().keep(&live.snapshot);
        }
        if !before.slots.is_same(&live.slots) {
            // Here rather than in the first request that needs it.
            let used = live.slots.iter().filter(|slot| **slot != SlotId::NONE);
            let highest = used.map(|slot| slot.0 as usize + 1).max();
            self.blocks.borrow_mut().reserve(highest.unwrap_or(0));
        }
        *self.current.borrow_mut() = Rc::new(Current { live });
    }

    /// Takes over newly published certificates: the next handshake is made with them.
    pub fn publish_certificates(&self, certificates: Arc<Certificates>) {
        *self.certificates.borrow_mut() = certificates;
    }

    /// What a handshake that begins now is made with.
    pub fn certificates(&self) -> Arc<Certificates> {
        self.certificates.borrow().clone()
    }

    /// Takes over who may call.
    pub fn publish_guards(&self, guards: Arc<Guards>) {
        *self.guards.borrow_mut() = guards;
        self.newer_guards.notify_waiters();
    }

    /// Waits until others hold than `known`.
    pub async fn newer_guards(&self, known: &Arc<Guards>) {
        loop {
            let published = self.newer_guards.notified();
            if !Arc::ptr_eq(&self.guards.borrow(), known) {
                return;
            }
            published.await;
        }
    }

    /// Who may call.
    pub fn guards(&self) -> Arc<Guards> {
        self.guards.borrow().clone()
    }

    /// What is remembered of those who called.
    pub fn gatekeeper(&self) -> &Gatekeeper {
        &self.gatekeeper
    }

    /// The Strict-Transport-Security of answers over TLS.
    pub fn hsts(&self) -> Option<&HeaderValue> {
        self.hsts.as_ref()
    }

    /// Counts and bounds handshakes.
    pub fn handshakes(&self) -> &Handshakes {
        &self.handshakes
    }

    /// Where a client is.
    pub fn class_of(&self, peer: IpAddr) -> &'static str {
        self.classes.class_of(peer)
    }

    /// Whether a caller is known to be inside. Its connection must be from there, in the pool that
    /// the kernel gives such connections; and `caller`, whom a believed header may name, must be
    /// there too: a header can take the class away and never give it.
    pub fn is_inside(&self, peer: IpAddr, caller: IpAddr) -> bool {
        let is = |addr| self.classes.is_inside(addr, self.name);
        is(peer) && (caller == peer || is(caller))
    }

    /// The Endpoint of `backend` that is next, leaving out those in `tried`. What
    /// comes of it is noted in `aim`.
    pub fn pick(
        &self,
        backend: &Arc<Backend>,
        tried: &[SocketAddr],
        aim: &mut Aim,
    ) -> Option<SocketAddr> {
        self.picker
            .borrow_mut()
            .aimed(backend, aim, tried, self.now())
            .map(|endpoint| endpoint.addr)
    }

    /// Leaves an Endpoint alone for a while: it did not accept.
    pub fn eject(&self, endpoint: SocketAddr) {
        self.picker
            .borrow_mut()
            .health()
            .refused(endpoint, self.now());
        self.ejections.inc();
    }

    /// Counts an interim answer, passed on or not.
    pub fn count_interim(&self, passed: bool) {
        let [on, dropped] = &self.interim;
        if passed { on } else { dropped }.inc();
    }

    /// An Endpoint has answered: whatever was held against it is forgotten.
    pub fn endpoint_answered(&self, endpoint: SocketAddr) {
        self.picker.borrow_mut().health().answered(endpoint);
    }

    /// An Endpoint has begun to answer after this time, for those that choose by it. What falls into
    /// one tick of the clock counts as one.
    pub fn endpoint_took(&self, endpoint: SocketAddr, took: Duration) {
        let now = Duration::from_millis(self.clock.millis());
        self.picker.borrow_mut().answered_after(endpoint, took, now);
    }

    /// Draws whether something is to happen that happens this often in a million times.
    pub fn chance(&self, per_million: u32) -> bool {
        self.chance.borrow_mut().u32(..1_000_000) < per_million
    }

    /// Copies of requests.
    pub fn mirrors(&self) -> &Mirrors {
        &self.mirrors
    }

    fn now(&self) -> Tick {
        Tick(self.clock.millis())
    }

    /// A new connection to `endpoint`.
    pub async fn connect(&self, endpoint: SocketAddr, terms: &Terms) -> io::Result<Box<Upstream>> {
        Upstream::connect(endpoint, terms, &self.clock, &self.flusher).await
    }

    /// The id of a request: 32 hexadecimal digits, or what a trusted client gave it.
    pub fn request_id(&self, client: &Client, headers: &HeaderMap) -> HeaderValue {
        if client.origin.forwards
            && let Some(id) = headers.get(X_REQUEST_ID)
            && (1..=REQUEST_ID_MAX).contains(&id.len())
        {
            return id.clone();
        }
        let id = hex::digits(self.chance.borrow_mut().u128(..));
        HeaderValue::from_bytes(&id).unwrap_or(HeaderValue::from_static("0"))
    }

    /// Counts and logs a finished request.
    pub fn observe(&self, record: &Record<'_>) {
        self.metrics.borrow_mut().observe(record);
        let policy = record.location.and_then(|(_, it)| it.policy.as_deref());
        if !policy.is_some_and(|policy| policy.unlogged) {
            self.log.borrow_mut().write(record);
        }
    }

    /// Counts what never became a request.
    pub fn count_fault(&self, fault: Fault) {
        self.metrics.borrow_mut().count_fault(fault.name());
    }

    /// Called every tick: time goes on, idle connections go, the log is handed over.
    pub fn tick(&self) {
        self.clock.tick();
        self.http2.tick();
        if self.clock.now().is_multiple_of(4) {
            self.pool.sweep();
        }
        self.log.borrow_mut().tick();
    }

    /// Ends connections after their next answer.
    pub fn drain(&self) {
        self.draining.set(true);
        self.clock.nudge_all();
    }

    /// Ends idle connections, too.
    pub fn end_idle(&self) {
        self.ending.set(true);
        self.clock.nudge_all();
    }

    /// Whether connections end as soon as they are idle.
    pub fn ends_idle(&self) -> bool {
        self.ending.get()
    }

    /// Whether the worker is on its way out.
    pub fn is_draining(&self) -> bool {
        self.draining.get()
    }

    /// Whether more requests are in hand than may be, the one that is just beginning among them.
    pub fn is_busy(&self) -> bool {
        self.connections.requests_now() > self.limits.max_requests as i64
    }

    /// Whether requests are logged.
    pub fn logs(&self) -> bool {
        self.log.borrow().is_on()
    }

    /// Counts connections.
    pub fn connections(&self) -> &ConnectionMetrics {
        &self.connections
    }

    /// The coarse clock.
    pub fn clock(&self) -> &Rc<Clock> {
        &self.clock
    }

    /// The held writes.
    pub fn flusher(&self) -> &Rc<Flusher> {
        &self.flusher
    }

    /// The kept connections.
    pub fn pool(&self) -> &Rc<UpstreamPool> {
        &self.pool
    }

    /// Pipes for long answers.
    pub fn pipes(&self) -> &Rc<Pipes> {
        &self.pipes
    }

    /// The HTTP/2 connections to Endpoints.
    pub fn http2(&self) -> &Rc<Http2Pool> {
        &self.http2
    }

    /// How long things may take.
    pub fn timeouts(&self) -> &Rc<Timeouts> {
        &self.timeouts
    }

    /// How much there may be of things.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// How much clients have asked for.
    pub fn limiter(&self) -> &Arc<Limiter> {
        &self.limiter
    }

    /// Who is believed whom they speak for.
    pub fn real_ip(&self) -> &RealIp {
        &self.real_ip
    }

    /// Whether this instance listens for https, on whatever address.
    pub fn listens_for_https(&self) -> bool {
        self.https
    }

    /// The pool's name.
    pub fn name(&self) -> &'static str {
        self.name
    }
}
