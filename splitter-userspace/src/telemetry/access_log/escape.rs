use std::io::Write as _;

use crate::words::{self, Word};

/// Writes bytes of a client as nginx does in its log: quotes, backslashes, control characters and
/// everything that is not ASCII become `\xNN`, so that no line can be forged.
pub(super) fn text(out: &mut Vec<u8>, value: &[u8]) {
    // Nearly everything is plain, and goes as one piece.
    let (plain, value) = value.split_at(plain_prefix(value));
    out.extend_from_slice(plain);
    for byte in value {
        match byte {
            b'"' | b'\\' | 0..=0x1f | 0x7f..=0xff => {
                let _ = write!(out, "\\x{byte:02X}");
            }
            byte => out.push(*byte),
        }
    }
}

/// Writes bytes of a client as the inside of a JSON string. Bytes that are not UTF-8 become the
/// replacement character.
pub(super) fn json(out: &mut Vec<u8>, value: &[u8]) {
    // Nearly everything is plain, and goes as one piece.
    let (plain, value) = value.split_at(plain_prefix(value));
    out.extend_from_slice(plain);
    for chunk in value.utf8_chunks() {
        for c in chunk.valid().chars() {
            json_char(out, c);
        }
        if !chunk.invalid().is_empty() {
            out.extend_from_slice("\u{fffd}".as_bytes());
        }
    }
}

/// How many bytes from the start stand for themselves.
fn plain_prefix(value: &[u8]) -> usize {
    let word = |word: Word| word.is_printable_without([b'"', b'\\']);
    words::prefix(value, word, is_plain)
}

/// Whether a byte stands for itself inside a JSON string.
fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\'
}

fn json_char(out: &mut Vec<u8>, c: char) {
    match c {
        '"' => out.extend_from_slice(b"\\\""),
        '\\' => out.extend_from_slice(b"\\\\"),
        // C1 controls can steer a terminal as well; the line separators end a line for some readers.
        '\0'..='\x1f' | '\x7f'..='\u{9f}' | '\u{2028}' | '\u{2029}' => {
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        }
        c => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_keeps_one_line_and_its_quotes() {
        let mut out = Vec::new();
        text(&mut out, b"a\"b\\c\r\nd\x00\x7f\xc3\xa9 ~");
        assert_eq!(out, br"a\x22b\x5Cc\x0D\x0Ad\x00\x7F\xC3\xA9 ~");
    }

    #[test]
    fn json_is_read_back_by_another_parser() {
        let value = "a\"b\\c\r\n\u{1}\u{7f}\u{9b}\u{2028}é𝄞";
        let mut out = vec![b'"'];
        json(&mut out, value.as_bytes());
        out.push(b'"');
        assert_eq!(
            serde_json::from_slice::<String>(&out).ok().as_deref(),
            Some(value)
        );
        assert!(!out.iter().any(|byte| *byte < 0x20 || *byte == 0x7f));
    }

    #[test]
    fn json_replaces_what_is_not_utf8() {
        let mut out = Vec::new();
        json(&mut out, b"a\xffb\xc3");
        assert_eq!(String::from_utf8_lossy(&out), "a\u{fffd}b\u{fffd}");
    }
}
