//! What is remembered of a request until it ends, to be counted and logged once.

use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::{Duration, Instant};

use http::header::{REFERER, USER_AGENT};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Version, request};

use super::body::Upload;
use super::client::Client;
use super::codec::Head;
use super::fault::Fault;
use super::policy::affinity::Visit;
use super::policy::{self, Passage};
use super::worker::{Current, Worker};
use crate::model::{Location, LocationId};
use crate::routing::{Aim, Decision, Scheme, Wanted, normalize};
use crate::telemetry::{OpenGuard, Record, UpstreamRecord};

/// An Endpoint that does not answer counts as one that takes at least this long: one that fails at
/// once is not a fast one.
const FAILED: Duration = Duration::from_secs(1);

/// See the module's text. Dropped without an end, it counts as a client that left.
pub struct Journal {
    worker: Rc<Worker>,
    client: Rc<Client>,
    current: Rc<Current>,
    began: Instant,
    method: Method,
    version: Version,
    target: Option<PathAndQuery>,
    host: Option<HeaderValue>,
    caller: IpAddr,
    headers: HeaderMap,
    request_id: HeaderValue,
    request_head: u64,
    /// The Location, once found.
    pub location: Option<LocationId>,
    /// The Variant, once chosen.
    pub decision: Option<Decision>,
    /// How the Endpoint is chosen, and what came of it.
    pub aim: Aim,
    /// What a session cookie depends on.
    pub visit: Visit,
    /// The exchange with the backend, once begun.
    pub upstream: Option<UpstreamRecord>,
    /// When the (last) Endpoint was chosen.
    pub picked: Option<Instant>,
    /// What is kept of it for the policies of its Location.
    pub passage: Passage,
    /// Whether the client is to be told faults in gRPC's words too.
    pub grpc: bool,
    /// The request's body, if it has one.
    pub upload: Option<Rc<Upload>>,
    status: u16,
    response_bytes: u64,
    fault: Option<Fault>,
    /// The policy that answered.
    policy: Option<&'static str>,
    done: bool,
    /// Counts the request as being in hand.
    _open: OpenGuard,
}

impl Journal {
    /// Begins with the request's head.
    pub fn begin(
        worker: &Rc<Worker>,
        client: &Rc<Client>,
        current: &Rc<Current>,
        parts: &request::Parts,
        request_id: HeaderValue,
    ) -> Box<Self> {
        client.begin();
        let mut headers = HeaderMap::new();
        if worker.logs() {
            for name in [USER_AGENT, REFERER] {
                if let Some(value) = parts.headers.get(&name) {
                    headers.insert(name, value.clone());
                }
            }
        }
        Box::new(Journal {
            worker: worker.clone(),
            client: client.clone(),
            current: current.clone(),
            began: Instant::now(),
            method: parts.method.clone(),
            version: parts.version,
            target: parts.uri.path_and_query().cloned(),
            host: None,
            caller: client.address(&parts.headers, worker.real_ip()),
            headers,
            request_id,
            request_head: head_size(parts),
            location: None,
            decision: None,
            aim: Aim::default(),
            passage: Passage::default(),
            upstream: None,
            picked: None,
            visit: Visit::default(),
            grpc: false,
            upload: None,
            status: 0,
            response_bytes: 0,
            fault: None,
            policy: None,
            done: false,
            _open: worker.connections().request(),
        })
    }

    /// The state that the request is served by.
    pub fn current(&self) -> &Rc<Current> {
        &self.current
    }

    /// When the request came.
    pub fn began(&self) -> Instant {
        self.began
    }

    /// Sets what the request's Location has to say on its answer.
    pub fn dress(&self, status: StatusCode, headers: &mut HeaderMap) {
        if let Some(policy) = self.location().and_then(|it| it.policy.as_deref()) {
            policy::dress(policy, &self.passage, status, headers);
        }
    }

    /// Passes an interim answer of the backend on, where the client can have it: HTTP/1.0 knows none,
    /// and a 100 is the proxy's own business with its client (RFC 9110 10.1.1, 15.2).
    pub fn pass_interim(&self, head: &Head) {
        if head.status == StatusCode::CONTINUE || self.is_http10() {
            return;
        }
        let passed = self.client.send_interim(head);
        self.worker.count_interim(passed);
    }

    /// The Location that the request belongs to, once found.
    pub fn location(&self) -> Option<&Location> {
        let location = self.current.live.snapshot.location(self.location?)?;
        Some(location)
    }

    /// The address that the request is from.
    pub fn caller(&self) -> IpAddr {
        self.caller
    }

    /// An Endpoint is chosen: its time begins. For the first one that is the request's begin, to
    /// the microsecond.
    pub fn pick(&mut self, addr: SocketAddr, tries: u32) {
        self.picked = Some(match tries {
            1 => self.began,
            _ => Instant::now(),
        });
        self.upstream = Some(UpstreamRecord {
            addr,
            tries,
            connect: None,
            header: None,
            response: Duration::ZERO,
            status: None,
        });
    }

    /// Tells how soon the Endpoint began to answer, where the next one is chosen by that.
    pub fn observe_speed(&self) {
        if self.aim == Aim::Faster
            && let (Some(upstream), Some(picked)) = (&self.upstream, self.picked)
        {
            let took = upstream.header;
            let took = took.unwrap_or_else(|| picked.elapsed().max(FAILED));
            self.worker.endpoint_took(upstream.addr, took);
        }
    }

