//! What a request shows to a rule: one header's value, one cookie's value.

use std::borrow::Cow;

use http::{HeaderMap, HeaderName, HeaderValue, header};

/// The value of a request header; several lines of one name joined by `, `, as nginx does.
/// Allocates only for several lines.
///
/// Names are compared as `http` does, without regard to case. A header sent with `_` in its name is
/// not taken for the one with `-`: ingress-nginx drops such headers before it looks at them, and a
/// backend may well treat the two as different.
pub(super) fn header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<Cow<'a, [u8]>> {
    let mut lines = headers.get_all(name).iter().map(HeaderValue::as_bytes);
    let first = lines.next()?;
    let Some(second) = lines.next() else {
        return Some(Cow::Borrowed(first));
    };
    let mut joined = [first, b", ", second].concat();
    for line in lines {
        joined.extend_from_slice(b", ");
        joined.extend_from_slice(line);
    }
    Some(Cow::Owned(joined))
}

/// The values of all cookies with exactly this name, in their order.
pub(super) fn cookies<'a>(
    headers: &'a HeaderMap,
    name: &'a str,
) -> impl Iterator<Item = &'a [u8]> + 'a {
    pairs(headers).filter_map(move |pair| {
        let (key, value) = split(pair)?;
        (key == name.as_bytes()).then(|| value.trim_ascii())
    })
}

/// The value of the first cookie with this name, over all Cookie lines in their order.
///
/// The name is compared without regard to case. The value goes up to the next `;` and is taken as
/// it is, with quotes and spaces at its end; spaces around the name and before the value are not
/// part of them. A piece without `=` or without a name is no cookie.
pub(super) fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a [u8]> {
    pairs(headers).find_map(|pair| {
        let (key, value) = split(pair)?;
        key.eq_ignore_ascii_case(name.as_bytes())
            .then(|| value.trim_ascii_start())
    })
}

/// The value of the first parameter of a query with exactly this name, both without their
/// percent-encoding. Allocates only where there is something to decode.
pub(super) fn query<'a>(query: &'a str, name: &str) -> Option<Cow<'a, [u8]>> {
    parameters(query)
        .find(|(key, _)| *decoded(key) == *name.as_bytes())
        .map(|(_, value)| decoded(value))
}

/// The value of the first parameter of a query with this name as it stands, as nginx has it: the
/// name without regard to case, and nothing decoded.
pub(super) fn argument<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    parameters(query)
        .find(|(key, _)| key.eq_ignore_ascii_case(name))
        .map(|(_, value)| value)
}

/// Names and values; a parameter without `=` has an empty value.
fn parameters(query: &str) -> impl Iterator<Item = (&str, &str)> {
    query
        .split('&')
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .filter(|(key, _)| !key.is_empty())
}

/// Without percent-encoding and with `+` as a space. What is no encoding stays.
fn decoded(text: &str) -> Cow<'_, [u8]> {
    let bytes = text.as_bytes();
    if !bytes.iter().any(|byte| matches!(byte, b'%' | b'+')) {
        return Cow::Borrowed(bytes);
    }
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        let digits = after.first_chunk::<2>().filter(|_| byte == b'%');
        let digit = |at: u8| char::from(at).to_digit(16);
        match digits.and_then(|[high, low]| Some(digit(*high)? * 16 + digit(*low)?)) {
            Some(value) => {
                out.push(value as u8);
                rest = after.get(2..).unwrap_or_default();
            }
            None if byte == b'+' => out.push(b' '),
            None => out.push(byte),
        }
    }
    Cow::Owned(out)
}

/// What stands between the `;` of all Cookie lines.
fn pairs(headers: &HeaderMap) -> impl Iterator<Item = &[u8]> {
    headers
        .get_all(header::COOKIE)
        .iter()
        .flat_map(|line| line.as_bytes().split(|byte| *byte == b';'))
}

