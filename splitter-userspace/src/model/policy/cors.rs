use std::sync::Arc;

use http::HeaderValue;
use serde::{Serialize, Serializer};

/// Which pages of other origins may read the answers (`enable-cors` and the `cors-*` annotations).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cors {
    /// Whose pages.
    pub origins: Origins,
    /// Access-Control-Allow-Methods.
    #[serde(serialize_with = "text")]
    pub methods: HeaderValue,
    /// Access-Control-Allow-Headers.
    #[serde(serialize_with = "text")]
    pub headers: HeaderValue,
    /// Access-Control-Expose-Headers, if any.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "some_text")]
    pub expose: Option<HeaderValue>,
    /// Whether pages may send cookies along.
    pub credentials: bool,
    /// Access-Control-Max-Age, in seconds.
    #[serde(serialize_with = "text")]
    pub max_age: HeaderValue,
}

/// A set of origins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origins {
    /// Every origin, and requests that name none.
    Any,
    /// These; none at all when the list is empty.
    Listed(Vec<Origin>),
}

/// A scheme, a host and perhaps a port, without regard to case; `*.` in front of the host is one
/// label.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Origin(Arc<str>);

impl Origin {
    /// Reads `scheme://host[:port]` or `scheme://*.host[:port]`.
    pub fn read(text: &str) -> Option<Origin> {
        let (scheme, rest) = text.split_once("://")?;
        let (host, port) = match rest.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (rest, None),
        };
        let host = host.strip_prefix("*.").unwrap_or(host);
        let is_scheme = scheme.starts_with(|it: char| it.is_ascii_alphabetic())
            && scheme
                .bytes()
                .all(|it| it.is_ascii_alphanumeric() || b"+-.".contains(&it));
        let is_host = !host.is_empty()
            && host
                .bytes()
                .all(|it| it.is_ascii_alphanumeric() || b"-.".contains(&it));
        let is_port = port.is_none_or(|port| port.parse::<u16>().is_ok_and(|_| all_digits(port)));
        (is_scheme && is_host && is_port).then(|| Origin(text.into()))
    }

    /// Whether a request's Origin is this one.
    pub fn is(&self, origin: &str) -> bool {
        let Some((before, after)) = self.0.split_once('*') else {
            return self.0.eq_ignore_ascii_case(origin);
        };
        let Some(head) = origin.get(..before.len()) else {
            return false;
        };
        let rest = origin.get(before.len()..).unwrap_or_default();
        let Some((label, tail)) = rest
            .len()
            .checked_sub(after.len())
            .and_then(|at| rest.split_at_checked(at))
        else {
            return false;
        };
        let is_label = |it: u8| it.is_ascii_alphanumeric() || it == b'-';
        head.eq_ignore_ascii_case(before)
            && tail.eq_ignore_ascii_case(after)
            && !label.is_empty()
            && label.bytes().all(is_label)
    }
}

fn all_digits(text: &str) -> bool {
    text.bytes().all(|it| it.is_ascii_digit())
}

impl Origins {
    /// What Access-Control-Allow-Origin says to a request with this Origin; none when it is not to
    /// be there.
    pub fn allow(&self, origin: Option<&HeaderValue>) -> Option<HeaderValue> {
        let listed = match self {
            Origins::Any => return Some(HeaderValue::from_static("*")),
            Origins::Listed(listed) => listed,
        };
        let origin = origin?;
        let text = origin.to_str().ok()?;
        let known = listed.iter().any(|it| it.is(text));
        known.then(|| origin.clone())
    }
}

fn text<S: Serializer>(value: &HeaderValue, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&String::from_utf8_lossy(value.as_bytes()))
}

fn some_text<S: Serializer>(value: &Option<HeaderValue>, serializer: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => text(value, serializer),
        None => serializer.serialize_none(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn is(pattern: &str, origin: &str) -> bool {
        Origin::read(pattern).unwrap().is(origin)
    }

    #[test]
    fn an_origin_is_compared_whole_and_without_case() {
        assert!(is("https://a.example", "https://a.example"));
        assert!(is("https://A.example", "HTTPS://a.Example"));
        assert!(is("http://a.example:8080", "http://a.example:8080"));
        assert!(is("foo://a.example", "foo://a.example"));
        for other in [
            "http://a.example",
            "https://a.example:8443",
            "https://a.example.evil",
            "https://evil-https://a.example",
            "https://b.a.example",
            "https://aXexample",
            "",
        ] {
            assert!(!is("https://a.example", other), "{other}");
        }
    }

    #[test]
    fn a_star_is_one_label() {
        let pattern = "https://*.a.example:8443";
        assert!(is(pattern, "https://b.a.example:8443"));
        assert!(is(pattern, "https://b-1.A.example:8443"));
        for other in [
            "https://a.example:8443",
            "https://.a.example:8443",
            "https://c.b.a.example:8443",
            "https://b.a.example",
            "https://evil.example/?.a.example:8443",
            "https://b\u{e9}.a.example:8443",
            "https://",
        ] {
            assert!(!is(pattern, other), "{other}");
        }
    }

    #[test]
    fn what_is_no_origin_is_not_read() {
        for text in [
            "",
            "a.example",
            "https://",
            "https://*",
            "https://*.",
            "https://a.*.example",
            "https://a.example/",
            "https://a.example:",
            "https://a.example:+1",
            "https://a.example:99999",
            "https://a b",
            "://a",
            "null",
        ] {
            assert_eq!(Origin::read(text), None, "{text:?}");
        }
    }

    #[test]
    fn any_needs_no_origin_and_a_list_does() {
        let origin = HeaderValue::from_static("https://a.example");
        assert_eq!(Origins::Any.allow(None).unwrap(), "*");
        assert_eq!(Origins::Any.allow(Some(&origin)).unwrap(), "*");
        let listed = Origins::Listed(vec![Origin::read("https://a.example").unwrap()]);
        assert_eq!(listed.allow(None), None);
        assert_eq!(listed.allow(Some(&origin)), Some(origin.clone()));
        assert_eq!(Origins::Listed(vec![]).allow(Some(&origin)), None);
    }
}
