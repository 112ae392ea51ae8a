//! The maps, and look-ups that copy out of them.

use core::marker::PhantomData;

use aya_ebpf::btf_maps::{Array, CpuMap, HashMap, LruHashMap, PerCpuArray};
use aya_ebpf::helpers::generated::bpf_ktime_get_ns;
use aya_ebpf::macros::btf_map;
use splitter_common::{
    AddressKey, BucketKey, BucketKind, BucketState, Cidr4Key, Cidr6Key, Class, Config, Count,
    Counters, INDEX_ENTRIES, ListenerValue, MAX_LISTENERS, MAX_POOL_SOCKETS, MAX_PREFIXES,
    MAX_SET_CPUS, MAX_SLOTS, MAX_SOURCES, MAX_VARIANTS, Note, POOLS as POOLS_COUNT, Peer, Pool,
    PoolInfo, PortKey, PrefixIndex, PrefixKind, PrefixTable, PrefixValue, REASONS, Role, Settings,
    Slot, SlotStats, SplitName, Tables,
};
use splitter_ebpf::bucket::Bucket;
use splitter_ebpf::ingress::Node;

use crate::sockmap::SocketMap;

/// No memory is set aside for entries that do not exist.
pub const NO_PREALLOC: usize = 1;
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
#[btf_map(name = "listeners")]
static LISTENERS: HashMap<PortKey, ListenerValue, { MAX_LISTENERS as usize }, NO_PREALLOC> =
    HashMap::new();
#[btf_map(name = "listener_addrs")]
static LISTENER_ADDRS: HashMap<AddressKey, ListenerValue, { MAX_LISTENERS as usize }, NO_PREALLOC> =
    HashMap::new();
#[btf_map(name = "pools")]
pub static POOLS: SocketMap<{ MAX_POOL_SOCKETS as usize }> = SocketMap::new();
#[btf_map(name = "pool_info")]
static POOL_INFO: Array<PoolInfo, { MAX_POOL_SOCKETS as usize }> = Array::new();
#[btf_map(name = "counters")]
static COUNTERS: PerCpuArray<Counters, { Class::COUNT + 1 }> = PerCpuArray::new();
#[btf_map(name = "class_buckets")]
pub static CLASS_BUCKETS: Array<BucketState, { BucketKind::COUNT as usize * Class::COUNT }> =
    Array::new();
#[btf_map(name = "source_buckets")]
static SOURCE_BUCKETS: LruHashMap<BucketKey, BucketState, { MAX_SOURCES as usize }> =
    LruHashMap::new();
#[btf_map(name = "splits")]
static SPLITS: Array<Slot, { MAX_SLOTS as usize }, MMAPABLE> = Array::new();
#[btf_map(name = "split_stats")]
static SPLIT_STATS: Array<SlotStats, { MAX_SLOTS as usize }, MMAPABLE> = Array::new();
#[btf_map(name = "cpus")]
static CPUS: CpuMap<{ MAX_SET_CPUS }> = CpuMap::new();
#[btf_map(name = "split_names")]
static SPLIT_NAMES: HashMap<u32, SplitName, { MAX_SLOTS as usize }, NO_PREALLOC> = HashMap::new();

/// When each pool was last spoken of, in nanoseconds since the machine started.
#[btf_map(name = "logged")]
pub static LOGGED: Array<u64, { POOLS_COUNT as usize }> = Array::new();

/// What the programs go by at this moment: one buffer of everything that exists twice.
pub struct InForce<R> {
    buffer: u32,
    settings: &'static Settings,
    roles: PhantomData<R>,
}

/// Says what an interface is.
pub trait Roles {
    /// The role of the interface `ifindex`.
    fn role(settings: &Settings, ifindex: u32) -> Role;

    /// Whether an address is the node's own by the settings' short list, which the tables repeat.
    fn is_own4(settings: &Settings, addr: u32) -> bool;
}

/// XDP: it runs on NICs only.
pub struct Wire;

impl Roles for Wire {
    #[inline(always)]
    fn role(_settings: &Settings, _ifindex: u32) -> Role {
        Role::External
    }

    /// From the wire nobody has such an address.
    #[inline(always)]
    fn is_own4(_settings: &Settings, _addr: u32) -> bool {
        false
    }
}

/// sk_lookup: the settings list the NICs.
pub struct Listed;

impl Roles for Listed {
    #[inline(always)]
    fn role(settings: &Settings, ifindex: u32) -> Role {
        settings.role(ifindex)
    }

    #[inline(always)]
    fn is_own4(settings: &Settings, addr: u32) -> bool {
        settings.is_own4(addr)
    }
}

impl<R: Roles> InForce<R> {
    /// The buffer in use now; none only if the maps have no entries at all.
    #[inline(always)]
    pub fn now() -> Option<Self> {
        let config = CONFIG.get(0)?;
        let buffer = config.epoch & 1;
        let settings = &config.settings[buffer as usize];
        Some(InForce {
            buffer,
            settings,
            roles: PhantomData,
        })
    }

    /// The pool of a class.
    #[inline(always)]
    pub fn pool(&self, class: Class) -> Pool {
        Pool::from_code(self.settings.pool[class as usize])
    }
}

/// A map key that was put together as words.
#[inline(always)]
pub fn as_key<W, K>(words: &W) -> &K {
    const { assert!(size_of::<W>() == size_of::<K>() && align_of::<W>() >= align_of::<K>()) };
    // SAFETY: as long as the key and aligned as well (asserted), and the same bytes (tested beside
    // the key's type).
    unsafe { &*core::ptr::from_ref(words).cast::<K>() }
}

