use crate::layout::layout;

/// Entry of the per-CPU map `class_counts`, by [`crate::Class`] code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ClassCount {
    /// Packets that XDP saw.
    pub packets: u64,
    /// Their bytes, from the Ethernet header on.
    pub bytes: u64,
    /// Look-ups of new connections that sk_lookup answered. While SYN cookies are in use, one
    /// connection is two look-ups.
    pub lookups: u64,
}

/// Entry of the per-CPU map `reason_counts`, by the codes of [`crate::PassReason`],
/// [`crate::DropReason`], [`crate::Note`] and [`crate::SteerReason`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ReasonCount {
    /// How often.
    pub count: u64,
    /// Bytes of the packets; 0 for look-ups.
    pub bytes: u64,
}

/// Key of the map `buckets`: a source prefix and what it is limited in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct BucketKey {
    /// The source's prefix: /24 of IPv4 (as an IPv4-mapped address), /64 of IPv6.
    pub addr: [u8; 16],
    /// A [`BucketKind`] code.
    pub kind: u32,
}

/// What a token bucket limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum BucketKind {
    /// New connections.
    Syn = 0,
    /// Packets.
    Packets = 1,
}

/// Value of the maps `buckets` and `class_buckets`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct BucketState {
    /// When it would be full again, in nanoseconds of the monotonic clock. A token moves it
    /// 1/rate seconds on, so that one number is the whole bucket.
    pub full_at: u64,
}

layout!(ClassCount, size 24, align 8, { packets: 0, bytes: 8, lookups: 16 });
layout!(ReasonCount, size 16, align 8, { count: 0, bytes: 8 });
layout!(BucketKey, size 20, align 4, { addr: 0, kind: 16 });
layout!(BucketState, size 8, align 8, { full_at: 0 });

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::bytes_of;

    #[test]
    fn bytes() {
        let count = ClassCount {
            packets: 1,
            bytes: 2,
            lookups: 3,
        };
        let mut golden = [0u8; 24];
        (golden[0], golden[8], golden[16]) = (1, 2, 3);
        assert_eq!(bytes_of(&count), golden);
        let key = BucketKey {
            addr: [9; 16],
            kind: 1,
        };
        let mut golden = [9u8; 20];
        golden[16..].copy_from_slice(&[1, 0, 0, 0]);
        assert_eq!(bytes_of(&key), golden);
    }
}
