//! Datagrams: those between two sockets are a session, which has one Endpoint until it has been silent for
//! a while.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;

use socket2::SockRef;
use tokio::io::Interest;
use tokio::net::UdpSocket;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::datagram::{self, Buffer, Received};
use super::ports::PortKey;
use super::serve::L4Worker;
use super::tracked::Track;
use crate::model::Transport;
use crate::routing::{L4Reason, L4Taken, l4_flow};
use crate::telemetry::{L4Counts, L4Cut, L4Guard, L4Refusal};

/// How many datagrams of one socket are taken before others have their turn.
const TURN: usize = 64;

/// A client's socket, and the address of the node that it speaks to.
type Ends = (SocketAddr, IpAddr);

/// The sessions of one socket.
#[derive(Default)]
struct Sessions(RefCell<HashMap<Ends, Rc<Session>>>);

struct Session {
    /// Connected to the Endpoint.
    endpoint: UdpSocket,
    last: Cell<Instant>,
    guard: L4Guard,
    counts: Arc<L4Counts>,
    task: RefCell<Option<AbortHandle>>,
}

/// Carries the datagrams of a socket until its port is closed; its sessions end then.
pub async fn serve(
    worker: Rc<L4Worker>,
    key: PortKey,
    socket: std::net::UdpSocket,
    mut closed: watch::Receiver<()>,
) {
    let socket = match UdpSocket::from_std(socket) {
        Ok(socket) => Rc::new(socket),
        Err(error) => {
            tracing::error!(%error, port = key.1, "a worker does not receive there");
            return;
        }
    };
    let sessions = Rc::new(Sessions::default());
    let mut buffer = Buffer::new();
    loop {
        tokio::select! {
            ready = socket.readable() => if ready.is_err() { break },
            // Only ever an error: the sender is gone.
            _ = closed.changed() => break,
        }
        for _ in 0..TURN {
            let received = socket.try_io(Interest::READABLE, || {
                datagram::receive(&*socket, &mut buffer)
            });
            match received {
                Ok(received) => {
                    let data = buffer.bytes(received.length);
                    pass(&worker, key, &socket, &sessions, received, data);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // An ICMP error about an answer, for one: the next datagram is another matter.
                Err(error) => tracing::debug!(%error, port = key.1, "a datagram was not received"),
            }
        }
        tokio::task::yield_now().await;
    }
    for (_, session) in sessions.0.take() {
        session.counts.cut(L4Cut::Stopped);
        if let Some(task) = session.task.take() {
            task.abort();
        }
    }
}

/// Passes a datagram of a client on to its session's Endpoint.
fn pass(
    worker: &Rc<L4Worker>,
    key: PortKey,
    socket: &Rc<UdpSocket>,
    sessions: &Rc<Sessions>,
    received: Received,
    data: &[u8],
) {
    let ends = (received.from, received.to);
    let known = sessions.0.borrow().get(&ends).cloned();
    let session = match known {
        Some(session) => session,
        None => match begin(worker, key, socket, sessions, ends) {
            Some(session) => session,
            None => return,
        },
    };
    session.last.set(Instant::now());
    // What the Endpoint's queue does not take is lost, as on any way of a datagram.
    if SockRef::from(&session.endpoint).send(data).is_ok() {
        session.guard.received(data.len() as u64);
    }
}

/// Begins a session, if there is room and an Endpoint.
fn begin(
    worker: &Rc<L4Worker>,
    key: PortKey,
    socket: &Rc<UdpSocket>,
    sessions: &Rc<Sessions>,
    ends: Ends,
) -> Option<Rc<Session>> {
    let (_, live) = worker.find(key)?;
    let counts = worker.counts(&live.service.key);
    if worker.sessions.get() >= worker.limits().max_sessions {
        counts.refuse(L4Refusal::OverLimit);
        return None;
    }
    let (client, own) = ends;
    let asked = SocketAddr::new(own.to_canonical(), key.1);
    let client_flow = SocketAddr::new(client.ip().to_canonical(), client.port());
    let flow = l4_flow(Transport::Udp, client_flow, asked);
    let weights = worker.weights_of(live.slot);
    let Some(choice) = live.choose(&flow, &weights, L4Taken::NorthSouth) else {
        counts.refuse(L4Refusal::NoEndpoint);
        return None;
    };
    if choice.reason == L4Reason::Fallback {
        counts.fall_back();
    }
    let offered = live.endpoints(choice.variant, &flow);
    let connected = offered
        .iter()
        .find_map(|addr| Some((connected(*addr).ok()?, *addr)));
    let Some((endpoint, addr)) = connected else {
        counts.refuse(L4Refusal::NotAccepted);
        return None;
    };
    worker.count(live.slot, choice.variant);
    let name = live.service.variants.get(choice.variant).map(|it| &it.name);
    let session = Rc::new(Session {
        endpoint,
        last: Cell::new(Instant::now()),
        guard: counts.begin(name.unwrap_or(&live.service.key.service)),
        counts,
        task: RefCell::new(None),
    });
    let track = worker.track(&live, addr);
    sessions.0.borrow_mut().insert(ends, Rc::clone(&session));
    let back = back(
        Rc::clone(worker),
        Rc::clone(socket),
        Rc::downgrade(sessions),
        Rc::clone(&session),
        ends,
        track,
    );
    let task = tokio::task::spawn_local(back);
    session.task.replace(Some(task.abort_handle()));
    Some(session)
}

/// A socket of its own for each session, so that answers find their way back.
fn connected(endpoint: SocketAddr) -> io::Result<UdpSocket> {
    let any: IpAddr = match endpoint {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = std::net::UdpSocket::bind((any, 0))?;
    socket.connect(endpoint)?;
    socket.set_nonblocking(true)?;
    UdpSocket::from_std(socket)
}

/// Counts the sessions of a worker.
struct OpenNow(Rc<L4Worker>);

impl OpenNow {
    fn new(worker: Rc<L4Worker>) -> Self {
        worker.sessions.set(worker.sessions.get() + 1);
        OpenNow(worker)
    }
}

impl Drop for OpenNow {
    fn drop(&mut self) {
        self.0.sessions.set(self.0.sessions.get().saturating_sub(1));
    }
}

/// Passes answers back until the session has been silent for its time, its Endpoint is gone, or it says
/// that nobody listens there.
fn back(
    worker: Rc<L4Worker>,
    socket: Rc<UdpSocket>,
    sessions: std::rc::Weak<Sessions>,
    session: Rc<Session>,
    ends: Ends,
    track: Track,
) -> impl Future<Output = ()> {
    // Counted from here on, not from when the task first runs.
    let open = OpenNow::new(Rc::clone(&worker));
    async move {
        let _open = open;
        let idle = worker.limits().udp_idle;
        let why = loop {
            let silent = session.last.get() + idle;
            tokio::select! {
                answered = answered(&worker, &socket, &session, ends) => {
                    if answered.is_err() {
                        break Some(L4Cut::Reset);
                    }
                }
                () = track.gone.notified() => break Some(L4Cut::EndpointGone),
                () = tokio::time::sleep_until(silent) => {
                    if session.last.get() + idle <= Instant::now() {
                        // The usual end.
                        break None;
                    }
                }
            }
        };
        if let Some(why) = why {
            session.counts.cut(why);
        }
        if let Some(sessions) = sessions.upgrade() {
            sessions.0.borrow_mut().remove(&ends);
        }
    }
}

/// Passes the answers back that are there, once there is one.
async fn answered(
    worker: &L4Worker,
    socket: &UdpSocket,
    session: &Session,
    (client, own): Ends,
) -> io::Result<()> {
    session.endpoint.readable().await?;
    let mut buffer = worker.answer.borrow_mut();
    for _ in 0..TURN {
        let length = match session.endpoint.try_recv(&mut buffer) {
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        };
        let data = buffer.get(..length).unwrap_or_default();
        session.last.set(Instant::now());
        // What its queue does not take is lost, as on any way of a datagram.
        if datagram::answer(socket, data, client, own).is_ok() {
            session.guard.sent(length as u64);
        }
    }
    Ok(())
}
