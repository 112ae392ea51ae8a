//! The process that connects or sends: its address in the system call, its socket, and the maps.

use aya_ebpf::bindings::{BPF_SK_STORAGE_GET_F_CREATE, bpf_sock};
use aya_ebpf::btf_maps::{Array, HashMap, PerCpuArray, SkStorage};
use aya_ebpf::helpers::generated::{
    bpf_get_netns_cookie, bpf_get_prandom_u32, bpf_ktime_get_ns, bpf_sk_storage_delete,
    bpf_sk_storage_get,
};
use aya_ebpf::macros::btf_map;
use aya_ebpf::programs::SockAddrContext;
use splitter_common::{
    AddressKey, Asked, ConnectCounts, ConnectReason, Count, EndpointKey, KeepKey,
    MAX_CONNECT_ADDRESSES, MAX_CONNECT_ENDPOINTS, MAX_CONNECT_SERVICES, MAX_VARIANTS, ServiceValue,
};
use splitter_ebpf::connect::{Services, Words};

use crate::maps::{NO_PREALLOC, as_key, count_chosen, weights};

#[btf_map(name = "l4_services")]
static SERVICES: HashMap<
    AddressKey,
    ServiceValue,
    { MAX_CONNECT_ADDRESSES as usize },
    NO_PREALLOC,
> = HashMap::new();
#[btf_map(name = "l4_endpoints")]
static ENDPOINTS: HashMap<
    EndpointKey,
    AddressKey,
    { MAX_CONNECT_ENDPOINTS as usize },
    NO_PREALLOC,
> = HashMap::new();
#[btf_map(name = "l4_keeps")]
static KEEPS: HashMap<KeepKey, u32, { MAX_CONNECT_ENDPOINTS as usize }, NO_PREALLOC> =
    HashMap::new();
#[btf_map(name = "l4_turns")]
static TURNS: Array<u64, { MAX_CONNECT_SERVICES as usize }> = Array::new();
#[btf_map(name = "l4_counts")]
static COUNTS: PerCpuArray<ConnectCounts, 1> = PerCpuArray::new();
#[btf_map(name = "l4_asked")]
static ASKED: SkStorage<Asked> = SkStorage::new();

/// Reads a field in one access of its own width.
macro_rules! read {
    ($context:expr, $($field:tt)+) => {
        // SAFETY: the context is the one that the kernel gave the program, and the field is one that
        // programs of its kind may read.
        unsafe { (&raw const (*$context.sock_addr).$($field)+).read_volatile() }
    };
}

/// Writes a field in one access of its own width.
macro_rules! write {
    ($context:expr, $value:expr, $($field:tt)+) => {{
        let value = $value;
        // SAFETY: as above, and it is one that they may write.
        unsafe { (&raw mut (*$context.sock_addr).$($field)+).write_volatile(value) }
    }};
}

/// The word of a key for a port in network order.
#[inline(always)]
fn port_word(context: &SockAddrContext, family: u8) -> u32 {
    let port = u16::from_be(read!(context, user_port) as u16);
    let protocol = read!(context, protocol);
    // One of more than a byte (MPTCP) is none that a Service has.
    let protocol = if protocol > 0xff { 0 } else { protocol as u8 };
    splitter_common::PortKey::word(port, protocol, family)
}

/// The port of a key in network order, as the context has it.
#[inline(always)]
fn port_of(words: &Words) -> u32 {
    u32::from((u32::from_le(words[4]) as u16).to_be())
}

/// Addresses of the hooks for IPv4.
pub mod v4 {
    use super::*;

    /// The address as a key.
    #[inline(always)]
    pub fn read(context: &SockAddrContext) -> Words {
        [read!(context, user_ip4), 0, 0, 0, port_word(context, 4)]
    }

    /// Puts another one in its place.
    #[inline(always)]
    pub fn write(context: &SockAddrContext, words: &Words) {
        write!(context, words[0], user_ip4);
        write!(context, port_of(words), user_port);
    }
}

/// Addresses of the hooks for IPv6, where those of IPv4 come mapped.
pub mod v6 {
    use super::*;

    /// The address.
    #[inline(always)]
    pub fn addr(context: &SockAddrContext) -> [u32; 4] {
        [
            read!(context, user_ip6[0]),
            read!(context, user_ip6[1]),
            read!(context, user_ip6[2]),
            read!(context, user_ip6[3]),
        ]
    }

    /// The address as a key.
    #[inline(always)]
    pub fn key(context: &SockAddrContext, addr: &[u32; 4], mapped: bool) -> Words {
        let [a, b, c, d] = *addr;
        match mapped {
            true => [d, 0, 0, 0, port_word(context, 4)],
            false => [a, b, c, d, port_word(context, 6)],
        }
    }

