//! Listening sockets: one of each address for each worker, spread by the kernel.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::SocketFlags;
use socket2::{Domain, Socket, Type};
use tokio::io::unix::AsyncFd;

use super::start::StartError;

/// How many connections may wait to be accepted, on one socket; `net.core.somaxconn` caps it.
pub const BACKLOG: i32 = 4096;

/// How long the kernel keeps a connection that has sent nothing from us.
const DEFER: Duration = Duration::from_secs(5);

/// What clients of a listener connect to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Local {
    /// The address.
    pub addr: SocketAddr,
    /// Whether TLS is spoken there.
    pub tls: bool,
}

/// Listening sockets that share an address, one for each worker of a pool; the kernel spreads
/// connections over them.
#[derive(Debug)]
pub struct Sockets {
    /// What clients connect to.
    addr: SocketAddr,
    tls: bool,
    listeners: Vec<TcpListener>,
}

impl Sockets {
    /// Opens `workers` sockets on `addr`, at least one. Port 0 is chosen once for all of them.
    ///
    /// # Errors
    /// When the address is taken, even by somebody who would share it, or not ours to use.
    pub fn open(addr: SocketAddr, workers: usize) -> Result<Self, StartError> {
        let failed = |error| StartError::Listen { addr, error };
        // Another instance of ours would share the address, and half of the connections be lost
        // to it.
        drop(bound(addr, false).map_err(failed)?);
        let mut listeners = Vec::with_capacity(workers);
        let mut shared = addr;
        for _ in 0..workers.max(1) {
            let listener = open_one(shared).map_err(failed)?;
            shared = listener.local_addr().map_err(failed)?;
            listeners.push(listener);
        }
        Ok(Sockets {
            addr: shared,
            tls: false,
            listeners,
        })
    }

    /// Goes on with sockets that listen already, on `addr` or behind it, and opens more of them where
    /// there are fewer than `workers`. None may be missing altogether.
    ///
    /// # Errors
    /// When another one cannot be opened: they belong to another user, for one.
    pub fn adopt(
        addr: SocketAddr,
        mut listeners: Vec<TcpListener>,
        workers: usize,
    ) -> Result<Self, StartError> {
        let failed = |error| StartError::Listen { addr, error };
        let first = listeners.first().map(TcpListener::local_addr);
        let shared = first.unwrap_or(Ok(addr)).map_err(failed)?;
        while listeners.len() < workers.max(1) {
            listeners.push(open_one(shared).map_err(failed)?);
        }
        Ok(Sockets {
            addr,
            tls: false,
            listeners,
        })
    }

    /// Has more sockets, with connections to the same address, be accepted from.
    pub fn join(&mut self, mut listeners: Vec<TcpListener>) {
        self.listeners.append(&mut listeners);
    }

    /// Copies of the sockets' descriptors.
    ///
    /// # Errors
    /// When the process has no descriptor left.
    pub fn copies(&self) -> io::Result<Vec<OwnedFd>> {
        let copies = self
            .listeners
            .iter()
            .map(|it| it.try_clone().map(OwnedFd::from));
        copies.collect()
    }

    /// Has TLS be spoken there.
    pub fn secure(self) -> Self {
        Sockets { tls: true, ..self }
    }

    /// Whether TLS is spoken there.
    pub fn is_secure(&self) -> bool {
        self.tls
    }