    /// For a copy of the request: it is neither counted nor logged.
    pub fn silent(&self) -> Box<Self> {
        Box::new(Journal {
            worker: self.worker.clone(),
            client: self.client.clone(),
            current: self.current.clone(),
            began: Instant::now(),
            method: self.method.clone(),
            version: self.version,
            target: None,
            host: None,
            caller: self.caller,
            headers: HeaderMap::new(),
            request_id: self.request_id.clone(),
            request_head: 0,
            location: self.location,
            decision: None,
            aim: Aim::default(),
            passage: Passage::default(),
            visit: Visit::default(),
            upstream: None,
            picked: None,
            upload: None,
            status: 0,
            response_bytes: 0,
            fault: None,
            policy: None,
            grpc: self.grpc,
            done: true,
            _open: self.worker.connections().request(),
        })
    }

    /// Names the host that was asked for, as the client wrote it.
    pub fn set_host(&mut self, host: &HeaderValue) {
        self.host = Some(host.clone());
    }

    /// Has path and query be known as these from now on: what came with them is for nobody to read.
    pub fn hide(&mut self, target: PathAndQuery) {
        self.target = Some(target);
    }

    /// Path and query as they came.
    pub fn target(&self) -> &str {
        self.target.as_ref().map_or("", PathAndQuery::as_str)
    }

    /// What the client asked for, as the log has it: without what is hidden, and without what the
    /// groups of a path matched.
    pub fn wanted(&self, scheme: Scheme) -> Wanted<'_> {
        let host = self.host.as_ref().and_then(|it| it.to_str().ok());
        let target = self.target.as_ref();
        Wanted {
            scheme,
            method: self.method.as_str(),
            http_host: host.unwrap_or_default(),
            outer_host: None,
            path: target.map_or("", PathAndQuery::path),
            query: target.and_then(PathAndQuery::query),
            pattern: None,
        }
    }

    /// Whether the answer has no body, whatever it is.
    pub fn is_head(&self) -> bool {
        self.method == Method::HEAD
    }

    /// Whether the client is spoken to over TLS.
    pub fn is_secure(&self) -> bool {
        self.client.socket.tls(|_| ()).is_some()
    }

    /// Whether the client speaks HTTP/1.
    pub fn is_http1(&self) -> bool {
        self.version < Version::HTTP_2
    }

    /// Whether the client speaks a version of HTTP that knows no chunks.
    pub fn is_http10(&self) -> bool {
        self.version < Version::HTTP_11
    }

    /// The status that is about to be sent, and why it is ours if it is.
    pub fn answer(&mut self, status: u16, fault: Option<Fault>) {
        self.status = status;
        self.fault = fault;
    }

    /// A policy of the Location answers with this status.
    pub fn answer_by(&mut self, policy: &'static str, status: u16) {
        self.status = status;
        self.policy = Some(policy);
    }

    /// Counts bytes of the answer's body.
    pub fn sent(&mut self, bytes: usize) {
        self.response_bytes += bytes as u64;
    }

    /// The answer has been handed over whole.
    pub fn complete(&mut self) {
        if std::mem::replace(&mut self.done, true) {
            return;
        }
        let now = Instant::now();
        if let (Some(upstream), Some(picked)) = (&mut self.upstream, self.picked) {
            upstream.response = now - picked;
        }
        self.write(now - self.began);
        self.client.end();
    }

    /// The answer ended early.
    pub fn break_off(&mut self, fault: Fault) {
        if self.status == 0 {
            self.status = fault.status().as_u16();
        }
        self.fault = Some(fault);
        self.complete();
    }

    fn write(&self, duration: Duration) {
        let snapshot = &self.current.live.snapshot;
        let location = self
            .location
            .and_then(|id| Some((id, &**snapshot.location(id)?)));
        // A request with a Location is counted under the Location's host.
        let host = self.host.as_ref();
        let host = host.filter(|_| location.is_none() || self.worker.logs());
        let host = host.and_then(|host| host.to_str().ok());
        let host = host.and_then(normalize).unwrap_or(Cow::Borrowed(""));
        let body = self.upload.as_ref().map_or(0, |upload| upload.bytes.get());
        self.worker.observe(&Record {
            live: &self.current.live,
            location,
            decision: self.decision,
            fault: self.fault.map(Fault::name).or(self.policy),
            pool: self.worker.name(),
            class: self.client.class,
            client: self.caller,
            method: &self.method,
            host: &host,
            target: self.target.as_ref().map_or("", PathAndQuery::as_str),
            version: self.version,
            headers: &self.headers,
            request_id: self.request_id.to_str().unwrap_or_default(),
            status: self.status,
            request_bytes: self.request_head + body,
            response_bytes: self.response_bytes,
            duration,
            upstream: self.upstream,
        });
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        if !self.done {
            self.break_off(Fault::ClientGone);
        }
    }
}

/// The size of a request's head as it would stand in HTTP/1.1, in bytes.
fn head_size(parts: &request::Parts) -> u64 {
    // Two blanks, the version, and three CRLF; ": " and CRLF for each field.
    const LINE: usize = 14;
    const FIELD: usize = 4;
    let target = parts.uri.path_and_query().map_or(1, |t| t.as_str().len());
    let fields: usize = parts
        .headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len() + FIELD)
        .sum();
    (parts.method.as_str().len() + target + LINE + fields) as u64
}
