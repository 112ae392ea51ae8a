//! Who answers what comes in at the node where no HTTP is looked at, and the XDP program forwards it by
//! itself. The kernel programs and user space call the same functions.

use crate::config::Limit;
use crate::connect::variant_with;
use crate::flow::Flow;
use crate::layout::layout;
use crate::limits::MAX_VARIANTS;
use crate::listener::{AddressKey, PortKey};

/// The one entry of the map `l4_settings`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct BalanceSettings {
    /// Zero: packets are not forwarded here.
    pub on: u32,
    /// Whether answers of Endpoints on this node are translated on their way out. Without, connections to
    /// them are left to user space.
    pub local: u32,
    /// First and last port from which connections are made to Endpoints on other nodes.
    pub first_port: u16,
    /// See above.
    pub last_port: u16,
    /// New flows of one class in a second.
    pub new_flows: Limit,
    /// The node's address for such connections; zeros: there is none. In network order.
    pub own4: [u8; 4],
    /// The same of IPv6.
    pub own6: [u8; 16],
    /// How long a UDP flow is kept of which nothing comes, in seconds.
    pub udp_idle: u32,
    /// Stands before places of `l4_traffic` in what this instance writes ([`BalanceSettings::place`]).
    pub era: u32,
}

/// Value of the map `l4_fronts`, whose keys are the addresses and ports that are asked for.
///
/// It is one word, as the memory of an entry that is replaced can be another one's while it is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(8))]
pub struct Front {
    /// Which row of `l4_balanced` says what answers.
    pub row: u32,
    /// What [`AddressKey::print`] gives for the key.
    pub print: u32,
}

/// Value of the map `l4_balanced`. A row that programs can know is never written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Balanced {
    /// Where the weights are, in `splits`, and what is decided by them is counted, in `split_stats`.
    /// [`Balanced::NO_SLOT`]: stable has everything.
    pub slot: u32,
    /// A [`BalanceBy`] code.
    pub split_by: u32,
    /// By Variant.
    pub variants: [BalancedVariant; MAX_VARIANTS],
}

/// One Variant of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct BalancedVariant {
    /// Which part of `l4_rings` its ring begins with.
    pub ring: u32,
    /// Places of the ring; 0: nothing takes new flows.
    pub len: u32,
    /// Where it is counted, in `l4_traffic`.
    pub traffic: u32,
}

/// What has one Variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum BalanceBy {
    /// Each connection, or all datagrams between two sockets.
    Connection = 0,
    /// All connections of one client's address.
    SourceAddress = 1,
}

/// Value of the map `l4_rings`: some places of a ring, with the number of the Endpoint that has each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct RingPart {
    /// Numbers in `l4_targets`.
    pub places: [u16; RING_PART],
}

/// Places in one [`RingPart`]: a power of two.
pub const RING_PART: usize = 32;

impl Default for RingPart {
    fn default() -> Self {
        RingPart {
            places: [0; RING_PART],
        }
    }
}

/// Value of the map `l4_targets`: an Endpoint. Where a flow goes lies in the flow; this says whether that
/// still holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Target {
    /// Where it is.
    pub address: AddressKey,
    /// Another number for each Endpoint that has had this place.
    pub epoch: u32,
    /// [`Target::KEEPS`] and others; 0: it is gone.
    pub state: u32,
}

/// Key of the maps `l4_flows` and `l4_unproven`: the packets of one direction of a flow, as they come in, or as
/// those of Endpoints on the node go out. A TCP connection is in the first when its Endpoint has sent data,
/// which it does only when the client has answered it; the second has all others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct FlowKey {
    /// The source; IPv4 in the first four bytes.
    pub source: [u8; 16],
    /// The destination.
    pub destination: [u8; 16],
    /// The source port.
    pub source_port: u16,
    /// The destination port.
    pub destination_port: u16,
    /// Protocol number.
    pub protocol: u8,
    /// 4 or 6.
    pub family: u8,
    /// Zero.
    pub pad: u16,
}

