//! Interfaces, addresses and default routes of the network namespace that the calling thread is in.

use std::io::{self, Read as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use socket2::{Domain, Protocol, Socket, Type};

use super::error::DataplaneError;

const RTM_GETLINK: u16 = 18;
const RTM_GETADDR: u16 = 22;
pub(super) const RTM_GETROUTE: u16 = 26;

const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;

/// Request, and the whole table of it.
const REQUEST_DUMP: u16 = 0x301;

const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_XDP: u16 = 43;
const IFLA_XDP_PROG_ID: u16 = 4;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
pub(super) const RTA_OIF: u16 = 4;
const RTA_PRIORITY: u16 = 6;
const RTA_MULTIPATH: u16 = 9;

const MAIN_TABLE: u8 = 254;
const UNICAST: u8 = 1;

/// A network interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    /// Its number.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Largest packet in bytes, without the Ethernet header.
    pub mtu: u32,
    /// The XDP program on it, if any.
    pub xdp: Option<u32>,
}

/// All interfaces.
///
/// # Errors
/// The kernel's.
pub fn interfaces() -> Result<Vec<Interface>, DataplaneError> {
    let messages = dump(RTM_GETLINK, "interfaces")?;
    Ok(messages
        .iter()
        .filter_map(|message| interface(message))
        .collect())
}

/// The addresses of all interfaces.
///
/// # Errors
/// The kernel's.
pub fn addresses() -> Result<Vec<IpAddr>, DataplaneError> {
    let messages = dump(RTM_GETADDR, "addresses")?;
    Ok(messages
        .iter()
        .filter_map(|message| address(message))
        .collect())
}

/// The addresses of one interface that are valid everywhere, in the kernel's order: its first ones first.
///
/// # Errors
/// The kernel's.
pub fn addresses_of(index: u32) -> Result<Vec<IpAddr>, DataplaneError> {
    const EVERYWHERE: u8 = 0;
    let messages = dump(RTM_GETADDR, "addresses")?;
    let of_it = messages
        .iter()
        .filter(|message| message.get(3) == Some(&EVERYWHERE) && number(message, 4) == Some(index));
    Ok(of_it.filter_map(|message| address(message)).collect())
}

/// The interfaces that the preferred default routes of both families go out by.
///
/// # Errors
/// The kernel's.
pub fn default_interfaces() -> Result<Vec<u32>, DataplaneError> {
    let messages = dump(RTM_GETROUTE, "routes")?;
    let routes: Vec<_> = messages.iter().filter_map(|m| default_route(m)).collect();
    let mut found = Vec::new();
    for family in [libc::AF_INET, libc::AF_INET6] {
        let family = routes
            .iter()
            .filter(|route| i32::from(route.family) == family);
        let best = family.min_by_key(|route| route.priority);
        found.extend(best.into_iter().flat_map(|route| &route.out).copied());
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

struct DefaultRoute {
    family: u8,
    priority: u32,
    out: Vec<u32>,
}

fn interface(message: &[u8]) -> Option<Interface> {
    let (header, rest) = message.split_at_checked(16)?;
    let mut found = Interface {
        index: number(header, 4)?,
        ..Interface::default()
    };
    for (kind, value) in Attributes(rest) {
        match kind {
            IFLA_IFNAME => found.name = text(value),
            IFLA_MTU => found.mtu = number(value, 0)?,
            IFLA_XDP => {
                let mut inner = Attributes(value);
                let id = inner.find(|(kind, _)| *kind == IFLA_XDP_PROG_ID);
                found.xdp = id.and_then(|(_, value)| number(value, 0));
            }
            _ => {}
        }
    }
    Some(found)
}

fn address(message: &[u8]) -> Option<IpAddr> {
    let (_, rest) = message.split_at_checked(8)?;
    // On a point-to-point link the plain address is the other end's, and the local one ours.
    let of = |wanted| Attributes(rest).find(|(kind, _)| *kind == wanted);
    let (_, value) = of(IFA_LOCAL).or_else(|| of(IFA_ADDRESS))?;
    addr(value)
}

/// An address from its bytes.
pub(super) fn addr(value: &[u8]) -> Option<IpAddr> {
    match value.len() {
        4 => <[u8; 4]>::try_from(value)
            .ok()
            .map(|b| Ipv4Addr::from(b).into()),
        16 => <[u8; 16]>::try_from(value)
            .ok()
            .map(|b| Ipv6Addr::from(b).into()),
        _ => None,
    }
}

fn default_route(message: &[u8]) -> Option<DefaultRoute> {
    let (header, rest) = message.split_at_checked(12)?;
    let is_default = header[1] == 0 && header[4] == MAIN_TABLE && header[7] == UNICAST;
    let mut route = is_default.then_some(DefaultRoute {
        family: header[0],
        priority: 0,
        out: Vec::new(),
    })?;
    for (kind, value) in Attributes(rest) {
        match kind {
            RTA_OIF => route.out.push(number(value, 0)?),
            RTA_PRIORITY => route.priority = number(value, 0)?,
            RTA_MULTIPATH => route.out.extend(next_hops(value)),
            _ => {}
        }
    }
    Some(route)
}

/// The interfaces of a route with several next hops.
fn next_hops(mut bytes: &[u8]) -> Vec<u32> {
    let mut found = Vec::new();
    while let (Some(len), Some(index)) = (short(bytes, 0), number(bytes, 4)) {
        found.push(index);
        let len = usize::from(len).max(8).next_multiple_of(4);
        bytes = bytes.get(len..).unwrap_or_default();
    }
    found
}

/// Attributes one after the other: length, kind, value, padding to four bytes.
pub(super) struct Attributes<'a>(pub(super) &'a [u8]);

impl<'a> Iterator for Attributes<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let len = usize::from(short(self.0, 0)?);
        // The two highest bits are flags.
        let kind = short(self.0, 2)? & 0x3fff;
        let value = self.0.get(4..len)?;
        self.0 = self.0.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    }
}