impl<R: Roles> PrefixTable for InForce<R> {
    #[inline(always)]
    fn index4(&self, top: u16) -> u64 {
        index_word(CIDR4_INDEX.get_ptr(self.buffer << 16 | u32::from(top)))
    }

    #[inline(always)]
    fn index6(&self, top: u16) -> u64 {
        index_word(CIDR6_INDEX.get_ptr(self.buffer << 16 | u32::from(top)))
    }

    #[inline(always)]
    fn find4(&self, len: u32, addr: u32) -> Option<u32> {
        if len == 32 && R::is_own4(self.settings, addr) {
            return Some(PrefixKind::Own.code());
        }
        let words = Cidr4Key::words(self.buffer, len, addr);
        // SAFETY: the value is copied at once, and entries of the buffer in use do not change.
        unsafe { CIDR4.get(as_key::<_, Cidr4Key>(&words)) }.map(|value| value.kind)
    }

    #[inline(always)]
    fn find6(&self, len: u32, high: u64, low: u64) -> Option<u32> {
        let words = Cidr6Key::words(self.buffer, len, high, low);
        // SAFETY: as above.
        unsafe { CIDR6.get(as_key::<_, Cidr6Key>(&words)) }.map(|value| value.kind)
    }
}

/// An index entry as one number: read at once, as it is written.
#[inline(always)]
fn index_word(entry: Option<*const PrefixIndex>) -> u64 {
    // SAFETY: a map entry of eight bytes, aligned to eight.
    entry.map_or(0, |entry| {
        u64::from_le(unsafe { entry.cast::<u64>().read_volatile() })
    })
}

/// The listener of a port, by [`PortKey::word`].
#[inline(always)]
pub fn listener(port: u32) -> Option<ListenerValue> {
    // SAFETY: the value is copied at once.
    unsafe { LISTENERS.get(as_key::<_, PortKey>(&port)) }.copied()
}

/// The listener of an address and port, by [`AddressKey::words`].
#[inline(always)]
pub fn listener_at(words: &[u32; 5]) -> Option<ListenerValue> {
    // SAFETY: the value is copied at once.
    unsafe { LISTENER_ADDRS.get(as_key::<_, AddressKey>(words)) }.copied()
}

impl<R: Roles> Tables for InForce<R> {
    #[inline(always)]
    fn role(&self, ifindex: u32) -> Role {
        R::role(self.settings, ifindex)
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
        bucket_of_class(class.code(), kind)
    }

    #[inline(always)]
    fn source_bucket(&self, source: Peer, kind: BucketKind) -> Option<MapBucket> {
        let words = BucketKey::words(source, kind);
        let key = as_key::<_, BucketKey>(&words);
        if let Some(bucket) = SOURCE_BUCKETS.get_ptr_mut(key) {
            return Some(MapBucket(bucket));
        }
        let _another_cpu_may_be_first =
            SOURCE_BUCKETS.insert(key, BucketState::default(), NO_EXIST);
        SOURCE_BUCKETS.get_ptr_mut(key).map(MapBucket)
    }
}

/// The bucket of a class, by its code.
#[inline(always)]
pub fn bucket_of_class(class: u32, kind: BucketKind) -> Option<MapBucket> {
    let bucket = CLASS_BUCKETS.get_ptr_mut(class * BucketKind::COUNT + kind as u32);
    bucket.map(MapBucket)
}

/// An update that leaves an entry alone that is there already.
pub const NO_EXIST: u64 = 1;

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

/// Moves the packet to a CPU; `otherwise` is what becomes of it where that is not possible.
#[inline(always)]
pub fn move_to(cpu: u32, otherwise: u32) -> u32 {
    CPUS.redirect(cpu, u64::from(otherwise))
        .unwrap_or_else(|action| action)
}

/// How often a slot is read again that is just being written.
const READS: u32 = 2;

/// The weights of a slot, in one piece if it can be had so, else as they are: every mix is a valid one.
#[inline(always)]
pub fn weights(slot: u32) -> [u32; MAX_VARIANTS] {
    let mut weights = [0; MAX_VARIANTS];
    let Some(slot) = SPLITS.get_ptr(slot) else {
        return weights;
    };
    let mut reads = 0;
    while reads < READS {
        // SAFETY: a map entry, which lives as long as the program runs; its words are read each at once.
        let (seq, count) = unsafe {
            (
                (&raw const (*slot).seq).read_volatile(),
                (&raw const (*slot).count).read_volatile(),
            )
        };
        let mut index = 0;
        while index < MAX_VARIANTS {
            // SAFETY: as above.
            let weight = unsafe { (&raw const (*slot).variants[index].weight).read_volatile() };
            weights[index] = if (index as u32) < count { weight } else { 0 };
            index += 1;
        }
        // SAFETY: as above.
        if unsafe { (&raw const (*slot).seq).read_volatile() } == seq && seq & 1 == 0 {
            break;
        }
        reads += 1;
    }
    weights
}

/// Counts a decision of a slot for a Variant. Workers count in the same place.
#[inline(always)]
pub fn count_chosen(slot: u32, variant: u32) {
    let Some(stats) = SPLIT_STATS.get_ptr_mut(slot) else {
        return;
    };
    let variant = variant as usize & (MAX_VARIANTS - 1);
    // SAFETY: a map entry with a number of eight bytes for each Variant; the instruction adds to one of
    // them and touches nothing else.
    unsafe {
        let at = stats.cast::<u64>().add(variant);
        core::arch::asm!("lock *(u64 *)({at} + 0) += {by}", at = in(reg) at, by = in(reg) 1u64);
    }
}
