//! Listening sockets: one of each address for each worker, spread by the kernel.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::SocketFlags;
use socket2::{Domain, Socket, Type};
use tokio::io::unix::AsyncFd;

/// How many connections may wait to be accepted, on one socket; `net.core.somaxconn` caps it.
const BACKLOG: i32 = 4096;

/// How long the kernel keeps a connection that has sent nothing from us.
const DEFER: Duration = Duration::from_secs(5);

/// Opens `count` sockets that share `addr`. Port 0 is chosen once for all of them.
///
/// # Errors
/// When the address is taken, even by somebody who would share it, or not ours to use.
pub fn open(addr: SocketAddr, count: usize) -> io::Result<Vec<TcpListener>> {
    // Another instance of ours would share the address, and half of the connections be lost to it.
    drop(bound(addr, false)?);
    let mut listeners = Vec::with_capacity(count);
    let mut addr = addr;
    for _ in 0..count {
        let listener = open_one(addr)?;
        addr = listener.local_addr()?;
        listeners.push(listener);
    }
    Ok(listeners)
}

fn open_one(addr: SocketAddr) -> io::Result<TcpListener> {
    let socket = bound(addr, true)?;
    socket.listen(BACKLOG)?;
    defer_accept(&socket);
    Ok(socket.into())
}

fn bound(addr: SocketAddr, shared: bool) -> io::Result<Socket> {
    let socket = Socket::new(
        Domain::for_address(addr),
        Type::STREAM.nonblocking().cloexec(),
        None,
    )?;
    if addr.is_ipv6() {
        // So that 0.0.0.0 and [::] go together.
        socket.set_only_v6(true)?;
    }
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(shared)?;
    // Accepted sockets inherit this, which saves a call for each.
    socket.set_tcp_nodelay(true)?;
    socket.bind(&addr.into())?;
    Ok(socket)
}

/// Saves the wake-up for connections without a request. Not every kernel or sandbox has it, and
/// nothing depends on it.
fn defer_accept(socket: &Socket) {
    let seconds = u32::try_from(DEFER.as_secs()).unwrap_or(u32::MAX);
    if let Err(e) = rustix_defer(socket, seconds) {
        tracing::debug!(error = %e, "TCP_DEFER_ACCEPT is not available");
    }
}

#[allow(
    unsafe_code,
    reason = "no safe wrapper of this socket option exists in the crates used"
)]
fn rustix_defer(socket: &Socket, seconds: u32) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let value = seconds as libc::c_int;
    // SAFETY: the descriptor is open for the whole call, and the pointer and length describe
    // `value`, which outlives it.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_DEFER_ACCEPT,
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
        let listeners = open(any, 3).unwrap();
        let addr = listeners[0].local_addr().unwrap();
        for listener in &listeners {
            assert_eq!(listener.local_addr().unwrap(), addr);
        }
        let taken = open(addr, 1).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
        drop(listeners);
        open(addr, 2).unwrap();
    }

    #[test]
    fn both_families_of_any_address_go_together() {
        let v4 = open(SocketAddr::from(([0, 0, 0, 0], 0)), 1).unwrap();
        let port = v4[0].local_addr().unwrap().port();
        open(SocketAddr::from(([0u16; 8], port)), 1).unwrap();
    }
}
