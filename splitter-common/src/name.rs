use crate::layout::layout;
use crate::limits::MAX_VARIANTS;

/// Text in a map: bytes up to the first zero. Signed, as `char` is in C: the build marks that type
/// so that `bpftool` prints it as text.
pub type Text<const N: usize> = [i8; N];

/// What a slot of `splits` is called, as it lies in the map `split_names`. Longer names are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct SplitName {
    /// Host name, `*.suffix`, or `*` for any; `service/NAMESPACE/NAME` for a Service.
    pub host: Text<256>,
    /// Path as written; `:PORT` of a Service.
    pub path: Text<256>,
    /// `Exact`, `Prefix` or `Regex`; `TCP` or `UDP` of a Service's port.
    pub kind: Text<8>,
    /// `stable`, then the Services of the canaries; empty past the last.
    pub variants: [Text<64>; MAX_VARIANTS],
}

impl Default for SplitName {
    fn default() -> Self {
        SplitName {
            host: [0; 256],
            path: [0; 256],
            kind: [0; 8],
            variants: [[0; 64]; MAX_VARIANTS],
        }
    }
}

/// Writes a text, cut where its place ends; the last byte stays zero.
pub fn write_text(place: &mut [i8], text: &str) {
    place.fill(0);
    let room = place.len().saturating_sub(1);
    for (byte, place) in text.bytes().take(room).zip(place) {
        *place = byte as i8;
    }
}

/// The bytes of a text.
pub fn read_text(place: &[i8]) -> impl Iterator<Item = u8> {
    let bytes = place.iter().map(|byte| *byte as u8);
    bytes.take_while(|byte| *byte != 0)
}

layout!(SplitName, size 1032, align 1, { host: 0, path: 256, kind: 512, variants: 520 });

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use super::*;
    use crate::layout::bytes_of;

    #[test]
    fn name_bytes() {
        let mut name = SplitName::default();
        write_text(&mut name.host, "shop");
        write_text(&mut name.kind, "Prefix");
        write_text(&mut name.variants[1], "new");
        let mut golden = std::vec![0u8; 1032];
        golden[..4].copy_from_slice(b"shop");
        golden[512..518].copy_from_slice(b"Prefix");
        golden[584..587].copy_from_slice(b"new");
        assert_eq!(bytes_of(&name), golden);
    }

    #[test]
    fn long_texts_are_cut_and_short_ones_leave_nothing_behind() {
        let mut place = [0i8; 8];
        write_text(&mut place, "0123456789");
        assert_eq!(read_text(&place).collect::<Vec<_>>(), b"0123456");
        assert_eq!(place[7], 0);
        write_text(&mut place, "é");
        assert_eq!(read_text(&place).collect::<Vec<_>>(), "é".as_bytes());
    }
}
