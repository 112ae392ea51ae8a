//! What templates and redirects see of a request, and what they make of it.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::host::normalize;
use super::path::canonical;
use crate::model::{HttpsRedirect, PathPattern, Piece, Redirect, Template, Variable};

/// What a request asks for.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// How the client came.
    pub scheme: Scheme,
    /// The method.
    pub method: &'a str,
    /// Host and port as the client wrote them.
    pub http_host: &'a str,
    /// What a balancer in front that is believed was asked for: X-Forwarded-Host.
    pub outer_host: Option<&'a str>,
    /// The path as it came.
    pub path: &'a str,
    /// The query as it came, without `?`.
    pub query: Option<&'a str>,
    /// The pattern that found the Location, for what its groups matched.
    pub pattern: Option<&'a PathPattern>,
}

/// How a client came to the first proxy that is believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Cleartext.
    Http {
        /// Whether https is answered as well: here, or by the balancer in front that says how its
        /// client came.
        secured: bool,
    },
    /// TLS.
    Https,
    /// A balancer in front says neither: nothing is known.
    Unknown,
}

impl Scheme {
    /// How a client came, by the connection (`secure`), whether this instance listens for https at
    /// all, and X-Forwarded-Proto of a client that is believed.
    pub fn of(secure: bool, listens: bool, forwarded: Option<&[u8]>) -> Scheme {
        match forwarded {
            Some(said) if said.eq_ignore_ascii_case(b"https") => Scheme::Https,
            Some(said) if said.eq_ignore_ascii_case(b"http") => Scheme::Http { secured: true },
            Some(_) => Scheme::Unknown,
            None if secure => Scheme::Https,
            None => Scheme::Http { secured: listens },
        }
    }

    fn name(self) -> &'static str {
        match self {
            Scheme::Https => "https",
            Scheme::Http { .. } | Scheme::Unknown => "http",
        }
    }
}

impl Wanted<'_> {
    /// The text of a template.
    pub fn fill(&self, template: &Template) -> String {
        self.fill_with(template, String::push_str)
    }

    /// The text of a template that becomes a query: what groups matched can add no parameter.
    pub(super) fn fill_query(&self, template: &Template) -> String {
        self.fill_with(template, |out, group| {
            for c in group.chars() {
                match c {
                    '&' => out.push_str("%26"),
                    '+' => out.push_str("%2B"),
                    c => out.push(c),
                }
            }
        })
    }

    fn fill_with(&self, template: &Template, mut put: impl FnMut(&mut String, &str)) -> String {
        let mut out = String::with_capacity(template.as_str().len() + self.path.len());
        let wanted = self.pattern.filter(|_| template.has_captures());
        let path = wanted.map(|_| canonical(self.path)).unwrap_or_default();
        let captures = wanted.and_then(|pattern| pattern.captures(&path));
        let group = |number: u8| {
            let group = captures.as_ref()?.get(usize::from(number))?;
            // Matched bytes of a canonical path are ASCII.
            std::str::from_utf8(group).ok()
        };
        for piece in template.pieces() {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Capture(number) => put(&mut out, group(*number).unwrap_or_default()),
                Piece::Variable(variable) => self.push(*variable, &mut out),
            }
        }
        out
    }

    pub(super) fn push(&self, variable: Variable, out: &mut String) {
        match variable {
            Variable::Scheme => out.push_str(self.scheme.name()),
            Variable::Host => out.push_str(&normalize(self.http_host).unwrap_or_default()),
            Variable::HttpHost => out.push_str(self.http_host),
            Variable::RequestUri => self.push_target(out),
            Variable::Uri => out.push_str(&canonical(self.path)),
            Variable::Args => out.push_str(self.query.unwrap_or_default()),
            Variable::IsArgs if self.query.is_some_and(|query| !query.is_empty()) => out.push('?'),
            Variable::IsArgs => {}
            Variable::EscapedRequestUri => escape(&self.target(), out),
            Variable::RequestMethod => out.push_str(self.method),
        }
    }

    fn push_target(&self, out: &mut String) {
        out.push_str(self.path);
        if let Some(query) = self.query {
            out.push('?');
            out.push_str(query);
        }
    }

    /// Path and query as they came.
    pub fn target(&self) -> String {
        let mut out = String::new();
        self.push_target(&mut out);
        out
    }

    /// The URL as the client has it.
    pub fn url(&self) -> String {
        let mut out = format!("{}://{}", self.scheme.name(), self.http_host);
        self.push_target(&mut out);
        out
    }

    /// Where a redirect sends the request.
    pub fn redirected(&self, redirect: &Redirect) -> String {
        let mut target = self.fill(&redirect.target);
        if redirect.cut_slash && target.ends_with('/') {
            target.pop();
        }
        target
    }

    /// The same place by https, if the request is to be sent there: the host without a port, and
    /// path and query without a slash at the very end, unless that is to stay.
    pub fn by_https(&self, redirect: HttpsRedirect) -> Option<String> {
        let wanted = match self.scheme {
            Scheme::Http { secured } => redirect.forced || secured,
            Scheme::Https | Scheme::Unknown => false,
        };
        if !wanted {
            return None;
        }
        let mut target = format!("https://{}", self.place()?);
        self.push_target(&mut target);
        if !redirect.keep_slash && target.ends_with('/') {
            target.pop();
        }
        Some(target)
    }
}

