//! Packets that can be forwarded: TCP and UDP without tags, options and extension headers; those of IPv4 in
//! pieces, too. They are rewritten in place, with their checksums.

use splitter_common::{FlowKey, PROTO_TCP, PROTO_UDP};

use crate::parse::Packet;

/// A packet that can be changed.
pub trait PacketMut: Packet {
    /// `N` words from the even byte offset `at` on, to write; none when the packet is shorter.
    fn words_mut<const N: usize>(&mut self, at: usize) -> Option<&mut [u16; N]>;
}

/// Addresses of both sides as [`FlowKey`] has them, and the word of both ports.
pub type Ends = [u32; 9];

/// The Ethernet addresses of destination and source, in words.
pub type Macs = [u16; 6];

/// What a packet says of its flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// As [`FlowKey`] lies in memory.
    pub key: [u32; 10],
    /// IPv6.
    pub v6: bool,
    /// TCP; else UDP.
    pub tcp: bool,
    /// The flags of TCP.
    pub flags: u8,
    /// There is something behind its headers.
    pub carries: bool,
    /// A [`Piece`] code.
    pub piece: u8,
    /// What all pieces of a packet have in common, as [`splitter_common::FragmentKey`] lies in memory.
    pub pieces: [u32; 3],
}

/// Which piece of a packet it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Piece {
    /// There are no others.
    Whole = 0,
    /// The first, which has the transport's header.
    First = 1,
    /// Another one: its ports are zero until somebody knows them.
    Later = 2,
}

const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const ACK: u8 = 0x10;

const NETWORK: usize = 14;
const TRANSPORT4: usize = NETWORK + 20;
const TRANSPORT6: usize = NETWORK + 40;

impl Head {
    /// Reads it; none when the packet is another one.
    #[inline(always)]
    pub fn of(packet: &impl Packet) -> Option<Head> {
        let kind = u16::from_be(packet.words::<7>(0)?[6]);
        match kind {
            0x0800 => Self::of4(packet),
            0x86dd => Self::of6(packet),
            _ => None,
        }
    }

    #[inline(always)]
    fn of4(packet: &impl Packet) -> Option<Head> {
        let ip = packet.words::<10>(NETWORK)?;
        if u16::from_be(ip[0]) >> 8 != 0x45 {
            return None;
        }
        let protocol = u16::from_be(ip[4]) as u8;
        // More follow, and how far this one is from the first.
        let (piece, (ports, flags, header)) = match u16::from_be(ip[3]) & 0x3fff {
            0 => (Piece::Whole, transport(packet, TRANSPORT4, protocol)?),
            field if field & 0x1fff == 0 => {
                (Piece::First, transport(packet, TRANSPORT4, protocol)?)
            }
            _ if protocol == PROTO_TCP || protocol == PROTO_UDP => (Piece::Later, (0, 0, u16::MAX)),
            _ => return None,
        };
        let (source, destination) = (join(ip[6], ip[7]), join(ip[8], ip[9]));
        let kind = FlowKey::kind(protocol, 4);
        Some(Head {
            key: [source, 0, 0, 0, destination, 0, 0, 0, ports, kind],
            v6: false,
            tcp: protocol == PROTO_TCP,
            flags,
            carries: u16::from_be(ip[1]).saturating_sub(20) > header,
            piece: piece as u8,
            pieces: [
                source,
                destination,
                join(ip[2], u16::from_le(u16::from(protocol))),
            ],
        })
    }

    #[inline(always)]
    fn of6(packet: &impl Packet) -> Option<Head> {
        let ip = packet.words::<20>(NETWORK)?;
        if u16::from_be(ip[0]) >> 12 != 6 {
            return None;
        }
        let protocol = (u16::from_be(ip[3]) >> 8) as u8;
        let (ports, flags, header) = transport(packet, TRANSPORT6, protocol)?;
        let at = |word: usize| join(ip[4 + 2 * word], ip[5 + 2 * word]);
        let kind = FlowKey::kind(protocol, 6);
        Some(Head {
            key: [
                at(0),
                at(1),
                at(2),
                at(3),
                at(4),
                at(5),
                at(6),
                at(7),
                ports,
                kind,
            ],
            v6: true,
            tcp: protocol == PROTO_TCP,
            flags,
            carries: u16::from_be(ip[2]) > header,
            piece: Piece::Whole as u8,
            pieces: [0; 3],
        })
    }

