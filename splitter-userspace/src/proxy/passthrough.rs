//! Connections whose TLS ends at a pod (`ssl-passthrough`): bytes both ways, untouched. The Split of
//! the Location `/` says whose pod it is, as for requests, but for what only requests have.
//!
//! One is counted and logged as one request with the method CONNECT, once it is over: no such request
//! is served otherwise.

use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::{Duration, Instant};

use http::{HeaderMap, Method, Version};

use super::client::Origin;
use super::conn::linger_on;
use super::fault::Fault;
use super::handshake::Untouched;
use super::policy::{self, Caller, Refusal};
use super::socket::Socket;
use super::terms::Terms;
use super::tunnel::{self, Carried, Tunnel};
use super::worker::Worker;
use crate::model::{Location, LocationId};
use crate::routing::{Aim, Decision, Live, Shown};
use crate::telemetry::{Record, UpstreamRecord};

/// How many Endpoints are tried: nothing is lost with one that does not accept.
const TRIES: usize = 3;

/// A fatal alert (RFC 8446 6): that the client may not, and that we cannot.
const ACCESS_DENIED: [u8; 7] = [21, 3, 1, 0, 2, 2, 49];
const INTERNAL_ERROR: [u8; 7] = [21, 3, 1, 0, 2, 2, 80];

/// Passes a connection on until it ends.
pub async fn serve(
    worker: &Rc<Worker>,
    socket: &Rc<Socket>,
    origin: Origin,
    class: &'static str,
    hello: Untouched,
) {
    let Untouched {
        name,
        received,
        current,
        location: id,
    } = hello;
    let live = &current.live;
    let Some(location) = live.snapshot.location(id) else {
        return;
    };
    // Counted and logged when it is dropped, whatever ends it.
    let mut entry = Entry {
        worker,
        live,
        location: (id, location),
        origin: &origin,
        class,
        target: format!("{name}:{}", origin.port),
        name: &name,
        began: Instant::now(),
        picked: None,
        decision: None,
        upstream: None,
        outcome: Outcome::Cut,
        carried: Carried::default(),
    };
    let caller = Caller {
        address: origin.client,
        peer: origin.peer.ip(),
    };
    let _held = match policy::enter_untouched(worker, location.policy.as_deref(), caller) {
        Ok(held) => held,
        Err(refusal) => {
            entry.outcome = Outcome::Refused(refusal);
            return end(socket, &ACCESS_DENIED).await;
        }
    };
    match connect(&mut entry).await {
        Ok((tunnel, idle)) => {
            let carried = &entry.carried;
            let ended = tunnel::run(socket, received.into(), tunnel, idle, carried).await;
            entry.outcome = if ended { Outcome::Ended } else { Outcome::Cut };
        }
        Err(fault) => {
            entry.outcome = Outcome::Failed(fault);
            end(socket, &INTERNAL_ERROR).await;
        }
    }
}

/// Tells the client why, and closes without destroying that.
async fn end(socket: &Rc<Socket>, alert: &[u8]) {
    let slices = [std::io::IoSlice::new(alert)];
    // A failure shows again where the connection is closed.
    let _ = std::future::poll_fn(|cx| socket.poll_write(cx, &slices)).await;
    linger_on(socket).await;
}

/// Chooses a Variant, and connects to one of its Endpoints.
async fn connect(entry: &mut Entry<'_>) -> Result<(Tunnel, Duration), Fault> {
    let (worker, (id, location)) = (entry.worker, entry.location);
    let headers = HeaderMap::new();
    let shown = Shown {
        headers: &headers,
        method: "",
        host: entry.name,
        path: "/",
        query: "",
        client: entry.origin.client,
        held: None,
    };
    let chosen = worker.choose_by(entry.live, id, location, &shown)?;
    entry.decision = Some(chosen.decision);
    let backend = chosen.backend.ok_or(Fault::NoEndpoint)?;
    let terms = Terms::untouched(worker, location.policy.as_deref());
    let mut aim: Aim = chosen.aim;
    let mut tried: Vec<SocketAddr> = Vec::new();
    let mut last = Fault::NoEndpoint;
    while tried.len() < TRIES
        && let Some(endpoint) = worker.pick(&backend, &tried, &mut aim)
    {
        tried.push(endpoint);
        let picked = Instant::now();
        entry.picked = Some(picked);
        let mut record = UpstreamRecord {
            addr: endpoint,
            tries: tried.len() as u32,
            connect: None,
            header: None,
            response: Duration::ZERO,
            status: None,
        };
        let connected = worker.connect(endpoint, &terms).await;
        match connected.map(|upstream| upstream.into_tunnel()) {
            Ok(Some(tunnel)) => {
                record.connect = Some(picked.elapsed());
                entry.upstream = Some(record);
                worker.endpoint_answered(endpoint);
                return Ok((tunnel, terms.tunnel));
            }
            Ok(None) => last = Fault::UpstreamRefused,
            Err(error) => {
                tracing::debug!(%endpoint, %error, "an endpoint did not accept");
                worker.eject(endpoint);
                last = match error.kind() {
                    std::io::ErrorKind::TimedOut => Fault::ConnectTimeout,
                    _ => Fault::UpstreamRefused,
                };
            }
        }
        entry.upstream = Some(record);
    }
    Err(last)
}

/// What became of a connection.
enum Outcome {
    /// Both sides have ended it.
    Ended,
    /// One side broke it, or it was silent for too long, or we are going.
    Cut,
    /// The Location does not let it in.
    Refused(Refusal),
    /// There was nobody to pass it on to.
    Failed(Fault),
}

impl Outcome {
    /// The status in logs and metrics, and the name of what is ours.
    fn told(&self) -> (u16, Option<&'static str>) {
        match self {
            Outcome::Ended => (200, None),
            Outcome::Cut => (Fault::ClientGone.status().as_u16(), Some("passthrough-cut")),
            Outcome::Refused(Refusal::Reply(reply)) => (reply.status.as_u16(), Some(reply.name)),
            Outcome::Refused(Refusal::Fault(fault)) | Outcome::Failed(fault) => {
                (fault.status().as_u16(), Some(fault.name()))
            }
        }
    }
}

/// What is counted and logged of one.
struct Entry<'a> {
    worker: &'a Rc<Worker>,
    live: &'a Live,
    location: (LocationId, &'a Location),
    origin: &'a Origin,
    class: &'static str,
    target: String,
    name: &'a str,
    began: Instant,
    picked: Option<Instant>,
    decision: Option<Decision>,
    upstream: Option<UpstreamRecord>,
    outcome: Outcome,
    carried: Carried,
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        let now = Instant::now();
        let (status, fault) = self.outcome.told();
        if let (Some(upstream), Some(picked)) = (&mut self.upstream, self.picked) {
            upstream.response = now - picked;
        }
        let client: IpAddr = self.origin.client;
        self.worker.observe(&Record {
            live: self.live,
            location: Some(self.location),
            decision: self.decision,
            fault,
            pool: self.worker.name(),
            class: self.class,
            client,
            method: &Method::CONNECT,
            host: self.name,
            target: &self.target,
            version: Version::HTTP_11,
            headers: &HeaderMap::new(),
            request_id: "",
            status,
            request_bytes: self.carried.up.get(),
            response_bytes: self.carried.down.get(),
            duration: now - self.began,
            upstream: self.upstream,
        });
    }
}
