//! Map types that user space may hand to the kernel as bytes.

use crate::{
    AddressKey, BucketKey, BucketState, Cidr4Key, Cidr6Key, Config, Count, Counters, ListenerValue,
    PoolInfo, PortKey, PrefixIndex, PrefixValue, Settings, Slot, SlotStats, SplitName,
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
    BucketKey,
    BucketState,
    Cidr4Key,
    Cidr6Key,
    Config,
    Count,
    Counters,
    AddressKey,
    ListenerValue,
    PoolInfo,
    PortKey,
    PrefixIndex,
    PrefixValue,
    Settings,
    Slot,
    SlotStats,
    SplitName,
);
