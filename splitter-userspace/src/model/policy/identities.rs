use std::fmt;
use std::sync::Arc;

use serde::Serialize;

/// Names of callers (`auth-tls-allowed-identities`): a certificate must have one of them among its
/// alternative names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Identities(Vec<AllowedIdentity>);

/// One name, or the beginning of many.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct AllowedIdentity {
    kind: IdentityKind,
    name: Arc<str>,
    /// Whether names may go on behind it.
    prefix: bool,
}

/// Which of a certificate's alternative names (RFC 5280 4.2.1.6) one is looked for among.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum IdentityKind {
    Dns,
    Uri,
}

/// The most names of one list.
const MAX_IDENTITIES: usize = 256;

/// Why a text is no list of names.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotIdentities {
    /// Nothing at all: nobody could call.
    #[error("there is no name in it")]
    Empty,
    /// More than 256.
    #[error("it has more than 256 names")]
    Many,
    /// Neither a DNS name nor a URI.
    #[error("{0:?} is neither a DNS name nor a URI with // behind its scheme")]
    Name(String),
    /// A star that is not the end, or that would let others of a like name in.
    #[error(
        "{0:?}: a * may stand at the end only, behind something of a DNS name or a / that follows a \
         URI's authority"
    )]
    Star(String),
}

impl Identities {
    /// Reads names that are separated by commas or spaces: DNS names, URIs with an authority (SPIFFE
    /// ids), each exact or with a `*` at the end.
    ///
    /// # Errors
    /// When one of them is none: then nobody can tell who may call.
    pub fn parse(text: &str) -> Result<Self, NotIdentities> {
        let entries = text.split(|c: char| c == ',' || c.is_whitespace());
        let entries = entries.filter(|entry| !entry.is_empty());
        let all = entries.map(entry).collect::<Result<Vec<_>, _>>()?;
        match all.len() {
            0 => Err(NotIdentities::Empty),
            1..=MAX_IDENTITIES => Ok(Identities(all)),
            _ => Err(NotIdentities::Many),
        }
    }

    /// Whether one of a certificate's names is in the list.
    pub fn admit<'n>(
        &self,
        dns: impl IntoIterator<Item = &'n str>,
        uris: impl IntoIterator<Item = &'n str>,
    ) -> bool {
        let dns = dns.into_iter().map(str::to_ascii_lowercase);
        let uris = uris.into_iter().filter_map(lower_authority);
        let is = |kind, name: String| self.0.iter().any(|it| it.kind == kind && it.is(&name));
        dns.into_iter().any(|name| is(IdentityKind::Dns, name))
            || uris.into_iter().any(|name| is(IdentityKind::Uri, name))
    }
}

impl AllowedIdentity {
    fn is(&self, name: &str) -> bool {
        match self.prefix {
            false => *self.name == *name,
            true => {
                // What a star stands for must not lead out of what stands before it.
                let inside = |rest: &str| {
                    // Else `web.td.test*` would let web.td.test.evil.test in.
                    if self.kind == IdentityKind::Dns
                        && !self.name.ends_with('.')
                        && rest.contains('.')
                    {
                        return false;
                    }
                    let mut segments = rest.split('/');
                    !rest.is_empty()
                        && !rest.contains(['%', '*'])
                        && !segments.any(|it| it == "." || it == "..")
                };
                name.strip_prefix(&*self.name).is_some_and(inside)
            }
        }
    }
}

fn entry(text: &str) -> Result<AllowedIdentity, NotIdentities> {
    let (name, prefix) = match text.strip_suffix('*') {
        Some(name) => (name, true),
        None => (text, false),
    };
    let star = || NotIdentities::Star(text.to_owned());
    if name.contains('*') {
        return Err(star());
    }
    let (kind, name) = if name.contains(':') {
        let uri = lower_authority(name).ok_or_else(|| NotIdentities::Name(text.to_owned()))?;
        // Else `spiffe://a.test*` would let spiffe://a.test.evil in.
        let path = uri.split_once("://").map_or("", |it| it.1);
        if prefix && !path.contains('/') {
            return Err(star());
        }
        (IdentityKind::Uri, uri)
    } else {
        let name = name.to_ascii_lowercase();
        if prefix && name.is_empty() {
            return Err(star());
        }
        if !is_dns(&name) {
            return Err(NotIdentities::Name(text.to_owned()));
        }
        (IdentityKind::Dns, name)
    };
    Ok(AllowedIdentity {
        kind,
        name: name.into(),
        prefix,
    })
}

