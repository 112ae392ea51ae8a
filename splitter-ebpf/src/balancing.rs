//! Forwarding: the maps, and the ways of the kernel.

use core::mem::MaybeUninit;

use aya_ebpf::Global;
use aya_ebpf::btf_maps::{Array, HashMap, LruHashMap, PerCpuArray};
use aya_ebpf::helpers::generated::{bpf_fib_lookup, bpf_get_prandom_u32, bpf_ktime_get_coarse_ns};
use aya_ebpf::macros::btf_map;
use aya_ebpf::programs::XdpContext;
use splitter_common::{
    AddressKey, BalanceSettings, Balanced, BucketKind, FlowKey, FlowValue, FragmentKey, Front,
    MAX_BALANCED, MAX_FLOWS, MAX_FRAGMENTS, MAX_FRONTS, MAX_PORTS, MAX_RING_PARTS, MAX_TARGETS,
    MAX_TRAFFIC, MAX_VARIANTS, PORTS_EACH, PortUses, RING_PART, RingPart, Target, Traffic,
    WORK_WORDS,
};
use splitter_ebpf::balance::{Balance, balance, error};
use splitter_ebpf::balancer::{AtFront, Balancer, Direction, Record, Table, Work};
use splitter_ebpf::bucket::take;
use splitter_ebpf::head::{Ends, Macs, split};

use crate::maps::{NO_EXIST, NO_PREALLOC, as_key, bucket_of_class, count_chosen, weights};
use crate::packet::XdpPacket;

#[btf_map(name = "l4_settings")]
static SETTINGS: Array<BalanceSettings, 1> = Array::new();
#[btf_map(name = "l4_ports")]
static PORTS: Array<PortUses, { MAX_PORTS as usize }> = Array::new();
#[btf_map(name = "l4_fronts")]
static FRONTS: HashMap<AddressKey, Front, { MAX_FRONTS as usize }, NO_PREALLOC> = HashMap::new();
#[btf_map(name = "l4_balanced")]
static BALANCED: Array<Balanced, { MAX_BALANCED as usize }> = Array::new();
#[btf_map(name = "l4_rings")]
static RINGS: Array<RingPart, { MAX_RING_PARTS as usize }> = Array::new();
#[btf_map(name = "l4_targets")]
static TARGETS: Array<Target, { MAX_TARGETS as usize }> = Array::new();
#[btf_map(name = "l4_flows")]
static FLOWS: Flows = Flows::new();
#[btf_map(name = "l4_unproven")]
static UNPROVEN: Flows = Flows::new();
#[btf_map(name = "l4_fragments")]
static FRAGMENTS: LruHashMap<FragmentKey, u32, { MAX_FRAGMENTS as usize }> = LruHashMap::new();
#[btf_map(name = "l4_traffic")]
static TRAFFIC: PerCpuArray<Traffic, { MAX_TRAFFIC as usize }> = PerCpuArray::new();
/// Memory for the packet of each program: first XDP's, then that of the way out.
#[btf_map(name = "l4_work")]
static WORK: PerCpuArray<Scratch, 2> = PerCpuArray::new();

type Flows = LruHashMap<FlowKey, FlowValue, { MAX_FLOWS as usize }>;

/// Room for a [`Work`], which only this crate knows.
#[repr(C, align(8))]
pub struct Scratch {
    bytes: [u64; WORK_WORDS],
}

const _: () = assert!(size_of::<Work>() <= size_of::<Scratch>() && align_of::<Work>() <= 8);

/// The memory of a program on this CPU. Nobody has it twice: XDP is not interrupted by XDP on one CPU, nor
/// the way out by itself.
#[inline(always)]
pub fn work(program: u32) -> Option<&'static mut Work> {
    let scratch = WORK.get_ptr_mut(program)?;
    // SAFETY: this CPU's own entry, long enough and aligned (asserted); zeros and what a program left are
    // values of it, as its flags are written before they are read.
    Some(unsafe { &mut *scratch.cast::<Work>() })
}

/// What became of a packet, as one number: functions of their own give no other.
#[derive(Clone, Copy)]
pub struct Outcome(u64);

