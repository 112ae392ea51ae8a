//! From the bytes of a packet to what the judgement needs.
//!
//! Headers are read as 16-bit words: every header here starts at an even offset, and drivers start
//! packets at one.

use splitter_common::{MAX_EXTENSIONS, MAX_VLAN_TAGS, PassReason, Peer};

/// A packet as XDP sees it.
pub trait Packet {
    /// `N` words in network order from the even byte offset `at` on; none when the packet is
    /// shorter.
    fn words<const N: usize>(&self, at: usize) -> Option<&[u16; N]>;
    /// Length in bytes, from the Ethernet header on.
    fn size(&self) -> u64;
    /// How many of these lie in the first of its pieces, where [`Self::words`] reads. Cheaper than
    /// all.
    fn first_piece(&self) -> u64;
}

/// What a packet is, as far as its headers say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parsed {
    /// Its source address.
    pub source: Peer,
    /// Whether its payload is TCP, so far as was seen.
    pub tcp: bool,
    /// Whether it opens a TCP connection.
    pub syn: bool,
    /// Source and destination port of TCP and UDP as they lie in the packet; 0 for all else and
    /// for fragments, of which only the first has any.
    pub ports: u32,
    /// Why it passes when nothing speaks against its source.
    pub reason: PassReason,
}

const ETHERNET: usize = 14;
const VLAN: usize = 4;
const IPV6: usize = 40;

const TYPE_IPV4: u16 = 0x0800;
const TYPE_IPV6: u16 = 0x86dd;

const HOP_BY_HOP: u8 = 0;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION: u8 = 60;
const MOBILITY: u8 = 135;
const HOST_IDENTITY: u8 = 139;
const SHIM6: u8 = 140;

const SYN: u16 = 0x02;
const ACK: u16 = 0x10;

/// What lies above Ethernet, and where it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// IPv4.
    V4(usize),
    /// IPv6.
    V6(usize),
}

/// Reads the Ethernet header and the VLAN tags.
///
/// # Errors
/// The reason to let the packet pass where that is not IP.
#[inline(always)]
pub fn link(packet: &impl Packet) -> Result<Network, PassReason> {
    let ethernet = packet.words::<7>(0).ok_or(PassReason::Truncated)?;
    let mut kind = be(ethernet[6]);
    let mut at = ETHERNET;
    for _ in 0..MAX_VLAN_TAGS {
        if !is_vlan(kind) {
            break;
        }
        kind = be(packet.words::<2>(at).ok_or(PassReason::Truncated)?[1]);
        at += VLAN;
    }
    match kind {
        TYPE_IPV4 => Ok(Network::V4(at)),
        TYPE_IPV6 => Ok(Network::V6(at)),
        kind if is_vlan(kind) => Err(PassReason::TooManyTags),
        _ => Err(PassReason::NotIp),
    }
}

/// Reads what nearly every packet is in one look: TCP over IPv4 in one piece, without tags, options
/// and fragments. Gives what [`link`] and [`ipv4`] would, and the length in bytes; none when it is
/// anything else.
///
/// The length is that of the only piece: it holds all that the IPv4 header speaks of.
#[inline(always)]
pub fn usual(packet: &impl Packet) -> Option<(Parsed, u64)> {
    let words = packet.words::<27>(0)?;
    let (ip, tcp) = (ETHERNET / 2, (ETHERNET + 20) / 2);
    let length = be(words[ip + 1]);
    let is_usual = words[6] == TYPE_IPV4.to_be()
        && be(words[ip]) >> 8 == 0x45
        && length >= 20
        && words[ip + 3] & 0x3fff_u16.to_be() == 0
        && be(words[ip + 4]) as u8 == TCP;
    let bytes = packet.first_piece();
    if !is_usual || bytes < ETHERNET as u64 + u64::from(length) {
        return None;
    }
    let parsed = Parsed {
        source: Peer::v4(join(words[ip + 6], words[ip + 7])),
        tcp: true,
        syn: be(words[tcp + 6]) & (SYN | ACK) == SYN,
        ports: ports(words[tcp], words[tcp + 1]),
        reason: PassReason::Classified,
    };
    Some((parsed, bytes))
}

/// Reads an IPv4 header and what it carries.
///
/// # Errors
/// The reason to let the packet pass where its source address cannot be told.
#[inline(always)]
pub fn ipv4(packet: &impl Packet, at: usize) -> Result<Parsed, PassReason> {
    let header = packet.words::<10>(at).ok_or(PassReason::Truncated)?;
    let first = be(header[0]);
    let length = usize::from(first >> 8 & 0xf) * 4;
    if first >> 12 != 4 || length < 20 || usize::from(be(header[1])) < length {
        return Err(PassReason::Malformed);
    }
    let protocol = (be(header[4]) & 0xff) as u8;
    let parsed = Parsed {
        source: Peer::v4(join(header[6], header[7])),
        tcp: protocol == TCP,
        syn: false,
        ports: 0,
        reason: PassReason::Classified,
    };
    // More fragments follow, or this one is not the first.
    let fragment = be(header[3]) & 0x3fff;
    Ok(if fragment == 0 {
        transport(packet, at + length, protocol, parsed)
    } else {
        of_fragment(packet, at + length, fragment & 0x1fff, parsed)
    })
}

