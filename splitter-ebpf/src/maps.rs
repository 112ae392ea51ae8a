//! The maps, and look-ups that copy out of them.

use aya_ebpf::btf_maps::{Array, HashMap, LruHashMap, PerCpuArray};
use aya_ebpf::helpers::generated::bpf_ktime_get_ns;
use aya_ebpf::macros::btf_map;
use splitter_common::{
    BucketKey, BucketKind, BucketState, Cidr4Key, Cidr6Key, Class, Config, Count, Counters,
    INDEX_ENTRIES, Iface, ListenerKey, ListenerValue, MAX_IFACES, MAX_LISTENER_KEYS,
    MAX_POOL_SOCKETS, MAX_PREFIXES, MAX_SLOTS, MAX_SOURCES, Note, Pool, PoolInfo, PrefixIndex,
    PrefixTable, PrefixValue, REASONS, Role, Settings, Slot, SlotStats, Tables,
};
use splitter_ebpf::bucket::Bucket;
use splitter_ebpf::ingress::Node;

use crate::sockmap::SocketMap;

/// No memory is set aside for entries that do not exist.
const NO_PREALLOC: usize = 1;
/// User space can map the memory.
const MMAPABLE: usize = 1024;

#[btf_map(name = "config")]
static CONFIG: Array<Config, 1, MMAPABLE> = Array::new();
#[btf_map(name = "cidr4")]
static CIDR4: HashMap<Cidr4Key, PrefixValue, { MAX_PREFIXES as usize }, NO_PREALLOC> =
    HashMap::new();
#[btf_map(name = "cidr6")]
static CIDR6: HashMap<Cidr6Key, PrefixValue, { MAX_PREFIXES as usize }, NO_PREALLOC> =
    HashMap::new();
#[btf_map(name = "cidr4_index")]
static CIDR4_INDEX: Array<PrefixIndex, { INDEX_ENTRIES as usize }, MMAPABLE> = Array::new();
#[btf_map(name = "cidr6_index")]
static CIDR6_INDEX: Array<PrefixIndex, { INDEX_ENTRIES as usize }, MMAPABLE> = Array::new();
#[btf_map(name = "ifaces")]
static IFACES: HashMap<u32, Iface, { MAX_IFACES as usize }, NO_PREALLOC> = HashMap::new();
#[btf_map(name = "listeners")]
pub static LISTENERS: HashMap<
    ListenerKey,
    ListenerValue,
    { MAX_LISTENER_KEYS as usize },
    NO_PREALLOC,
> = HashMap::new();
#[btf_map(name = "pools")]
pub static POOLS: SocketMap<{ MAX_POOL_SOCKETS as usize }> = SocketMap::new();
#[btf_map(name = "pool_info")]
static POOL_INFO: Array<PoolInfo, { MAX_POOL_SOCKETS as usize }> = Array::new();
#[btf_map(name = "counters")]
static COUNTERS: PerCpuArray<Counters, { Class::COUNT + 1 }> = PerCpuArray::new();
#[btf_map(name = "class_buckets")]
static CLASS_BUCKETS: Array<BucketState, { 2 * Class::COUNT }> = Array::new();
#[btf_map(name = "source_buckets")]
static SOURCE_BUCKETS: LruHashMap<BucketKey, BucketState, { MAX_SOURCES as usize }> =
    LruHashMap::new();
#[btf_map(name = "splits")]
static SPLITS: Array<Slot, { MAX_SLOTS as usize }, MMAPABLE> = Array::new();
#[btf_map(name = "split_stats")]
static SPLIT_STATS: Array<SlotStats, { MAX_SLOTS as usize }, MMAPABLE> = Array::new();

/// What the programs go by at this moment: one buffer of everything that exists twice.
pub struct InForce<R> {
    buffer: u32,
    settings: &'static Settings,
    roles: R,
}

/// Says what an interface is.
pub trait Roles {
    /// The role of the interface `ifindex`.
    fn role(&self, ifindex: u32) -> Role;
}

/// XDP: it runs on NICs only.
pub struct Wire;

impl Roles for Wire {
    #[inline(always)]
    fn role(&self, _ifindex: u32) -> Role {
        Role::External
    }
}

/// The table of interfaces.
pub struct Interfaces;

impl Roles for Interfaces {
    #[inline(always)]
    fn role(&self, ifindex: u32) -> Role {
        // SAFETY: the value is copied at once; an entry that is replaced meanwhile gives the role
        // of one of the two.
        match unsafe { IFACES.get(ifindex) } {
            Some(iface) => Role::from_code(iface.role),
            None => Role::Inner,
        }
    }
}