impl Outcome {
    /// It is not for such a port.
    pub const OTHERS: u64 = 0;
    /// It goes on to the kernel.
    pub const PASS: u64 = 1;
    /// It goes out by the NIC that it came in by.
    pub const TRANSMIT: u64 = 2;
    /// It ends.
    pub const DROP: u64 = 3;

    /// One of these.
    #[inline(always)]
    pub fn action(self) -> u64 {
        self.0 & 3
    }

    /// The code of the reason.
    #[inline(always)]
    pub fn code(self) -> u32 {
        (self.0 >> 2) as u32
    }
}

impl From<Option<Balance>> for Outcome {
    #[inline(always)]
    fn from(balance: Option<Balance>) -> Outcome {
        let (action, reason) = match balance {
            None => return Outcome(Self::OTHERS),
            Some(Balance::Pass(reason)) => (Self::PASS, reason),
            Some(Balance::Transmit(reason)) => (Self::TRANSMIT, reason),
            Some(Balance::Drop(reason)) => (Self::DROP, reason),
        };
        Outcome(u64::from(reason.code()) << 2 | action)
    }
}

/// Whether the programs can forward at all: the loader writes it before they are loaded. Where they cannot,
/// the kernel removes from them all that would, and does not verify it.
#[unsafe(no_mangle)]
static L4_FORWARDS: Global<u8> = Global::new(0);

/// Whether anything is forwarded.
#[inline(always)]
pub fn is_on() -> bool {
    L4_FORWARDS.load() != 0 && SETTINGS.get(0).is_some_and(|settings| settings.on != 0)
}

/// Forwards a packet, if it is for such a port. A function of its own, for a stack of its own and for
/// the verifier, which would follow it for each way that leads here.
#[inline(never)]
pub fn run(context: &XdpContext, class: u32) -> Outcome {
    let ifindex = context.ingress_ifindex() as u32;
    let balancer = Tables {
        context: context.ctx.cast(),
        ifindex,
    };
    let Some(work) = work(0) else {
        return None.into();
    };
    balance(&balancer, &mut XdpPacket::new(context), class, work).into()
}

/// Passes an error message on to the side that it is for, if it is about a packet of a flow.
#[inline(never)]
pub fn run_error(context: &XdpContext) -> Outcome {
    let balancer = Tables {
        context: context.ctx.cast(),
        ifindex: context.ingress_ifindex() as u32,
    };
    let Some(work) = work(0) else {
        return None.into();
    };
    error(&balancer, &mut XdpPacket::new(context), work).into()
}

/// The maps, in a program of this context.
pub struct Tables {
    /// The context that the kernel gave the program.
    pub context: *mut core::ffi::c_void,
    /// The NIC by which the packet came.
    pub ifindex: u32,
}

/// What bpf_fib_lookup is asked, and what it says, by words: the kernel's `bpf_fib_lookup`.
type Way = [u32; 16];

/// The family, in the lowest byte.
const WAY_FAMILY: usize = 0;
const WAY_INTERFACE: usize = 2;
const WAY_SOURCE: usize = 4;
const WAY_DESTINATION: usize = 8;
/// The NIC's own address, and that of who is next, as they are in a packet.
const WAY_MACS: usize = 13;

const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;

impl Balancer for Tables {
    #[inline(always)]
    fn settings(&self) -> Option<&BalanceSettings> {
        SETTINGS.get(0)
    }

    #[inline(always)]
    fn uses(&self, port: u16) -> u8 {
        let port = usize::from(port);
        let uses = PORTS.get((port / PORTS_EACH) as u32);
        uses.map_or(0, |it| it.uses[port % PORTS_EACH])
    }

    #[inline(always)]
    fn flow(&self, key: &[u32; 10], record: &mut Record) -> Option<Table> {
        let table = match entry(&FLOWS, key) {
            Some(entry) => {
                entry.copy(record);
                Table::Proven
            }
            None => {
                entry(&UNPROVEN, key)?.copy(record);
                Table::Unproven
            }
        };
        (record.print == FlowKey::print(key)).then_some(table)
    }