    /// Opens sockets for connections to `addr` that somebody else steers to them. They listen on a
    /// loopback address of the same family, which nobody outside of this node reaches.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn behind(addr: SocketAddr, workers: usize) -> Result<Self, StartError> {
        let loopback: IpAddr = match addr {
            SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        };
        let sockets = Self::open(SocketAddr::new(loopback, 0), workers)?;
        Ok(Sockets { addr, ..sockets })
    }

    /// What clients connect to, with the port that was chosen.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// One of the sockets, open until the pool that takes them stops.
    ///
    /// # Errors
    /// When the process has no descriptor left.
    pub fn one(&self) -> io::Result<OwnedFd> {
        match self.listeners.first() {
            Some(listener) => listener.try_clone().map(OwnedFd::from),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// The sockets, one for each worker.
    pub(super) fn into_listeners(self) -> (Local, Vec<TcpListener>) {
        let local = Local {
            addr: self.addr,
            tls: self.tls,
        };
        (local, self.listeners)
    }
}

fn open_one(addr: SocketAddr) -> io::Result<TcpListener> {
    let socket = bound(addr, true)?;
    socket.listen(BACKLOG)?;
    defer_accept(&socket);
    Ok(socket.into())
}

/// A socket on `addr`, `shared` with others of this process.
pub(super) fn bound(addr: SocketAddr, shared: bool) -> io::Result<Socket> {
    bound_as(addr, Type::STREAM, shared)
}

/// The same for streams or datagrams.
pub(super) fn bound_as(addr: SocketAddr, kind: Type, shared: bool) -> io::Result<Socket> {
    let stream = kind == Type::STREAM;
    let kind = kind.nonblocking().cloexec();
    let socket = Socket::new(Domain::for_address(addr), kind, None)?;
    if addr.is_ipv6() {
        // So that 0.0.0.0 and [::] go together.
        socket.set_only_v6(true)?;
    }
    socket.set_reuse_port(shared)?;
    if stream {
        // For datagrams it would let others in.
        socket.set_reuse_address(true)?;
        // Accepted sockets inherit this, which saves a call for each.
        socket.set_tcp_nodelay(true)?;
    }
    socket.bind(&addr.into())?;
    Ok(socket)
}

/// Saves the wake-up for connections without a request. Not every kernel or sandbox has it, and
/// nothing depends on it.
fn defer_accept(socket: &Socket) {
    let seconds = libc::c_int::try_from(DEFER.as_secs()).unwrap_or(libc::c_int::MAX);
    let set = set_option(socket, libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT, seconds);
    if let Err(e) = set {
        tracing::debug!(error = %e, "TCP_DEFER_ACCEPT is not available");
    }
}

/// Sets an option that is a whole number.
#[allow(
    unsafe_code,
    reason = "no safe wrapper of these socket options exists in the crates used"
)]
pub(super) fn set_option(
    socket: &Socket,
    level: libc::c_int,
    option: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    // SAFETY: the descriptor is open for the whole call, and the pointer and length describe
    // `value`, which outlives it.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            size_of_val(&value) as libc::socklen_t,
        )
    };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A listening socket in a worker's reactor.
pub struct Acceptor(AsyncFd<TcpListener>);

impl Acceptor {
    /// Must be called on the worker's thread.
    #[allow(
        unsafe_code,
        reason = "the reactor asks for a promise about the descriptor"
    )]
    pub fn new(listener: TcpListener) -> io::Result<Self> {
        // SAFETY: a `TcpListener` owns its descriptor and never changes it, and it goes nowhere
        // else.
        let registered = unsafe { AsyncFd::register(listener) };
        Ok(Acceptor(registered?))
    }

    /// A connection that waits already, if there is one.
    pub fn accept_now(&self) -> io::Result<(TcpStream, SocketAddr)> {
        accept_now(self.0.get_ref())
    }

    /// The next connection, non-blocking.
    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        loop {
            match accept_now(self.0.get_ref()) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    self.0.readable().await?.clear_ready();
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }
}

fn accept_now(listener: &TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let (fd, peer): (OwnedFd, _) = rustix::net::acceptfrom_with(listener, flags)?;
    let peer = peer
        .and_then(|peer| SocketAddr::try_from(peer).ok())
        .ok_or_else(|| io::Error::other("a peer without an IP address"))?;
    Ok((TcpStream::from(fd), peer))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn one_port_is_chosen_for_all_and_nobody_else_gets_it() {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let sockets = Sockets::open(any, 3).unwrap();
        let addr = sockets.addr();
        for listener in &sockets.listeners {
            assert_eq!(listener.local_addr().unwrap(), addr);
        }
        let StartError::Listen { error, .. } = Sockets::open(addr, 1).unwrap_err() else {
            panic!("the address is what is wrong");
        };
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        drop(sockets);
        Sockets::open(addr, 2).unwrap();
    }

    #[test]
    fn both_families_of_any_address_go_together() {
        let v4 = Sockets::open(SocketAddr::from(([0, 0, 0, 0], 0)), 1).unwrap();
        let port = v4.addr().port();
        Sockets::open(SocketAddr::from(([0u16; 8], port)), 1).unwrap();
    }
}
