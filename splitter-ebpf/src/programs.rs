use aya_ebpf::bindings::xdp_action::{XDP_DROP, XDP_PASS, XDP_TX};
use aya_ebpf::macros::{sk_lookup, xdp};
use aya_ebpf::programs::{SkLookupContext, XdpContext};
use splitter_common::{NO_CLASS, PassReason, SteerReason};
use splitter_ebpf::ingress::{Judged, Verdict, judge};
use splitter_ebpf::parse::Packet as _;
use splitter_ebpf::quoted::is_message;
use splitter_ebpf::steer::steer as choose;

use crate::balancing::{self, Outcome};
use crate::lookup::{self, Host};
use crate::maps::{InForce, Listed, Wire, count, move_to};
use crate::packet::XdpPacket;

/// Ends the kernel's search without a socket: the caller is reset.
const SK_DROP: u32 = 0;
/// The chosen socket, or the kernel's own search where none was chosen.
const SK_PASS: u32 = 1;

/// On each NIC: drops what cannot be real or is too much, counts the rest.
#[xdp(frags)]
fn ingress(context: XdpContext) -> u32 {
    let packet = XdpPacket::new(&context);
    let judged = match InForce::<Wire>::now() {
        Some(node) => judge(&node, &packet, context.ingress_ifindex() as u32),
        None => Judged::without_class(PassReason::NoSettings, packet.size()),
    };
    if let Verdict::Pass(PassReason::Classified | PassReason::Fragment) | Verdict::Move(_) =
        judged.verdict
        && balancing::is_on()
    {
        let outcome = match is_message(&packet) {
            false => balancing::run(&context, judged.class),
            true => balancing::run_error(&context),
        };
        if outcome.action() != Outcome::OTHERS {
            count(judged.class, outcome.code(), judged.bytes);
            match outcome.action() {
                Outcome::TRANSMIT => return XDP_TX,
                Outcome::DROP => return XDP_DROP,
                _ => {}
            }
            return match judged.verdict {
                Verdict::Move(cpu) => move_to(cpu, XDP_PASS),
                _ => XDP_PASS,
            };
        }
    }
    count(judged.class, judged.verdict.code(), judged.bytes);
    match judged.verdict {
        Verdict::Pass(_) => XDP_PASS,
        Verdict::Drop(_) => XDP_DROP,
        Verdict::Move(cpu) => move_to(cpu, XDP_PASS),
    }
}

/// In the node's network namespace: gives each new connection the socket of its class's pool.
#[sk_lookup]
fn steer(context: SkLookupContext) -> u32 {
    let Some(in_force) = InForce::<Listed>::now() else {
        count(NO_CLASS, SteerReason::NoSettings.code(), 0);
        return SK_PASS;
    };
    let steered = choose(
        &Host {
            in_force,
            context: &context,
        },
        &lookup::read(&context),
    );
    count(steered.class, steered.reason.code(), 0);
    if steered.reason == SteerReason::Reset {
        SK_DROP
    } else {
        SK_PASS
    }
}

#[panic_handler]
fn panic(_info: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";
