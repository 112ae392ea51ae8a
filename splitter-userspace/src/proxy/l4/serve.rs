//! What one worker does with the ports of the node.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::super::listen::Acceptor;
use super::connection::Connection;
use super::pipe::Pipes;
use super::ports::{Open, PortKey};
use super::tracked::{Track, Tracked};
use super::udp;
use crate::config::{L4Limits, RealIp};
use crate::model::{L4Key, L4Listener, Weights};
use crate::routing::{L4Live, Live, SlotId, WeightSource};
use crate::telemetry::{L4Counts, L4Refusal, L4Stats};

/// How long an accept loop rests when the process has no descriptor left.
const ACCEPT_REST: Duration = Duration::from_millis(100);

/// What the workers of a pool need for it.
#[derive(Clone)]
pub struct L4Config {
    /// The ports that are open.
    pub open: watch::Receiver<Open>,
    /// Where everything is counted.
    pub stats: L4Stats,
    /// How much there may be, and for how long.
    pub limits: L4Limits,
}

/// One worker's part.
pub struct L4Worker {
    pub(super) config: L4Config,
    /// Always the newest state: a port is opened only once the state that names it is published.
    pub(super) live: watch::Receiver<Arc<Live>>,
    weights: Arc<dyn WeightSource>,
    pub(super) real_ip: RealIp,
    pub(super) connect_timeout: Duration,
    pub(super) header_timeout: Duration,
    pub(super) pipes: Pipes,
    pub(super) tracked: Rc<Tracked>,
    open: Cell<usize>,
    pub(super) stopping: Cell<bool>,
    /// How many UDP sessions are open.
    pub(super) sessions: Cell<usize>,
    /// Where answers of UDP Endpoints are received.
    pub(super) answer: RefCell<Vec<u8>>,
}

impl L4Worker {
    /// One that has nothing open.
    pub fn new(
        config: L4Config,
        live: watch::Receiver<Arc<Live>>,
        weights: Arc<dyn WeightSource>,
        real_ip: RealIp,
        [connect_timeout, header_timeout]: [Duration; 2],
    ) -> Rc<Self> {
        Rc::new(L4Worker {
            config,
            live,
            weights,
            real_ip,
            connect_timeout,
            header_timeout,
            pipes: Pipes::default(),
            tracked: Rc::default(),
            open: Cell::new(0),
            stopping: Cell::new(false),
            sessions: Cell::new(0),
            answer: RefCell::new(vec![0; usize::from(u16::MAX)]),
        })
    }

    /// How many connections are open.
    pub fn open_now(&self) -> usize {
        self.open.get()
    }

    /// Accepts on the ports that are open, as they come and go, with the sockets of the worker of this
    /// number. Ends when `stop` does, with every port closed.
    pub async fn run(self: Rc<Self>, number: usize, stop: impl Future<Output = ()>) {
        let mut open = self.config.open.clone();
        let mut live = self.live.clone();
        let mut ports: BTreeMap<PortKey, watch::Sender<()>> = BTreeMap::new();
        let mut stop = std::pin::pin!(stop);
        loop {
            {
                let now = open.borrow_and_update();
                // Dropping the sender has the loops of a port take what waits, and close.
                ports.retain(|key, _| now.contains_key(key));
                for (key, port) in now
                    .iter()
                    .filter(|(key, _)| !ports.contains_key(key))
                    .collect::<Vec<_>>()
                {
                    let (closes, closed) = watch::channel(());
                    let sockets = port.tcp.get(number).into_iter().flatten();
                    for socket in sockets {
                        self.start(key, socket, closed.clone());
                    }
                    for socket in port.udp.get(number).into_iter().flatten() {
                        self.receive(key, socket, closed.clone());
                    }
                    ports.insert(*key, closes);
                }
            }
            tokio::select! {
                changed = open.changed() => if changed.is_err() { break },
                changed = live.changed() => match changed {
                    Ok(()) => {
                        let present = live.borrow_and_update().clone();
                        self.tracked.look(&present.l4);
                    }
                    Err(_) => break,
                },
                () = &mut stop => break,
            }
        }
        self.stopping.set(true);
    }

