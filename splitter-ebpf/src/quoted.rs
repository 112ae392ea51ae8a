//! Error messages of ICMP, which quote the packet that they are about: of a flow that is forwarded it is one
//! that the side they are for has not sent in this form.

use splitter_common::{FlowKey, PROTO_TCP, PROTO_UDP};

use crate::head::{Change, Ends, PacketMut, join, split};
use crate::parse::Packet;

/// What an error message quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quoted {
    /// The key of the other direction: of packets from whom the quoted one was for.
    pub key: [u32; 10],
    /// IPv6.
    pub v6: bool,
    /// UDP, whose checksum is among what is always quoted.
    pub udp: bool,
}

const NETWORK: usize = 14;
const MESSAGE4: usize = NETWORK + 20;
const MESSAGE6: usize = NETWORK + 40;
/// The header of a message.
const MESSAGE: usize = 8;
const QUOTED4: usize = MESSAGE4 + MESSAGE;
const QUOTED6: usize = MESSAGE6 + MESSAGE;

const ICMP: u8 = 1;
const ICMP6: u8 = 58;

/// Destination unreachable, time exceeded, parameter problem (RFC 792).
const ERRORS4: [u16; 3] = [3, 11, 12];
/// Errors are the kinds below 128 (RFC 4443); these are assigned.
const LAST_ERROR6: u16 = 4;

/// Whether a packet is a message of ICMP at all.
#[inline(always)]
pub fn is_message(packet: &impl Packet) -> bool {
    let Some(words) = packet.words::<17>(0) else {
        return false;
    };
    match u16::from_be(words[6]) {
        0x0800 => u16::from_be(words[11]) as u8 == ICMP,
        0x86dd => (u16::from_be(words[10]) >> 8) as u8 == ICMP6,
        _ => false,
    }
}

impl Quoted {
    /// Reads it; none when the packet is another one. Eight bytes of the quoted packet's own content are
    /// enough: more is not always there.
    #[inline(always)]
    pub fn of(packet: &impl Packet) -> Option<Quoted> {
        match u16::from_be(packet.words::<7>(0)?[6]) {
            0x0800 => Self::of4(packet),
            0x86dd => Self::of6(packet),
            _ => None,
        }
    }

    #[inline(always)]
    fn of4(packet: &impl Packet) -> Option<Quoted> {
        let ip = packet.words::<10>(NETWORK)?;
        let is_plain = u16::from_be(ip[0]) >> 8 == 0x45 && u16::from_be(ip[3]) & 0x3fff == 0;
        let kind = u16::from_be(packet.words::<4>(MESSAGE4)?[0]) >> 8;
        if !is_plain || u16::from_be(ip[4]) as u8 != ICMP || !is_error4(kind) {
            return None;
        }
        let quoted = packet.words::<10>(QUOTED4)?;
        let is_plain =
            u16::from_be(quoted[0]) >> 8 == 0x45 && u16::from_be(quoted[3]) & 0x1fff == 0;
        let protocol = u16::from_be(quoted[4]) as u8;
        if !is_plain || !is_carried(protocol) {
            return None;
        }
        let ports = packet.words::<4>(QUOTED4 + 20)?;
        let (source, destination) = (join(quoted[6], quoted[7]), join(quoted[8], quoted[9]));
        let ports = FlowKey::ports(u16::from_be(ports[1]), u16::from_be(ports[0]));
        let kind = FlowKey::kind(protocol, 4);
        Some(Quoted {
            key: [destination, 0, 0, 0, source, 0, 0, 0, ports, kind],
            v6: false,
            udp: protocol == PROTO_UDP,
        })
    }

    #[inline(always)]
    fn of6(packet: &impl Packet) -> Option<Quoted> {
        let ip = packet.words::<20>(NETWORK)?;
        let kind = u16::from_be(packet.words::<4>(MESSAGE6)?[0]) >> 8;
        let is_error = (1..=LAST_ERROR6).contains(&kind);
        if (u16::from_be(ip[3]) >> 8) as u8 != ICMP6 || !is_error {
            return None;
        }
        let quoted = packet.words::<20>(QUOTED6)?;
        let protocol = (u16::from_be(quoted[3]) >> 8) as u8;
        if !is_carried(protocol) {
            return None;
        }
        let ports = packet.words::<4>(QUOTED6 + 40)?;
        let ports = FlowKey::ports(u16::from_be(ports[1]), u16::from_be(ports[0]));
        let at = |word: usize| join(quoted[4 + 2 * word], quoted[5 + 2 * word]);
        let kind = FlowKey::kind(protocol, 6);
        Some(Quoted {
            key: [
                at(4),
                at(5),
                at(6),
                at(7),
                at(0),
                at(1),
                at(2),
                at(3),
                ports,
                kind,
            ],
            v6: true,
            udp: protocol == PROTO_UDP,
        })
    }
}

