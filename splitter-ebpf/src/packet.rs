//! Bounds-checked reads of a packet.

use aya_ebpf::helpers::generated::bpf_xdp_get_buff_len;
use aya_ebpf::programs::XdpContext;
use splitter_ebpf::parse::Packet;

/// The packet of an XDP program.
pub struct XdpPacket<'a> {
    context: &'a XdpContext,
    size: u64,
}

impl<'a> XdpPacket<'a> {
    /// The packet that the kernel gave the program.
    #[inline(always)]
    pub fn new(context: &'a XdpContext) -> Self {
        // SAFETY: the context is the one that the kernel gave the program. The helper counts all
        // fragments of a packet, where `data_end - data` is only the first.
        let size = unsafe { bpf_xdp_get_buff_len(context.ctx) };
        XdpPacket { context, size }
    }
}

impl Packet for XdpPacket<'_> {
    #[inline(always)]
    fn words<const N: usize>(&self, at: usize) -> Option<&[u16; N]> {
        let start = self.context.data() + at;
        if start + size_of::<[u16; N]>() > self.context.data_end() {
            return None;
        }
        // SAFETY: the bytes lie within the packet, which nothing moves while the program runs.
        // `at` is even and drivers start packets at an even address (the verifier, too, takes them
        // to start two bytes past a multiple of four).
        Some(unsafe { &*(start as *const [u16; N]) })
    }

    #[inline(always)]
    fn size(&self) -> u64 {
        self.size
    }
}
