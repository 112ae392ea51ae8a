//! Which header fields go on, and which are the proxy's own: pure.

use http::header::{
    CONNECTION, CONTENT_LENGTH, COOKIE, EXPECT, Entry, HOST, HeaderMap, HeaderName, HeaderValue,
    TE, TRANSFER_ENCODING, UPGRADE,
};

use super::codec::is_hop_by_hop;

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
/// Scripts take it for the environment variable HTTP_PROXY (CVE-2016-5385).
const PROXY: HeaderName = HeaderName::from_static("proxy");
/// The hops of a request so far, the nearest one last.
pub const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
/// What a client asked a balancer in front for.
pub const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_FORWARDED_PORT: HeaderName = HeaderName::from_static("x-forwarded-port");
/// The scheme that the client used, as far as is known.
pub const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_FORWARDED_SCHEME: HeaderName = HeaderName::from_static("x-forwarded-scheme");
const X_ORIGINAL_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-original-forwarded-for");
const X_REAL_IP: HeaderName = HeaderName::from_static("x-real-ip");
const X_SCHEME: HeaderName = HeaderName::from_static("x-scheme");
/// How many fields a request gets at most.
const ADDED: usize = 10;
/// The request's id, for tracing it through logs.
pub const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// What a message's hop-by-hop fields ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HopByHop {
    /// The protocol to upgrade to, if the message asks for (or confirms) an upgrade.
    pub upgrade: Option<HeaderValue>,
    /// Whether the client takes trailers.
    pub trailers: bool,
}

/// Takes out what is for this hop only (RFC 9110 7.6.1): the fields known to be, and those that
/// Connection names. Content-Length and Host cannot be named away: a later hop would read another
/// message.
pub fn strip_hop_by_hop(headers: &mut HeaderMap) -> HopByHop {
    let mut found = HopByHop::default();
    if !headers.keys().any(|name| is_hop_by_hop(name.as_str())) {
        return found;
    }
    let upgrade = headers.remove(UPGRADE);
    if let Some(te) = headers.remove(TE) {
        found.trailers = has_token(te.as_bytes(), b"trailers");
    }
    if let Entry::Occupied(connection) = headers.entry(CONNECTION) {
        let (_, values) = connection.remove_entry_mult();
        let values: Vec<HeaderValue> = values.collect();
        for value in values.iter().map(HeaderValue::as_bytes) {
            if is_plain(value) {
                continue;
            }
            if has_token(value, b"upgrade") {
                found.upgrade.clone_from(&upgrade);
            }
            strip_named(headers, value);
        }
    }
    for name in [&KEEP_ALIVE, &PROXY_CONNECTION] {
        headers.remove(name);
    }
    if headers.remove(TRANSFER_ENCODING).is_some() {
        // It overrules the length, which must not go on (RFC 9112 6.3).
        headers.remove(CONTENT_LENGTH);
    }
    found
}

/// Most of what Connection says names no field.
fn is_plain(value: &[u8]) -> bool {
    value.eq_ignore_ascii_case(b"keep-alive") || value.eq_ignore_ascii_case(b"close")
}

/// Makes one Cookie of what HTTP/2 may send in parts (RFC 9113 8.2.3).
pub fn join_cookie(headers: &mut HeaderMap) {
    let parts: Vec<&[u8]> = headers
        .get_all(COOKIE)
        .iter()
        .map(HeaderValue::as_bytes)
        .collect();
    if parts.len() < 2 {
        return;
    }
    if let Ok(whole) = HeaderValue::from_bytes(&parts.join(&b"; "[..])) {
        headers.insert(COOKIE, whole);
    }
}

/// Takes out fields whose names have `_`, as ingress-nginx does by default: programs that take
/// fields as environment variables cannot tell `X_Real_IP` from X-Real-IP.
pub fn strip_underscored(headers: &mut HeaderMap) {
    let odd = headers.keys().filter(|name| name.as_str().contains('_'));
    let odd: Vec<HeaderName> = odd.cloned().collect();
    for name in odd {
        headers.remove(name);
    }
}

fn strip_named(headers: &mut HeaderMap, value: &[u8]) {
    for token in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
        if let Ok(name) = HeaderName::from_bytes(token)
            && name != HOST
            && name != CONTENT_LENGTH
        {
            headers.remove(&name);
        }
    }
}

fn has_token(value: &[u8], token: &[u8]) -> bool {
    value
        .split(|byte| *byte == b',')
        .any(|part| part.trim_ascii().eq_ignore_ascii_case(token))
}

/// Whether a client may be upgraded to this protocol. Not to cleartext HTTP/2: the backend would
/// then answer requests on the tunnel that nobody has looked at.
pub fn may_upgrade(protocol: &HeaderValue) -> bool {
    !protocol.as_bytes().is_empty()
        && !has_token(protocol.as_bytes(), b"h2c")
        && !has_token(protocol.as_bytes(), b"h2")
}

