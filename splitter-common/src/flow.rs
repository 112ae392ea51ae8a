//! Where a flow is on the line of the weights, and on a ring of Endpoints: the same for the kernel
//! programs and for user space, on every node and after every start.

use crate::limits::MAX_VARIANTS;

/// How many places the line of the weights has.
pub const POINTS: u32 = 1 << 16;

/// IANA's number of TCP.
pub const PROTO_TCP: u8 = 6;

/// IANA's number of UDP.
pub const PROTO_UDP: u8 = 17;

/// Keep the place on the line and the place on the ring apart: with one hash for both, a Variant would
/// see a part of each ring only.
const LINE: u64 = 0x6c69_6e65_0000_0001;
const RING: u64 = 0x7269_6e67_0000_0002;

/// Who speaks with whom. IPv4 addresses are mapped into IPv6 (`::ffff:a.b.c.d`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// The client.
    pub source: [u8; 16],
    /// What it has asked for.
    pub destination: [u8; 16],
    /// The client's port.
    pub source_port: u16,
    /// The port that it has asked for.
    pub destination_port: u16,
    /// [`PROTO_TCP`] or [`PROTO_UDP`].
    pub protocol: u8,
}

impl Flow {
    /// Its place on the line of the weights, by the connection.
    ///
    /// The 65,536 source ports that a client has towards one address are a permutation of the places,
    /// so they are split exactly and not only on average.
    #[inline(always)]
    pub fn point(&self) -> u16 {
        let rest = mix(self.addresses(LINE), u64::from(self.target()));
        shuffle(self.source_port, rest)
    }

    /// Its place on the line of the weights, by the client's address alone. Clients whose addresses
    /// differ in the last two bytes are split exactly.
    #[inline(always)]
    pub fn source_point(&self) -> u16 {
        source_point_of(words(&self.source))
    }

    /// Its place on a ring of this size, by the connection; 0 on an empty one.
    #[inline(always)]
    pub fn place(&self, size: u32) -> u32 {
        let ports = u64::from(self.target()) << 16 | u64::from(self.source_port);
        let hash = mix(self.addresses(RING), ports) >> 32;
        ((hash * u64::from(size)) >> 32) as u32
    }

    #[inline(always)]
    fn addresses(&self, purpose: u64) -> u64 {
        let ([a, b], [c, d]) = (words(&self.source), words(&self.destination));
        mix(mix(mix(mix(purpose, a), b), c), d)
    }

    #[inline(always)]
    fn target(&self) -> u32 {
        u32::from(self.protocol) << 16 | u32::from(self.destination_port)
    }
}

/// The place on the line of the weights of a client, by its number of 128 bits. Those that differ in the
/// last 16 are split exactly.
#[inline(always)]
pub(crate) fn source_point_of([high, low]: [u64; 2]) -> u16 {
    shuffle(low as u16, mix(mix(LINE, high), low >> 16))
}

/// The Variant that owns a place on the line. Canaries have the low places, in order, so that who is
/// given more keeps what it had; `weights[0]` is stable, which has what is left, and everything when
/// the sum is zero. 0 % and 100 % are exact.
#[inline(always)]
pub fn variant_at(weights: &[u32; MAX_VARIANTS], point: u16) -> usize {
    let mut total = 0u64;
    for weight in weights {
        total += u64::from(*weight);
    }
    let place = u64::from(point) * total;
    let mut end = 0u64;
    let mut index = 1;
    while index < MAX_VARIANTS {
        end += u64::from(weights[index]);
        if place < end * u64::from(POINTS) {
            return index;
        }
        index += 1;
    }
    0
}

#[inline(always)]
fn words(address: &[u8; 16]) -> [u64; 2] {
    let [a, b, c, d, e, f, g, h, rest @ ..] = *address;
    [
        u64::from_be_bytes([a, b, c, d, e, f, g, h]),
        u64::from_be_bytes(rest),
    ]
}

/// Mixes a word into a hash, by the finalizer of splitmix64: every bit depends on every bit.
#[inline(always)]
fn mix(hash: u64, word: u64) -> u64 {
    let mut hash = (hash ^ word).wrapping_add(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

/// A permutation of the numbers below 65,536, another for each key: a Feistel network of bytes. With six
/// rounds a thousand ports in a row are spread as chance would; with four they are not.
#[inline(always)]
fn shuffle(number: u16, key: u64) -> u16 {
    let [mut left, mut right] = number.to_be_bytes();
    let mut round = 0;
    while round < 6 {
        let mixed =
            (key.rotate_left(16 * round) ^ u64::from(right)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (left, right) = (right, left ^ (mixed >> 56) as u8);
        round += 1;
    }
    u16::from_be_bytes([left, right])
}

#[cfg(test)]
#[path = "flow_tests.rs"]
pub(crate) mod tests;
