//! A socket map whose values are 64 bits wide.
//!
//! With them `bpftool map dump` shows each socket's cookie; with the usual 32 bits it can show
//! nothing at all.

use aya_ebpf::bindings::bpf_map_type::BPF_MAP_TYPE_SOCKMAP;
use aya_ebpf::helpers::{bpf_map_lookup_elem, bpf_sk_assign, bpf_sk_release};
use aya_ebpf::programs::SkLookupContext;
use splitter_ebpf::steer::Assigned;

/// The map's definition, as loaders read it from its type: see libbpf's `.maps` section.
#[repr(C)]
pub struct SocketMap<const ENTRIES: usize> {
    r#type: *const [i32; BPF_MAP_TYPE_SOCKMAP as usize],
    key: *const u32,
    value: *const u64,
    max_entries: *const [i32; ENTRIES],
}

// SAFETY: the fields are never read: they stand for types only.
unsafe impl<const ENTRIES: usize> Sync for SocketMap<ENTRIES> {}

impl<const ENTRIES: usize> SocketMap<ENTRIES> {
    /// The definition.
    pub const fn new() -> Self {
        SocketMap {
            r#type: core::ptr::null(),
            key: core::ptr::null(),
            value: core::ptr::null(),
            max_entries: core::ptr::null(),
        }
    }

    /// Chooses the socket at `index` as the answer of the look-up.
    #[inline(always)]
    pub fn assign(&self, context: &SkLookupContext, index: u32) -> Assigned {
        let map = core::ptr::from_ref(self).cast_mut().cast();
        // SAFETY: the map and the key are valid for the call.
        let socket = unsafe { bpf_map_lookup_elem(map, (&raw const index).cast()) };
        if socket.is_null() {
            return Assigned::Empty;
        }
        // SAFETY: the context is the kernel's and the socket was just found. No flags: what another
        // program has chosen stays.
        let result = unsafe { bpf_sk_assign(context.lookup.cast(), socket, 0) };
        // SAFETY: gives back the reference that the look-up took; not used afterwards.
        unsafe { bpf_sk_release(socket) };
        if result == 0 {
            Assigned::Done
        } else {
            Assigned::Refused
        }
    }
}