/// The name, which is not empty, and the value of one cookie.
fn split(pair: &[u8]) -> Option<(&[u8], &[u8])> {
    let equals = pair.iter().position(|byte| *byte == b'=')?;
    let (key, value) = pair.split_at(equals);
    let key = key.trim_ascii();
    (!key.is_empty()).then(|| (key, value.get(1..).unwrap_or_default()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn headers(lines: &[(&str, &str)]) -> HeaderMap {
        lines
            .iter()
            .map(|(name, value)| {
                let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
                (name, HeaderValue::from_str(value).unwrap())
            })
            .collect()
    }

    fn seen(lines: &[(&str, &str)], name: &'static str) -> Option<String> {
        let headers = headers(lines);
        let value = header(&headers, &HeaderName::from_static(name))?;
        Some(String::from_utf8(value.into_owned()).unwrap())
    }

    #[test]
    fn header_lines_are_joined() {
        let lines = [("X", "a"), ("y", "1"), ("x", ""), ("X", "b")];
        assert_eq!(seen(&lines, "x").as_deref(), Some("a, , b"));
        assert_eq!(seen(&lines, "y").as_deref(), Some("1"));
        assert_eq!(seen(&lines, "z"), None);
    }

    #[test]
    fn one_header_line_is_borrowed() {
        let headers = headers(&[("x", "a")]);
        let value = header(&headers, &HeaderName::from_static("x"));
        assert!(matches!(value, Some(Cow::Borrowed(b"a"))));
    }

    #[test]
    fn a_header_with_underscores_is_another_one() {
        assert_eq!(seen(&[("my_header", "a")], "my-header"), None);
        assert_eq!(
            seen(&[("My-Header", "a")], "my-header").as_deref(),
            Some("a")
        );
    }

    #[test]
    fn parameters_are_found_by_their_decoded_names() {
        for (text, name, expected) in [
            ("a=1&b=2", "b", Some("2")),
            ("a=1&a=2", "a", Some("1")),
            ("a", "a", Some("")),
            ("a=", "a", Some("")),
            ("a=b=c", "a", Some("b=c")),
            ("A=1", "a", None),
            ("%61=%7e+%2B", "a", Some("~ +")),
            ("a=%zz%4", "a", Some("%zz%4")),
            ("a=%", "a", Some("%")),
            ("=1", "", None),
            ("", "a", None),
            ("&&", "a", None),
        ] {
            let found = query(text, name).map(|it| String::from_utf8(it.into_owned()).unwrap());
            assert_eq!(found.as_deref(), expected, "{text}");
        }
        assert_eq!(query("a=%ff", "a").as_deref(), Some(&[0xff][..]));
        assert_eq!(argument("x=1&ID=%41", "id"), Some("%41"));
        assert_eq!(argument("x=1", "id"), None);
    }

    fn cookie_in(lines: &[&str], name: &str) -> Option<String> {
        let lines: Vec<_> = lines.iter().map(|line| ("Cookie", *line)).collect();
        let headers = headers(&lines);
        Some(String::from_utf8(cookie(&headers, name)?.to_vec()).unwrap())
    }

    #[test]
    fn cookies() {
        for (lines, expected) in [
            (&["c=always"][..], Some("always")),
            (&["a=1; C=always; b=2"], Some("always")),
            (&["a=1;c=always"], Some("always")),
            (&["c=never; c=always"], Some("never")),
            (&["a=1", "c=always"], Some("always")),
            (&["C=x", "c=always"], Some("x")),
            (&["c=\"always\""], Some("\"always\"")),
            (&["c=always ; b"], Some("always ")),
            (&["c = always"], Some("always")),
            (&["c=a=b"], Some("a=b")),
            (&["c="], Some("")),
            (&["c"], None),
            (&["c; c=always"], Some("always")),
            (&["cc=always; xc=always"], None),
            (&["=always"], None),
            (&[""], None),
            (&[";;=;"], None),
        ] {
            assert_eq!(cookie_in(lines, "c").as_deref(), expected, "{lines:?}");
        }
        assert_eq!(cookie_in(&["=always"], ""), None);
        assert_eq!(
            cookie_in(&["canary-by-cookie=always"], "Canary-By-Cookie").as_deref(),
            Some("always")
        );
    }
}
