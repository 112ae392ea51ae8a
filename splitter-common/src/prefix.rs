//! Which address ranges are whose, by hashes of exact prefix lengths.
//!
//! A plain LPM trie with thousands of prefixes costs several times the rest of the program. Here
//! an index by the top 16 bits of the address names the prefix lengths in use below them (mostly
//! none: a stranger costs one array read), and each length is one hash look-up, longest first.
//! Prefixes of up to 16 bits are resolved into the index itself.

use crate::layout::layout;
use crate::limits::MAX_LENGTHS;

/// Whose an address range is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum PrefixKind {
    /// Nobody's that is known.
    None = 0,
    /// An address of this node.
    Own = 1,
    /// Pods of this node.
    Pods = 2,
    /// Pods of other nodes.
    Cluster = 3,
    /// Another node.
    Node = 4,
}

impl PrefixKind {
    /// The number in maps.
    #[inline(always)]
    pub const fn code(self) -> u32 {
        self as u32
    }

    /// The kind of a number in a map; a number that means nothing is [`PrefixKind::None`].
    #[inline(always)]
    pub const fn from_code(code: u32) -> PrefixKind {
        match code {
            1 => PrefixKind::Own,
            2 => PrefixKind::Pods,
            3 => PrefixKind::Cluster,
            4 => PrefixKind::Node,
            _ => PrefixKind::None,
        }
    }

    /// The name for people.
    pub const fn name(self) -> &'static str {
        match self {
            PrefixKind::None => "none",
            PrefixKind::Own => "own",
            PrefixKind::Pods => "pods",
            PrefixKind::Cluster => "cluster",
            PrefixKind::Node => "node",
        }
    }
}

/// Key of the map `cidr4`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(C)]
pub struct Cidr4Key {
    /// Which of the two buffers: 0 or 1.
    pub buffer: u8,
    /// Prefix length, 0 to 32.
    pub len: u8,
    /// Zero.
    pub pad: [u8; 2],
    /// The address; bits past `len` are zero.
    pub addr: [u8; 4],
}

/// Key of the map `cidr6`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(C)]
pub struct Cidr6Key {
    /// Which of the two buffers: 0 or 1.
    pub buffer: u8,
    /// Prefix length, 0 to 128.
    pub len: u8,
    /// Zero.
    pub pad: [u8; 2],
    /// The address; bits past `len` are zero.
    pub addr: [u8; 16],
}

/// Value of the maps `cidr4` and `cidr6`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct PrefixValue {
    /// A [`PrefixKind`] code.
    pub kind: u32,
}

/// Entry of the maps `cidr4_index` and `cidr6_index`: what is known of one value of the top 16 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(8))]
pub struct PrefixIndex {
    /// The [`PrefixKind`] code of the longest prefix of up to 16 bits that covers it.
    pub kind: u8,
    /// The lengths above 16 of the prefixes below it, longest first; zeros at the end.
    pub lens: [u8; MAX_LENGTHS],
}

layout!(Cidr4Key, size 8, align 1, { buffer: 0, len: 1, pad: 2, addr: 4 });
layout!(Cidr6Key, size 20, align 1, { buffer: 0, len: 1, pad: 2, addr: 4 });
layout!(PrefixValue, size 4, align 4, { kind: 0 });
layout!(PrefixIndex, size 8, align 8, { kind: 0, lens: 1 });

impl PrefixIndex {
    /// The whole entry as one number: the kind in the lowest byte, above it the lengths.
    #[inline(always)]
    pub const fn word(self) -> u64 {
        let [a, b, c, d, e, f, g] = self.lens;
        u64::from_le_bytes([self.kind, a, b, c, d, e, f, g])
    }
}

impl Cidr4Key {
    /// The key of a prefix as the words that it is in memory. Programs write keys by words: the
    /// hash reads words, and would wait for single bytes to reach memory.
    #[inline(always)]
    pub const fn words(buffer: u32, len: u32, addr: u32) -> [u32; 2] {
        [(buffer | len << 8).to_le(), addr.to_be()]
    }
}

impl Cidr6Key {
    /// The key of a prefix as the words that it is in memory.
    #[inline(always)]
    pub const fn words(buffer: u32, len: u32, high: u64, low: u64) -> [u32; 5] {
        let [a, b, c, d] = words_of(high, low);
        [(buffer | len << 8).to_le(), a, b, c, d]
    }
}

/// An IPv6 address in network order, by words.
#[inline(always)]
pub const fn words_of(high: u64, low: u64) -> [u32; 4] {
    [
        ((high >> 32) as u32).to_be(),
        (high as u32).to_be(),
        ((low >> 32) as u32).to_be(),
        (low as u32).to_be(),
    ]
}

