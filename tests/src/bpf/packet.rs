//! Packets made byte by byte.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// TCP flags.
pub const SYN: u8 = 0x02;
/// TCP flags.
pub const ACK: u8 = 0x10;

/// EtherType of IPv4.
pub const IPV4: u16 = 0x0800;
/// EtherType of IPv6.
pub const IPV6: u16 = 0x86dd;
/// EtherType of an 802.1Q tag.
pub const VLAN: u16 = 0x8100;
/// EtherType of an 802.1ad tag.
pub const QINQ: u16 = 0x88a8;

/// The address of the node in these packets.
pub const NODE4: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);
/// The address of the node in these packets.
pub const NODE6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);

/// An Ethernet header with VLAN tags of these types, outermost first.
pub fn ethernet(tags: &[u16], kind: u16) -> Vec<u8> {
    let mut bytes = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    for tag in tags {
        bytes.extend(tag.to_be_bytes());
        bytes.extend(100u16.to_be_bytes());
    }
    bytes.extend(kind.to_be_bytes());
    bytes
}

/// An IPv4 packet. `fragment` is the field of flags and offset, `options` a multiple of four bytes.
pub fn ipv4(source: Ipv4Addr, protocol: u8, fragment: u16, options: &[u8], rest: &[u8]) -> Vec<u8> {
    let header = 20 + options.len();
    let mut bytes = vec![0x40 | (header / 4) as u8, 0];
    bytes.extend(((header + rest.len()) as u16).to_be_bytes());
    bytes.extend([0, 1]);
    bytes.extend(fragment.to_be_bytes());
    bytes.extend([64, protocol, 0, 0]);
    bytes.extend(source.octets());
    bytes.extend(NODE4.octets());
    bytes.extend(options);
    bytes.extend(rest);
    bytes
}

/// An IPv6 packet.
pub fn ipv6(source: Ipv6Addr, next: u8, rest: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x60, 0, 0, 0];
    bytes.extend((rest.len() as u16).to_be_bytes());
    bytes.extend([next, 64]);
    bytes.extend(source.octets());
    bytes.extend(NODE6.octets());
    bytes.extend(rest);
    bytes
}

/// An IPv6 extension header of `size` bytes whose length field is `length`.
pub fn extension(next: u8, length: u8, size: usize) -> Vec<u8> {
    let mut bytes = vec![next, length];
    bytes.resize(size, 0);
    bytes
}

/// A TCP header to port 80.
pub fn tcp(flags: u8) -> Vec<u8> {
    let mut bytes = vec![0x9c, 0x40, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, flags];
    bytes.extend([0xff, 0xff, 0, 0, 0, 0]);
    bytes
}

/// A TCP SYN from an address, as short as Ethernet allows (60 bytes without the checksum) or
/// longer.
pub fn syn(source: IpAddr) -> Vec<u8> {
    let mut bytes = match source {
        IpAddr::V4(source) => [ethernet(&[], IPV4), ipv4(source, 6, 0, &[], &tcp(SYN))].concat(),
        IpAddr::V6(source) => [ethernet(&[], IPV6), ipv6(source, 6, &tcp(SYN))].concat(),
    };
    bytes.resize(bytes.len().max(60), 0);
    bytes
}
