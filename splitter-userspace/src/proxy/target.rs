//! What a request is for: its host and target checked by RFC 9110 7.1, 9112 3.2 and 9113 8.3.

use http::header::HOST;
use http::{HeaderValue, Method, Uri, Version, request};

use super::client::Client;
use super::fault::Fault;
use super::headers;
use super::worker::Place;
use crate::routing::{Scheme, Wanted};

/// The host that a request is for, as the client wrote it: empty when an HTTP/1.0 client named none.
///
/// # Errors
/// The fault to answer with when the method is not for an ingress, the target is in no form that
/// leads to a backend, or there is not exactly one host.
pub fn authority(parts: &request::Parts) -> Result<HeaderValue, Fault> {
    if matches!(parts.method, Method::CONNECT | Method::TRACE) {
        return Err(Fault::MethodNotAllowed);
    }
    if !parts.uri.path().starts_with('/') {
        return Err(Fault::BadTarget);
    }
    let mut hosts = parts.headers.get_all(HOST).iter();
    let host = hosts.next();
    if hosts.next().is_some() {
        return Err(Fault::BadHost);
    }
    let Some(authority) = parts.uri.authority() else {
        return match host {
            Some(host) => Ok(host.clone()),
            None if parts.version == Version::HTTP_10 => Ok(HeaderValue::from_static("")),
            None => Err(Fault::BadHost),
        };
    };
    if !matches!(parts.uri.scheme_str(), Some("http" | "https")) {
        return Err(Fault::BadTarget);
    }
    match (parts.version, host) {
        // RFC 9112 3.2.2: absolute-form replaces Host, but Host must be there all the same.
        (Version::HTTP_11, None) => return Err(Fault::BadHost),
        // RFC 9113 8.3.1: the two must not disagree.
        (Version::HTTP_2, Some(host))
            if !host
                .as_bytes()
                .eq_ignore_ascii_case(authority.as_str().as_bytes()) =>
        {
            return Err(Fault::BadHost);
        }
        _ => {}
    }
    HeaderValue::from_str(authority.as_str()).map_err(|_| Fault::BadHost)
}

/// What the client asks for, as policies see it.
pub fn wanted<'a>(
    client: &Client,
    place: &'a Place,
    parts: &'a request::Parts,
    host: &'a str,
    listens: bool,
) -> Wanted<'a> {
    let said = |name| match client.origin.forwards {
        true => parts.headers.get(name),
        false => None,
    };
    let proto = said(headers::X_FORWARDED_PROTO).map(HeaderValue::as_bytes);
    Wanted {
        scheme: Scheme::of(client.origin.scheme == "https", listens, proto),
        http_host: host,
        method: parts.method.as_str(),
        outer_host: said(headers::X_FORWARDED_HOST).and_then(|host| host.to_str().ok()),
        path: parts.uri.path(),
        query: parts.uri.query(),
        pattern: place.location().and_then(|it| it.pattern.as_ref()),
    }
}

/// Path and query alone, byte for byte as they came.
pub fn origin_form(uri: &Uri) -> Uri {
    if uri.authority().is_none() {
        return uri.clone();
    }
    let target = uri.path_and_query().cloned();
    target.map_or_else(|| Uri::from_static("/"), Uri::from)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use http::Request;

    use super::*;

    fn judge(method: &str, uri: &str, version: Version, hosts: &[&str]) -> Result<String, Fault> {
        let mut request = Request::builder().method(method).uri(uri).version(version);
        for host in hosts {
            request = request.header(HOST, *host);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        authority(&parts).map(|host| host.to_str().unwrap().to_owned())
    }

    #[test]
    fn http1_needs_one_host() {
        let v11 = Version::HTTP_11;
        assert_eq!(judge("GET", "/", v11, &["a:80"]), Ok("a:80".to_owned()));
        assert_eq!(judge("GET", "/", v11, &[""]), Ok(String::new()));
        assert_eq!(judge("GET", "/", v11, &[]), Err(Fault::BadHost));
        assert_eq!(judge("GET", "/", v11, &["a", "a"]), Err(Fault::BadHost));
        assert_eq!(judge("GET", "/", Version::HTTP_10, &[]), Ok(String::new()));
    }

    #[test]
    fn absolute_form_replaces_host() {
        let v11 = Version::HTTP_11;
        assert_eq!(judge("GET", "http://b/x", v11, &["a"]), Ok("b".to_owned()));
        assert_eq!(judge("GET", "http://b/x", v11, &[]), Err(Fault::BadHost));
        assert_eq!(
            judge("GET", "ftp://b/x", v11, &["b"]),
            Err(Fault::BadTarget)
        );
    }

    #[test]
    fn http2_authority_and_host_must_agree() {
        let v2 = Version::HTTP_2;
        assert_eq!(judge("GET", "http://b/", v2, &[]), Ok("b".to_owned()));
        assert_eq!(judge("GET", "http://b/", v2, &["B"]), Ok("b".to_owned()));
        assert_eq!(judge("GET", "http://b/", v2, &["a"]), Err(Fault::BadHost));
    }

    #[test]
    fn no_tunnels_no_traces_no_asterisk() {
        let v11 = Version::HTTP_11;
        assert_eq!(
            judge("CONNECT", "a:443", v11, &["a"]),
            Err(Fault::MethodNotAllowed)
        );
        assert_eq!(
            judge("TRACE", "/", v11, &["a"]),
            Err(Fault::MethodNotAllowed)
        );
        assert_eq!(judge("OPTIONS", "*", v11, &["a"]), Err(Fault::BadTarget));
    }
}