/// What the proxy knows about the client of a request.
pub struct Forwarded<'a> {
    /// The address of the connection's client: the peer, or whom its PROXY header names.
    pub client: &'a HeaderValue,
    /// The address of the request's client: the same, unless a trusted proxy names another.
    pub address: &'a HeaderValue,
    /// The host as the client wrote it, port and all.
    pub host: &'a HeaderValue,
    /// The port that the client connected to.
    pub port: &'a HeaderValue,
    /// `http` or `https`.
    pub scheme: &'static str,
    /// The request's id.
    pub request_id: &'a HeaderValue,
    /// Whether what the client says of itself is kept (`--use-forwarded-headers`).
    pub trust: bool,
}

/// The lines of what [`set_forwarded`] sets for every request of a connection alike, for a client that
/// is not believed.
pub fn forwarded_lines(client: &HeaderValue, port: &HeaderValue, scheme: &str) -> Vec<u8> {
    let scheme = scheme.as_bytes();
    let fields = [
        (X_REAL_IP, client.as_bytes()),
        (X_FORWARDED_FOR, client.as_bytes()),
        (X_FORWARDED_PORT, port.as_bytes()),
        (X_FORWARDED_PROTO, scheme),
        (X_FORWARDED_SCHEME, scheme),
        (X_SCHEME, scheme),
    ];
    let line = |(name, value): &(HeaderName, &[u8])| {
        [name.as_str().as_bytes(), b": ", value, b"\r\n"].concat()
    };
    fields.iter().flat_map(line).collect()
}

/// What one pass over a request's fields tells, before anything is changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// Whether a name has `_`.
    pub underscored: bool,
    /// Whether Connection says more than whether to close.
    pub connected: bool,
    /// Whether the client takes trailers.
    pub trailers: bool,
    /// Whether the client gave a length.
    pub length: bool,
}

impl Survey {
    /// Looks at every field once.
    pub fn of(headers: &HeaderMap) -> Self {
        let mut survey = Survey::default();
        for (name, value) in headers {
            let name = name.as_str();
            match name.len() {
                2 if name == "te" => survey.trailers = has_token(value.as_bytes(), b"trailers"),
                10 if name == "connection" => survey.connected |= !is_plain(value.as_bytes()),
                14 if name == "content-length" => survey.length = true,
                _ => survey.underscored |= name.as_bytes().contains(&b'_'),
            }
        }
        survey
    }
}

/// Sets what ingress-nginx sets for a backend.
pub fn set_forwarded(headers: &mut HeaderMap, forwarded: &Forwarded<'_>) {
    let scheme = HeaderValue::from_static(forwarded.scheme);
    // Grows once, not with each of the fields below.
    headers.reserve(ADDED);
    headers.remove(PROXY);
    headers.remove(EXPECT);
    headers.insert(HOST, forwarded.host.clone());
    headers.insert(X_REQUEST_ID, forwarded.request_id.clone());
    headers.insert(X_SCHEME, scheme.clone());
    if forwarded.trust {
        return keep_forwarded(headers, forwarded, scheme);
    }
    let client = forwarded.client.clone();
    headers.insert(X_REAL_IP, client.clone());
    match headers.insert(X_FORWARDED_FOR, client) {
        Some(claimed) => headers.insert(X_ORIGINAL_FORWARDED_FOR, claimed),
        None => headers.remove(X_ORIGINAL_FORWARDED_FOR),
    };
    headers.insert(X_FORWARDED_HOST, forwarded.host.clone());
    headers.insert(X_FORWARDED_PORT, forwarded.port.clone());
    headers.insert(X_FORWARDED_PROTO, scheme.clone());
    headers.insert(X_FORWARDED_SCHEME, scheme);
}

/// Adds the peer to what a trusted balancer in front has said.
fn keep_forwarded(headers: &mut HeaderMap, forwarded: &Forwarded<'_>, scheme: HeaderValue) {
    let client = forwarded.client;
    let chain: Vec<_> = headers
        .get_all(X_FORWARDED_FOR)
        .iter()
        .map(HeaderValue::as_bytes)
        .chain([client.as_bytes()])
        .collect();
    let chain = HeaderValue::from_bytes(&chain.join(&b", "[..])).unwrap_or(client.clone());
    headers.insert(X_REAL_IP, forwarded.address.clone());
    headers.insert(X_FORWARDED_FOR, chain);
    for (name, value) in [
        (X_FORWARDED_HOST, forwarded.host),
        (X_FORWARDED_PORT, forwarded.port),
    ] {
        headers.entry(name).or_insert_with(|| value.clone());
    }
    // Three names for one thing, so that no two can disagree.
    let scheme = headers.get(X_FORWARDED_PROTO).cloned().unwrap_or(scheme);
    for name in [X_FORWARDED_PROTO, X_FORWARDED_SCHEME, X_SCHEME] {
        headers.insert(name, scheme.clone());
    }
}

#[cfg(test)]
#[path = "headers_tests.rs"]
mod tests;
