//! Whole packets made by hand, with checksums worked out from nothing, for the tests of what forwards them.

use std::vec::Vec;

use crate::head::PacketMut;
use crate::parse::Packet;
use crate::testing::ethernet;

/// A packet that can be changed.
pub struct Wire {
    words: Vec<u16>,
    bytes: usize,
}

impl Wire {
    pub fn new(bytes: &[u8]) -> Wire {
        let mut even = bytes.to_vec();
        even.resize(bytes.len().next_multiple_of(2), 0);
        let pairs = even.chunks_exact(2);
        Wire {
            words: pairs
                .map(|pair| u16::from_ne_bytes([pair[0], pair[1]]))
                .collect(),
            bytes: bytes.len(),
        }
    }

    pub fn bytes(&self) -> Vec<u8> {
        let all = self.words.iter().flat_map(|word| word.to_ne_bytes());
        all.take(self.bytes).collect()
    }
}

impl Packet for Wire {
    fn words<const N: usize>(&self, at: usize) -> Option<&[u16; N]> {
        let fits = at + 2 * N <= self.bytes;
        self.words
            .get(at / 2..at / 2 + N)
            .filter(|_| fits)?
            .try_into()
            .ok()
    }
    fn size(&self) -> u64 {
        self.bytes as u64
    }
    fn first_piece(&self) -> u64 {
        self.bytes as u64
    }
}

impl PacketMut for Wire {
    fn words_mut<const N: usize>(&mut self, at: usize) -> Option<&mut [u16; N]> {
        let fits = at + 2 * N <= self.bytes;
        let words = self.words.get_mut(at / 2..at / 2 + N);
        words.filter(|_| fits)?.try_into().ok()
    }
}

/// An address and port; IPv4 has four bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct End {
    pub addr: Vec<u8>,
    pub port: u16,
}

pub fn end(addr: &str, port: u16) -> End {
    let addr: std::net::IpAddr = addr.parse().unwrap();
    let addr = match addr {
        std::net::IpAddr::V4(addr) => addr.octets().to_vec(),
        std::net::IpAddr::V6(addr) => addr.octets().to_vec(),
    };
    End { addr, port }
}

/// A sum in one's complement over whole bytes.
pub fn sum(parts: &[&[u8]]) -> u16 {
    let bytes: Vec<u8> = parts.concat();
    let mut sum = 0u32;
    for pair in bytes.chunks(2) {
        sum += u32::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// What a checksum over these addresses and bytes is.
pub fn checksum(from: &[u8], to: &[u8], protocol: u8, payload: &[u8]) -> u16 {
    let length = (payload.len() as u32).to_be_bytes();
    !sum(&[from, to, &length, &[0, protocol], payload])
}

pub const TCP: u8 = 6;
pub const UDP: u8 = 17;

/// A segment or datagram with its checksum.
pub fn transport(from: &End, to: &End, protocol: u8, flags: u8, data: &[u8]) -> Vec<u8> {
    let mut bytes = [from.port.to_be_bytes(), to.port.to_be_bytes()].concat();
    let at = match protocol {
        TCP => {
            bytes.extend([0, 0, 0, 1, 0, 0, 0, 0, 0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
            16
        }
        _ => {
            bytes.extend((8 + data.len() as u16).to_be_bytes());
            bytes.extend([0, 0]);
            6
        }
    };
    bytes.extend(data);
    let mut found = checksum(&from.addr, &to.addr, protocol, &bytes);
    if found == 0 && protocol == UDP {
        found = 0xffff;
    }
    bytes[at..at + 2].copy_from_slice(&found.to_be_bytes());
    bytes
}

/// An IP packet; `fragment` is the field of IPv4's flags and offset.
pub fn network(from: &[u8], to: &[u8], protocol: u8, fragment: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    if from.len() == 16 {
        bytes.extend([0x60, 0, 0, 0]);
        bytes.extend((payload.len() as u16).to_be_bytes());
        bytes.extend([protocol, 64]);
        bytes.extend(from);
        bytes.extend(to);
    } else {
        bytes.extend([0x45, 0]);
        bytes.extend((20 + payload.len() as u16).to_be_bytes());
        bytes.extend([0x12, 0x34]);
        bytes.extend(fragment.to_be_bytes());
        bytes.extend([64, protocol, 0, 0]);
        bytes.extend(from);
        bytes.extend(to);
        let found = !sum(&[&bytes]);
        bytes[10..12].copy_from_slice(&found.to_be_bytes());
    }
    bytes.extend(payload);
    bytes
}

/// A whole packet.
pub fn packet(from: &End, to: &End, protocol: u8, flags: u8, data: &[u8]) -> Wire {
    let payload = transport(from, to, protocol, flags, data);
    wire(&network(&from.addr, &to.addr, protocol, 0, &payload))
}

/// An IP packet on Ethernet.
pub fn wire(ip: &[u8]) -> Wire {
    let kind = if ip[0] >> 4 == 6 { 0x86dd } else { 0x0800 };
    Wire::new(&[&ethernet(&[], kind)[..], ip].concat())
}

/// Checks every checksum of an IP packet; gives both ends.
#[track_caller]
pub fn checked(ip: &[u8]) -> (End, End) {
    let (from, to, protocol, payload) = match ip[0] >> 4 {
        4 => {
            assert_eq!(sum(&[&ip[..20]]), 0xffff, "IPv4's checksum");
            (&ip[12..16], &ip[16..20], ip[9], &ip[20..])
        }
        _ => (&ip[8..24], &ip[24..40], ip[6], &ip[40..]),
    };
    if protocol == TCP || payload[6..8] != [0, 0] {
        let length = (payload.len() as u32).to_be_bytes();
        let all = sum(&[from, to, &length, &[0, protocol], payload]);
        assert_eq!(all, 0xffff, "the transport's checksum");
    }
    let port = |at: usize| u16::from_be_bytes([payload[at], payload[at + 1]]);
    let end = |addr: &[u8], port| End {
        addr: addr.to_vec(),
        port,
    };
    (end(from, port(0)), end(to, port(2)))
}

/// The same of a whole packet.
#[track_caller]
pub fn ends_of(packet: &Wire) -> (End, End) {
    checked(&packet.bytes()[14..])
}

/// Numbers that look random, the same in each run.
pub struct Dice(pub u64);

impl Dice {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        self.0 ^ (self.0 >> 29)
    }

    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| (self.next() >> 32) as u8).collect()
    }

    pub fn end(&mut self, v6: bool) -> End {
        End {
            addr: self.bytes(if v6 { 16 } else { 4 }),
            port: (self.next() >> 32) as u16,
        }
    }
}