    /// [`PROTO_TCP`] or [`PROTO_UDP`].
    #[inline(always)]
    pub fn protocol(&self) -> u8 {
        if self.tcp { PROTO_TCP } else { PROTO_UDP }
    }

    /// The source port.
    #[inline(always)]
    pub fn source_port(&self) -> u16 {
        u32::from_le(self.key[8]) as u16
    }

    /// The destination port.
    #[inline(always)]
    pub fn destination_port(&self) -> u16 {
        (u32::from_le(self.key[8]) >> 16) as u16
    }

    /// Whether it is this piece.
    #[inline(always)]
    pub fn is(&self, piece: Piece) -> bool {
        self.piece == piece as u8
    }

    /// Whether it opens a TCP connection.
    #[inline(always)]
    pub fn opens(&self) -> bool {
        self.flags & (SYN | ACK) == SYN
    }

    /// Whether it ends one, or one direction of it.
    #[inline(always)]
    pub fn ends(&self) -> bool {
        self.flags & (FIN | RST) != 0
    }

    /// Whether an Endpoint that sends it has heard the client's answer to its own first one: data are sent
    /// only then. What else it sends it may also send to one whose address is forged (RFC 9293 3.10.7.4).
    #[inline(always)]
    pub fn proves(&self) -> bool {
        self.tcp && self.carries && self.flags & (SYN | RST) == 0
    }

    /// Both ends, as they are in the packet.
    #[inline(always)]
    pub fn both(&self) -> Ends {
        let [a, b, c, d, e, f, g, h, ports, _] = self.key;
        [a, b, c, d, e, f, g, h, ports]
    }
}

/// Ports, flags and length of a transport's header.
#[inline(always)]
fn transport(packet: &impl Packet, at: usize, protocol: u8) -> Option<(u32, u8, u16)> {
    let ports = |source: u16, destination: u16| {
        FlowKey::ports(u16::from_be(source), u16::from_be(destination))
    };
    match protocol {
        PROTO_TCP => {
            let header = packet.words::<10>(at)?;
            let field = u16::from_be(header[6]);
            Some((ports(header[0], header[1]), field as u8, field >> 12 << 2))
        }
        PROTO_UDP => {
            let header = packet.words::<4>(at)?;
            Some((ports(header[0], header[1]), 0, 8))
        }
        _ => None,
    }
}

/// Another source for a packet, with what it changes in checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// The address, in network order; IPv4 is the first word.
    pub addr: [u32; 4],
    /// The port, in network order.
    pub port: u16,
    /// What a sum in one's complement changes by with the address.
    pub addresses: u16,
    /// The same with the port.
    pub ports: u16,
}

impl Source {
    /// The source that a flow's packets get.
    #[inline(always)]
    pub fn of(head: &Head, to: &Ends) -> Source {
        let mut addresses = Change::default();
        let mut index = 0;
        while index < 4 {
            let ([a, b], [c, d]) = (split(head.key[index]), split(to[index]));
            addresses.swap(a, c);
            addresses.swap(b, d);
            index += 1;
        }
        let port = (u32::from_le(to[8]) as u16).to_be();
        let mut ports = Change::default();
        ports.swap(head.source_port().to_be(), port);
        Source {
            addr: [to[0], to[1], to[2], to[3]],
            port,
            addresses: addresses.sum(),
            ports: ports.sum(),
        }
    }
}

impl Head {
    /// Where the source address begins.
    #[inline(always)]
    pub fn source_at(&self) -> usize {
        if self.v6 { NETWORK + 8 } else { NETWORK + 12 }
    }

    /// Where the transport's header begins.
    #[inline(always)]
    pub fn transport_at(&self) -> usize {
        if self.v6 { TRANSPORT6 } else { TRANSPORT4 }
    }

    /// Where the transport's checksum is.
    #[inline(always)]
    pub fn checksum_at(&self) -> usize {
        self.transport_at() + if self.tcp { 16 } else { 6 }
    }
}

/// Two words as the one that they are in memory.
#[inline(always)]
pub(crate) fn join(first: u16, second: u16) -> u32 {
    let ([a, b], [c, d]) = (first.to_ne_bytes(), second.to_ne_bytes());
    u32::from_ne_bytes([a, b, c, d])
}

/// A word as the two that it is in memory.
#[inline(always)]
pub fn split(word: u32) -> [u16; 2] {
    let [a, b, c, d] = word.to_ne_bytes();
    [u16::from_ne_bytes([a, b]), u16::from_ne_bytes([c, d])]
}