/// Value of these maps: what the addresses and ports of these packets become. The same read
/// backwards is the key of the other direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct FlowValue {
    /// What [`FlowKey::print`] gives for the key. It is written first and read last, as the memory can be
    /// given to another flow while it is read.
    pub print: u32,
    /// As in [`FlowKey`].
    pub source: [u8; 16],
    /// As in [`FlowKey`].
    pub destination: [u8; 16],
    /// As in [`FlowKey`].
    pub source_port: u16,
    /// As in [`FlowKey`].
    pub destination_port: u16,
    /// The Endpoint's number in `l4_targets`, and what its epoch must be.
    pub target: u32,
    /// See above.
    pub epoch: u32,
    /// Where it is counted, in `l4_traffic`.
    pub traffic: u32,
    /// [`FlowValue::REMOTE`] and others. Never changes.
    pub flags: u16,
    /// A [`FlowState`] code.
    pub state: u16,
    /// When a packet came last, in nanoseconds since the machine started; to a second or so.
    pub seen: u64,
}

/// Key of the map `l4_fragments`: what pieces of one IPv4 packet have in common. The values are the ports as
/// [`FlowKey::ports`] has them, which only the first piece says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct FragmentKey {
    /// The source.
    pub source: [u8; 4],
    /// The destination.
    pub destination: [u8; 4],
    /// The packet's number, as it lies in it.
    pub id: [u8; 2],
    /// Protocol number.
    pub protocol: u8,
    /// Zero.
    pub pad: u8,
}

/// How far a TCP connection has come, as far as the client's packets say. UDP has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum FlowState {
    /// The client has asked for it.
    Opening = 0,
    /// The client has gone on.
    Open = 1,
    /// One side has ended or reset it.
    Closing = 2,
}

/// Value of the map `l4_traffic`: what has been forwarded for one Variant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Traffic {
    /// New flows.
    pub flows: u64,
    /// Packets from clients.
    pub packets_in: u64,
    /// Their bytes, from the Ethernet header on.
    pub bytes_in: u64,
    /// Packets to clients.
    pub packets_out: u64,
    /// Their bytes.
    pub bytes_out: u64,
}

layout!(BalanceSettings, size 48, align 4, { on: 0, local: 4, first_port: 8, last_port: 10, new_flows: 12, own4: 20, own6: 24, udp_idle: 40, era: 44 });
layout!(Front, size 8, align 8, { row: 0, print: 4 });
layout!(Balanced, size 104, align 4, { slot: 0, split_by: 4, variants: 8 });
layout!(BalancedVariant, size 12, align 4, { ring: 0, len: 4, traffic: 8 });
layout!(RingPart, size 64, align 2, { places: 0 });
layout!(Target, size 28, align 4, { address: 0, epoch: 20, state: 24 });
layout!(FlowKey, size 40, align 2, { source: 0, destination: 16, source_port: 32, destination_port: 34, protocol: 36, family: 37, pad: 38 });
layout!(FlowValue, size 64, align 8, { print: 0, source: 4, destination: 20, source_port: 36, destination_port: 38, target: 40, epoch: 44, traffic: 48, flags: 52, state: 54, seen: 56 });
layout!(FragmentKey, size 12, align 1, { source: 0, destination: 4, id: 8, protocol: 10, pad: 11 });
layout!(Traffic, size 40, align 8, { flows: 0, packets_in: 8, bytes_in: 16, packets_out: 24, bytes_out: 32 });

/// What the map `l4_ports` has for a port: bits.
pub struct PortUse;

impl PortUse {
    /// Something answers at this TCP port of some address.
    pub const TCP_FRONT: u8 = 1;
    /// The same of UDP.
    pub const UDP_FRONT: u8 = 2;
    /// An Endpoint on this node has this TCP port.
    pub const TCP_TARGET: u8 = 4;
    /// The same of UDP.
    pub const UDP_TARGET: u8 = 8;
}

/// Value of the map `l4_ports`, which has 1,024 of them: one byte for each port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct PortUses {
    /// Bits of [`PortUse`].
    pub uses: [u8; PORTS_EACH],
}

/// Ports in one [`PortUses`]: a power of two.
pub const PORTS_EACH: usize = 64;

impl Default for PortUses {
    fn default() -> Self {
        PortUses {
            uses: [0; PORTS_EACH],
        }
    }
}

layout!(PortUses, size 64, align 1, { uses: 0 });

