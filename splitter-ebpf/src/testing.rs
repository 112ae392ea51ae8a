//! Packets and tables made by hand, for the tests of this crate.

use std::collections::HashMap;
use std::vec::Vec;

use splitter_common::{PrefixIndex, PrefixKind, PrefixTable, Role, Tables};

use crate::parse::Packet;

/// Bytes held as the 16-bit words that a packet is read in.
pub struct Frame {
    words: Vec<u16>,
    bytes: usize,
    first_piece: usize,
}

impl Frame {
    pub fn new(bytes: &[u8]) -> Frame {
        Frame::in_pieces(bytes, bytes.len())
    }

    /// One of which so many bytes are in the first piece. The headers that are read are.
    pub fn in_pieces(bytes: &[u8], first_piece: usize) -> Frame {
        let pairs = bytes.chunks_exact(2);
        Frame {
            words: pairs
                .map(|pair| u16::from_ne_bytes([pair[0], pair[1]]))
                .collect(),
            bytes: bytes.len(),
            first_piece,
        }
    }
}

impl Packet for Frame {
    fn words<const N: usize>(&self, at: usize) -> Option<&[u16; N]> {
        assert_eq!(at % 2, 0, "headers start at even offsets");
        self.words.get(at / 2..at / 2 + N)?.try_into().ok()
    }
    fn size(&self) -> u64 {
        self.bytes as u64
    }
    fn first_piece(&self) -> u64 {
        self.first_piece as u64
    }
}

/// An Ethernet header with these tags (type and id) and this inner type.
pub fn ethernet(tags: &[u16], kind: u16) -> Vec<u8> {
    let mut bytes = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]].concat();
    for tag in tags {
        bytes.extend(tag.to_be_bytes());
        bytes.extend(7u16.to_be_bytes());
    }
    bytes.extend(kind.to_be_bytes());
    bytes
}

/// An IPv4 header with `options` (a multiple of four bytes); the fragment field as it is written.
pub fn ipv4(
    source: [u8; 4],
    protocol: u8,
    fragment: u16,
    options: &[u8],
    payload: &[u8],
) -> Vec<u8> {
    let length = 20 + options.len();
    let mut bytes = [0x40 | (length / 4) as u8, 0].to_vec();
    bytes.extend(((length + payload.len()) as u16).to_be_bytes());
    bytes.extend([0, 1]);
    bytes.extend(fragment.to_be_bytes());
    bytes.extend([64, protocol, 0, 0]);
    bytes.extend(source);
    bytes.extend([203, 0, 113, 1]);
    bytes.extend(options);
    bytes.extend(payload);
    bytes
}

/// An IPv6 header.
pub fn ipv6(source: [u8; 16], next: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = [0x60, 0, 0, 0].to_vec();
    bytes.extend((payload.len() as u16).to_be_bytes());
    bytes.extend([next, 64]);
    bytes.extend(source);
    bytes.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    bytes.extend(payload);
    bytes
}

/// A TCP header with these flags.
pub fn tcp(flags: u8) -> Vec<u8> {
    let mut bytes = [0x9c, 0x40, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, flags].to_vec();
    bytes.extend([0xff, 0xff, 0, 0, 0, 0]);
    bytes
}

/// A packet of these parts.
pub fn frame(parts: &[Vec<u8>]) -> Frame {
    Frame::new(&parts.concat())
}

pub const SYN: u8 = 0x02;
pub const ACK: u8 = 0x10;

/// Prefixes of whole IPv4 addresses only.
#[derive(Default)]
pub struct Addresses {
    kinds: HashMap<[u8; 4], PrefixKind>,
}

impl Addresses {
    pub fn v4(mut self, addr: [u8; 4], kind: PrefixKind) -> Addresses {
        self.kinds.insert(addr, kind);
        self
    }
}

impl PrefixTable for Addresses {
    fn index4(&self, _top: u16) -> u64 {
        let lens = [32, 0, 0, 0, 0, 0, 0];
        PrefixIndex { kind: 0, lens }.word()
    }
    fn index6(&self, _top: u16) -> u64 {
        0
    }
    fn find4(&self, _len: u32, addr: u32) -> Option<u32> {
        let kind = self.kinds.get(&addr.to_be_bytes());
        kind.map(|kind| kind.code())
    }
    fn find6(&self, _len: u32, _high: u64, _low: u64) -> Option<u32> {
        None
    }
}

impl Tables for Addresses {
    /// Interface 2 is the NIC.
    fn role(&self, ifindex: u32) -> Role {
        if ifindex == 2 {
            Role::External
        } else {
            Role::Inner
        }
    }
    fn native_routing(&self) -> bool {
        false
    }
}
