//! Types shared by the kernel programs and user space.
//!
//! Everything that lies in a map is `repr(C)` and made of integers and arrays only, with explicit
//! zeroed padding, so that both sides see the same bytes; the tests of each file hold them to it.
//! [`classify`] is the one function that says where a peer is: XDP, sk_lookup and user space all
//! call it.
#![no_std]

mod balance;
mod bucket;
mod class;
mod classify;
mod config;
mod connect;
mod flow;
mod iface;
mod layout;
mod limits;
mod listener;
mod name;
#[cfg(feature = "user")]
mod pod;
mod pool;
mod prefix;
mod reason;
mod slot;

pub use balance::{
    BalanceBy, BalancePick, BalanceSettings, Balanced, BalancedVariant, FlowKey, FlowState,
    FlowValue, FragmentKey, Front, PORTS_EACH, PortUse, PortUses, RING_PART, RingPart, Target,
    Traffic, WORK_WORDS,
};
pub use bucket::{BucketKey, BucketKind, BucketState};
pub use class::Class;
pub use classify::{Origin, Peer, Spoof, Tables, classify};
pub use config::{Config, CpuSet, Limit, Settings, SpoofAction};
pub use connect::{
    ASKED, ASKED_NANOSECONDS, Asked, AskedEntry, ConnectBy, ConnectCounts, ConnectDraw,
    ConnectReason, EndpointKey, EndpointList, KeepKey, Picked, ServiceValue, point_of_turn,
    variant_with,
};
pub use flow::{Flow, POINTS, PROTO_TCP, PROTO_UDP, variant_at};
pub use iface::Role;
pub use limits::*;
pub use listener::{AddressKey, Fallback, ListenerValue, PortKey};
pub use name::{SplitName, Text, read_text, write_text};
pub use pool::{Pool, PoolInfo, PoolState};
pub use prefix::{
    Cidr4Key, Cidr6Key, PrefixIndex, PrefixKind, PrefixTable, PrefixValue, kind4, kind6, words_of,
};
pub use reason::{
    BalanceReason, Count, Counters, DropReason, NO_CLASS, Note, PassReason, REASONS, SteerReason,
    reason_name,
};
pub use slot::{Slot, SlotStats, SlotVariant};
