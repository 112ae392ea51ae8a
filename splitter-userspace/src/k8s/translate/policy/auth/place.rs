//! The URL of a service: where it leads, and what is asked for there.

use std::sync::Arc;

use http::Uri;
use http::uri::Authority;

use crate::model::Template;

/// Where a URL leads.
pub(super) struct Place {
    pub secure: bool,
    /// None: the host of the Location.
    pub host: Option<Arc<str>>,
    pub port: u16,
    /// Path and query.
    pub target: Template,
}

impl Place {
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let no_url = || format!("{text:?} is no URL of http or https");
        let (scheme, rest) = text.split_once("://").ok_or_else(no_url)?;
        let secure = scheme.eq_ignore_ascii_case("https");
        if !secure && !scheme.eq_ignore_ascii_case("http") {
            return Err(no_url());
        }
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at_checked(end).ok_or_else(no_url)?;
        if target.contains('#') || authority.contains('@') {
            return Err(no_url());
        }
        let mut port = if secure { 443 } else { 80 };
        let host = match authority.split_once(':') {
            _ if authority == "$host" || authority == "${host}" => None,
            Some(("$host" | "${host}", given)) => {
                port = given.parse().map_err(|_| no_url())?;
                None
            }
            _ if authority.contains('$') => {
                return Err(format!(
                    "{text:?}: of the host only $host may be a variable"
                ));
            }
            _ => {
                let authority: Authority = authority.parse().map_err(|_| no_url())?;
                let told = authority.as_str() != authority.host();
                port = match authority.port_u16() {
                    None if told => return Err(no_url()),
                    given => given.unwrap_or(port),
                };
                let host = authority.host().to_ascii_lowercase();
                if host.is_empty() || host.contains("..") {
                    return Err(no_url());
                }
                Some(host.into())
            }
        };
        let target = match target.strip_prefix('?') {
            Some(query) => format!("/?{query}"),
            None if target.is_empty() => "/".to_owned(),
            None => target.to_owned(),
        };
        let template = Template::parse(&target).map_err(|error| format!("{text:?}: {error}"))?;
        // What the variables stand for was good in the request.
        let bare = target.replace(['$', '{', '}'], "");
        bare.parse::<Uri>().map_err(|_| no_url())?;
        Ok(Place {
            secure,
            host,
            port,
            target: template,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn urls_lead_to_a_host_a_port_and_a_target() {
        for (text, secure, host, port, target) in [
            ("http://a.test", false, Some("a.test"), 80, "/"),
            (
                "HTTPS://A.test:8443/x?y=$request_uri",
                true,
                Some("a.test"),
                8443,
                "/x?y=$request_uri",
            ),
            ("https://$host/oauth2/auth", true, None, 443, "/oauth2/auth"),
            ("http://${host}:4180/a", false, None, 4180, "/a"),
            ("http://[::1]:81?a", false, Some("[::1]"), 81, "/?a"),
        ] {
            let place = Place::read(text).unwrap();
            let found = (
                place.secure,
                place.host.as_deref(),
                place.port,
                place.target.as_str(),
            );
            assert_eq!(found, (secure, host, port, target), "{text}");
        }
        for text in [
            "",
            "a.test/x",
            "ftp://a.test/",
            "http://",
            "http://u:p@a.test/",
            "http://a..b/",
            "http://$http_host/",
            "http://a.test:x/",
            "http://$host:x/",
            "http://a.test/#x",
            "http://a.test/$unknown",
            "http://a.test/a b",
            "https:///x",
        ] {
            assert!(Place::read(text).is_err(), "{text}");
        }
    }
}
