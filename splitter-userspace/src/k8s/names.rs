//! What the names of ExternalName Services lead to: an input of `translate`, which asks nobody.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// What is known of names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// By name, in lower case and without a final dot. A name that is not there has not been looked
    /// up yet.
    pub known: BTreeMap<Arc<str>, Resolution>,
    /// Whether names may lead to this node itself and its surroundings (see [`is_local`]).
    pub allow_local: bool,
}

/// What is known of one name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resolution {
    /// The last answer that was one, sorted.
    pub addresses: Vec<IpAddr>,
    /// Why the last look-up gave none, if so.
    pub error: Option<Arc<str>>,
}

/// An address that leads to the node itself, or to a service that clouds offer to each node and that
/// hands out its credentials. Whoever may write a Service must not reach these through the proxy,
/// which has other rights in the network than he has.
pub fn is_local(address: IpAddr) -> bool {
    /// Instance metadata outside the link-local ranges: AWS (IPv6), Alibaba, Oracle, Azure.
    const METADATA: [IpAddr; 4] = [
        IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
        IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
        IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
        IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    ];
    let address = address.to_canonical();
    let own = match address {
        IpAddr::V4(v4) => v4.is_link_local() || v4.is_broadcast() || v4.octets()[0] == 0,
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    };
    own || address.is_loopback()
        || address.is_unspecified()
        || address.is_multicast()
        || METADATA.contains(&address)
}

/// Whether a name is one of this node by its own meaning (RFC 6761 6.3).
pub fn is_local_name(name: &str) -> bool {
    name == "localhost" || name.ends_with(".localhost")
}

/// A name as it is looked up: lower case, without a final dot; none if it is no DNS name.
pub fn canonical_name(text: &str) -> Option<Arc<str>> {
    let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    let is_label = |label: &str| {
        let known = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        (1..=63).contains(&label.len()) && label.bytes().all(known)
    };
    (name.len() <= 253 && name.split('.').all(is_label)).then(|| name.into())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_the_node_and_of_clouds_are_local() {
        for local in [
            "127.0.0.1",
            "127.9.9.9",
            "0.0.0.0",
            "0.1.2.3",
            "169.254.169.254",
            "169.254.1.1",
            "224.0.0.1",
            "255.255.255.255",
            "100.100.100.200",
            "192.0.0.192",
            "168.63.129.16",
            "::1",
            "::",
            "fe80::1",
            "ff02::1",
            "fd00:ec2::254",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
        ] {
            assert!(is_local(local.parse().unwrap()), "{local}");
        }
        for other in [
            "10.0.0.1",
            "192.168.1.1",
            "8.8.8.8",
            "100.64.0.1",
            "fd00::1",
            "2001:db8::1",
        ] {
            assert!(!is_local(other.parse().unwrap()), "{other}");
        }
    }

    #[test]
    fn names_are_compared_as_dns_does() {
        assert_eq!(
            canonical_name("Db.Example.COM.").as_deref(),
            Some("db.example.com")
        );
        assert_eq!(canonical_name("_x.a-b.c").as_deref(), Some("_x.a-b.c"));
        for bad in [
            "",
            ".",
            "a..b",
            "a b",
            "http://a",
            "a:80",
            "\u{e9}.example",
            &"a.".repeat(200),
        ] {
            assert_eq!(canonical_name(bad), None, "{bad}");
        }
        assert!(is_local_name("localhost") && is_local_name("a.localhost"));
        assert!(!is_local_name("localhost.example.com"));
    }
}
