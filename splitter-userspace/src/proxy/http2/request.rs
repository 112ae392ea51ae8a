//! A request as HTTP/2 writes it.

use http::header::{CONNECTION, HOST, TE, TRANSFER_ENCODING};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderValue, Uri, Version, request};

use crate::proxy::fault::Fault;

/// Makes an HTTP/1.1 request to a pod one of HTTP/2 (RFC 9113 8.3.1): Host becomes `:authority`, and
/// what belongs to one HTTP/1 connection goes. `secure` says whether it goes over TLS.
///
/// # Errors
/// When Host is none.
pub fn into_http2(parts: &mut request::Parts, secure: bool) -> Result<(), Fault> {
    let host = parts.headers.remove(HOST).ok_or(Fault::BadHost)?;
    let authority = Authority::try_from(host.as_bytes()).map_err(|_| Fault::BadHost)?;
    parts.headers.remove(CONNECTION);
    parts.headers.remove(TRANSFER_ENCODING);
    if parts.headers.contains_key(TE) {
        // The only word that it may have (RFC 9113 8.2.2).
        parts
            .headers
            .insert(TE, HeaderValue::from_static("trailers"));
    }
    let mut target = std::mem::take(&mut parts.uri).into_parts();
    target.scheme = Some(match secure {
        true => Scheme::HTTPS,
        false => Scheme::HTTP,
    });
    target.authority = Some(authority);
    target
        .path_and_query
        .get_or_insert(PathAndQuery::from_static("/"));
    parts.uri = Uri::from_parts(target).map_err(|_| Fault::BadTarget)?;
    parts.version = Version::HTTP_2;
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use http::Request;

    use super::*;

    #[test]
    fn host_becomes_the_authority_and_the_connections_own_fields_go() {
        let request = Request::builder()
            .uri("/a/b?c=d")
            .header("host", "a.test:8080")
            .header("connection", "te")
            .header("te", "trailers")
            .header("transfer-encoding", "chunked")
            .header("grpc-timeout", "1S");
        let (mut parts, ()) = request.body(()).unwrap().into_parts();
        let whole = parts.clone();
        into_http2(&mut parts, false).unwrap();
        assert_eq!(parts.uri, "http://a.test:8080/a/b?c=d");
        let mut secure = whole;
        into_http2(&mut secure, true).unwrap();
        assert_eq!(secure.uri, "https://a.test:8080/a/b?c=d");
        let mut names: Vec<_> = parts.headers.keys().map(|name| name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["grpc-timeout", "te"]);
    }

    #[test]
    fn no_host_no_request() {
        let (mut parts, ()) = Request::new(()).into_parts();
        assert_eq!(into_http2(&mut parts, false), Err(Fault::BadHost));
    }
}
