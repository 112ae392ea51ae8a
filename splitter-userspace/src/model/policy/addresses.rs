use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use serde::{Serialize, Serializer};

/// Who may call a Location, by address (`allowlist-source-range`, `denylist-source-range`). The
/// deny list wins, as in ingress-nginx.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Addresses {
    /// Nobody else may call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow: Option<AddressSet>,
    /// These may not call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deny: Option<AddressSet>,
}

impl Addresses {
    /// Whether a client may call.
    pub fn admit(&self, client: IpAddr) -> bool {
        let denied = self.deny.as_ref().is_some_and(|set| set.contains(client));
        !denied && self.allow.as_ref().is_none_or(|set| set.contains(client))
    }

    /// Whether a client is let in by name, and not only for not being kept out: what is enough where
    /// one guard is.
    pub fn vouch(&self, client: IpAddr) -> bool {
        self.allow.is_some() && self.admit(client)
    }
}

/// A set of IPv4 and IPv6 ranges. An IPv4-mapped IPv6 address, and a range of such, is the IPv4
/// one. A look-up is a binary search: its cost grows with the logarithm of the ranges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressSet {
    /// Sorted, without overlap.
    v4: Vec<Ipv4Net>,
    /// Sorted, without overlap.
    v6: Vec<Ipv6Net>,
}

/// A text that is neither an address nor a range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an address or a range such as 10.0.0.0/8 or 2001:db8::/32")]
pub struct NotARange(String);

impl AddressSet {
    /// Every address of both families.
    pub fn all() -> Self {
        AddressSet {
            v4: vec![Ipv4Net::default()],
            v6: vec![Ipv6Net::default()],
        }
    }

    /// Whether an address is one of the set.
    pub fn contains(&self, addr: IpAddr) -> bool {
        match addr.to_canonical() {
            IpAddr::V4(addr) => {
                let after = self.v4.partition_point(|net| net.network() <= addr);
                let last = after.checked_sub(1).and_then(|index| self.v4.get(index));
                last.is_some_and(|net| net.contains(&addr))
            }
            IpAddr::V6(addr) => {
                let after = self.v6.partition_point(|net| net.network() <= addr);
                let last = after.checked_sub(1).and_then(|index| self.v6.get(index));
                last.is_some_and(|net| net.contains(&addr))
            }
        }
    }

    /// Whether it is every address of both families.
    pub fn is_all(&self) -> bool {
        *self == Self::all()
    }

    /// Whether there is no address in it.
    pub fn is_empty(&self) -> bool {
        self.v4.is_empty() && self.v6.is_empty()
    }

    /// The ranges, IPv4 first, each family in order.
    pub fn ranges(&self) -> impl Iterator<Item = IpNet> + '_ {
        let v4 = self.v4.iter().copied().map(IpNet::V4);
        v4.chain(self.v6.iter().copied().map(IpNet::V6))
    }
}

impl FromIterator<IpNet> for AddressSet {
    fn from_iter<I: IntoIterator<Item = IpNet>>(nets: I) -> Self {
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for net in nets {
            match canonical(net.trunc()) {
                IpNet::V4(net) => v4.push(net),
                IpNet::V6(net) => v6.push(net),
            }
        }
        AddressSet {
            v4: Ipv4Net::aggregate(&v4),
            v6: Ipv6Net::aggregate(&v6),
        }
    }
}

/// A range of IPv4-mapped addresses as the IPv4 range that it stands for.
fn canonical(net: IpNet) -> IpNet {
    const MAPPED: u8 = 96;
    let IpNet::V6(v6) = net else {
        return net;
    };
    let mapped = v6.network().to_ipv4_mapped();
    let len = v6.prefix_len().checked_sub(MAPPED);
    let v4 = mapped.zip(len).map(|(addr, len)| Ipv4Net::new(addr, len));
    match v4 {
        Some(Ok(v4)) => IpNet::V4(v4),
        _ => net,
    }
}

impl FromStr for AddressSet {
    type Err = NotARange;

    /// Addresses and ranges, separated by commas; blanks around them do not matter, nor do bits
    /// beyond a prefix length. One that is neither spoils the whole.
    fn from_str(text: &str) -> Result<Self, NotARange> {
        text.split(',').map(|part| range(part.trim())).collect()
    }
}

