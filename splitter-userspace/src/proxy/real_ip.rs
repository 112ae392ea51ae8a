//! Which address a request is from, when a proxy in front says so: pure.

use std::net::{IpAddr, SocketAddr};

use http::HeaderMap;
use http::header::FORWARDED;

use super::headers::X_FORWARDED_FOR;
use crate::model::AddressSet;

/// How many hops are looked at, counted from the nearest: more are not believed.
const HOPS_MAX: usize = 64;

/// The client's address as the proxies in front tell it: X-Forwarded-For, or Forwarded where there
/// is none. Both name the nearest hop last. From there, hops that are proxies of ours (`trusted`)
/// are passed over; the first that is not, or the farthest, is the client. What is no address ends
/// the search: whoever wrote it is the client.
///
/// `peer`, the nearest hop, is one of ours.
pub fn client(headers: &HeaderMap, peer: IpAddr, trusted: &AddressSet) -> IpAddr {
    if headers.contains_key(X_FORWARDED_FOR) {
        let lines = headers.get_all(X_FORWARDED_FOR).into_iter().rev();
        let hops = lines.flat_map(|line| line.as_bytes().rsplit(|byte| *byte == b','));
        return farthest(hops.map(hop), peer, trusted);
    }
    let lines = headers.get_all(FORWARDED).into_iter().rev();
    let hops = lines.flat_map(|line| line.as_bytes().rsplit(|byte| *byte == b','));
    farthest(hops.map(forwarded_for), peer, trusted)
}

fn farthest(
    hops: impl Iterator<Item = Option<IpAddr>>,
    peer: IpAddr,
    trusted: &AddressSet,
) -> IpAddr {
    let mut client = peer;
    for hop in hops.take(HOPS_MAX) {
        let Some(addr) = hop else {
            break;
        };
        client = addr;
        if !trusted.contains(addr) {
            break;
        }
    }
    client
}

/// An address with or without a port: `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`,
/// `[2001:db8::1]:80`.
fn hop(text: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(text).ok()?.trim();
    let bare = text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let addr = match bare {
        Some(bare) => bare.parse().ok().map(IpAddr::V6),
        None => text.parse::<IpAddr>().ok(),
    };
    let addr = addr.or_else(|| text.parse::<SocketAddr>().ok().map(|it| it.ip()));
    addr.map(|addr| addr.to_canonical())
}

/// The `for` of one element of Forwarded (RFC 7239 4). A comma inside a quoted value would split
/// it, and then it is no address, which is the safe side.
fn forwarded_for(element: &[u8]) -> Option<IpAddr> {
    let element = std::str::from_utf8(element).ok()?;
    let mut pairs = element.split(';').filter_map(|pair| pair.split_once('='));
    let (_, node) = pairs.find(|(name, _)| name.trim().eq_ignore_ascii_case("for"))?;
    let node = node.trim();
    let quoted = node
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    hop(quoted.unwrap_or(node).as_bytes())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use http::HeaderValue;

    use super::*;

    /// The client by these fields, with the peer 10.0.0.1.
    fn by(trusted: &str, fields: &[(&'static str, &str)]) -> String {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        let peer = "10.0.0.1".parse().unwrap();
        client(&headers, peer, &trusted.parse().unwrap()).to_string()
    }

    #[test]
    fn the_nearest_hop_that_is_not_ours_is_the_client() {
        let by = |chain| by("10.0.0.0/8,2001:db8::/32", &[("x-forwarded-for", chain)]);
        assert_eq!(by("192.0.2.1"), "192.0.2.1");
        assert_eq!(by("203.0.113.9, 192.0.2.1"), "192.0.2.1");
        assert_eq!(
            by("203.0.113.9, 192.0.2.1,10.1.1.1 ,2001:db8::7"),
            "192.0.2.1"
        );
        assert_eq!(by("10.3.3.3, 10.2.2.2"), "10.3.3.3", "all are ours");
        assert_eq!(by("192.0.2.1:5123"), "192.0.2.1");
        assert_eq!(by("[2001:db9::1]:80, 10.1.1.1"), "2001:db9::1");
        assert_eq!(by("[2001:db9::1]"), "2001:db9::1");
        assert_eq!(by("::ffff:192.0.2.1"), "192.0.2.1");
    }

    #[test]
    fn what_is_no_address_ends_the_search() {
        let by = |chain| by("10.0.0.0/8", &[("x-forwarded-for", chain)]);
        assert_eq!(by("192.0.2.1, unknown"), "10.0.0.1");
        assert_eq!(by("192.0.2.1, unknown, 10.1.1.1"), "10.1.1.1");
        for chain in [
            "",
            ",",
            "1.2.3",
            "[::1",
            "::1]:80",
            "192.0.2.1:x",
            "\"1.2.3.4\"",
        ] {
            assert_eq!(by(chain), "10.0.0.1", "{chain:?}");
        }
    }

    #[test]
    fn several_lines_are_one_chain() {
        let fields = [
            ("x-forwarded-for", "203.0.113.9"),
            ("x-forwarded-for", "192.0.2.1, 10.1.1.1"),
        ];
        assert_eq!(by("10.0.0.0/8", &fields), "192.0.2.1");
        assert_eq!(by("0.0.0.0/0", &fields), "203.0.113.9");
    }

    #[test]
    fn forwarded_counts_where_there_is_no_x_forwarded_for() {
        let by = |fields: &[(&'static str, &str)]| by("10.0.0.0/8", fields);
        for value in [
            "for=192.0.2.1",
            "proto=https;For=\"192.0.2.1:99\";by=10.0.0.1",
            "for=203.0.113.9, for=192.0.2.1;host=x, for=10.1.1.1",
        ] {
            assert_eq!(by(&[("forwarded", value)]), "192.0.2.1", "{value}");
        }
        assert_eq!(
            by(&[("forwarded", "for=\"[2001:db9::1]:80\"")]),
            "2001:db9::1"
        );
        for value in [
            "for=_hidden",
            "for=unknown",
            "proto=https",
            "",
            "for=\"192.0.2.1",
        ] {
            assert_eq!(by(&[("forwarded", value)]), "10.0.0.1", "{value}");
        }
        let both = [
            ("forwarded", "for=192.0.2.1"),
            ("x-forwarded-for", "192.0.2.2"),
        ];
        assert_eq!(by(&both), "192.0.2.2");
    }

    #[test]
    fn a_chain_without_end_is_not_followed_for_ever() {
        let chain = vec!["10.1.1.1"; 10_000].join(",");
        assert_eq!(by("10.0.0.0/8", &[("x-forwarded-for", &chain)]), "10.1.1.1");
    }
}
