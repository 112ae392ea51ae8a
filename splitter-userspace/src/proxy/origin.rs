//! Whom a new connection speaks for: its PROXY header, where it must have one, and whether its peer
//! is believed.

use std::net::{SocketAddr, TcpStream};
use std::rc::Rc;

use super::client::Origin;
use super::fault::Fault;
use super::proxy_header::{self, Claim, NoHeader};
use super::worker::Worker;

/// The port of which ingress-nginx takes it, when a PROXY header names it, that the balancer in
/// front has ended TLS.
const HTTPS: u16 = 443;

/// Finds out. None when the connection is to be closed: it is counted then.
pub async fn find(
    worker: &Rc<Worker>,
    stream: TcpStream,
    peer: SocketAddr,
    local: SocketAddr,
) -> Option<(TcpStream, Origin)> {
    let settings = worker.real_ip();
    let trusted = settings.trusted.contains(peer.ip());
    let mut origin = Origin {
        peer,
        client: peer.ip().to_canonical(),
        port: local.port(),
        scheme: "http",
        forwards: settings.forwarded && trusted,
        names_client: settings.forwarded && trusted && !settings.proxy_protocol,
    };
    if !settings.proxy_protocol {
        return Some((stream, origin));
    }
    let timeout = worker.timeouts().header;
    let read = Box::pin(proxy_header::read(stream, timeout, || worker.ends_idle()));
    match read.await {
        Ok((stream, claim)) => {
            if let (
                Claim::Proxied {
                    source,
                    destination,
                },
                true,
            ) = (claim, trusted)
            {
                origin.client = source.ip().to_canonical();
                origin.port = destination.port();
                if destination.port() == HTTPS {
                    origin.scheme = "https";
                }
            }
            Some((stream, origin))
        }
        Err(NoHeader::Malformed) => refuse(worker, peer, Fault::BadProxyHeader),
        Err(NoHeader::Late) => refuse(worker, peer, Fault::HeadTimeout),
        Err(NoHeader::Gone) => None,
    }
}

/// Without a word: what is on the other side does not speak as was agreed.
fn refuse(worker: &Worker, peer: SocketAddr, fault: Fault) -> Option<(TcpStream, Origin)> {
    tracing::debug!(%peer, fault = fault.name(), "a connection without a PROXY header");
    worker.count_fault(fault);
    None
}
