//! Bounds-checked reads of a packet, and writes.

use aya_ebpf::helpers::generated::bpf_xdp_get_buff_len;
use aya_ebpf::programs::{TcContext, XdpContext};
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
        let words = words(self.0.data(), self.0.data_end(), at)?;
        // SAFETY: the bytes lie within the packet, which nothing moves while the program runs.
        Some(unsafe { &*words })
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
        let words = words(self.0.data(), self.0.data_end(), at)?;
        // SAFETY: as above; nobody else has the packet, and this borrows it.
        Some(unsafe { &mut *words })
    }
}

/// `N` words of what lies from `data` to `end`, from the even offset `at` on. They are aligned: packets
/// start at an even address (the verifier, too, takes them to start two bytes past a multiple of four).
#[inline(always)]
fn words<const N: usize>(data: usize, end: usize, at: usize) -> Option<*mut [u16; N]> {
    let start = data + at;
    (start + size_of::<[u16; N]>() <= end).then_some(start as *mut [u16; N])
}

/// The packet of a program for traffic control.
pub struct SkbPacket<'a>(pub &'a TcContext);

impl Packet for SkbPacket<'_> {
    #[inline(always)]
    fn words<const N: usize>(&self, at: usize) -> Option<&[u16; N]> {
        let words = words(self.0.data(), self.0.data_end(), at)?;
        // SAFETY: the bytes lie within the packet, which is not changed while they are read.
        Some(unsafe { &*words })
    }

    #[inline(always)]
    fn size(&self) -> u64 {
        u64::from(self.0.len())
    }

    #[inline(always)]
    fn first_piece(&self) -> u64 {
        (self.0.data_end() - self.0.data()) as u64
    }
}
