//! Why a packet or a look-up left a program as it did: the codes index `reason_counts`.

/// Declares the reasons of one kind with their codes and names.
macro_rules! reasons {
    ($(#[$doc:meta])* $type:ident from $first:literal { $($(#[$line:meta])* $variant:ident = $name:literal,)+ }) => {
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

            /// The number in maps.
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
    PassReason from 0 {
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
    }
}

reasons! {
    /// Why XDP dropped a packet.
    DropReason from 16 {
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
}

reasons! {
    /// What XDP noticed without ending the packet's way by it.
    Note from 32 {
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
}

reasons! {
    /// How sk_lookup answered.
    SteerReason from 48 {
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
}

/// Entries of the map `reason_counts`.
pub const MAX_REASONS: u32 = 64;

/// The name of a code in `reason_counts`, if it has one.
pub fn reason_name(code: u32) -> Option<&'static str> {
    let pass = PassReason::ALL.iter().map(|r| (r.code(), r.name()));
    let drop = DropReason::ALL.iter().map(|r| (r.code(), r.name()));
    let note = Note::ALL.iter().map(|r| (r.code(), r.name()));
    let steer = SteerReason::ALL.iter().map(|r| (r.code(), r.name()));
    let mut all = pass.chain(drop).chain(note).chain(steer);
    all.find(|(other, _)| *other == code).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::collections::BTreeSet;

    use super::*;
    use crate::classify::Spoof;

    #[test]
    fn codes_and_names_are_unique_and_fit() {
        let mut names = BTreeSet::new();
        for code in 0..MAX_REASONS {
            if let Some(name) = reason_name(code) {
                assert!(names.insert(name), "{name} twice");
            }
        }
        let all = PassReason::ALL.len()
            + DropReason::ALL.len()
            + Note::ALL.len()
            + SteerReason::ALL.len();
        assert_eq!(
            names.len(),
            all,
            "two reasons share a code, or one does not fit"
        );
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