/// Escapes all but what RFC 3986 2.3 leaves alone everywhere.
fn escape(text: &str, out: &mut String) {
    for byte in text.bytes() {
        match byte {
            b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => out.push(char::from(byte)),
            byte => {
                // Writing to a String cannot fail.
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
}

impl<'a> Wanted<'a> {
    /// The host that the client asked for, without its port; none when it named none.
    fn place(&self) -> Option<Cow<'a, str>> {
        let outer = self.outer_host.and_then(|hosts| hosts.split(',').next());
        let outer = outer.and_then(|host| normalize(host.trim()));
        let named = |host: &Cow<'a, str>| !host.is_empty();
        outer
            .filter(named)
            .or_else(|| normalize(self.http_host).filter(named))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    const CLEAR: Scheme = Scheme::Http { secured: false };

    fn asked<'a>(scheme: Scheme, path: &'a str, query: Option<&'a str>) -> Wanted<'a> {
        Wanted {
            scheme,
            method: "GET",
            http_host: "A.test:8080",
            outer_host: None,
            path,
            query,
            pattern: None,
        }
    }

    #[test]
    fn variables_are_filled_in() {
        let request = asked(CLEAR, "/x%2f/y", Some("q=1"));
        for (template, expected) in [
            (
                "$scheme://$http_host$request_uri",
                "http://A.test:8080/x%2f/y?q=1",
            ),
            ("https://b$uri$is_args$args", "https://b/x%2F/y?q=1"),
            (
                "/start?rd=$escaped_request_uri&rm=$request_method",
                "/start?rd=%2Fx%252f%2Fy%3Fq%3D1&rm=GET",
            ),
            ("//${host}/x?$query_string", "//a.test/x?q=1"),
            ("/no/variables", "/no/variables"),
            ("/$1", "/"),
        ] {
            let template = Template::parse(template).unwrap();
            assert_eq!(request.fill(&template), expected, "{template:?}");
        }
        let plain = asked(Scheme::Https, "/", None);
        let template = Template::parse("$scheme$is_args$args").unwrap();
        assert_eq!(plain.fill(&template), "https");
    }

    #[test]
    fn who_is_believed_says_how_the_client_came() {
        for (secure, listens, forwarded, expected) in [
            (false, false, None, CLEAR),
            (false, true, None, Scheme::Http { secured: true }),
            (true, true, None, Scheme::Https),
            (false, false, Some("http"), Scheme::Http { secured: true }),
            (true, true, Some("HTTP"), Scheme::Http { secured: true }),
            (false, false, Some("https"), Scheme::Https),
            (false, true, Some("https,http"), Scheme::Unknown),
            (false, true, Some(""), Scheme::Unknown),
        ] {
            let scheme = Scheme::of(secure, listens, forwarded.map(str::as_bytes));
            assert_eq!(scheme, expected, "{secure} {listens} {forwarded:?}");
        }
    }

    #[test]
    fn https_is_asked_for_where_it_is_answered_or_forced() {
        let redirect = |forced| HttpsRedirect {
            forced,
            keep_slash: false,
        };
        let secured = Scheme::Http { secured: true };
        for (scheme, forced, expected) in [
            (CLEAR, false, false),
            (CLEAR, true, true),
            (secured, false, true),
            (secured, true, true),
            (Scheme::Https, true, false),
            (Scheme::Unknown, true, false),
        ] {
            let sent = asked(scheme, "/x", None).by_https(redirect(forced));
            assert_eq!(sent.is_some(), expected, "{scheme:?} {forced}");
        }
        let mut nameless = asked(secured, "/", None);
        nameless.http_host = "";
        assert_eq!(nameless.by_https(redirect(true)), None);
        for (outer, expected) in [
            ("b.test:81, c.test", "https://b.test/x"),
            ("", "https://a.test/x"),
            ("no host", "https://a.test/x"),
        ] {
            let mut behind = asked(secured, "/x", None);
            behind.outer_host = Some(outer);
            let sent = behind.by_https(redirect(false));
            assert_eq!(sent.as_deref(), Some(expected), "{outer:?}");
        }
    }

    #[test]
    fn the_place_by_https_has_no_port_and_no_last_slash() {
        for (keep_slash, path, query, expected) in [
            (false, "/", None, "https://a.test"),
            (true, "/", None, "https://a.test/"),
            (false, "/x/", None, "https://a.test/x"),
            (false, "/x/", Some("q=/"), "https://a.test/x/?q="),
            (true, "/x/", Some("q=/"), "https://a.test/x/?q=/"),
            (false, "/x", Some(""), "https://a.test/x?"),
        ] {
            let redirect = HttpsRedirect {
                forced: false,
                keep_slash,
            };
            let sent = asked(Scheme::Http { secured: true }, path, query).by_https(redirect);
            assert_eq!(sent.as_deref(), Some(expected), "{path} {query:?}");
        }
    }

    #[test]
    fn a_cut_slash_is_the_last_one() {
        let redirect = Redirect {
            target: Template::parse("http://b$request_uri").unwrap(),
            status: 308,
            cut_slash: true,
        };
        assert_eq!(asked(CLEAR, "/", None).redirected(&redirect), "http://b");
        assert_eq!(asked(CLEAR, "/x", None).redirected(&redirect), "http://b/x");
    }
}