    fn receive(self: &Rc<Self>, key: &PortKey, socket: &UdpSocket, closed: watch::Receiver<()>) {
        match socket.try_clone() {
            Ok(socket) => {
                let serve = udp::serve(Rc::clone(self), *key, socket, closed);
                tokio::task::spawn_local(serve);
            }
            Err(error) => tracing::error!(%error, port = key.1, "a worker does not receive there"),
        }
    }

    fn start(self: &Rc<Self>, key: &PortKey, socket: &TcpListener, closed: watch::Receiver<()>) {
        let acceptor = socket.try_clone().and_then(Acceptor::new);
        match acceptor {
            Ok(acceptor) => {
                let accept = accept(Rc::clone(self), *key, acceptor, closed);
                tokio::task::spawn_local(accept);
            }
            Err(error) => tracing::error!(%error, port = key.1, "a worker does not accept there"),
        }
    }

    /// Where a port leads now.
    pub(super) fn find(&self, key: PortKey) -> Option<(L4Listener, Arc<L4Live>)> {
        let live = self.live.borrow().clone();
        let listeners = &live.snapshot.l4.listeners;
        let found = listeners.binary_search_by_key(&key, |it| (it.transport, it.port));
        let listener = listeners.get(found.ok()?)?.clone();
        let service = live.l4.get(listener.service.0 as usize)?;
        Some((listener, Arc::clone(service)))
    }

    /// Where a Service port is counted.
    pub(super) fn counts(&self, key: &L4Key) -> Arc<L4Counts> {
        self.config.stats.of(key)
    }

    /// How much there may be.
    pub(super) fn limits(&self) -> &L4Limits {
        &self.config.limits
    }

    /// The weights in force.
    pub(super) fn weights_of(&self, slot: SlotId) -> Weights {
        self.weights.weights(slot)
    }

    /// Counts one that a Variant was given.
    pub(super) fn count(&self, slot: SlotId, variant: usize) {
        self.weights.count(slot, variant);
    }

    /// Follows whether an Endpoint stays.
    pub(super) fn track(&self, live: &Arc<L4Live>, endpoint: SocketAddr) -> Track {
        self.tracked.add(live, endpoint)
    }

    /// Serves a connection, if there is room for it.
    fn begin(self: &Rc<Self>, key: PortKey, stream: std::net::TcpStream, peer: SocketAddr) {
        let Some((listener, live)) = self.find(key) else {
            // Not asked for any more, and about to be closed.
            return refuse_std(stream);
        };
        let counts = self.config.stats.of(&live.service.key);
        if self.open.get() >= self.config.limits.max_connections {
            counts.refuse(L4Refusal::OverLimit);
            return refuse_std(stream);
        }
        let worker = Rc::clone(self);
        self.open.set(self.open.get() + 1);
        tokio::task::spawn_local(async move {
            let _open = OpenNow(&worker);
            let connection = Connection {
                worker: &worker,
                listener,
                live,
                counts: &counts,
            };
            if let Err(why) = connection.serve(stream, peer).await {
                counts.refuse(why);
            }
        });
    }
}

struct OpenNow<'w>(&'w L4Worker);

impl Drop for OpenNow<'_> {
    fn drop(&mut self) {
        self.0.open.set(self.0.open.get().saturating_sub(1));
    }
}

async fn accept(
    worker: Rc<L4Worker>,
    key: PortKey,
    acceptor: Acceptor,
    mut closed: watch::Receiver<()>,
) {
    loop {
        let accepted = tokio::select! {
            accepted = acceptor.accept() => accepted,
            // Only ever an error: the sender is gone.
            _ = closed.changed() => break,
        };
        match accepted {
            Ok((stream, peer)) => worker.begin(key, stream, peer),
            Err(error) => {
                tracing::warn!(%error, port = key.1, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_REST).await;
            }
        }
    }
    // What the kernel has accepted would be reset with the listener.
    while let Ok((stream, peer)) = acceptor.accept_now() {
        worker.begin(key, stream, peer);
    }
}

fn refuse_std(stream: std::net::TcpStream) {
    let linger = socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO));
    if let Err(error) = linger {
        tracing::debug!(%error, "a connection could not be set to reset");
    }
}