/// What a checksum has to be changed by: a sum in one's complement (RFC 1624), in which the order of
/// bytes does not matter.
#[derive(Clone, Copy, Default)]
pub(crate) struct Change(u32);

impl Change {
    /// Puts a word in the place of another.
    #[inline(always)]
    pub(crate) fn put(&mut self, place: &mut u16, word: u16) {
        self.swap(*place, word);
        *place = word;
    }

    #[inline(always)]
    pub(crate) fn swap(&mut self, old: u16, new: u16) {
        self.0 += u32::from(!old) + u32::from(new);
    }

    /// In one word.
    #[inline(always)]
    pub(crate) fn sum(self) -> u16 {
        let sum = (self.0 & 0xffff) + (self.0 >> 16);
        ((sum & 0xffff) + (sum >> 16)) as u16
    }

    #[inline(always)]
    pub(crate) fn apply(self, checksum: &mut u16) {
        *checksum = !Change(self.0 + u32::from(!*checksum)).sum();
    }
}

/// Gives a packet other addresses and ports. False when it is shorter than its head said.
#[inline(always)]
pub fn rewrite(packet: &mut impl PacketMut, head: &Head, to: &Ends) -> bool {
    let mut change = Change::default();
    match head.v6 {
        false => {
            let Some(ip) = packet.words_mut::<10>(NETWORK) else {
                return false;
            };
            let ([a, b], [c, d]) = (split(to[0]), split(to[4]));
            change.put(&mut ip[6], a);
            change.put(&mut ip[7], b);
            change.put(&mut ip[8], c);
            change.put(&mut ip[9], d);
            change.apply(&mut ip[5]);
            ports(packet, TRANSPORT4, head, to[8], change)
        }
        true => {
            let Some(ip) = packet.words_mut::<20>(NETWORK) else {
                return false;
            };
            let mut index = 0;
            while index < 8 {
                let [first, second] = split(to[index]);
                change.put(&mut ip[4 + 2 * index], first);
                change.put(&mut ip[5 + 2 * index], second);
                index += 1;
            }
            ports(packet, TRANSPORT6, head, to[8], change)
        }
    }
}

#[inline(always)]
fn ports(
    packet: &mut impl PacketMut,
    at: usize,
    head: &Head,
    ports: u32,
    mut change: Change,
) -> bool {
    if head.is(Piece::Later) {
        return true;
    }
    let ports = u32::from_le(ports);
    let (source, destination) = ((ports as u16).to_be(), ((ports >> 16) as u16).to_be());
    if head.tcp {
        let Some(header) = packet.words_mut::<10>(at) else {
            return false;
        };
        change.put(&mut header[0], source);
        change.put(&mut header[1], destination);
        change.apply(&mut header[8]);
        return true;
    }
    let Some(header) = packet.words_mut::<4>(at) else {
        return false;
    };
    change.put(&mut header[0], source);
    change.put(&mut header[1], destination);
    // Zero stands for no checksum (RFC 768), so one that comes out as zero is written otherwise.
    if header[3] != 0 {
        change.apply(&mut header[3]);
        if header[3] == 0 {
            header[3] = 0xffff;
        }
    }
    true
}

/// Takes one from the number of times that a packet may still be forwarded. False when there is none
/// left.
#[inline(always)]
pub fn age(packet: &mut impl PacketMut, v6: bool) -> bool {
    if v6 {
        let Some(ip) = packet.words_mut::<20>(NETWORK) else {
            return false;
        };
        let word = u16::from_be(ip[3]);
        if word & 0xff <= 1 {
            return false;
        }
        ip[3] = (word - 1).to_be();
        return true;
    }
    let Some(ip) = packet.words_mut::<10>(NETWORK) else {
        return false;
    };
    let word = u16::from_be(ip[4]);
    if word >> 8 <= 1 {
        return false;
    }
    let mut change = Change::default();
    change.put(&mut ip[4], (word - 0x100).to_be());
    change.apply(&mut ip[5]);
    true
}

/// Sends a packet to another Ethernet address.
#[inline(always)]
pub fn address(packet: &mut impl PacketMut, macs: &Macs) -> bool {
    let Some(ethernet) = packet.words_mut::<6>(0) else {
        return false;
    };
    *ethernet = *macs;
    true
}

#[cfg(test)]
#[path = "head_tests.rs"]
pub(crate) mod tests;