    #[inline(always)]
    fn note(&self, key: &[u32; 10], state: u16, now: u64) {
        // What is left of one that was proven is to tell the same of it.
        if let Some(entry) = entry(&FLOWS, key) {
            entry.note(state, now);
        }
        if let Some(entry) = entry(&UNPROVEN, key) {
            entry.note(state, now);
        }
    }

    #[inline(always)]
    fn insert(&self, key: &[u32; 10], record: &mut Record, only_new: bool) -> bool {
        let is_proven = entry(&FLOWS, key).is_some();
        if only_new && is_proven {
            return false;
        }
        let flags = if only_new { NO_EXIST } else { 0 };
        if !put(&UNPROVEN, key, record, flags) {
            return false;
        }
        if is_proven {
            let _it_may_be_gone = FLOWS.remove(as_key::<_, FlowKey>(key));
        }
        true
    }

    #[inline(always)]
    fn prove(&self, key: &[u32; 10], record: &mut Record) {
        let Some(entry) = entry(&UNPROVEN, key) else {
            return;
        };
        entry.copy(record);
        // It stays here too, until others need its place: somebody may have looked for it there, and not
        // found it yet, who looks here now.
        if record.print == FlowKey::print(key) {
            let _another_packet_was_first = put(&FLOWS, key, record, NO_EXIST);
        }
    }

    #[inline(always)]
    fn remove(&self, key: &[u32; 10]) {
        let _it_may_be_gone = UNPROVEN.remove(as_key::<_, FlowKey>(key));
    }

    #[inline(always)]
    fn ports_of(&self, pieces: &[u32; 3]) -> Option<u32> {
        let ports = FRAGMENTS.get_ptr(as_key::<_, FragmentKey>(pieces))?;
        // SAFETY: a map entry of four bytes, read at once.
        Some(unsafe { ports.read_volatile() })
    }

    #[inline(always)]
    fn remember_ports(&self, pieces: &[u32; 3], ports: u32) {
        let _the_pieces_would_be_lost =
            FRAGMENTS.insert(as_key::<_, FragmentKey>(pieces), ports, 0);
    }