/// Reads an IPv6 header with its extensions and what it carries.
///
/// # Errors
/// The reason to let the packet pass where its source address cannot be told.
#[inline(always)]
pub fn ipv6(packet: &impl Packet, at: usize) -> Result<Parsed, PassReason> {
    let header = packet.words::<20>(at).ok_or(PassReason::Truncated)?;
    if be(header[0]) >> 12 != 6 {
        return Err(PassReason::Malformed);
    }
    let high = u64::from(join(header[4], header[5])) << 32 | u64::from(join(header[6], header[7]));
    let low = u64::from(join(header[8], header[9])) << 32 | u64::from(join(header[10], header[11]));
    let mut parsed = Parsed {
        source: Peer { high, low },
        tcp: false,
        syn: false,
        ports: 0,
        reason: PassReason::Classified,
    };
    let mut next = (be(header[3]) >> 8) as u8;
    let mut at = at + IPV6;
    for _ in 0..MAX_EXTENSIONS {
        if !is_extension(next) {
            break;
        }
        let Some(extension) = packet.words::<2>(at) else {
            parsed.reason = PassReason::Truncated;
            return Ok(parsed);
        };
        let this = next;
        next = (be(extension[0]) >> 8) as u8;
        if this == FRAGMENT {
            // Its lowest bit says that more follow; then come two reserved ones.
            let field = be(extension[1]);
            if field & 0xfff9 != 0 {
                parsed.tcp = next == TCP;
                return Ok(of_fragment(packet, at + 8, field & 0xfff8, parsed));
            }
        }
        at += extension_length(this, usize::from(be(extension[0]) & 0xff));
    }
    if is_extension(next) {
        parsed.reason = PassReason::TooManyExtensions;
        return Ok(parsed);
    }
    parsed.tcp = next == TCP;
    Ok(transport(packet, at, next, parsed))
}

/// A fragment: only the first (offset 0) carries the transport header.
#[inline(always)]
fn of_fragment(packet: &impl Packet, at: usize, offset: u16, parsed: Parsed) -> Parsed {
    let syn = offset == 0 && parsed.tcp && transport(packet, at, TCP, parsed).syn;
    Parsed {
        syn,
        reason: PassReason::Fragment,
        ..parsed
    }
}

#[inline(always)]
fn transport(packet: &impl Packet, at: usize, protocol: u8, parsed: Parsed) -> Parsed {
    let truncated = Parsed {
        reason: PassReason::Truncated,
        ..parsed
    };
    match protocol {
        TCP => packet.words::<10>(at).map_or(truncated, |header| Parsed {
            syn: be(header[6]) & (SYN | ACK) == SYN,
            ports: ports(header[0], header[1]),
            ..parsed
        }),
        UDP => packet.words::<4>(at).map_or(truncated, |header| Parsed {
            ports: ports(header[0], header[1]),
            ..parsed
        }),
        _ => parsed,
    }
}

#[inline(always)]
fn ports(source: u16, destination: u16) -> u32 {
    u32::from(source) | u32::from(destination) << 16
}

#[inline(always)]
fn is_vlan(kind: u16) -> bool {
    // 802.1Q, 802.1ad, and what was in use before that.
    matches!(kind, 0x8100 | 0x88a8 | 0x9100)
}

#[inline(always)]
fn is_extension(next: u8) -> bool {
    matches!(
        next,
        HOP_BY_HOP
            | ROUTING
            | FRAGMENT
            | AUTHENTICATION
            | DESTINATION
            | MOBILITY
            | HOST_IDENTITY
            | SHIM6
    )
}

/// Bytes of an extension header whose length field is `field`.
#[inline(always)]
fn extension_length(kind: u8, field: usize) -> usize {
    match kind {
        FRAGMENT => 8,
        // Counts in words of four bytes, less two; all others in eights, less one.
        AUTHENTICATION => (field + 2) * 4,
        _ => (field + 1) * 8,
    }
}

#[inline(always)]
fn be(word: u16) -> u16 {
    u16::from_be(word)
}

#[inline(always)]
fn join(high: u16, low: u16) -> u32 {
    u32::from(be(high)) << 16 | u32::from(be(low))
}

#[cfg(test)]
#[path = "parse_tests.rs"]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests;