impl BalanceSettings {
    /// The place of `l4_traffic` that a flow or row names; none when another instance has written it, whose
    /// places are others.
    #[inline(always)]
    pub const fn place(&self, traffic: u32) -> Option<u32> {
        match traffic & !0xffff == self.era {
            true => Some(traffic & 0xffff),
            false => None,
        }
    }
}

impl AddressKey {
    /// A number that is another one for nearly every other key.
    #[inline(always)]
    pub fn print(words: &[u32; 5]) -> u32 {
        let mut print = 0u64;
        let mut index = 0;
        while index < 5 {
            print = (print ^ u64::from(words[index])).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            print ^= print >> 32;
            index += 1;
        }
        print as u32
    }
}

impl Target {
    /// Flows to it go on.
    pub const KEEPS: u32 = 1;
    /// It takes new flows.
    pub const TAKES: u32 = 2;
    /// It is on this node.
    pub const LOCAL: u32 = 4;
}

impl FlowValue {
    /// The Endpoint is on another node, so that the connection to it is the node's own.
    pub const REMOTE: u16 = 1;
    /// Packets from the Endpoint.
    pub const REPLY: u16 = 2;

    /// The key of the other direction.
    #[inline(always)]
    pub fn backwards(words: &[u32; 9], kind: u32) -> [u32; 10] {
        let [a, b, c, d, e, f, g, h, ports] = *words;
        // Both are 16 bits wide, so they change places in either order of bytes.
        [e, f, g, h, a, b, c, d, ports.rotate_left(16), kind]
    }
}

impl FlowKey {
    /// A number that is another one for nearly every other key.
    #[inline(always)]
    pub fn print(words: &[u32; 10]) -> u32 {
        let mut print = 0u64;
        let mut index = 0;
        while index < 10 {
            print = (print ^ u64::from(words[index])).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            index += 1;
        }
        (print >> 32) as u32
    }

    /// Its last word.
    #[inline(always)]
    pub const fn kind(protocol: u8, family: u8) -> u32 {
        (protocol as u32 | (family as u32) << 8).to_le()
    }

    /// The word of both ports.
    #[inline(always)]
    pub const fn ports(source: u16, destination: u16) -> u32 {
        (source as u32 | (destination as u32) << 16).to_le()
    }
}

/// What was chosen for a new flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BalancePick {
    /// The Variant.
    pub variant: u32,
    /// It stands in for another one.
    pub fallback: bool,
    /// Its place on the Variant's ring.
    pub place: u32,
}

impl Balanced {
    /// No weights.
    pub const NO_SLOT: u32 = u32::MAX;

    /// Chooses Variant and place on its ring for a flow; none when no Variant that it may have has an
    /// Endpoint.
    #[inline(always)]
    pub fn pick(&self, flow: &Flow, weights: &[u32; MAX_VARIANTS]) -> Option<BalancePick> {
        let point = match self.split_by == BalanceBy::SourceAddress as u32 {
            true => flow.source_point(),
            false => flow.point(),
        };
        let (variant, fallback) =
            variant_with(weights, point, |variant| self.variant(variant).len > 0)?;
        Some(BalancePick {
            variant,
            fallback,
            place: flow.place(self.variant(variant).len),
        })
    }

    /// A Variant of its.
    #[inline(always)]
    pub fn variant(&self, variant: u32) -> &BalancedVariant {
        &self.variants[variant as usize & (MAX_VARIANTS - 1)]
    }
}

impl PortKey {
    /// The bit of [`PortUse`] for what answers, or is answered from, a port.
    #[inline(always)]
    pub const fn port_use(protocol: u8, target: bool) -> u8 {
        match (protocol, target) {
            (crate::PROTO_TCP, false) => PortUse::TCP_FRONT,
            (crate::PROTO_TCP, true) => PortUse::TCP_TARGET,
            (_, false) => PortUse::UDP_FRONT,
            (_, true) => PortUse::UDP_TARGET,
        }
    }
}

/// Words of eight bytes that a kernel program has for the work on one packet, in the map `l4_work`.
pub const WORK_WORDS: usize = 48;

#[cfg(test)]
#[path = "balance_tests.rs"]
mod tests;