    #[inline(always)]
    fn front(&self, key: &[u32; 5]) -> AtFront<'_> {
        let Some(front) = FRONTS.get_ptr(as_key::<_, AddressKey>(key)) else {
            return AtFront::Nothing;
        };
        // SAFETY: a map entry of eight bytes, aligned to eight: read at once, as it is written.
        let front = unsafe { front.cast::<u64>().read_volatile() };
        // The row is the lower half: kernel programs are for little-endian machines here.
        match (front >> 32) as u32 == AddressKey::print(key) {
            true => BALANCED
                .get(front as u32)
                .map_or(AtFront::Torn, AtFront::Row),
            false => AtFront::Torn,
        }
    }

    #[inline(always)]
    fn place(&self, ring: u32, place: u32) -> u32 {
        let part = RINGS.get(ring.wrapping_add(place / RING_PART as u32));
        part.map_or(0, |it| u32::from(it.places[place as usize % RING_PART]))
    }

    #[inline(always)]
    fn target(&self, number: u32) -> Option<&Target> {
        TARGETS.get(number)
    }

    #[inline(always)]
    fn weights(&self, slot: u32) -> [u32; MAX_VARIANTS] {
        weights(slot)
    }

    #[inline(always)]
    fn admit(&self, class: u32) -> bool {
        let Some(settings) = self.settings() else {
            return false;
        };
        let limit = settings.new_flows;
        if limit.rate == 0 {
            return true;
        }
        bucket_of_class(class, BucketKind::Flows)
            .is_some_and(|bucket| take(&bucket, limit, self.now()))
    }

    #[inline(always)]
    fn way(&self, v6: bool, ends: &Ends) -> Option<Macs> {
        let mut way = MaybeUninit::<Way>::uninit();
        let words = way.as_mut_ptr().cast::<u32>();
        let mut index = 0;
        while index < WAY_DESTINATION + 8 {
            let word = match index {
                WAY_FAMILY => u32::from(if v6 { AF_INET6 } else { AF_INET }).to_le(),
                WAY_INTERFACE => self.ifindex,
                // Both addresses in one go, as they lie in `ends`.
                WAY_SOURCE..12 => ends[index - WAY_SOURCE],
                _ => 0,
            };
            // SAFETY: one of the words. Each by itself, as a run of zeros would become a call of a function
            // whose loop the verifier walks.
            unsafe { words.add(index).write_volatile(word) };
            index += 1;
        }
        let size = size_of::<Way>() as i32;
        // SAFETY: the context is the kernel's, and the question as long as it is said to be, all of it written.
        let answer = unsafe { bpf_fib_lookup(self.context, words.cast(), size, 0) };
        // SAFETY: as above.
        let word = |index: usize| unsafe { words.add(index).read_volatile() };
        let ([a, b], [c, d], [e, f]) = (
            split(word(WAY_MACS)),
            split(word(WAY_MACS + 1)),
            split(word(WAY_MACS + 2)),
        );
        // Those of the packet: who is next first.
        (answer == 0 && word(WAY_INTERFACE) == self.ifindex).then_some([d, e, f, a, b, c])
    }

    #[inline(always)]
    fn now(&self) -> u64 {
        // SAFETY: takes no arguments.
        unsafe { bpf_ktime_get_coarse_ns() }
    }

    #[inline(always)]
    fn random(&self) -> u32 {
        // SAFETY: takes no arguments.
        unsafe { bpf_get_prandom_u32() }
    }

    #[inline(always)]
    fn chosen(&self, slot: u32, variant: u32) {
        count_chosen(slot, variant);
    }

    #[inline(always)]
    fn count(&self, traffic: u32, direction: Direction, bytes: u64, new: bool) {
        let place = self.settings().and_then(|it| it.place(traffic));
        let Some(traffic) = place.and_then(|place| TRAFFIC.get_ptr_mut(place)) else {
            return;
        };
        // SAFETY: this CPU's own entry.
        unsafe {
            (*traffic).flows += u64::from(new);
            match direction {
                Direction::In => {
                    (*traffic).packets_in += 1;
                    (*traffic).bytes_in += bytes;
                }
                Direction::Out => {
                    (*traffic).packets_out += 1;
                    (*traffic).bytes_out += bytes;
                }
            }
        }
    }
}

/// An entry of [`Flows`].
struct MapEntry(*mut Record);

#[inline(always)]
fn entry(flows: &'static Flows, key: &[u32; 10]) -> Option<MapEntry> {
    let at = flows.get_ptr_mut(as_key::<_, FlowKey>(key))?;
    Some(MapEntry(at.cast()))
}

#[inline(always)]
fn put(flows: &'static Flows, key: &[u32; 10], record: &mut Record, flags: u64) -> bool {
    record.print = FlowKey::print(key);
    let value = as_key::<_, FlowValue>(record);
    flows
        .insert(as_key::<_, FlowKey>(key), value, flags)
        .is_ok()
}

/// Reads a field of a map entry at once.
macro_rules! read {
    ($at:expr, $($field:tt)+) => {
        // SAFETY: points into a map entry, whose memory lives as long as the program runs; one that the
        // LRU gives to another flow meanwhile is still one.
        unsafe { (&raw const (*$at).$($field)+).read_volatile() }
    };
}

impl MapEntry {
    /// Copies it, its print last.
    #[inline(always)]
    fn copy(&self, record: &mut Record) {
        let mut index = 0;
        while index < 9 {
            record.ends[index] = read!(self.0, ends[index]);
            index += 1;
        }
        record.target = read!(self.0, target);
        record.epoch = read!(self.0, epoch);
        record.traffic = read!(self.0, traffic);
        record.flags = read!(self.0, flags);
        record.state = read!(self.0, state);
        record.seen = read!(self.0, seen);
        record.print = read!(self.0, print);
    }

    #[inline(always)]
    fn note(&self, state: u16, now: u64) {
        // SAFETY: as in `read`; two bytes of it, and eight.
        unsafe {
            (&raw mut (*self.0).state).write_volatile(state);
            (&raw mut (*self.0).seen).write_volatile(now);
        }
    }
}
