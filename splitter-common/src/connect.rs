//! Who answers a connection that a process of the node makes to a Service's own address: decided once,
//! when it connects. The kernel programs and user space call the same functions.

use crate::flow::{source_point_of, variant_at};
use crate::layout::layout;
use crate::limits::MAX_VARIANTS;
use crate::listener::{AddressKey, PortKey};
use crate::reason::Count;

/// Value of the map `l4_services`, whose keys are the Services' own addresses and ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ServiceValue {
    /// Where the weights are, in `splits`, and what is decided by them is counted, in `split_stats`.
    pub slot: u32,
    /// Which counter of `l4_turns` it has.
    pub turn: u32,
    /// A [`ConnectBy`] code.
    pub split_by: u32,
    /// Zero.
    pub pad: u32,
    /// The Endpoints of each Variant that take new connections, of the address's family.
    pub lists: [EndpointList; MAX_VARIANTS],
}

/// A list of Endpoints in the map `l4_endpoints`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct EndpointList {
    /// Its number: that of one list only, as long as any program can know it.
    pub list: u32,
    /// How many there are.
    pub len: u32,
}

/// Key of the map `l4_endpoints`; the values are addresses and ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(C)]
pub struct EndpointKey {
    /// The list's number.
    pub list: u32,
    /// Its place there, from 0.
    pub place: u32,
}

/// Key of the map `l4_keeps`: an Endpoint of a slot's Service that keeps what it has, whether it takes
/// anything new or not. One that has no entry is gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct KeepKey {
    /// The slot.
    pub slot: u32,
    /// The Endpoint.
    pub endpoint: AddressKey,
}

/// What one socket has asked for and was given, in the map `l4_asked`, which belongs to the socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Asked {
    /// One for a connected socket; one for each Service that an unconnected one sends to, as long as
    /// there is room.
    pub entries: [AskedEntry; ASKED],
    /// Whose place the next one takes.
    pub next: u32,
    /// Zero.
    pub pad: u32,
}

/// Services that one unconnected socket can speak with at a time and still see their own addresses: a power
/// of two.
pub const ASKED: usize = 4;

const _: () = assert!(ASKED.is_power_of_two() && MAX_VARIANTS.is_power_of_two());

/// One Service of a socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct AskedEntry {
    /// What was asked for, as [`AddressKey::words`] has it; zeros: nothing.
    pub asked: [u32; 5],
    /// Who was given.
    pub given: [u32; 5],
    /// When something was sent there last, in nanoseconds since the machine started.
    pub sent: u64,
}

/// What has one Variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum ConnectBy {
    /// Each connection.
    Connection = 0,
    /// All connections of one client: of a network namespace, which a pod has for itself.
    Client = 1,
}

/// What a decision takes that is not the same for all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectDraw {
    /// How many decisions of the Service there were before.
    pub turn: u64,
    /// The number of the client's network namespace.
    pub client: u64,
    /// Chance.
    pub random: u32,
}

/// What was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Picked {
    /// The Variant.
    pub variant: u32,
    /// The Endpoint.
    pub endpoint: EndpointKey,
    /// [`ConnectReason::Split`] or [`ConnectReason::Fallback`]; with [`ConnectReason::NoEndpoint`] the rest
    /// means nothing.
    pub reason: ConnectReason,
}

impl ServiceValue {
    /// Chooses Variant and Endpoint.
    #[inline(always)]
    pub fn pick(&self, weights: &[u32; MAX_VARIANTS], draw: &ConnectDraw) -> Picked {
        let point = match self.split_by == ConnectBy::Client as u32 {
            true => source_point_of([0, draw.client]),
            false => point_of_turn(self.turn, draw.turn),
        };
        let found = variant_with(weights, point, |variant| self.list(variant).len > 0);
        let (variant, reason) = match found {
            Some((variant, false)) => (variant, ConnectReason::Split),
            Some((variant, true)) => (variant, ConnectReason::Fallback),
            None => (0, ConnectReason::NoEndpoint),
        };
        let EndpointList { list, len } = self.list(variant);
        let place = ((u64::from(draw.random) * u64::from(len)) >> 32) as u32;
        Picked {
            variant,
            endpoint: EndpointKey { list, place },
            reason,
        }
    }

