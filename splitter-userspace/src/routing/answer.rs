//! Texts in the answers of pods that become others, as nginx's `proxy_redirect` and
//! `proxy_cookie_…` change them.

use crate::model::{AnswerEdits, Replace};

/// What Location says instead, if it begins with what is looked for.
pub fn location(edits: &AnswerEdits, value: &[u8]) -> Option<Vec<u8>> {
    let redirect = edits.redirect.as_ref()?;
    replaced(redirect, value)
}

/// The same for Refresh, whose URL stands behind `url=`.
pub fn refresh(edits: &AnswerEdits, value: &[u8]) -> Option<Vec<u8>> {
    const URL: &[u8] = b"url=";
    let redirect = edits.redirect.as_ref()?;
    let at = value.windows(URL.len());
    let at = at
        .map(|it| it.eq_ignore_ascii_case(URL))
        .position(|it| it)?
        + URL.len();
    let (before, url) = value.split_at_checked(at)?;
    Some([before, &replaced(redirect, url)?].concat())
}

/// What Set-Cookie says instead, if something of it is changed. Attributes that are not looked for
/// stay as they are, byte for byte.
pub fn cookie(edits: &AnswerEdits, value: &[u8]) -> Option<Vec<u8>> {
    let mut changed = false;
    let mut out = Vec::with_capacity(value.len() + 32);
    for (index, part) in value.split(|byte| *byte == b';').enumerate() {
        if index > 0 {
            out.push(b';');
        }
        // The first part is the cookie itself.
        match (index > 0).then(|| attribute(edits, part)).flatten() {
            Some(other) => {
                changed = true;
                out.extend_from_slice(&other);
            }
            None => out.extend_from_slice(part),
        }
    }
    changed.then_some(out)
}

/// An attribute with its new value.
fn attribute(edits: &AnswerEdits, part: &[u8]) -> Option<Vec<u8>> {
    let equals = part.iter().position(|byte| *byte == b'=')?;
    let (name, value) = part.split_at_checked(equals + 1)?;
    let value_at = value.len() - value.trim_ascii_start().len();
    let (blank, value) = value.split_at_checked(value_at)?;
    let bare = name.strip_suffix(b"=").unwrap_or(name).trim_ascii();
    let new = if bare.eq_ignore_ascii_case(b"domain") {
        domain(edits.cookie_domain.as_ref()?, value)?
    } else if bare.eq_ignore_ascii_case(b"path") {
        replaced(edits.cookie_path.as_ref()?, value)?
    } else {
        return None;
    };
    Some([name, blank, &new].concat())
}

/// Domains are compared whole, without regard to case; a dot before one stays.
fn domain(replace: &Replace, value: &[u8]) -> Option<Vec<u8>> {
    let bare = value.strip_prefix(b".").unwrap_or(value);
    let dot = value.strip_suffix(bare).unwrap_or_default();
    let same = bare
        .trim_ascii_end()
        .eq_ignore_ascii_case(replace.from.as_bytes());
    same.then(|| [dot, replace.to.as_bytes()].concat())
}

fn replaced(replace: &Replace, value: &[u8]) -> Option<Vec<u8>> {
    let rest = value.strip_prefix(replace.from.as_bytes())?;
    Some([replace.to.as_bytes(), rest].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replace(from: &str, to: &str) -> Option<Replace> {
        Some(Replace {
            from: from.into(),
            to: to.into(),
        })
    }

    fn text(found: Option<Vec<u8>>) -> Option<String> {
        found.map(|it| String::from_utf8_lossy(&it).into_owned())
    }

    #[test]
    fn locations_that_begin_so_begin_otherwise() {
        let edits = AnswerEdits {
            redirect: replace("http://inner/app/", "https://a.example/"),
            ..AnswerEdits::default()
        };
        for (given, expected) in [
            ("http://inner/app/x?y=1", Some("https://a.example/x?y=1")),
            ("http://inner/app/", Some("https://a.example/")),
            ("http://inner/app", None),
            ("HTTP://inner/app/", None),
            ("/app/", None),
            ("", None),
        ] {
            let found = text(location(&edits, given.as_bytes()));
            assert_eq!(found.as_deref(), expected, "{given}");
        }
        for (given, expected) in [
            (
                "3; url=http://inner/app/x",
                Some("3; url=https://a.example/x"),
            ),
            ("3;URL=http://inner/app/", Some("3;URL=https://a.example/")),
            ("3", None),
            ("3; url=", None),
            ("3; url=/x", None),
        ] {
            let found = text(refresh(&edits, given.as_bytes()));
            assert_eq!(found.as_deref(), expected, "{given}");
        }
        assert_eq!(
            location(&AnswerEdits::default(), b"http://inner/app/"),
            None
        );
    }

    #[test]
    fn cookies_change_in_domain_and_path_only() {
        let edits = AnswerEdits {
            cookie_domain: replace("inner", "a.example"),
            cookie_path: replace("/app/", "/"),
            ..AnswerEdits::default()
        };
        for (given, expected) in [
            (
                "path=/app/; Path=/app/x; Domain=inner; Secure",
                Some("path=/app/; Path=/x; Domain=a.example; Secure"),
            ),
            (
                "c=1;domain=.INNER;path=/",
                Some("c=1;domain=.a.example;path=/"),
            ),
            ("c=1; Path= /app/", Some("c=1; Path= /")),
            ("c=1; Domain=inner.example", None),
            ("c=1; Path=/other", None),
            ("c=1; Path=/APP/", None),
            ("c=1; Pathology=/app/", None),
            ("c=1; Path", None),
            ("c=1", None),
            ("", None),
            (";", None),
            ("=;path=/app/", Some("=;path=/")),
        ] {
            let found = text(cookie(&edits, given.as_bytes()));
            assert_eq!(found.as_deref(), expected, "{given}");
        }
    }
}