pub(super) fn short(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at + 2)?;
    bytes.try_into().ok().map(u16::from_ne_bytes)
}

pub(super) fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?;
    bytes.try_into().ok().map(u32::from_ne_bytes)
}

fn text(value: &[u8]) -> String {
    let value = value.strip_suffix(b"\0").unwrap_or(value);
    String::from_utf8_lossy(value).into_owned()
}

/// Asks the kernel for a whole table; gives the payload of each message.
fn dump(kind: u16, what: &'static str) -> Result<Vec<Vec<u8>>, DataplaneError> {
    ask(kind).map_err(|source| DataplaneError::Netlink { what, source })
}

fn ask(kind: u16) -> io::Result<Vec<Vec<u8>>> {
    let domain = Domain::from(libc::AF_NETLINK);
    let mut socket = Socket::new(domain, Type::RAW, Some(Protocol::from(libc::NETLINK_ROUTE)))?;
    let mut request = Vec::from(32u32.to_ne_bytes());
    request.extend(kind.to_ne_bytes());
    request.extend(REQUEST_DUMP.to_ne_bytes());
    // Sequence, port, and the table's own header: all zero is "everything".
    request.resize(32, 0);
    socket.send(&request)?;
    let mut messages = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let len = socket.read(&mut buffer)?;
        if collect(&buffer[..len], &mut messages)? {
            return Ok(messages);
        }
    }
}

/// Cuts a datagram into messages; true when the last one says that it was the last.
pub(super) fn collect(mut bytes: &[u8], messages: &mut Vec<Vec<u8>>) -> io::Result<bool> {
    while let (Some(len), Some(kind)) = (number(bytes, 0), short(bytes, 4)) {
        let len = len as usize;
        let payload = bytes.get(16..len).ok_or(io::ErrorKind::InvalidData)?;
        match kind {
            NLMSG_DONE => return Ok(true),
            NLMSG_ERROR => {
                let code = number(payload, 0).unwrap_or_default();
                return Err(io::Error::from_raw_os_error((code as i32).wrapping_neg()));
            }
            _ => messages.push(payload.to_vec()),
        }
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(false)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_there() {
        let found = interfaces().unwrap();
        let lo = found
            .iter()
            .find(|interface| interface.name == "lo")
            .unwrap();
        assert!(lo.index > 0 && lo.mtu >= 1500);
    }

    #[test]
    fn attributes_end_where_the_bytes_do() {
        let mut bytes = Vec::new();
        for (kind, value) in [(3u16, &b"eth0\0"[..]), (4, &1500u32.to_ne_bytes())] {
            bytes.extend(((value.len() + 4) as u16).to_ne_bytes());
            bytes.extend(kind.to_ne_bytes());
            bytes.extend(value);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        let found: Vec<_> = Attributes(&bytes).collect();
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].0, text(found[0].1).as_str()), (3, "eth0"));
        // Cut anywhere, nothing panics.
        for len in 0..bytes.len() {
            assert!(Attributes(&bytes[..len]).count() <= 2);
        }
    }

    #[test]
    fn next_hops_of_a_multipath_route() {
        let hop = |index: u32| [&8u16.to_ne_bytes()[..], &[0, 0], &index.to_ne_bytes()].concat();
        assert_eq!(next_hops(&[hop(2), hop(5)].concat()), [2, 5]);
        assert!(next_hops(&[1, 2, 3]).is_empty());
    }
}