    #[inline(always)]
    fn list(&self, variant: u32) -> EndpointList {
        self.lists[variant as usize & (MAX_VARIANTS - 1)]
    }

    /// A number that is another one for other content: rows are compared by it, as the memory of one that
    /// is replaced can be another row's while it is being read.
    #[inline(always)]
    pub fn print(&self) -> u64 {
        let mut print = u64::from(self.slot) << 32 | u64::from(self.turn);
        print = print.wrapping_mul(PRINT) ^ u64::from(self.split_by);
        let mut index = 0;
        while index < MAX_VARIANTS {
            let EndpointList { list, len } = self.lists[index];
            print = print.wrapping_mul(PRINT) ^ (u64::from(list) << 32 | u64::from(len));
            print ^= print >> 29;
            index += 1;
        }
        print
    }
}

const PRINT: u64 = 0x9e37_79b9_7f4a_7c15;

/// The Variant at a place on the line of the weights, among those that have an Endpoint, and whether it
/// stands in for another one. A canary without any gives way to stable. Stable without one is an end:
/// what is not meant for a canary is not given to it.
#[inline(always)]
pub fn variant_with(
    weights: &[u32; MAX_VARIANTS],
    point: u16,
    has_endpoint: impl Fn(u32) -> bool,
) -> Option<(u32, bool)> {
    let variant = variant_at(weights, point) as u32;
    if has_endpoint(variant) {
        return Some((variant, false));
    }
    (variant != 0 && has_endpoint(0)).then_some((0, true))
}

/// The place on the line of the weights of a Service's nth decision.
///
/// 65,536 decisions from a multiple of that on have every place once, and 256 have one in each 256th
/// part of the line: shares are exact to a decision in some hundred, in an order that nobody can use.
#[inline(always)]
pub fn point_of_turn(service: u32, turn: u64) -> u16 {
    let block = turn >> 8;
    let high = scatter(turn as u8, key(service, block));
    let low = scatter(
        block as u8,
        key(service, (turn >> 16) << 8 | u64::from(high) | 1 << 63),
    );
    u16::from_be_bytes([high, low])
}

