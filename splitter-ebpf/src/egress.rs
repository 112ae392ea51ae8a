//! On the way out of a NIC: answers of Endpoints on this node get back the address that was asked.

use aya_ebpf::bindings::{TC_ACT_PIPE, TC_ACT_SHOT};
use aya_ebpf::macros::classifier;
use aya_ebpf::programs::TcContext;
use splitter_common::{BalanceReason, NO_CLASS};
use splitter_ebpf::balance::answer;
use splitter_ebpf::head::{Head, Piece, Source};

use crate::balancing::{Tables, is_on, work};
use crate::maps::count;
use crate::packet::SkbPacket;

/// The headers of the longest packet that is looked at: Ethernet, IPv6, TCP.
const HEADERS: u32 = 14 + 40 + 20;

/// On each NIC.
#[classifier]
fn egress(context: TcContext) -> i32 {
    match is_on() {
        true => translate(&context),
        false => TC_ACT_PIPE,
    }
}

#[inline(always)]
fn translate(context: &TcContext) -> i32 {
    let length = context.len();
    let wanted = if length < HEADERS { length } else { HEADERS };
    if context.data() + wanted as usize > context.data_end() && context.pull_data(wanted).is_err() {
        return TC_ACT_PIPE;
    }
    let Some(work) = work(1) else {
        return TC_ACT_PIPE;
    };
    let Some(head) = Head::of(&SkbPacket(context)) else {
        return TC_ACT_PIPE;
    };
    work.head = head;
    let tables = Tables {
        context: context.skb.skb.cast(),
        ifindex: 0,
    };
    if !answer(&tables, u64::from(length), work) {
        return TC_ACT_PIPE;
    }
    let to = Source::of(&work.head, &work.record.ends);
    // One that is half translated, as the kernel had no memory for it, is nobody's.
    let (reason, action) = match put(context, &head, &to) {
        Some(()) => (BalanceReason::Reply, TC_ACT_PIPE),
        None => (BalanceReason::LostWay, TC_ACT_SHOT),
    };
    count(NO_CLASS, reason.code(), u64::from(length));
    action
}

/// Puts another source in a packet. The helpers know whether its checksum is still to be made by the NIC.
#[inline(always)]
fn put(context: &TcContext, head: &Head, to: &Source) -> Option<()> {
    const PSEUDO: u64 = 1 << 4;
    const MAY_BE_NONE: u64 = 1 << 5;
    let may_be_none = if head.tcp { 0 } else { MAY_BE_NONE };
    let checksum = head.checksum_at();
    let addresses = u64::from(to.addresses);
    let skb = &context.skb;
    if !head.is(Piece::Later) {
        skb.l4_csum_replace(checksum, 0, addresses, PSEUDO | may_be_none)
            .ok()?;
        skb.l4_csum_replace(checksum, 0, u64::from(to.ports), may_be_none)
            .ok()?;
        skb.store(head.transport_at(), &to.port, 0).ok()?;
    }
    match head.v6 {
        true => skb.store(head.source_at(), &to.addr, 0).ok(),
        false => {
            skb.l3_csum_replace(14 + 10, 0, addresses, 0).ok()?;
            skb.store(head.source_at(), &to.addr[0], 0).ok()
        }
    }
}
