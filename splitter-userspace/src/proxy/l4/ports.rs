//! The ports of the node as they are opened and closed: on the control thread, which has the right to.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;

use socket2::{Socket, Type};
use tokio::sync::watch;

use super::super::listen::{BACKLOG, bound_as};
use super::datagram::tell_destinations;
use crate::model::{L4, L4Listener, Problem, Severity, Transport};

/// What a port is known by.
pub type PortKey = (Transport, u16);

/// The sockets of one open port.
#[derive(Clone, Debug)]
pub struct Port {
    /// For each worker those of each family.
    pub tcp: Vec<Vec<Arc<TcpListener>>>,
    /// The same of UDP.
    pub udp: Vec<Vec<Arc<UdpSocket>>>,
}

/// The ports that are open.
pub type Open = Arc<BTreeMap<PortKey, Port>>;

/// Opens and closes ports. Those that stay are not touched.
pub struct L4Ports {
    workers: usize,
    open: watch::Sender<Open>,
}

impl L4Ports {
    /// No port is open. Each will have sockets for `workers` workers.
    pub fn new(workers: usize) -> Self {
        L4Ports {
            workers: workers.max(1),
            open: watch::Sender::new(Open::default()),
        }
    }

    /// The ports that are open now.
    pub fn open_now(&self) -> BTreeSet<PortKey> {
        self.open.borrow().keys().copied().collect()
    }

    /// What workers follow.
    pub fn subscribe(&self) -> watch::Receiver<Open> {
        self.open.subscribe()
    }

    /// Opens what is asked for and closes what is not any more. What cannot be opened is a Problem, and
    /// is tried again with the next call; the others are open. The state that is asked for must have been
    /// published before. With `shared` another instance, which is about to make room, may listen too.
    pub fn follow(&mut self, l4: &L4, shared: bool) -> Vec<Problem> {
        let present = self.open.borrow().clone();
        let mut next = BTreeMap::new();
        let mut problems = Vec::new();
        let mut changed = false;
        for listener in &l4.listeners {
            let key = (listener.transport, listener.port);
            if let Some(port) = present.get(&key) {
                next.insert(key, port.clone());
                continue;
            }
            match self.open(listener, shared) {
                Ok(port) => {
                    tracing::info!(port = listener.port, protocol = %listener.transport, "listening");
                    changed = true;
                    next.insert(key, port);
                }
                Err(error) => problems.push(problem(listener, &error)),
            }
        }
        for (transport, port) in present.keys().filter(|key| !next.contains_key(key)) {
            tracing::info!(port, protocol = %transport, "not listening any more");
            changed = true;
        }
        if changed {
            self.open.send_replace(Arc::new(next));
        }
        problems
    }

    /// Closes everything: nothing new is taken.
    pub fn close(&self) {
        self.open.send_replace(Open::default());
    }

    fn open(&self, listener: &L4Listener, shared: bool) -> io::Result<Port> {
        let mut port = Port {
            tcp: vec![Vec::new(); self.workers],
            udp: vec![Vec::new(); self.workers],
        };
        let mut families = 0;
        for ip in [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()] {
            let addr = SocketAddr::new(ip, listener.port);
            let opened = self.open_family(listener.transport, addr, shared);
            // A node may have one family only.
            if opened.as_ref().is_err_and(is_without_family) {
                continue;
            }
            families += 1;
            for (worker, socket) in opened?.into_iter().enumerate() {
                match listener.transport {
                    Transport::Tcp => add(&mut port.tcp, worker, socket.into()),
                    Transport::Udp => add(&mut port.udp, worker, socket.into()),
                }
            }
        }
        match families {
            0 => Err(io::ErrorKind::AddrNotAvailable.into()),
            _ => Ok(port),
        }
    }

    fn open_family(
        &self,
        transport: Transport,
        addr: SocketAddr,
        shared: bool,
    ) -> io::Result<Vec<Socket>> {
        let kind = match transport {
            Transport::Tcp => Type::STREAM,
            Transport::Udp => Type::DGRAM,
        };
        if !shared {
            // Another instance of ours would share the port, and take half of the connections.
            drop(bound_as(addr, kind, false)?);
        }
        let sockets = (0..self.workers).map(|_| {
            let socket = bound_as(addr, kind, true)?;
            match transport {
                // Without waiting for the client's first bytes: in many protocols the server speaks
                // first.
                Transport::Tcp => socket.listen(BACKLOG)?,
                Transport::Udp => tell_destinations(&socket, addr.is_ipv4())?,
            }
            Ok(socket)
        });
        sockets.collect()
    }
}

fn add<T>(all: &mut [Vec<Arc<T>>], worker: usize, socket: T) {
    if let Some(own) = all.get_mut(worker) {
        own.push(Arc::new(socket));
    }
}

fn is_without_family(error: &io::Error) -> bool {
    let code = error.raw_os_error();
    code == Some(libc::EAFNOSUPPORT) || code == Some(libc::EADDRNOTAVAIL)
}

fn problem(listener: &L4Listener, error: &io::Error) -> Problem {
    let why = match error.kind() {
        io::ErrorKind::AddrInUse => "another program of the node has it".to_owned(),
        io::ErrorKind::PermissionDenied => {
            format!("{error}; ports below 1024 take CAP_NET_BIND_SERVICE")
        }
        _ => error.to_string(),
    };
    Problem {
        severity: Severity::Error,
        object: listener.object.clone(),
        source: listener.source.to_string(),
        field: format!("data.{}", listener.port),
        code: "l4-port-not-opened",
        message: format!(
            "{} port {} cannot be listened on: {why}",
            listener.transport, listener.port
        ),
        effect: "the port is not ours; it is tried again each second".to_owned(),
    }
}
