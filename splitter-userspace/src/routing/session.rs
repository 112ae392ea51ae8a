//! What a session cookie says: `<variant><endpoint>`, each 16 hexadecimal digits.

use std::fmt::Write as _;

use http::HeaderMap;

use super::seen;
use crate::model::Affinity;

/// Digits of each half.
const HALF: usize = 16;

/// Where a client's session cookie says that it belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Index of the Variant.
    pub variant: usize,
    /// Which Endpoint: its token (persistent), or a key to be hashed (balanced).
    pub key: u64,
}

/// What the session cookie of a request names; none when it has none that this Location gave.
///
/// Locations on one host may have cookies of the same name for different paths, and a client sends
/// all that fit. So the first that names a Variant of this Location counts.
pub fn held(affinity: &Affinity, headers: &HeaderMap) -> Option<Held> {
    seen::cookies(headers, &affinity.cookie.name).find_map(|value| parse(affinity, value))
}

fn parse(affinity: &Affinity, value: &[u8]) -> Option<Held> {
    let (tag, key) = value.split_at_checked(HALF)?;
    Some(Held {
        variant: affinity.variant(number(tag)?)?,
        key: number(key)?,
    })
}

/// Exactly 16 lower-case digits: what we write and nothing else.
fn number(digits: &[u8]) -> Option<u64> {
    if digits.len() != HALF {
        return None;
    }
    digits.iter().try_fold(0, |number: u64, digit| {
        let digit = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(number << 4 | u64::from(digit))
    })
}

/// The cookie's value for a Variant and an Endpoint (or key); none for a Variant that gives none.
pub fn value(affinity: &Affinity, held: Held) -> Option<String> {
    let side = affinity.sides.get(held.variant)?;
    let mut text = String::with_capacity(2 * HALF);
    if !side.sticky || write!(text, "{:016x}{:016x}", side.tag, held.key).is_err() {
        return None;
    }
    Some(text)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use crate::routing::fixtures::{affinity, headers};

    fn cookies(text: &str) -> HeaderMap {
        headers(&[("cookie", text)])
    }

    #[test]
    fn what_is_written_is_read_again() {
        let affinity = affinity(&[true, true]);
        for (variant, key) in [(0, 0), (1, u64::MAX), (1, 0x0123_4567_89ab_cdef)] {
            let it = Held { variant, key };
            let value = value(&affinity, it).unwrap();
            assert_eq!(value.len(), 32);
            let sent = cookies(&format!("a=1; route={value}; b=2"));
            assert_eq!(held(&affinity, &sent), Some(it));
        }
    }

    #[test]
    fn the_first_cookie_of_this_location_counts() {
        let affinity = affinity(&[true, true]);
        let one = value(&affinity, Held { variant: 1, key: 7 }).unwrap();
        let other = value(&affinity, Held { variant: 0, key: 8 }).unwrap();
        let text = format!(
            "route=junk; route=0000000000000009{:016x}; route={one}; route={other}",
            9
        );
        let found = held(&affinity, &cookies(&text));
        assert_eq!(found, Some(Held { variant: 1, key: 7 }));
    }

    #[test]
    fn nothing_else_is_read() {
        let affinity = affinity(&[true, true]);
        let value = value(
            &affinity,
            Held {
                variant: 1,
                key: 0xabc,
            },
        )
        .unwrap();
        for text in [
            format!("Route={value}"),
            format!("route=\"{value}\""),
            format!("route={}", value.to_uppercase()),
            format!("route={value}0"),
            format!("route={}", &value[1..]),
            format!("route=+{}", &value[1..]),
            "route=".to_owned(),
            "route=é".to_owned(),
            String::new(),
        ] {
            let mut sent = HeaderMap::new();
            let line = http::HeaderValue::from_bytes(text.as_bytes()).unwrap();
            sent.insert("cookie", line);
            assert_eq!(held(&affinity, &sent), None, "{text}");
        }
    }

    #[test]
    fn a_legacy_canary_neither_gives_nor_takes_a_cookie() {
        let legacy = affinity(&[true, false]);
        let it = Held { variant: 1, key: 7 };
        assert_eq!(value(&legacy, it), None);
        let old = value(&affinity(&[true, true]), it).unwrap();
        assert_eq!(held(&legacy, &cookies(&format!("route={old}"))), None);
    }
}