#[inline(always)]
fn is_error4(kind: u16) -> bool {
    kind == ERRORS4[0] || kind == ERRORS4[1] || kind == ERRORS4[2]
}

#[inline(always)]
fn is_carried(protocol: u8) -> bool {
    protocol == PROTO_TCP || protocol == PROTO_UDP
}

/// Gives a message to whom the packets of the other direction are given (`to`), and has it quote what that
/// side has sent. With `as_own` it comes from this node. None when it is shorter than it was.
#[inline(always)]
pub fn readdress(
    packet: &mut impl PacketMut,
    quoted: &Quoted,
    to: &Ends,
    as_own: bool,
) -> Option<()> {
    match quoted.v6 {
        false => readdress4(packet, quoted, to, as_own),
        true => readdress6(packet, quoted, to, as_own),
    }
}

#[inline(always)]
fn readdress4(packet: &mut impl PacketMut, quoted: &Quoted, to: &Ends, as_own: bool) -> Option<()> {
    let ([a, b], [c, d]) = (split(to[0]), split(to[4]));
    // The quoted packet goes the other way.
    let ip = packet.words_mut::<10>(QUOTED4)?;
    let mut addresses = Change::default();
    addresses.put(&mut ip[6], c);
    addresses.put(&mut ip[7], d);
    addresses.put(&mut ip[8], a);
    addresses.put(&mut ip[9], b);
    let mut message = addresses;
    let before = ip[5];
    addresses.apply(&mut ip[5]);
    message.swap(before, ip[5]);
    ports(packet, QUOTED4 + 20, quoted, to, addresses, &mut message)?;
    message.apply(&mut packet.words_mut::<4>(MESSAGE4)?[1]);
    let ip = packet.words_mut::<10>(NETWORK)?;
    let mut outer = Change::default();
    if as_own {
        outer.put(&mut ip[6], a);
        outer.put(&mut ip[7], b);
    }
    outer.put(&mut ip[8], c);
    outer.put(&mut ip[9], d);
    outer.apply(&mut ip[5]);
    Some(())
}

#[inline(always)]
fn readdress6(packet: &mut impl PacketMut, quoted: &Quoted, to: &Ends, as_own: bool) -> Option<()> {
    let ip = packet.words_mut::<20>(QUOTED6)?;
    let mut addresses = Change::default();
    let mut index = 0;
    while index < 4 {
        let ([a, b], [c, d]) = (split(to[index]), split(to[4 + index]));
        addresses.put(&mut ip[4 + 2 * index], c);
        addresses.put(&mut ip[5 + 2 * index], d);
        addresses.put(&mut ip[12 + 2 * index], a);
        addresses.put(&mut ip[13 + 2 * index], b);
        index += 1;
    }
    let mut message = addresses;
    ports(packet, QUOTED6 + 40, quoted, to, addresses, &mut message)?;
    let ip = packet.words_mut::<20>(NETWORK)?;
    index = 0;
    while index < 4 {
        let ([a, b], [c, d]) = (split(to[index]), split(to[4 + index]));
        if as_own {
            message.put(&mut ip[4 + 2 * index], a);
            message.put(&mut ip[5 + 2 * index], b);
        }
        message.put(&mut ip[12 + 2 * index], c);
        message.put(&mut ip[13 + 2 * index], d);
        index += 1;
    }
    message.apply(&mut packet.words_mut::<4>(MESSAGE6)?[1]);
    Some(())
}

/// Changes the quoted ports, and the checksum of UDP with them.
#[inline(always)]
fn ports(
    packet: &mut impl PacketMut,
    at: usize,
    quoted: &Quoted,
    to: &Ends,
    addresses: Change,
    message: &mut Change,
) -> Option<()> {
    let ports = u32::from_le(to[8]);
    let (source, destination) = ((ports as u16).to_be(), ((ports >> 16) as u16).to_be());
    let header = packet.words_mut::<4>(at)?;
    let mut changed = addresses;
    changed.swap(header[0], destination);
    changed.swap(header[1], source);
    message.put(&mut header[0], destination);
    message.put(&mut header[1], source);
    if quoted.udp && header[3] != 0 {
        let before = header[3];
        changed.apply(&mut header[3]);
        message.swap(before, header[3]);
    }
    Some(())
}

#[cfg(test)]
#[path = "quoted_tests.rs"]
mod tests;
