use core::net::IpAddr;

use crate::class::Class;
use crate::iface::Role;
use crate::prefix::{PrefixKind, PrefixTable, kind4, kind6, words_of};

/// The address of a peer, as numbers in host order. IPv4 is held in its IPv4-mapped form, so that
/// both spellings of an address are one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The first eight bytes.
    pub high: u64,
    /// The last eight bytes.
    pub low: u64,
}

impl Peer {
    /// An IPv4 address.
    #[inline(always)]
    pub const fn v4(addr: u32) -> Peer {
        Peer {
            high: 0,
            low: 0xffff_0000_0000 | addr as u64,
        }
    }

    /// The IPv4 address, if it is one.
    #[inline(always)]
    pub const fn as_v4(self) -> Option<u32> {
        if self.high == 0 && self.low >> 32 == 0xffff {
            Some(self.low as u32)
        } else {
            None
        }
    }

    /// Whether no bit of the address is set.
    #[inline(always)]
    pub const fn is_unspecified(self) -> bool {
        self.high == 0 && (self.low == 0 || self.low == Peer::v4(0).low)
    }

    /// The address in network order, by words.
    #[inline(always)]
    pub const fn words(self) -> [u32; 4] {
        words_of(self.high, self.low)
    }
}

impl From<IpAddr> for Peer {
    fn from(addr: IpAddr) -> Peer {
        match addr {
            IpAddr::V4(addr) => Peer::v4(addr.to_bits()),
            IpAddr::V6(addr) => {
                let bits = addr.to_bits();
                Peer {
                    high: (bits >> 64) as u64,
                    low: bits as u64,
                }
            }
        }
    }
}

/// Why a source address cannot be real. Its number is that of the rule in [`crate::Settings`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum Spoof {
    /// An address of this node, arriving from the wire.
    OwnAddress = 0,
    /// An address of this node's own pods, arriving from the wire.
    OwnPods = 1,
    /// A loopback address, arriving from the wire.
    Loopback = 2,
    /// A source that nobody can have: unspecified, multicast, broadcast, reserved.
    Martian = 3,
    /// A pod of another node, arriving from the wire of a cluster whose pods do not travel there.
    Cluster = 4,
}

impl Spoof {
    /// How many rules there are.
    pub const COUNT: usize = 5;

    /// Every rule, in the order of the numbers.
    pub const ALL: [Spoof; Spoof::COUNT] = [
        Spoof::OwnAddress,
        Spoof::OwnPods,
        Spoof::Loopback,
        Spoof::Martian,
        Spoof::Cluster,
    ];

    /// The name in options, logs and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Spoof::OwnAddress => "own-address",
            Spoof::OwnPods => "own-pods",
            Spoof::Loopback => "loopback",
            Spoof::Martian => "martian",
            Spoof::Cluster => "cluster",
        }
    }
}

/// Where a peer is, and whether its address can be real.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Where it is.
    pub class: Class,
    /// Why its address cannot be real, if so. Only XDP on a NIC can act on it: host-local traffic
    /// looks to sk_lookup as if it came from the NIC that owns the address.
    pub spoof: Option<Spoof>,
}

/// What [`classify`] looks things up in.
pub trait Tables: PrefixTable {
    /// What the interface is that the packet came in by.
    fn role(&self, ifindex: u32) -> Role;
    /// Whether pods of other nodes may arrive on a NIC with their own addresses.
    fn native_routing(&self) -> bool;
}

/// Says where a peer is. The same peer, interface and tables always give the same answer.
///
/// The order of the tests: this node itself, its own pods, other pods, other nodes, outside.
#[inline(always)]
pub fn classify(tables: &impl Tables, peer: Peer, ifindex: u32) -> Origin {
    let role = tables.role(ifindex);
    match peer.as_v4() {
        Some(addr) => classify4(tables, addr, role),
        None => classify6(tables, peer, role),
    }
}

#[inline(always)]
fn classify4(tables: &impl Tables, addr: u32, role: Role) -> Origin {
    let first = addr >> 24;
    if first == 127 {
        return loopback(role);
    }
    // 0.0.0.0/8, multicast, reserved and broadcast.
    if first == 0 || first >= 224 {
        return martian(role);
    }
    by_kind(tables, kind4(tables, addr), role)
}

#[inline(always)]
fn classify6(tables: &impl Tables, peer: Peer, role: Role) -> Origin {
    if peer.high == 0 && peer.low == 1 {
        return loopback(role);
    }
    if peer.is_unspecified() || peer.high >> 56 == 0xff {
        return martian(role);
    }
    by_kind(tables, kind6(tables, peer.high, peer.low), role)
}

#[inline(always)]
fn by_kind(tables: &impl Tables, kind: PrefixKind, role: Role) -> Origin {
    let external = matches!(role, Role::External);
    match kind {
        PrefixKind::Own if external => spoofed(Class::Local, Spoof::OwnAddress),
        PrefixKind::Own => real(Class::Local),
        PrefixKind::Pods if external => spoofed(Class::Unknown, Spoof::OwnPods),
        PrefixKind::Cluster if external && !tables.native_routing() => {
            spoofed(Class::Unknown, Spoof::Cluster)
        }
        PrefixKind::Pods | PrefixKind::Cluster => real(Class::EastWest),
        PrefixKind::Node => real(Class::Node),
        PrefixKind::None => stranger(role),
    }
}

#[inline(always)]
fn stranger(role: Role) -> Origin {
    real(match role {
        Role::External | Role::Unseen => Class::NorthSouth,
        // Not from the wire, but of no range that is known: a pod of a forgotten range, perhaps.
        Role::Inner => Class::Unknown,
    })
}

#[inline(always)]
fn loopback(role: Role) -> Origin {
    if matches!(role, Role::External) {
        spoofed(Class::Local, Spoof::Loopback)
    } else {
        real(Class::Local)
    }
}

#[inline(always)]
fn martian(role: Role) -> Origin {
    match role {
        Role::External => spoofed(Class::Unknown, Spoof::Martian),
        Role::Inner => real(Class::Unknown),
        Role::Unseen => real(Class::NorthSouth),
    }
}

#[inline(always)]
fn real(class: Class) -> Origin {
    Origin { class, spoof: None }
}

#[inline(always)]
fn spoofed(class: Class, spoof: Spoof) -> Origin {
    Origin {
        class,
        spoof: Some(spoof),
    }
}

#[cfg(test)]
#[path = "classify_tests.rs"]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests;
