//! Has the kernel keep the Ethernet addresses by which Endpoints are reached: XDP sends past it, so that
//! it would see no reason to.

use std::collections::BTreeSet;
use std::io::{self, Read as _};
use std::net::IpAddr;

use socket2::{Domain, Protocol, Socket, Type};

use super::netlink::{Attributes, RTA_OIF, RTM_GETROUTE, addr, collect, number};

const RTM_NEWNEIGH: u16 = 28;

const REQUEST: u16 = 1;
const ACK: u16 = 4;
const CREATE: u16 = 0x400;

const RTA_DST: u16 = 1;
const RTA_GATEWAY: u16 = 5;
const NDA_DST: u16 = 1;

/// As if something were being sent to it: it is asked for if need be, and asked again if it is old.
const NTF_USE: u8 = 1;

/// Asks the kernel for the way to each of these, and to keep whoever is next on it. What is not reached by
/// a neighbour is left out.
pub fn keep(all: impl Iterator<Item = IpAddr>) -> io::Result<()> {
    let domain = Domain::from(libc::AF_NETLINK);
    let mut socket = Socket::new(domain, Type::RAW, Some(Protocol::from(libc::NETLINK_ROUTE)))?;
    let all: BTreeSet<IpAddr> = all.collect();
    let mut next = BTreeSet::new();
    for to in all {
        // Without a route there is nobody; whoever sends there finds that out.
        next.extend(next_hop(&mut socket, to).ok().flatten());
    }
    for (index, addr) in next {
        // One that takes none (a tunnel's) is not asked for by XDP either.
        let _there_are_no_neighbours = exchange(&mut socket, &neighbour(index, addr));
    }
    Ok(())
}

/// The interface by which an address is reached, and the neighbour there: the address itself, if it is one.
fn next_hop(socket: &mut Socket, to: IpAddr) -> io::Result<Option<(u32, IpAddr)>> {
    let answers = exchange(socket, &route(to))?;
    let found = answers.first().and_then(|message| hop(message, to));
    Ok(found)
}

fn hop(message: &[u8], to: IpAddr) -> Option<(u32, IpAddr)> {
    let (_, rest) = message.split_at_checked(12)?;
    let (mut index, mut next) = (None, to);
    for (kind, value) in Attributes(rest) {
        match kind {
            RTA_OIF => index = number(value, 0),
            RTA_GATEWAY => next = addr(value)?,
            _ => {}
        }
    }
    Some((index?, next))
}

fn octets(addr: IpAddr) -> (u8, Vec<u8>) {
    match addr {
        IpAddr::V4(addr) => (libc::AF_INET as u8, addr.octets().to_vec()),
        IpAddr::V6(addr) => (libc::AF_INET6 as u8, addr.octets().to_vec()),
    }
}

/// The question for a route.
fn route(to: IpAddr) -> Vec<u8> {
    let (family, octets) = octets(to);
    let mut header = vec![0; 12];
    (header[0], header[1]) = (family, octets.len() as u8 * 8);
    message(RTM_GETROUTE, REQUEST, header, RTA_DST, &octets)
}

/// The wish to use a neighbour.
fn neighbour(index: u32, addr: IpAddr) -> Vec<u8> {
    let (family, octets) = octets(addr);
    let mut header = vec![0; 12];
    (header[0], header[10]) = (family, NTF_USE);
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    message(
        RTM_NEWNEIGH,
        REQUEST | ACK | CREATE,
        header,
        NDA_DST,
        &octets,
    )
}

fn message(kind: u16, flags: u16, header: Vec<u8>, attribute: u16, value: &[u8]) -> Vec<u8> {
    let len = 16 + header.len() + 4 + value.len();
    let mut bytes = Vec::from((len as u32).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    bytes.resize(16, 0);
    bytes.extend(header);
    bytes.extend((value.len() as u16 + 4).to_ne_bytes());
    bytes.extend(attribute.to_ne_bytes());
    bytes.extend(value);
    bytes
}

/// Sends a request; gives what is answered, which is one datagram.
fn exchange(socket: &mut Socket, request: &[u8]) -> io::Result<Vec<Vec<u8>>> {
    socket.send(request)?;
    let mut buffer = vec![0; 8 * 1024];
    let len = socket.read(&mut buffer)?;
    let mut messages = Vec::new();
    match collect(&buffer[..len], &mut messages) {
        // "No error", which is what an acknowledgement says.
        Err(error) if error.raw_os_error() == Some(0) => Ok(messages),
        result => result.map(|_| messages),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_is_next_and_else_the_address_itself() {
        let to: IpAddr = "192.0.2.9".parse().unwrap();
        let of = |gateway: Option<[u8; 4]>| {
            let mut bytes = vec![0; 12];
            for (kind, value) in [(RTA_OIF, Some(7u32.to_ne_bytes())), (RTA_GATEWAY, gateway)] {
                if let Some(value) = value {
                    bytes.extend(8u16.to_ne_bytes());
                    bytes.extend(kind.to_ne_bytes());
                    bytes.extend(value);
                }
            }
            hop(&bytes, to)
        };
        assert_eq!(of(None), Some((7, to)));
        assert_eq!(
            of(Some([192, 0, 2, 1])),
            Some((7, "192.0.2.1".parse().unwrap()))
        );
        assert_eq!(hop(&[0; 5], to), None);
    }
}