    /// Puts another one in its place.
    #[inline(always)]
    pub fn write(context: &SockAddrContext, words: &Words, mapped: bool) {
        let [a, b, c, d, _] = *words;
        let [a, b, c, d] = match mapped {
            true => [0, 0, 0xffff_u32.to_be(), a],
            false => [a, b, c, d],
        };
        write!(context, a, user_ip6[0]);
        write!(context, b, user_ip6[1]);
        write!(context, c, user_ip6[2]);
        write!(context, d, user_ip6[3]);
        write!(context, port_of(words), user_port);
    }
}

/// Who makes the system call.
pub struct Process<'a>(pub &'a SockAddrContext);

impl Process<'_> {
    /// The kernel's own note of the socket.
    #[inline(always)]
    fn asked(&self, flags: u32) -> Option<*mut Asked> {
        let map = (&raw const ASKED).cast_mut().cast();
        let socket: *mut bpf_sock = read!(self.0, __bindgen_anon_1.sk);
        // SAFETY: the map is one of socket storage and the socket the context's own; without a first
        // value the kernel takes zeros, which are one.
        let found = unsafe {
            bpf_sk_storage_get(map, socket.cast(), core::ptr::null_mut(), u64::from(flags))
        };
        let found = found.cast::<Asked>();
        (!found.is_null()).then_some(found)
    }
}

impl Services for Process<'_> {
    #[inline(always)]
    fn service(&self, asked: &Words) -> Option<&ServiceValue> {
        // SAFETY: whoever reads the row looks again whether it was whole, and any bytes are a value of it.
        unsafe { SERVICES.get(as_key::<_, AddressKey>(asked)) }
    }

    #[inline(always)]
    fn endpoint(&self, key: EndpointKey) -> Option<&Words> {
        // SAFETY: rows of a list that is in use do not change, and it is in use until programs that may
        // know it have ended.
        let found = unsafe { ENDPOINTS.get(&key) }?;
        const { assert!(size_of::<AddressKey>() == size_of::<Words>()) };
        // SAFETY: as long (asserted), and values of a map are aligned to eight bytes.
        Some(unsafe { &*core::ptr::from_ref(found).cast::<Words>() })
    }

    #[inline(always)]
    fn weights(&self, slot: u32) -> [u32; MAX_VARIANTS] {
        weights(slot)
    }

    #[inline(always)]
    fn turn(&self, turn: u32) -> u64 {
        let Some(next) = TURNS.get_ptr_mut(turn) else {
            return 0;
        };
        let mut value = 1u64;
        // SAFETY: a map entry of eight bytes; the instruction adds to those alone and gives what was
        // there.
        unsafe {
            core::arch::asm!(
                "{value} = atomic_fetch_add((u64 *)({next} + 0), {value})",
                next = in(reg) next,
                value = inout(reg) value,
            );
        }
        value
    }

    #[inline(always)]
    fn client(&self) -> u64 {
        // SAFETY: the context is the kernel's.
        unsafe { bpf_get_netns_cookie(self.0.sock_addr.cast()) }
    }

    #[inline(always)]
    fn random(&self) -> u32 {
        // SAFETY: takes no arguments.
        unsafe { bpf_get_prandom_u32() }
    }

    #[inline(always)]
    fn keeps(&self, slot: u32, endpoint: &Words) -> bool {
        let [a, b, c, d, port] = *endpoint;
        let words = [slot, a, b, c, d, port];
        // SAFETY: nothing of the value is read.
        unsafe { KEEPS.get(as_key::<_, KeepKey>(&words)) }.is_some()
    }

    #[inline(always)]
    fn now(&self) -> u64 {
        // SAFETY: takes no arguments.
        unsafe { bpf_ktime_get_ns() }
    }

    #[inline(always)]
    fn chosen(&self, slot: u32, variant: u32) {
        count_chosen(slot, variant);
    }

    #[inline(always)]
    fn count(&self, reason: ConnectReason) {
        let Some(counts) = COUNTS.get_ptr_mut(0) else {
            return;
        };
        // SAFETY: this CPU's own entry, which is a `Count` for each reason (asserted beside its type).
        unsafe { (*counts.cast::<Count>().add(reason as usize)).count += 1 };
    }

    #[inline(always)]
    fn with_asked<R>(&self, run: impl FnOnce(&mut Asked) -> R) -> Option<R> {
        // SAFETY: the kernel holds the socket's lock while a program of these hooks runs, so that nobody
        // else has its note.
        self.asked(0).map(|asked| run(unsafe { &mut *asked }))
    }

    #[inline(always)]
    fn with_asked_or_new<R>(&self, run: impl FnOnce(&mut Asked) -> R) -> Option<R> {
        let asked = self.asked(BPF_SK_STORAGE_GET_F_CREATE);
        // SAFETY: as above.
        asked.map(|asked| run(unsafe { &mut *asked }))
    }

    #[inline(always)]
    fn forget(&self) {
        let map = (&raw const ASKED).cast_mut().cast();
        let socket: *mut bpf_sock = read!(self.0, __bindgen_anon_1.sk);
        // SAFETY: the map is one of socket storage and the socket the context's own.
        let _it_may_have_had_none = unsafe { bpf_sk_storage_delete(map, socket.cast()) };
    }
}
