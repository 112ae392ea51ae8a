/// Whether a field is for one hop only (RFC 9110 7.6.1). `name` is in lower case.
///
/// By length first, here and below: one comparison settles nearly every name, which costs less than
/// a look-up of each name that could be there.
pub fn is_hop_by_hop(name: &str) -> bool {
    match name.len() {
        2 => name == "te",
        7 => name == "upgrade",
        10 => name == "connection" || name == "keep-alive",
        16 => name == "proxy-connection",
        17 => name == "transfer-encoding",
        _ => false,
    }
}

/// Whether what a client says under this name never goes on: the proxy says it itself, or nobody
/// does.
pub fn is_replaced(name: &str) -> bool {
    match name.len() {
        4 => name == "host",
        // Scripts take it for the environment variable HTTP_PROXY (CVE-2016-5385).
        5 => name == "proxy",
        6 => name == "expect",
        8 => name == "x-scheme",
        9 => name == "x-real-ip",
        12 => name == "x-request-id",
        14 => name == "content-length",
        15 => name == "x-forwarded-for",
        16 => name == "x-forwarded-host" || name == "x-forwarded-port",
        17 => name == "x-forwarded-proto",
        18 => name == "x-forwarded-scheme",
        24 => name == "x-original-forwarded-for",
        _ => false,
    }
}

/// Whether a field may stand in a trailer: not what frames, routes, authenticates or describes the
/// message (RFC 9110 6.5.1), nor what only the proxy may say.
pub fn is_trailer(name: &str) -> bool {
    let never = matches!(
        name,
        "authorization"
            | "cache-control"
            | "content-encoding"
            | "content-range"
            | "content-type"
            | "max-forwards"
            | "set-cookie"
            | "trailer"
    );
    !never && !is_hop_by_hop(name) && !is_replaced(name)
}
