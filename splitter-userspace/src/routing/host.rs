//! Host names as they are compared.

use std::borrow::Cow;
use std::net::Ipv6Addr;

/// The longest host name taken, in bytes, without the port. DNS allows 253.
pub const MAX_HOST: usize = 255;

/// The form of a Host value (or `:authority`) that [`Router::find`](super::Router::find) compares:
/// lower case, without port and final dot. `None` when the value is not a host.
///
/// Taken are DNS names of letters, digits, `-`, `_` and `.` without empty labels, IPv4 addresses,
/// IPv6 addresses in brackets, and the empty value, which RFC 9112 allows and only rules without a
/// host match. The rest that the grammar of a URI would allow in a host (user information,
/// percent-encoding, `,` and the like) never names a host in DNS and is read differently by
/// different programs, so it is refused.
///
/// Allocates only when there are capital letters to change.
pub fn normalize(value: &str) -> Option<Cow<'_, str>> {
    if value.is_empty() {
        return Some(Cow::Borrowed(""));
    }
    let (name, capital) = if value.starts_with('[') {
        (ipv6(value)?, true)
    } else {
        dns(value)?
    };
    Some(if capital {
        lower(name)
    } else {
        Cow::Borrowed(name)
    })
}

fn lower(name: &str) -> Cow<'_, str> {
    if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(name.to_ascii_lowercase())
    } else {
        Cow::Borrowed(name)
    }
}

/// A bracketed IPv6 address; a zone is not allowed, as it means something on one machine only.
fn ipv6(value: &str) -> Option<&str> {
    let end = value.find(']')?;
    let (name, port) = value.split_at(end + 1);
    name.get(1..end)?.parse::<Ipv6Addr>().ok()?;
    match port.strip_prefix(':') {
        Some(port) => is_port(port).then_some(name),
        None => port.is_empty().then_some(name),
    }
}

/// A byte of a label.
const LABEL: u8 = 1;
/// A capital letter.
const CAPITAL: u8 = 2;
/// The end of a label.
const DOT: u8 = 4;
/// None of these.
const OTHER: u8 = 8;

static CLASS: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut table = [OTHER; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => LABEL,
            b'A'..=b'Z' => LABEL | CAPITAL,
            b'.' => DOT,
            _ => OTHER,
        };
        byte += 1;
    }
    table
}

/// The name without port and final dot, and whether it has capital letters.
fn dns(value: &str) -> Option<(&str, bool)> {
    let (mut seen, mut previous) = (0, DOT);
    for (index, byte) in value.bytes().enumerate() {
        let class = CLASS[usize::from(byte)];
        if class == OTHER {
            let (name, port) = value.split_at_checked(index)?;
            return is_port(port.strip_prefix(':')?).then(|| named(name, seen))?;
        }
        // An empty label: a dot behind a dot, or at the start.
        seen |= class | (class & previous & DOT) << 1;
        previous = class;
    }
    named(value, seen)
}

/// A name whose bytes have these classes; [`OTHER`] stands for an empty label.
fn named(name: &str, seen: u8) -> Option<(&str, bool)> {
    let name = name.strip_suffix('.').unwrap_or(name);
    let valid = seen & OTHER == 0 && !name.is_empty() && name.len() <= MAX_HOST;
    valid.then_some((name, seen & CAPITAL != 0))
}

/// The port may be empty, as in RFC 3986.
fn is_port(text: &str) -> bool {
    text.is_empty()
        || (text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok())
}

/// The part of a normalized name behind its first label, which a wildcard rule must equal.
pub(super) fn parent(name: &str) -> Option<&str> {
    match name.split_once('.') {
        Some((label, parent)) if !label.is_empty() => Some(parent),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(value: &str, expected: &str) {
        assert_eq!(normalize(value).as_deref(), Some(expected), "{value:?}");
    }

    #[test]
    fn names_lose_case_port_and_final_dot() {
        same("foo.com", "foo.com");
        same("FOO.com", "foo.com");
        same("foo.com:8080", "foo.com");
        same("foo.com:", "foo.com");
        same("foo.com.", "foo.com");
        same("Foo.Com.:80", "foo.com");
        same("my_app.svc", "my_app.svc");
        same("10.0.0.1:80", "10.0.0.1");
        same("", "");
    }

    #[test]
    fn lower_case_names_are_borrowed() {
        assert!(matches!(normalize("foo.com:80"), Some(Cow::Borrowed(_))));
        assert!(matches!(normalize("fOo.com"), Some(Cow::Owned(_))));
    }

    #[test]
    fn ipv6_needs_brackets_and_no_zone() {
        same("[::1]", "[::1]");
        same("[2001:DB8::1]:8080", "[2001:db8::1]");
        same("[::ffff:10.0.0.1]", "[::ffff:10.0.0.1]");
        for bad in [
            "::1",
            "[::1",
            "[]",
            "[::1]x",
            "[::1]:x",
            "[fe80::1%25eth0]",
            "[foo]",
            "[::1].",
        ] {
            assert_eq!(normalize(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn what_is_no_host_is_refused() {
        for bad in [
            "user@foo.com",
            "foo .com",
            " foo.com",
            "foo.com ",
            "foo.com:80:80",
            "foo.com:http",
            "foo.com:65536",
            "foo.com:+80",
            ".",
            "..",
            ".foo.com",
            "foo..com",
            "foo.com..",
            ":80",
            "foo.com/",
            "foo.com?x",
            "foo.com#x",
            "foo%2ecom",
            "foo,bar",
            "foo\tbar",
            "foo\0",
            "föö.com",
            "*.foo.com",
            "foo\\bar",
            "http://foo.com",
        ] {
            assert_eq!(normalize(bad), None, "{bad:?}");
        }
        assert!(normalize(&"a".repeat(MAX_HOST)).is_some());
        assert!(normalize(&"a".repeat(MAX_HOST + 1)).is_none());
    }

    #[test]
    fn parent_takes_off_one_label() {
        assert_eq!(parent("a.foo.com"), Some("foo.com"));
        assert_eq!(parent("com"), None);
        assert_eq!(parent(""), None);
    }
}
