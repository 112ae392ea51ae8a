use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// An address range: all addresses that begin with the same `len` bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cidr {
    addr: IpAddr,
    len: u8,
}

/// Why a text is no address range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CidrError {
    /// Not an address at all.
    #[error("{0:?} is not an address or a range such as 10.244.0.0/16 or fd00:10::/48")]
    NotAnAddress(String),
    /// No such prefix length in the family.
    #[error("{text:?}: the prefix length must be a number from 0 to {max}")]
    Length {
        /// As written.
        text: String,
        /// 32 or 128.
        max: u8,
    },
    /// More address than prefix.
    #[error("{text:?} has bits beyond its prefix length; did you mean {meant}?")]
    HostBits {
        /// As written.
        text: String,
        /// With those bits zero.
        meant: Cidr,
    },
}

impl Cidr {
    /// One address. An IPv4-mapped address is the IPv4 address.
    pub fn host(addr: IpAddr) -> Cidr {
        let addr = addr.to_canonical();
        Cidr {
            addr,
            len: max_len(addr),
        }
    }

    /// The range of `addr` with that many bits; the others are cut off.
    pub fn cut(addr: IpAddr, len: u8) -> Cidr {
        let len = len.min(max_len(addr));
        let addr = match addr {
            IpAddr::V4(v4) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(len)).unwrap_or(0);
                IpAddr::V4(Ipv4Addr::from_bits(v4.to_bits() & mask))
            }
            IpAddr::V6(v6) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(len)).unwrap_or(0);
                IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & mask))
            }
        };
        Cidr { addr, len }
    }

    /// Its first address.
    pub fn addr(&self) -> IpAddr {
        self.addr
    }

    /// How many bits its addresses have in common.
    pub fn len(&self) -> u8 {
        self.len
    }

    /// Whether it is every address of its family.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether the address is one of the range.
    pub fn contains(&self, addr: IpAddr) -> bool {
        addr.is_ipv4() == self.addr.is_ipv4() && Cidr::cut(addr, self.len) == *self
    }
}

fn max_len(addr: IpAddr) -> u8 {
    if addr.is_ipv4() { 32 } else { 128 }
}

impl FromStr for Cidr {
    type Err = CidrError;

    fn from_str(text: &str) -> Result<Cidr, CidrError> {
        let (addr, len) = match text.split_once('/') {
            Some((addr, len)) => (addr, Some(len)),
            None => (text, None),
        };
        let addr: IpAddr = addr
            .parse()
            .map_err(|_| CidrError::NotAnAddress(text.to_owned()))?;
        let max = max_len(addr);
        let len = match len {
            None => return Ok(Cidr::host(addr)),
            Some(len) => len.parse().ok().filter(|len| *len <= max),
        };
        let text = text.to_owned();
        let len = len.ok_or_else(|| CidrError::Length {
            text: text.clone(),
            max,
        })?;
        let meant = Cidr::cut(addr, len);
        if meant.addr == addr {
            Ok(meant)
        } else {
            Err(CidrError::HostBits { text, meant })
        }
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.addr, self.len)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_and_written_alike() {
        for text in [
            "10.244.0.0/16",
            "0.0.0.0/0",
            "192.0.2.1/32",
            "fd00:10::/48",
            "::/0",
        ] {
            assert_eq!(text.parse::<Cidr>().unwrap().to_string(), text);
        }
        assert_eq!(
            "192.0.2.1".parse::<Cidr>().unwrap().to_string(),
            "192.0.2.1/32"
        );
        assert_eq!(
            "::ffff:192.0.2.1".parse::<Cidr>().unwrap().to_string(),
            "192.0.2.1/32"
        );
    }

    #[test]
    fn errors_say_what_is_wrong() {
        let error = |text: &str| text.parse::<Cidr>().unwrap_err().to_string();
        assert!(error("10.0.0.0/33").contains("from 0 to 32"));
        assert!(error("10.0.0.0/-1").contains("from 0 to 32"));
        assert!(error("::/129").contains("from 0 to 128"));
        assert!(error("pods").contains("is not an address"));
        assert!(error("10.244.3.1/16").contains("did you mean 10.244.0.0/16?"));
        assert!(error("fd00::1/64").contains("did you mean fd00::/64?"));
    }

    #[test]
    fn contains_goes_by_family_and_bits() {
        let range: Cidr = "10.244.0.0/16".parse().unwrap();
        assert!(range.contains("10.244.255.255".parse().unwrap()));
        assert!(!range.contains("10.245.0.0".parse().unwrap()));
        assert!(!range.contains("::".parse().unwrap()));
        assert!(
            "::/0"
                .parse::<Cidr>()
                .unwrap()
                .contains("fe80::1".parse().unwrap())
        );
    }
}