fn is_dns(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    (1..=253).contains(&name.len())
        && name.bytes().all(fits)
        && !name.starts_with('.')
        && !name.contains("..")
}

/// A URI with an authority, its scheme and authority in lower case, as they are compared (RFC 3986
/// 6.2.2.1). None for other URIs.
fn lower_authority(uri: &str) -> Option<String> {
    let (scheme, rest) = uri.split_once("://")?;
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    let good = !scheme.is_empty()
        && scheme.bytes().all(letter)
        && !authority.is_empty()
        && uri.bytes().all(|byte| byte.is_ascii_graphic());
    good.then(|| {
        let (scheme, authority) = (scheme.to_ascii_lowercase(), authority.to_ascii_lowercase());
        format!("{scheme}://{authority}{path}")
    })
}

impl fmt::Display for Identities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, it) in self.0.iter().enumerate() {
            let before = if index > 0 { ", " } else { "" };
            let star = if it.prefix { "*" } else { "" };
            write!(f, "{before}{}{star}", it.name)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    fn admits(list: &str, name: &str) -> bool {
        let list = Identities::parse(list).unwrap();
        let (dns, uris): (&[&str], &[&str]) = match name.contains(':') {
            true => (&[], &[name]),
            false => (&[name], &[]),
        };
        list.admit(dns.iter().copied(), uris.iter().copied())
    }

    #[test]
    fn names_are_exact_or_begin_as_one_that_ends_in_a_star() {
        let list = "web.demo.test, api-*, pay.demo.test*, web.shop.*,\nspiffe://td.test/ns/shop/sa/web spiffe://td.test/ns/pay/*";
        for (name, let_in) in [
            ("web.demo.test", true),
            ("WEB.demo.test", true),
            ("xweb.demo.test", false),
            ("web.demo.test.evil.test", false),
            ("api-7", true),
            ("api-7.evil.test", false),
            ("pay.demo.test.evil.test", false),
            ("web.shop.svc.cluster.local", true),
            ("api-", false),
            ("api", false),
            ("spiffe://td.test/ns/shop/sa/web", true),
            ("SPIFFE://TD.test/ns/shop/sa/web", true),
            ("spiffe://td.test/ns/shop/sa/WEB", false),
            ("spiffe://td.test/ns/shop/sa/web/x", false),
            ("spiffe://td.test/ns/pay/sa/a", true),
            ("spiffe://td.test/ns/pay/", false),
            ("spiffe://td.test/ns/pay", false),
            ("spiffe://td.test/ns/pay/../shop/sa/x", false),
            ("spiffe://td.test/ns/pay/%2e%2e/shop", false),
            ("spiffe://evil.test/ns/pay/sa/a", false),
            ("https://td.test/ns/pay/sa/a", false),
            ("urn:td.test", false),
            // A certificate for many is not one of them.
            ("*.demo.test", false),
            ("api-*", false),
        ] {
            assert_eq!(admits(list, name), let_in, "{name}");
        }
    }

    #[test]
    fn a_dns_name_is_not_looked_for_among_uris_nor_the_other_way_round() {
        let list = Identities::parse("a.test").unwrap();
        assert!(list.admit(["a.test"], []));
        assert!(!list.admit([], ["a.test"]));
        assert!(!list.admit([], ["https://a.test"]));
    }

    #[test]
    fn what_could_let_others_in_is_no_list() {
        for text in [
            "",
            " , ",
            "*",
            "a.test, *",
            "*.a.test",
            "a*.test",
            "spiffe://td.test*",
            "spiffe://*",
            "spiffe:*",
            "spiffe:///x",
            "://a/x",
            "a b\u{e4}",
            "a..b",
            ".a",
            "a/b",
            "CN=a",
        ] {
            let read = Identities::parse(text);
            assert!(read.is_err(), "{text:?}: {read:?}");
        }
        let many = "a.test ".repeat(MAX_IDENTITIES + 1);
        assert_eq!(Identities::parse(&many), Err(NotIdentities::Many));
        assert!(Identities::parse(&many[7..]).is_ok());
    }
}
