//! What has to be said on rare occasions: user space reads it through aya-log.

use aya_ebpf::Global;
use aya_ebpf::bindings::bpf_map_type::BPF_MAP_TYPE_RINGBUF;
use aya_ebpf::helpers::generated::{bpf_ktime_get_ns, bpf_ringbuf_output};
use aya_ebpf::macros::btf_map;
use splitter_common::Pool;
use splitter_ebpf::record::{RECORD, WARN, warning};

use crate::maps::LOGGED;

/// Nanoseconds for which a pool is not spoken of again.
const PAUSE: u64 = 1_000_000_000;

/// Bytes of the ring: a whole number of pages of every size in use.
const RING: usize = 1 << 16;

/// A ring buffer, as loaders read it from its type: see libbpf's `.maps` section.
#[repr(C)]
pub struct Ring {
    r#type: *const [i32; BPF_MAP_TYPE_RINGBUF as usize],
    max_entries: *const [i32; RING],
}

// SAFETY: the fields are never read: they stand for types only.
unsafe impl Sync for Ring {}

/// The map that aya-log reads.
#[btf_map(name = "AYA_LOGS")]
static AYA_LOGS: Ring = Ring {
    r#type: core::ptr::null(),
    max_entries: core::ptr::null(),
};

/// What is logged at all, as aya-log counts levels: nothing, unless the loader writes another
/// number before the program is loaded. What it leaves out the kernel removes from the program.
#[unsafe(no_mangle)]
static AYA_LOG_LEVEL: Global<u8> = Global::new(0);

static NO_SOCKET: [[u8; RECORD]; 2] = [
    warning("the pool north-south has no socket for a listener, whose callers go elsewhere"),
    warning("the pool east-west has no socket for a listener, whose callers go elsewhere"),
];

/// Says that a pool has no socket: once a second for each pool. Two CPUs that find out at the same
/// instant may both say it.
#[inline(always)]
pub fn no_socket(pool: Pool) {
    if AYA_LOG_LEVEL.load() < WARN {
        return;
    }
    let Some(last) = LOGGED.get_ptr_mut(pool.code()) else {
        return;
    };
    // SAFETY: takes no arguments.
    let now = unsafe { bpf_ktime_get_ns() };
    // SAFETY: a map entry of eight bytes, aligned to eight.
    if now.saturating_sub(unsafe { last.read_volatile() }) < PAUSE {
        return;
    }
    // SAFETY: as above.
    unsafe { last.write_volatile(now) };
    let record = &raw const NO_SOCKET[(pool.code() & 1) as usize];
    let ring = (&raw const AYA_LOGS).cast_mut().cast();
    // SAFETY: the map is a ring buffer, and the record is as long as is said. The helper only reads.
    let _where_it_is_full_nobody_reads =
        unsafe { bpf_ringbuf_output(ring, record.cast_mut().cast(), RECORD as u64, 0) };
}
