use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::layout::layout;

/// Key of the map `listeners`: a port that is ours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(C)]
pub struct PortKey {
    /// The port.
    pub port: u16,
    /// Protocol number: 6 is TCP.
    pub protocol: u8,
    /// 4 or 6.
    pub family: u8,
}

/// An address and port, without regard to a scope: key of the map `listener_addrs`, where it is ours, and
/// in the maps of connections to Services.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(C)]
pub struct AddressKey {
    /// The address; IPv4 in the first four bytes.
    pub addr: [u8; 16],
    /// The port.
    pub port: PortKey,
}

impl PortKey {
    /// The key as the word that it is in memory.
    #[inline(always)]
    pub const fn word(port: u16, protocol: u8, family: u8) -> u32 {
        (port as u32 | (protocol as u32) << 16 | (family as u32) << 24).to_le()
    }
}

impl AddressKey {
    /// The address.
    pub fn ip(&self) -> IpAddr {
        match self.port.family {
            6 => Ipv6Addr::from(self.addr).into(),
            _ => {
                let [a, b, c, d, ..] = self.addr;
                Ipv4Addr::new(a, b, c, d).into()
            }
        }
    }

    /// The key as words, see [`Self::words`].
    pub fn as_words(&self) -> [u32; 5] {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = self.addr;
        let word = u32::from_ne_bytes;
        let PortKey {
            port,
            protocol,
            family,
        } = self.port;
        let addr = [
            word([a, b, c, d]),
            word([e, f, g, h]),
            word([i, j, k, l]),
            word([m, n, o, p]),
        ];
        Self::words(addr, PortKey::word(port, protocol, family))
    }

    /// The key as the words that it is in memory; `addr` in network order, `port` as
    /// [`PortKey::word`].
    #[inline(always)]
    pub const fn words(addr: [u32; 4], port: u32) -> [u32; 5] {
        let [a, b, c, d] = addr;
        [a, b, c, d, port]
    }
}

/// Value of the maps `listeners` and `listener_addrs`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ListenerValue {
    /// Number of the listener, or [`ListenerValue::NONE`] for an entry that is only there to say
    /// that exact addresses exist.
    pub listener: u32,
    /// A [`Fallback`] code: what happens when the pool has no socket.
    pub fallback: u32,
    /// In `listeners`: 1 when single addresses of this port have entries in `listener_addrs`.
    pub exact: u32,
}

impl ListenerValue {
    /// No listener.
    pub const NONE: u32 = u32::MAX;
}

/// What happens to a connection whose pool has no socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Fallback {
    /// The other pool takes it, and it is counted.
    OtherPool = 0,
    /// The kernel looks for a listener as if splitter were not there.
    Kernel = 1,
    /// It is refused with a reset.
    Reset = 2,
}

impl Fallback {
    /// The policy of a number in a map; a number that means nothing is [`Fallback::Kernel`].
    #[inline(always)]
    pub const fn from_code(code: u32) -> Fallback {
        match code {
            0 => Fallback::OtherPool,
            2 => Fallback::Reset,
            _ => Fallback::Kernel,
        }
    }

    /// The name in options.
    pub const fn name(self) -> &'static str {
        match self {
            Fallback::OtherPool => "other-pool",
            Fallback::Kernel => "kernel",
            Fallback::Reset => "reset",
        }
    }
}

layout!(PortKey, size 4, align 2, { port: 0, protocol: 2, family: 3 });
layout!(AddressKey, size 20, align 2, { addr: 0, port: 16 });
layout!(ListenerValue, size 12, align 4, { listener: 0, fallback: 4, exact: 8 });

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::bytes_of;

    #[test]
    fn key_bytes() {
        let port = PortKey {
            port: 0x1f90,
            protocol: 6,
            family: 4,
        };
        let mut key = AddressKey {
            port,
            ..AddressKey::default()
        };
        key.addr[..4].copy_from_slice(&[203, 0, 113, 1]);
        let mut golden = [0u8; 20];
        golden[..4].copy_from_slice(&[203, 0, 113, 1]);
        golden[16..].copy_from_slice(&[0x90, 0x1f, 6, 4]);
        assert_eq!(bytes_of(&key), golden);
        let word = PortKey::word(0x1f90, 6, 4);
        assert_eq!(bytes_of(&port), bytes_of(&word));
        let addr = [u32::from_ne_bytes([203, 0, 113, 1]), 0, 0, 0];
        assert_eq!(bytes_of(&AddressKey::words(addr, word)), golden);
        assert_eq!(key.as_words(), AddressKey::words(addr, word));
    }

    #[test]
    fn an_unknown_policy_leaves_it_to_the_kernel() {
        assert_eq!(Fallback::from_code(7), Fallback::Kernel);
    }
}
