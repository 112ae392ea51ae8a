//! Log records as aya-log reads them: fields of a kind, a length and bytes, behind a total length.
//!
//! They are made when this is compiled. `aya-log-ebpf` would make them at run time, and defines its
//! map in the way that libbpf no longer reads, so that nobody could load the object with bpftool.

/// Bytes that a record takes in the ring.
pub const RECORD: usize = 192;

/// The level `warn` of aya-log.
pub const WARN: u8 = 2;

// Kinds of fields: `RecordFieldKind` and `ArgumentKind` of aya-log-common 0.2.
const TARGET: u8 = 0;
const LEVEL: u8 = 1;
const MODULE: u8 = 2;
const FILE: u8 = 3;
const LINE: u8 = 4;
const ARGUMENTS: u8 = 5;
const TEXT: u8 = 20;

/// A warning that says `text`. Does not compile where it is too long.
pub const fn warning(text: &str) -> [u8; RECORD] {
    let mut record = [0; RECORD];
    let mut at = 2;
    at = field(&mut record, at, TARGET, b"splitter::kernel");
    at = field(&mut record, at, LEVEL, &[WARN]);
    at = field(&mut record, at, MODULE, b"splitter_ebpf::steer");
    at = field(&mut record, at, FILE, b"steer.rs");
    at = field(&mut record, at, LINE, &0u32.to_ne_bytes());
    at = field(&mut record, at, ARGUMENTS, &1u32.to_ne_bytes());
    at = field(&mut record, at, TEXT, text.as_bytes());
    let size = (at as u16).to_ne_bytes();
    record[0] = size[0];
    record[1] = size[1];
    record
}

/// Writes a field; gives where the next begins.
const fn field(record: &mut [u8; RECORD], at: usize, kind: u8, bytes: &[u8]) -> usize {
    let length = (bytes.len() as u16).to_ne_bytes();
    record[at] = kind;
    record[at + 1] = length[0];
    record[at + 2] = length[1];
    let mut index = 0;
    while index < bytes.len() {
        record[at + 3 + index] = bytes[index];
        index += 1;
    }
    at + 3 + bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_ends_with_its_text() {
        let record = warning("nobody is there");
        let size = usize::from(u16::from_ne_bytes([record[0], record[1]]));
        assert!(record[..size].ends_with(b"\x14\x0f\0nobody is there"));
        assert!(record[size..].iter().all(|byte| *byte == 0));
    }
}