fn range(text: &str) -> Result<IpNet, NotARange> {
    let net = match text.contains('/') {
        true => text.parse().ok(),
        false => text.parse().ok().map(|addr: IpAddr| IpNet::from(addr)),
    };
    net.ok_or_else(|| NotARange(text.to_owned()))
}

impl fmt::Display for AddressSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, net) in self.ranges().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{net}")?;
        }
        Ok(())
    }
}

impl Serialize for AddressSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A client as far as limits tell clients apart: an IPv4 address, or the first 64 bits of an IPv6
/// one, as that is what one subscriber gets at least.
pub fn subscriber(client: IpAddr) -> IpAddr {
    const KEPT: u128 = u128::MAX << 64;
    match client.to_canonical() {
        IpAddr::V4(addr) => Ipv4Addr::into(addr),
        IpAddr::V6(addr) => Ipv6Addr::from_bits(addr.to_bits() & KEPT).into(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn set(text: &str) -> AddressSet {
        text.parse().unwrap()
    }

    fn has(set: &AddressSet, addr: &str) -> bool {
        set.contains(addr.parse().unwrap())
    }

    #[test]
    fn addresses_go_by_range_and_family() {
        let set = set("10.0.0.0/8, 192.0.2.1 ,2001:db8::/32,::1");
        for inside in [
            "10.0.0.0",
            "10.255.255.255",
            "192.0.2.1",
            "::ffff:10.1.2.3",
            "2001:db8:ffff::1",
            "::1",
        ] {
            assert!(has(&set, inside), "{inside}");
        }
        for outside in [
            "9.255.255.255",
            "11.0.0.0",
            "192.0.2.2",
            "::",
            "2001:db9::",
            "::ffff:11.0.0.1",
        ] {
            assert!(!has(&set, outside), "{outside}");
        }
    }

    #[test]
    fn overlapping_and_neighbouring_ranges_become_one() {
        assert_eq!(
            set("10.0.0.0/9,10.128.0.0/9,10.1.0.0/16,10.0.0.7").to_string(),
            "10.0.0.0/8"
        );
        assert_eq!(set("0.0.0.0/0,::/0,10.0.0.0/8"), AddressSet::all());
        assert!(set("0.0.0.0/0,::/0").is_all());
        assert!(!set("0.0.0.0/0").is_all());
    }

    #[test]
    fn bits_beyond_the_length_are_cut_off_and_mapped_ranges_are_ipv4() {
        assert_eq!(set("10.1.2.3/8").to_string(), "10.0.0.0/8");
        assert_eq!(set("::ffff:10.0.0.0/104").to_string(), "10.0.0.0/8");
        assert_eq!(set("::ffff:192.0.2.1").to_string(), "192.0.2.1/32");
    }

    #[test]
    fn one_bad_range_spoils_the_list() {
        for text in [
            "",
            "10.0.0.0/33",
            "10.0.0/8",
            "pods",
            "10.0.0.0/8,",
            "10.0.0.0/8 10.0.0.1",
            "::/129",
            "10.0.0.1:80",
        ] {
            assert!(text.parse::<AddressSet>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn the_deny_list_wins() {
        let both = Addresses {
            allow: Some(set("10.0.0.0/8")),
            deny: Some(set("10.1.0.0/16")),
        };
        assert!(both.admit("10.2.0.1".parse().unwrap()));
        assert!(!both.admit("10.1.0.1".parse().unwrap()));
        assert!(!both.admit("192.0.2.1".parse().unwrap()));
        assert!(both.vouch("10.2.0.1".parse().unwrap()));
        let deny = Addresses {
            allow: None,
            ..both
        };
        let other = "192.0.2.1".parse().unwrap();
        assert!(deny.admit(other) && !deny.vouch(other));
        assert!(Addresses::default().admit("192.0.2.1".parse().unwrap()));
    }

    #[test]
    fn subscribers_are_addresses_or_networks_of_64_bits() {
        let of = |text: &str| subscriber(text.parse().unwrap()).to_string();
        assert_eq!(of("192.0.2.1"), "192.0.2.1");
        assert_eq!(of("::ffff:192.0.2.1"), "192.0.2.1");
        assert_eq!(of("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
    }
}
