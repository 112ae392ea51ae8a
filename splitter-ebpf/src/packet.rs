//! Bounds-checked reads of a packet.

use aya_ebpf::helpers::generated::bpf_xdp_get_buff_len;
use aya_ebpf::programs::XdpContext;
use splitter_ebpf::head::PacketMut;
use splitter_ebpf::parse::Packet;

/// The packet of an XDP program.
pub struct XdpPacket<'a>(&'a XdpContext);

impl<'a> XdpPacket<'a> {
    /// The packet that the kernel gave the program.
    #[inline(always)]
    pub fn new(context: &'a XdpContext) -> Self {
        XdpPacket(context)
    }
}

impl Packet for XdpPacket<'_> {
    #[inline(always)]
    fn words<const N: usize>(&self, at: usize) -> Option<&[u16; N]> {
        let start = self.0.data() + at;
        if start + size_of::<[u16; N]>() > self.0.data_end() {
            return None;
        }
        // SAFETY: the bytes lie within the packet, which nothing moves while the program runs.
        // `at` is even and drivers start packets at an even address (the verifier, too, takes them
        // to start two bytes past a multiple of four).
        Some(unsafe { &*(start as *const [u16; N]) })
    }

    #[inline(always)]
    fn size(&self) -> u64 {
        // SAFETY: the context is the one that the kernel gave the program.
        unsafe { bpf_xdp_get_buff_len(self.0.ctx) }
    }

    #[inline(always)]
    fn first_piece(&self) -> u64 {
        (self.0.data_end() - self.0.data()) as u64
    }
}

impl PacketMut for XdpPacket<'_> {
    #[inline(always)]
    fn words_mut<const N: usize>(&mut self, at: usize) -> Option<&mut [u16; N]> {
        let start = self.0.data() + at;
        if start + size_of::<[u16; N]>() > self.0.data_end() {
            return None;
        }
        // SAFETY: as above; nobody else has the packet, and this borrows it.
        Some(unsafe { &mut *(start as *mut [u16; N]) })
    }
}
