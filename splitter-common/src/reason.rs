//! Why a packet or a look-up left a program as it did.

use crate::layout::layout;

/// How often something happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Count {
    /// How often.
    pub count: u64,
    /// Bytes of the packets, from the Ethernet header on; 0 for look-ups.
    pub bytes: u64,
}

layout!(Count, size 16, align 8, { count: 0, bytes: 8 });

/// Declares one kind of reasons: the code of the first, and each with its field and name.
macro_rules! reasons {
    ($(#[$doc:meta])* $type:ident from $first:expr; $($(#[$line:meta])* $variant:ident = $name:literal,)+) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u32)]
        pub enum $type {
            $($(#[$line])* $variant,)+
        }

        impl $type {
            /// Every reason, in the order of the codes.
            pub const ALL: &[$type] = &[$($type::$variant),+];

            /// The code of the first.
            pub const FIRST: u32 = $first;

            /// The code behind the last.
            pub const END: u32 = $first + $type::ALL.len() as u32;

            /// Where it is counted in [`Counters`].
            #[inline(always)]
            pub const fn code(self) -> u32 {
                Self::FIRST + self as u32
            }

            /// The name in metrics and listings.
            pub const fn name(self) -> &'static str {
                match self {
                    $($type::$variant => $name,)+
                }
            }
        }
    };
}

reasons! {
    /// Why XDP let a packet pass.
    PassReason from 0;
    /// Understood, and nothing speaks against it.
    Classified = "pass-classified",
    /// Neither IPv4 nor IPv6: ARP, LLDP and the like.
    NotIp = "pass-not-ip",
    /// Shorter than its own headers say: the kernel judges it.
    Truncated = "pass-truncated",
    /// A header that contradicts itself: the kernel judges it.
    Malformed = "pass-malformed",
    /// A fragment: only the first one has ports.
    Fragment = "pass-fragment",
    /// More VLAN tags than are parsed.
    TooManyTags = "pass-too-many-tags",
    /// More IPv6 extension headers than are parsed.
    TooManyExtensions = "pass-too-many-extensions",
    /// Unspecified source where that is in order: DHCP, neighbour discovery.
    Unspecified = "pass-unspecified",
    /// The programs have no settings yet.
    NoSettings = "pass-no-settings",
    /// Moved to a CPU of its pool.
    Moved = "pass-moved",
}

reasons! {
    /// Why XDP dropped a packet.
    DropReason from PassReason::END;
    /// An address of this node as the source, from the wire.
    OwnAddress = "drop-own-address",
    /// A pod of this node as the source, from the wire.
    OwnPods = "drop-own-pods",
    /// A loopback source, from the wire.
    Loopback = "drop-loopback",
    /// A source that nobody can have.
    Martian = "drop-martian",
    /// A pod of another node as the source, where pods do not travel on the wire.
    Cluster = "drop-cluster",
    /// Too many new connections of the source.
    SourceSyn = "drop-source-syn",
    /// Too many packets of the source.
    SourcePackets = "drop-source-packets",
    /// Too many new connections of the class.
    ClassSyn = "drop-class-syn",
    /// Too many packets of the class.
    ClassPackets = "drop-class-packets",
}

reasons! {
    /// What XDP noticed without ending the packet's way by it.
    Note from DropReason::END;
    /// Counted by the rule `own-address`.
    OwnAddress = "seen-own-address",
    /// Counted by the rule `own-pods`.
    OwnPods = "seen-own-pods",
    /// Counted by the rule `loopback`.
    Loopback = "seen-loopback",
    /// Counted by the rule `martian`.
    Martian = "seen-martian",
    /// Counted by the rule `cluster`.
    Cluster = "seen-cluster",
}

reasons! {
    /// How sk_lookup answered.
    SteerReason from Note::END;
    /// Not an address and port of ours: untouched.
    NotOurs = "steer-not-ours",
    /// Given to the pool of its class.
    Assigned = "steer-assigned",
    /// The class's pool had no socket: given to the other one.
    OtherPool = "steer-other-pool",
    /// No pool had a socket: left to the kernel's own look-up.
    Kernel = "steer-kernel",
    /// The pool had no socket: refused.
    Reset = "steer-reset",
    /// The kernel did not take the socket: left to its own look-up.
    Refused = "steer-refused",
    /// The programs have no settings yet: left to the kernel's own look-up.
    NoSettings = "steer-no-settings",
}

reasons! {
    /// What XDP did with a packet for a port where no HTTP is looked at.
    BalanceReason from SteerReason::END;
    /// The first of a flow: given to an Endpoint.
    New = "l4-new",
    /// Of a flow that has an Endpoint.
    Known = "l4-known",
    /// An Endpoint's answer.
    Reply = "l4-reply",
    /// An error message about a packet of a flow: given to the side that sent it.
    Error = "l4-error",
    /// Left to user space: of no flow that is known here.
    NoFlow = "l4-no-flow",
    /// Left to user space, which resets it: its Endpoint is gone.
    Gone = "l4-gone",
    /// Left to user space: no Variant that it may have has an Endpoint.
    NoEndpoint = "l4-no-endpoint",
    /// Left to user space: the Endpoint is not reached by the NIC that it came in by.
    NoWay = "l4-no-way",
    /// Left to user space: no port was free for the connection to the Endpoint.
    NoPort = "l4-no-port",
    /// Left to user space: too many new flows of the class.
    TooMany = "l4-too-many",
    /// Left to user space: the kernel has no memory for the flow.
    NoRoom = "l4-no-room",
    /// Left to user space: a row was being replaced.
    Torn = "l4-torn",
    /// Dropped: there is no way to the Endpoint or client of a flow any more, or no memory to translate it.
    LostWay = "l4-drop-no-way",
    /// Dropped: it has been forwarded too often.
    Expired = "l4-drop-ttl",
}

/// How many reasons there are.
pub const REASONS: usize = BalanceReason::END as usize;

/// Declares [`Counters`] with a field for each code, in their order.
macro_rules! counters {
    ($($field:ident,)+) => {
        /// Value of the per-CPU map `counters`, whose keys are the codes of [`crate::Class`] and
        /// [`NO_CLASS`]. One field for each reason, in the order of the codes, so that a dump says
        /// by itself what was counted.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[repr(C)]
        #[expect(missing_docs, reason = "each field is the reason of the same name")]
        pub struct Counters {
            $(pub $field: Count,)+
        }

        impl Counters {
            /// The names of the fields, by code.
            pub const FIELDS: [&str; REASONS] = [$(stringify!($field)),+];

            /// The counts by code.
            pub fn by_code(&self) -> [Count; REASONS] {
                [$(self.$field),+]
            }
        }
    };
}

counters! {
    pass_classified, pass_not_ip, pass_truncated, pass_malformed, pass_fragment,
    pass_too_many_tags, pass_too_many_extensions, pass_unspecified, pass_no_settings, pass_moved,
    drop_own_address, drop_own_pods, drop_loopback, drop_martian, drop_cluster, drop_source_syn,
    drop_source_packets, drop_class_syn, drop_class_packets,
    seen_own_address, seen_own_pods, seen_loopback, seen_martian, seen_cluster,
    steer_not_ours, steer_assigned, steer_other_pool, steer_kernel, steer_reset, steer_refused,
    steer_no_settings,
    l4_new, l4_known, l4_reply, l4_error, l4_no_flow, l4_gone, l4_no_endpoint, l4_no_way, l4_no_port, l4_too_many,
    l4_no_room, l4_torn, l4_drop_no_way, l4_drop_ttl,
}

const _: () = assert!(size_of::<Counters>() == REASONS * size_of::<Count>());

/// The key of the map `counters` for what has no class: not IP, not ours.
pub const NO_CLASS: u32 = crate::Class::COUNT as u32;

/// The name of a code.
pub fn reason_name(code: u32) -> Option<&'static str> {
    let pass = PassReason::ALL.iter().map(|r| (r.code(), r.name()));
    let drop = DropReason::ALL.iter().map(|r| (r.code(), r.name()));
    let note = Note::ALL.iter().map(|r| (r.code(), r.name()));
    let steer = SteerReason::ALL.iter().map(|r| (r.code(), r.name()));
    let balance = BalanceReason::ALL.iter().map(|r| (r.code(), r.name()));
    let mut all = pass.chain(drop).chain(note).chain(steer).chain(balance);
    all.find(|(other, _)| *other == code).map(|(_, name)| name)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    extern crate std;

    use std::collections::BTreeSet;

    use super::*;
    use crate::classify::Spoof;
    use crate::layout::bytes_of;

    #[test]
    fn every_code_has_a_unique_name_and_the_field_of_that_name() {
        let mut names = BTreeSet::new();
        for (code, field) in Counters::FIELDS.iter().enumerate() {
            let name = reason_name(code as u32).unwrap();
            assert_eq!(name.replace('-', "_"), *field);
            assert!(names.insert(name), "{name} twice");
        }
        assert_eq!(reason_name(REASONS as u32), None);
    }

    #[test]
    fn counters_lie_in_the_order_of_the_codes() {
        let counters = Counters {
            steer_assigned: Count { count: 3, bytes: 4 },
            ..Counters::default()
        };
        let code = SteerReason::Assigned.code() as usize;
        let mut golden = std::vec![0u8; REASONS * 16];
        (golden[code * 16], golden[code * 16 + 8]) = (3, 4);
        assert_eq!(bytes_of(&counters), golden);
        assert_eq!(counters.by_code()[code].count, 3);
    }

    #[test]
    fn spoof_rules_and_reasons_are_in_one_order() {
        for (index, spoof) in Spoof::ALL.iter().enumerate() {
            let drop = DropReason::ALL[index].name().strip_prefix("drop-");
            let note = Note::ALL[index].name().strip_prefix("seen-");
            assert_eq!(drop, Some(spoof.name()));
            assert_eq!(note, Some(spoof.name()));
        }
    }
}