impl<R: Roles> InForce<R> {
    /// The buffer in use now; none only if the maps have no entries at all.
    #[inline(always)]
    pub fn now(roles: R) -> Option<Self> {
        let config = CONFIG.get(0)?;
        let buffer = config.epoch & 1;
        let settings = &config.settings[buffer as usize];
        Some(InForce {
            buffer,
            settings,
            roles,
        })
    }

    /// The pool of a class.
    #[inline(always)]
    pub fn pool(&self, class: Class) -> Pool {
        Pool::from_code(self.settings.pool[class as usize])
    }
}

impl<R: Roles> PrefixTable for InForce<R> {
    #[inline(always)]
    fn buffer(&self) -> u8 {
        self.buffer as u8
    }

    #[inline(always)]
    fn index4(&self, top: u16) -> PrefixIndex {
        let entry = CIDR4_INDEX.get(self.buffer << 16 | u32::from(top));
        entry.copied().unwrap_or_default()
    }

    #[inline(always)]
    fn index6(&self, top: u16) -> PrefixIndex {
        let entry = CIDR6_INDEX.get(self.buffer << 16 | u32::from(top));
        entry.copied().unwrap_or_default()
    }

    #[inline(always)]
    fn find4(&self, key: &Cidr4Key) -> Option<u32> {
        // SAFETY: the value is copied at once, and entries of the buffer in use do not change.
        unsafe { CIDR4.get(key) }.map(|value| value.kind)
    }

    #[inline(always)]
    fn find6(&self, key: &Cidr6Key) -> Option<u32> {
        // SAFETY: as above.
        unsafe { CIDR6.get(key) }.map(|value| value.kind)
    }
}

impl<R: Roles> Tables for InForce<R> {
    #[inline(always)]
    fn role(&self, ifindex: u32) -> Role {
        self.roles.role(ifindex)
    }

    #[inline(always)]
    fn native_routing(&self) -> bool {
        self.settings.native_routing != 0
    }
}

impl Node for InForce<Wire> {
    type Bucket = MapBucket;

    #[inline(always)]
    fn settings(&self) -> &Settings {
        self.settings
    }

    #[inline(always)]
    fn now(&self) -> u64 {
        // SAFETY: takes no arguments.
        unsafe { bpf_ktime_get_ns() }
    }

    #[inline(always)]
    fn note(&self, class: Class, note: Note, bytes: u64) {
        count(class.code(), note.code(), bytes);
    }

    #[inline(always)]
    fn class_bucket(&self, class: Class, kind: BucketKind) -> Option<MapBucket> {
        CLASS_BUCKETS
            .get_ptr_mut(class.code() * 2 + kind as u32)
            .map(MapBucket)
    }

    #[inline(always)]
    fn source_bucket(&self, key: &BucketKey) -> Option<MapBucket> {
        if let Some(bucket) = SOURCE_BUCKETS.get_ptr_mut(key) {
            return Some(MapBucket(bucket));
        }
        let _another_cpu_may_have_been_first =
            SOURCE_BUCKETS.insert(key, BucketState::default(), NO_EXIST);
        SOURCE_BUCKETS.get_ptr_mut(key).map(MapBucket)
    }
}

/// An update that leaves an entry alone that is there already.
const NO_EXIST: u64 = 1;

/// A token bucket in a map.
pub struct MapBucket(*mut BucketState);

impl Bucket for MapBucket {
    #[inline(always)]
    fn full_at(&self) -> u64 {
        // SAFETY: points into a map entry, whose memory lives as long as the program runs; an
        // entry that the LRU gives to another source meanwhile is still a bucket.
        unsafe { (&raw const (*self.0).full_at).read_volatile() }
    }

    #[inline(always)]
    fn set(&self, full_at: u64) {
        // SAFETY: as above.
        unsafe { (&raw mut (*self.0).full_at).write_volatile(full_at) }
    }

    #[inline(always)]
    fn advance(&self, by: u64) {
        // SAFETY: as above; the instruction adds to those eight bytes and touches nothing else.
        unsafe {
            core::arch::asm!("lock *(u64 *)({at} + 0) += {by}", at = in(reg) self.0, by = in(reg) by);
        }
    }
}

/// Counts how a packet or a look-up of a class left its program.
#[inline(always)]
pub fn count(class: u32, code: u32, bytes: u64) {
    let Some(counters) = COUNTERS.get_ptr_mut(class) else {
        return;
    };
    if code as usize >= REASONS {
        return;
    }
    // SAFETY: this CPU's own entry, which is a `Count` for each code (asserted beside its type).
    unsafe {
        let counter = counters.cast::<Count>().add(code as usize);
        (*counter).count += 1;
        (*counter).bytes += bytes;
    }
}