/// One buffer of the prefix tables.
pub trait PrefixTable {
    /// The [`PrefixIndex::word`] of the top 16 bits of IPv4.
    fn index4(&self, top: u16) -> u64;
    /// The [`PrefixIndex::word`] of the top 16 bits of IPv6.
    fn index6(&self, top: u16) -> u64;
    /// The kind code of an IPv4 prefix, if it is in the table.
    fn find4(&self, len: u32, addr: u32) -> Option<u32>;
    /// The kind code of an IPv6 prefix, if it is in the table.
    fn find6(&self, len: u32, high: u64, low: u64) -> Option<u32>;
}

/// Whose an IPv4 address is: the longest prefix decides.
#[inline(always)]
pub fn kind4(table: &impl PrefixTable, addr: u32) -> PrefixKind {
    let index = table.index4((addr >> 16) as u16);
    // A shift a turn: the verifier sees that it ends.
    let mut lens = index >> 8;
    while lens != 0 {
        let len = lens as u32 & 0xff;
        lens >>= 8;
        if let Some(kind) = table.find4(len, mask4(addr, len)) {
            return PrefixKind::from_code(kind);
        }
    }
    PrefixKind::from_code(index as u32 & 0xff)
}

/// Whose an IPv6 address is, given as its high and low half: the longest prefix decides.
#[inline(always)]
pub fn kind6(table: &impl PrefixTable, high: u64, low: u64) -> PrefixKind {
    let index = table.index6((high >> 48) as u16);
    let mut lens = index >> 8;
    while lens != 0 {
        let len = lens as u32 & 0xff;
        lens >>= 8;
        let (high, low) = mask6(high, low, len);
        if let Some(kind) = table.find6(len, high, low) {
            return PrefixKind::from_code(kind);
        }
    }
    PrefixKind::from_code(index as u32 & 0xff)
}

/// Keeps the first `len` bits, for 1 to 32.
#[inline(always)]
const fn mask4(addr: u32, len: u32) -> u32 {
    addr & (u32::MAX << (32u32.wrapping_sub(len) & 31))
}

/// Keeps the first `len` bits, for 1 to 128.
#[inline(always)]
const fn mask6(high: u64, low: u64, len: u32) -> (u64, u64) {
    if len <= 64 {
        (high & (u64::MAX << (64u32.wrapping_sub(len) & 63)), 0)
    } else {
        (high, low & (u64::MAX << (128u32.wrapping_sub(len) & 63)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::bytes_of;

    #[test]
    fn key_bytes_are_dotted_addresses() {
        let key = Cidr4Key {
            buffer: 1,
            len: 24,
            pad: [0; 2],
            addr: [10, 244, 3, 0],
        };
        assert_eq!(bytes_of(&key), [1, 24, 0, 0, 10, 244, 3, 0]);
        let words = Cidr4Key::words(1, 24, 0x0af4_0300);
        assert_eq!(bytes_of(&key), bytes_of(&words));
        let key = Cidr6Key {
            buffer: 0,
            len: 64,
            pad: [0; 2],
            addr: [0xfd, 0, 0, 0x10, 2, 0x44, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
        };
        let words = Cidr6Key::words(0, 64, 0xfd00_0010_0244_0000, 1);
        assert_eq!(bytes_of(&key), bytes_of(&words));
        let mut golden = [0; 20];
        golden[1] = 64;
        golden[4..12].copy_from_slice(&[0xfd, 0, 0, 0x10, 2, 0x44, 0, 0]);
        golden[19] = 1;
        assert_eq!(bytes_of(&key), golden);
        let index = PrefixIndex {
            kind: 3,
            lens: [32, 24, 0, 0, 0, 0, 0],
        };
        assert_eq!(bytes_of(&index), [3, 32, 24, 0, 0, 0, 0, 0]);
        assert_eq!(index.word(), 0x18_2003);
    }

    #[test]
    fn masks() {
        assert_eq!(mask4(0xffff_ffff, 32), 0xffff_ffff);
        assert_eq!(mask4(0xffff_ffff, 17), 0xffff_8000);
        assert_eq!(mask6(!0, !0, 128), (!0, !0));
        assert_eq!(mask6(!0, !0, 65), (!0, 1 << 63));
        assert_eq!(mask6(!0, !0, 64), (!0, 0));
        assert_eq!(mask6(!0, !0, 17), (!0 << 47, 0));
    }
}
