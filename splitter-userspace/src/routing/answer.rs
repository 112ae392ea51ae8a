//! Texts in the answers of pods that become others, as nginx's `proxy_redirect` and
//! `proxy_cookie_…` change them.

use regex::bytes::Captures;

use super::wanted::Wanted;
use crate::model::{AnswerEdits, Piece, Replace, Sought, Template};

/// What Location says instead, if it begins with what is looked for.
pub fn location(edits: &AnswerEdits, wanted: &Wanted<'_>, value: &[u8]) -> Option<Vec<u8>> {
    let redirect = edits.redirect.as_ref()?;
    replaced(redirect, wanted, value)
}

/// The same for Refresh, whose URL stands behind `url=`.
pub fn refresh(edits: &AnswerEdits, wanted: &Wanted<'_>, value: &[u8]) -> Option<Vec<u8>> {
    const URL: &[u8] = b"url=";
    let redirect = edits.redirect.as_ref()?;
    let at = value.windows(URL.len());
    let at = at
        .map(|it| it.eq_ignore_ascii_case(URL))
        .position(|it| it)?
        + URL.len();
    let (before, url) = value.split_at_checked(at)?;
    Some([before, &replaced(redirect, wanted, url)?].concat())
}

/// What Set-Cookie says instead, if something of it is changed. Attributes that are not looked for
/// stay as they are, byte for byte.
pub fn cookie(edits: &AnswerEdits, wanted: &Wanted<'_>, value: &[u8]) -> Option<Vec<u8>> {
    let mut changed = false;
    let mut out = Vec::with_capacity(value.len() + 32);
    for (index, part) in value.split(|byte| *byte == b';').enumerate() {
        if index > 0 {
            out.push(b';');
        }
        // The first part is the cookie itself.
        match (index > 0)
            .then(|| attribute(edits, wanted, part))
            .flatten()
        {
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
fn attribute(edits: &AnswerEdits, wanted: &Wanted<'_>, part: &[u8]) -> Option<Vec<u8>> {
    let equals = part.iter().position(|byte| *byte == b'=')?;
    let (name, value) = part.split_at_checked(equals + 1)?;
    let value_at = value.len() - value.trim_ascii_start().len();
    let (blank, value) = value.split_at_checked(value_at)?;
    let bare = name.strip_suffix(b"=").unwrap_or(name).trim_ascii();
    let new = if bare.eq_ignore_ascii_case(b"domain") {
        domain(edits.cookie_domain.as_ref()?, wanted, value)?
    } else if bare.eq_ignore_ascii_case(b"path") {
        replaced(edits.cookie_path.as_ref()?, wanted, value)?
    } else {
        return None;
    };
    // What a client has asked for may be in it, and must add no attribute.
    let one = !new.contains(&b';');
    one.then(|| [name, blank, &new].concat())
}

/// Domains are compared whole, without regard to case; a dot before one stays. A pattern sees the dot.
fn domain(replace: &Replace, wanted: &Wanted<'_>, value: &[u8]) -> Option<Vec<u8>> {
    let Sought::Text(from) = &replace.from else {
        return replaced(replace, wanted, value);
    };
    let bare = value.strip_prefix(b".").unwrap_or(value);
    let dot = value.strip_suffix(bare).unwrap_or_default();
    let from = wanted.fill(from);
    let same = bare.trim_ascii_end().eq_ignore_ascii_case(from.as_bytes());
    same.then(|| [dot, wanted.fill(&replace.to).as_bytes()].concat())
}

fn replaced(replace: &Replace, wanted: &Wanted<'_>, value: &[u8]) -> Option<Vec<u8>> {
    match &replace.from {
        Sought::Text(from) => {
            let from = wanted.fill(from);
            // What begins with nothing is everything.
            let from = Some(from).filter(|it| !it.is_empty())?;
            let rest = value.strip_prefix(from.as_bytes())?;
            Some([wanted.fill(&replace.to).as_bytes(), rest].concat())
        }
        Sought::Pattern(pattern) => {
            let groups = pattern.captures(value)?;
            Some(filled(&replace.to, wanted, &groups))
        }
    }
}

/// The text of a template, with what the groups of a pattern matched.
fn filled(template: &Template, wanted: &Wanted<'_>, groups: &Captures<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    for piece in template.pieces() {
        match piece {
            Piece::Text(text) => out.extend_from_slice(text.as_bytes()),
            Piece::Capture(number) => {
                let group = groups.get(usize::from(*number));
                out.extend_from_slice(group.map_or(&[][..], |it| it.as_bytes()));
            }
            Piece::Variable(variable) => {
                let mut text = String::new();
                wanted.push(*variable, &mut text);
                out.extend_from_slice(text.as_bytes());
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use crate::model::Pattern;
    use crate::routing::Scheme;

    const WANTED: Wanted<'_> = Wanted {
        scheme: Scheme::Https,
        method: "GET",
        http_host: "Shop.test:8443",
        outer_host: None,
        path: "/x;Secure",
        query: None,
        pattern: None,
    };

    fn replace(from: &str, to: &str) -> Option<Replace> {
        let from = match from.strip_prefix('~') {
            Some(pattern) => Sought::Pattern(Pattern::new(pattern).unwrap()),
            None => Sought::Text(Template::parse(from).unwrap()),
        };
        let to = Template::parse(to).unwrap();
        Some(Replace { from, to })
    }

    fn moved(from: &str, to: &str, given: &str) -> Option<String> {
        let edits = AnswerEdits {
            redirect: replace(from, to),
            ..AnswerEdits::default()
        };
        text(location(&edits, &WANTED, given.as_bytes()))
    }

    #[test]
    fn patterns_stand_for_the_whole_value_and_texts_for_its_beginning() {
        for (from, to, given, expected) in [
            (
                "~^http://([^/]+)/(.*)$",
                "https://$1.test/$2",
                "http://a/b?c",
                Some("https://a.test/b?c"),
            ),
            ("~inner", "/gone", "http://inner/b", Some("/gone")),
            ("~^http://(a)?b", "/$1/$2", "http://b/", Some("//")),
            ("~(?i:^HTTP:)", "/", "http://b/", Some("/")),
            ("~^x", "/", "http://b/", None),
            (
                "http://$host:8080/",
                "$scheme://$http_host/",
                "http://shop.test:8080/a",
                Some("https://Shop.test:8443/a"),
            ),
            ("http://$host/", "/", "http://Shop.test/a", None),
            ("$args", "/", "http://b/", None),
        ] {
            assert_eq!(
                moved(from, to, given).as_deref(),
                expected,
                "{from} {given}"
            );
        }
    }

    #[test]
    fn what_a_client_has_asked_for_adds_no_attribute() {
        let edits = AnswerEdits {
            cookie_domain: replace("~^\\.?inner", "$host"),
            cookie_path: replace("/app", "$request_uri"),
            ..AnswerEdits::default()
        };
        let changed = |given: &str| text(cookie(&edits, &WANTED, given.as_bytes()));
        assert_eq!(changed("a=1; Path=/app"), None);
        assert_eq!(
            changed("a=1; Path=/app; Domain=.inner.test").as_deref(),
            Some("a=1; Path=/app; Domain=shop.test")
        );
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
            let found = text(location(&edits, &WANTED, given.as_bytes()));
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
            let found = text(refresh(&edits, &WANTED, given.as_bytes()));
            assert_eq!(found.as_deref(), expected, "{given}");
        }
        assert_eq!(
            location(&AnswerEdits::default(), &WANTED, b"http://inner/app/"),
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
            let found = text(cookie(&edits, &WANTED, given.as_bytes()));
            assert_eq!(found.as_deref(), expected, "{given}");
        }
    }
}