#[inline(always)]
fn key(service: u32, of: u64) -> u64 {
    // Not zero for the first one: the rest of it would be zero, too.
    let mut key = (of ^ u64::from(service) << 40).wrapping_add(0x9e37_79b9_7f4a_7c15);
    key = (key ^ (key >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    key = (key ^ (key >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    key ^ (key >> 31)
}

/// A permutation of the numbers below 256, another one for each key.
#[inline(always)]
fn scatter(number: u8, key: u64) -> u8 {
    let mut mixed = number ^ key as u8;
    let mut round = 1;
    while round < 4 {
        // An odd factor and a shift to the right and back can be undone.
        mixed = mixed.wrapping_mul((key >> (8 * round)) as u8 | 1);
        mixed ^= mixed >> 4;
        mixed = mixed.wrapping_add((key >> (8 * round + 24)) as u8);
        round += 1;
    }
    mixed
}

/// How long a socket that is not connected keeps the Endpoint of a Service that it sends nothing to, in
/// nanoseconds.
pub const ASKED_NANOSECONDS: u64 = 30_000_000_000;

impl Asked {
    /// Notes what a socket was given. It takes the place of what the socket was given before for the same,
    /// else the next one.
    #[inline(always)]
    pub fn note(&mut self, asked: &[u32; 5], given: &[u32; 5], now: u64) {
        let mut place = self.next;
        match self.find(asked) {
            Some(known) => place = known,
            None => self.next = place.wrapping_add(1),
        }
        let entry = &mut self.entries[place as usize & (ASKED - 1)];
        entry.asked = *asked;
        entry.given = *given;
        entry.sent = now;
    }

    /// The entry of what a socket asks for, unless the socket has been silent for too long.
    #[inline(always)]
    pub fn fresh(&mut self, asked: &[u32; 5], now: u64) -> Option<&mut AskedEntry> {
        let place = self.find(asked)?;
        let entry = &mut self.entries[place as usize & (ASKED - 1)];
        (now.wrapping_sub(entry.sent) < ASKED_NANOSECONDS).then_some(entry)
    }

    #[inline(always)]
    fn find(&self, asked: &[u32; 5]) -> Option<u32> {
        let mut found = None;
        let mut index = 0;
        while index < ASKED {
            if same(&self.entries[index].asked, asked) {
                found = Some(index as u32);
            }
            index += 1;
        }
        found
    }

    /// What a socket has asked for when it was given this.
    #[inline(always)]
    pub fn asked(&self, given: &[u32; 5]) -> Option<&[u32; 5]> {
        let mut found = None;
        let mut index = 0;
        while index < ASKED {
            if same(&self.entries[index].given, given) {
                found = Some(index);
            }
            index += 1;
        }
        found.map(|index| &self.entries[index & (ASKED - 1)].asked)
    }
}

/// Whether two keys are the same, without a branch for each word: the verifier would follow each.
#[inline(always)]
fn same(one: &[u32; 5], other: &[u32; 5]) -> bool {
    let mut different = 0;
    let mut index = 0;
    while index < 5 {
        different |= one[index] ^ other[index];
        index += 1;
    }
    // The compiler would make branches of it again.
    core::hint::black_box(different) == 0
}

/// Declares [`ConnectReason`] and [`ConnectCounts`] with a field for each.
macro_rules! reasons {
    ($($(#[$line:meta])* $variant:ident: $field:ident = $name:literal,)+) => {
        /// What became of a connection to an address of `l4_services`. The others are not counted.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u32)]
        pub enum ConnectReason {
            $($(#[$line])* $variant,)+
        }

        impl ConnectReason {
            /// Every reason, in the order of the codes.
            pub const ALL: &[ConnectReason] = &[$(ConnectReason::$variant),+];

            /// The name in metrics and listings.
            pub const fn name(self) -> &'static str {
                match self {
                    $(ConnectReason::$variant => $name,)+
                }
            }
        }

        /// The one value of the per-CPU map `l4_counts`.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[repr(C)]
        #[expect(missing_docs, reason = "each field is the reason of the same name")]
        pub struct ConnectCounts {
            $(pub $field: Count,)+
        }

        impl ConnectCounts {
            /// Each with its name.
            pub fn named(&self) -> [(&'static str, u64); ConnectReason::ALL.len()] {
                [$(($name, self.$field.count)),+]
            }
        }
    };
}

reasons! {
    /// Given to the Variant that the weights chose.
    Split: split = "split",
    /// That Variant has no Endpoint: given to stable.
    Fallback: fallback = "fallback",
    /// A datagram that went where its socket's last one had gone.
    Kept: kept = "kept",
    /// No Endpoint may be given: left to the cluster's own answer.
    NoEndpoint: no_endpoint = "no-endpoint",
    /// The Service was being changed all the time: left to the cluster's own answer.
    Unsettled: unsettled = "unsettled",
    /// An Endpoint is missing in the map: left to the cluster's own answer.
    Missing: missing = "missing",
    /// The kernel would not remember what a socket has asked for. A connected one sees its Endpoint's
    /// address; a datagram is left to the cluster's own answer.
    NotRemembered: not_remembered = "not-remembered",
}

impl AddressKey {
    /// Words that are no key: of an address that was never asked for.
    pub const NOTHING: [u32; 5] = [0; 5];

    /// The key of an address and port.
    pub const fn of(addr: [u8; 16], port: u16, protocol: u8, family: u8) -> AddressKey {
        AddressKey {
            addr,
            port: PortKey {
                port,
                protocol,
                family,
            },
        }
    }
}

layout!(EndpointList, size 8, align 4, { list: 0, len: 4 });
layout!(ServiceValue, size 80, align 4, { slot: 0, turn: 4, split_by: 8, pad: 12, lists: 16 });
layout!(EndpointKey, size 8, align 4, { list: 0, place: 4 });
layout!(KeepKey, size 24, align 4, { slot: 0, endpoint: 4 });
layout!(AskedEntry, size 48, align 8, { asked: 0, given: 20, sent: 40 });
layout!(Asked, size 200, align 8, { entries: 0, next: 192, pad: 196 });
const _: () = assert!(size_of::<ConnectCounts>() == ConnectReason::ALL.len() * size_of::<Count>());

#[cfg(test)]
#[path = "connect_tests.rs"]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests;
