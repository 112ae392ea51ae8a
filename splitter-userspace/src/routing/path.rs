//! Paths as they are compared: one spelling for what means the same by RFC 3986.

use std::borrow::Cow;

/// The byte ends an element.
const SLASH: u8 = 1;
/// The byte makes an odd element when it stands behind a slash: `//`, `/.`.
const AFTER_SLASH: u8 = 2;
/// The byte may mean something else than itself.
const ODD: u8 = 4;
/// The byte cannot stand in a path, or begins an encoded one.
const ENCODED: u8 = 8;

static CLASS: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b'/' => SLASH | AFTER_SLASH,
            b'.' => AFTER_SLASH,
            b';' => ODD,
            other if is_plain_byte(other) => 0,
            _ => ODD | ENCODED,
        };
        byte += 1;
    }
    table
}

fn class(byte: u8) -> u8 {
    CLASS[usize::from(byte)]
}

/// Bytes that stand for themselves in a path element: RFC 3986 `pchar` without percent-encoding.
const fn is_plain_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'-' | b'.'
                | b'_'
                | b'~'
                | b'!'
                | b'$'
                | b'&'
                | b'\''
                | b'('
                | b')'
                | b'*'
                | b'+'
                | b','
                | b';'
                | b'='
                | b':'
                | b'@'
        )
}

/// What one pass over a path tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scan {
    /// See [`is_plain`].
    pub(super) plain: bool,
    pub(super) slashes: usize,
}

pub(super) fn scan(path: &str) -> Scan {
    let (mut seen, mut after_slash, mut slashes) = (0, 0, 0);
    for byte in path.bytes() {
        let class = class(byte);
        seen |= class & (ODD | after_slash);
        slashes += usize::from(class & SLASH);
        after_slash = (class & SLASH) * AFTER_SLASH;
    }
    Scan {
        plain: seen == 0,
        slashes,
    }
}

/// Whether every program reads `path` in the same way: no percent-encoding, no empty or dotted
/// element, no `;`, nothing that should have been encoded. One pass, no allocation; nearly all
/// requests are of this kind.
pub fn is_plain(path: &str) -> bool {
    scan(path).plain
}

/// The spelling of `path` that is compared, for rules and requests alike.
///
/// Percent-encoded bytes that may stand in a path element as they are become plain (`%61` is `a`,
/// `%40` is `@`: all common servers read them so); every other byte is encoded, with capital hex
/// digits (`ä` is `%C3%A4`, `%2f` stays apart from `/` as `%2F`). A `%` without two hex digits
/// stands for itself and becomes `%25`; requests with one are refused before it matters. Dot
/// elements and empty elements stay.
///
/// Allocates only when something changes.
pub fn canonical(path: &str) -> Cow<'_, str> {
    let plain = |byte: &u8| class(*byte) & ENCODED == 0;
    let Some(start) = path.as_bytes().iter().position(|byte| !plain(byte)) else {
        return Cow::Borrowed(path);
    };
    let bytes = path.as_bytes();
    let mut out = String::with_capacity(path.len() + 16);
    out.push_str(path.get(..start).unwrap_or_default());
    let mut index = start;
    while let Some(&byte) = bytes.get(index) {
        let decoded = if byte == b'%' {
            hex_pair(bytes, index + 1)
        } else {
            None
        };
        match decoded {
            Some(value) if is_plain_byte(value) => out.push(char::from(value)),
            Some(value) => push_encoded(&mut out, value),
            None if plain(&byte) => out.push(char::from(byte)),
            None => push_encoded(&mut out, byte),
        }
        index += if decoded.is_some() { 3 } else { 1 };
    }
    Cow::Owned(out)
}

/// Whether a `%` in `path` is not followed by two hex digits, or a NUL is hidden in it. What a
/// backend makes of those cannot be known.
pub(super) fn is_malformed(path: &str) -> bool {
    let bytes = path.as_bytes();
    bytes.iter().enumerate().any(|(index, byte)| match byte {
        0 => true,
        b'%' => matches!(hex_pair(bytes, index + 1), None | Some(0)),
        _ => false,
    })
}

fn hex_pair(bytes: &[u8], at: usize) -> Option<u8> {
    let digit = |index: usize| char::from(*bytes.get(index)?).to_digit(16);
    u8::try_from(digit(at)? * 16 + digit(at + 1)?).ok()
}

fn push_encoded(out: &mut String, byte: u8) {
    const DIGITS: [char; 16] = [
        '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F',
    ];
    out.push('%');
    out.push(DIGITS[usize::from(byte >> 4)]);
    out.push(DIGITS[usize::from(byte & 15)]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_paths() {
        for path in [
            "/",
            "/a/b.c/d-e_f~",
            "/a/",
            "/@me/x:y,z=1!$&'()*+",
            "",
            "/a.b/c..d",
        ] {
            assert!(is_plain(path), "{path}");
            assert!(matches!(canonical(path), Cow::Borrowed(_)), "{path}");
        }
        for path in [
            "//",
            "/a//b",
            "/.",
            "/./a",
            "/a/..",
            "/.well-known",
            "/%61",
            "/a;b",
            "/a\\b",
            "/ä",
            "/a b",
            "/{x}",
            "/a?b",
        ] {
            assert!(!is_plain(path), "{path}");
        }
    }

    #[test]
    fn canonical_spelling() {
        for (path, expected) in [
            ("/%61%2d%7E", "/a-~"),
            ("/%c3%a4", "/%C3%A4"),
            ("/ä", "/%C3%A4"),
            ("/a%2fb%5cc", "/a%2Fb%5Cc"),
            ("/a\\b c", "/a%5Cb%20c"),
            ("/%40%3b%2E", "/@;."),
            ("/100%", "/100%25"),
            ("/%zz%4", "/%25zz%254"),
            ("/%2525", "/%2525"),
            ("/a//./..", "/a//./.."),
            ("/%", "/%25"),
        ] {
            assert_eq!(canonical(path), expected, "{path}");
        }
    }

    #[test]
    fn canonical_is_stable() {
        for path in ["/%61ä\\%2f%zz", "/a;b%25%2541", "/%00"] {
            let once = canonical(path).into_owned();
            assert_eq!(canonical(&once), once);
        }
    }

    #[test]
    fn malformed() {
        for path in ["/%", "/%4", "/%zz", "/a%g1", "/%00", "/a\0"] {
            assert!(is_malformed(path), "{path:?}");
        }
        for path in ["/", "/%41", "/%2500", "/a%2Fb"] {
            assert!(!is_malformed(path), "{path:?}");
        }
    }
}
