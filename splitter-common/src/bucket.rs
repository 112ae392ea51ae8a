use crate::classify::Peer;
use crate::layout::layout;

/// Key of the map `source_buckets`: a source prefix and what it is limited in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct BucketKey {
    /// The source's prefix: /24 of IPv4 (as an IPv4-mapped address), /64 of IPv6.
    pub addr: [u8; 16],
    /// A [`BucketKind`] code.
    pub kind: u32,
}

impl BucketKey {
    /// The key as the words that it is in memory.
    #[inline(always)]
    pub const fn words(source: Peer, kind: BucketKind) -> [u32; 5] {
        let prefix = match source.as_v4() {
            Some(addr) => Peer::v4(addr & 0xffff_ff00),
            None => Peer {
                high: source.high,
                low: 0,
            },
        };
        let [a, b, c, d] = prefix.words();
        [a, b, c, d, kind as u32]
    }
}

/// What a token bucket limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum BucketKind {
    /// New connections.
    Syn = 0,
    /// Packets.
    Packets = 1,
    /// New flows that are forwarded without user space; of classes only.
    Flows = 2,
}

impl BucketKind {
    /// How many there are.
    pub const COUNT: u32 = 3;
}

/// Value of the maps `source_buckets` and `class_buckets`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct BucketState {
    /// When it would be full again, in nanoseconds of the monotonic clock. A token moves it
    /// 1/rate seconds on, so that one number is the whole bucket.
    pub full_at: u64,
}

layout!(BucketKey, size 20, align 4, { addr: 0, kind: 16 });
layout!(BucketState, size 8, align 8, { full_at: 0 });

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::bytes_of;

    #[test]
    fn bytes() {
        let key = BucketKey {
            addr: [9; 16],
            kind: 1,
        };
        let mut golden = [9u8; 20];
        golden[16..].copy_from_slice(&[1, 0, 0, 0]);
        assert_eq!(bytes_of(&key), golden);
    }

    #[test]
    fn sources_share_a_bucket_by_24_and_64_bits() {
        let words = BucketKey::words(Peer::v4(0xc633_6407), BucketKind::Packets);
        let mut golden = [0u8; 20];
        golden[10..].copy_from_slice(&[0xff, 0xff, 198, 51, 100, 0, 1, 0, 0, 0]);
        assert_eq!(bytes_of(&words), golden);
        let source = Peer {
            high: 0x2001_0db8_0009_0001,
            low: 7,
        };
        let words = BucketKey::words(source, BucketKind::Syn);
        let mut golden = [0u8; 20];
        golden[..8].copy_from_slice(&[0x20, 1, 0xd, 0xb8, 0, 9, 0, 1]);
        assert_eq!(bytes_of(&words), golden);
    }
}
