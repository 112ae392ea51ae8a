//! Map types that user space may hand to the kernel as bytes.

use crate::{
    AddressKey, Asked, BalanceSettings, Balanced, BucketKey, BucketState, Cidr4Key, Cidr6Key,
    Config, ConnectCounts, Count, Counters, EndpointKey, FlowKey, FlowValue, FragmentKey, Front,
    KeepKey, ListenerValue, PoolInfo, PortKey, PortUses, PrefixIndex, PrefixValue, RingPart,
    ServiceValue, Settings, Slot, SlotStats, SplitName, Target, Traffic,
};

/// Says that a type is plain bytes.
macro_rules! pod {
    ($($type:ty),+ $(,)?) => {
        $(
            // SAFETY: `repr(C)`, integers and arrays only, no implicit padding (its layout is
            // asserted where it is declared): every byte pattern is a value and every byte is
            // initialised.
            unsafe impl aya::Pod for $type {}
        )+
    };
}

pod!(
    Asked,
    BalanceSettings,
    Balanced,
    FlowKey,
    FlowValue,
    FragmentKey,
    Front,
    PortUses,
    RingPart,
    Target,
    Traffic,
    BucketKey,
    BucketState,
    Cidr4Key,
    Cidr6Key,
    Config,
    ConnectCounts,
    Count,
    Counters,
    EndpointKey,
    KeepKey,
    AddressKey,
    ListenerValue,
    PoolInfo,
    PortKey,
    PrefixIndex,
    PrefixValue,
    ServiceValue,
    Settings,
    Slot,
    SlotStats,
    SplitName,
);
