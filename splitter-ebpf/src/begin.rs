//! The first packet of a flow: who is to have it, and how its answers find the way back.

use splitter_common::{
    BalanceReason, Balanced, Flow, FlowKey, FlowState, FlowValue, MAX_VARIANTS, Target,
};

use crate::balance::{OPENING, udp_idle};
use crate::balancer::{Balancer, Record, Work};
use crate::head::{Ends, Head};

/// How long a port of a connection that has ended is not used for another one, in nanoseconds.
pub const LINGER: u64 = 10_000_000_000;

/// How many ports are tried for a new connection.
pub const PORT_TRIES: u32 = 8;

/// Chooses an Endpoint for a new flow and remembers it.
#[inline(always)]
pub fn record(
    balancer: &impl Balancer,
    work: &mut Work,
    row: &Balanced,
    now: u64,
) -> Result<(), BalanceReason> {
    let weights = match row.slot {
        Balanced::NO_SLOT => [0; MAX_VARIANTS],
        slot => balancer.weights(slot),
    };
    let picked = row.pick(&flow(&work.head), &weights);
    let picked = picked.ok_or(BalanceReason::NoEndpoint)?;
    let variant = row.variant(picked.variant);
    let number = balancer.place(variant.ring, picked.place);
    let target = balancer.target(number).ok_or(BalanceReason::Torn)?;
    if target.state & Target::KEEPS == 0 {
        return Err(BalanceReason::Torn);
    }
    if (target.address.port.family == 6) != work.head.v6 {
        // User space speaks with one family to clients and with the other to Endpoints.
        return Err(BalanceReason::NoWay);
    }
    work.record = Record {
        print: 0,
        ends: ends_to(&work.head, target),
        target: number,
        epoch: target.epoch,
        traffic: variant.traffic,
        flags: match target.state & Target::LOCAL {
            0 => FlowValue::REMOTE,
            _ => 0,
        },
        state: FlowState::Opening as u16,
        seen: now,
    };
    reply(work);
    match work.record.flags {
        FlowValue::REMOTE => answered_elsewhere(balancer, work)?,
        _ => answered_here(balancer, work)?,
    }
    if !balancer.insert(&work.head.key, &mut work.record, false) {
        balancer.remove(&work.back);
        return Err(BalanceReason::NoRoom);
    }
    if row.slot != Balanced::NO_SLOT {
        balancer.chosen(row.slot, picked.variant);
    }
    Ok(())
}

/// The ends of a packet that goes to an Endpoint, from where it came.
#[inline(always)]
fn ends_to(head: &Head, target: &Target) -> Ends {
    let [a, b, c, d, ..] = head.key;
    let [e, f, g, h] = words(&target.address.addr);
    let ports = FlowKey::ports(head.source_port(), target.address.port.port);
    [a, b, c, d, e, f, g, h, ports]
}

#[inline(always)]
fn words(bytes: &[u8; 16]) -> [u32; 4] {
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = *bytes;
    [
        u32::from_ne_bytes([a, b, c, d]),
        u32::from_ne_bytes([e, f, g, h]),
        u32::from_ne_bytes([i, j, k, l]),
        u32::from_ne_bytes([m, n, o, p]),
    ]
}

/// The flow as weights and rings see it.
#[inline(always)]
fn flow(head: &Head) -> Flow {
    let [a, b, c, d, e, f, g, h, ..] = head.key;
    Flow {
        source: octets(head.v6, [a, b, c, d]),
        destination: octets(head.v6, [e, f, g, h]),
        source_port: head.source_port(),
        destination_port: head.destination_port(),
        protocol: head.protocol(),
    }
}

#[inline(always)]
fn octets(v6: bool, words: [u32; 4]) -> [u8; 16] {
    let [a, b, c, d] = match v6 {
        true => words,
        false => [0, 0, 0xffff_u32.to_be(), words[0]],
    };
    let number = |first: u32, second: u32| {
        u64::from(u32::from_be(first)) << 32 | u64::from(u32::from_be(second))
    };
    (u128::from(number(a, b)) << 64 | u128::from(number(c, d))).to_be_bytes()
}

/// Makes the record of what is sent back to the client.
#[inline(always)]
fn reply(work: &mut Work) {
    let [a, b, c, d, e, f, g, h, ports, _] = FlowValue::backwards(&work.head.both(), 0);
    work.reply = Record {
        ends: [a, b, c, d, e, f, g, h, ports],
        flags: work.record.flags | FlowValue::REPLY,
        ..work.record
    };
}

/// Has answers of an Endpoint on this node find the way back.
#[inline(always)]
fn answered_here(balancer: &impl Balancer, work: &mut Work) -> Result<(), BalanceReason> {
    if balancer.settings().is_none_or(|it| it.local == 0) {
        return Err(BalanceReason::NoWay);
    }
    work.back = FlowValue::backwards(&work.record.ends, work.head.key[9]);
    // A client may ask at two addresses from one port, and both lead here.
    if balancer.flow(&work.back, &mut work.other).is_some()
        && !is_same(&work.other.ends, &work.reply.ends)
        && !is_over(balancer, work)
    {
        return Err(BalanceReason::NoPort);
    }
    match balancer.insert(&work.back, &mut work.reply, false) {
        true => Ok(()),
        false => Err(BalanceReason::NoRoom),
    }
}

/// Has a flow go to an Endpoint on another node, from a port of this one.
#[inline(always)]
fn answered_elsewhere(balancer: &impl Balancer, work: &mut Work) -> Result<(), BalanceReason> {
    let settings = balancer.settings().ok_or(BalanceReason::NoWay)?;
    let own = match work.head.v6 {
        true => words(&settings.own6),
        false => [u32::from_ne_bytes(settings.own4), 0, 0, 0],
    };
    if own[0] | own[1] | own[2] | own[3] == 0 {
        return Err(BalanceReason::NoWay);
    }
    [
        work.record.ends[0],
        work.record.ends[1],
        work.record.ends[2],
        work.record.ends[3],
    ] = own;
    // Both before anything is remembered: what begins in user space must stay there.
    let ways = [&work.reply.ends, &work.record.ends];
    if ways
        .iter()
        .any(|ends| balancer.way(work.head.v6, ends).is_none())
    {
        return Err(BalanceReason::NoWay);
    }
    let ports = settings.last_port.saturating_sub(settings.first_port);
    let span = u32::from(ports) + 1;
    let target_port = (u32::from_le(work.record.ends[8]) >> 16) as u16;
    let mut next = balancer.random();
    let mut tries = 0;
    while tries < PORT_TRIES {
        let port = settings.first_port + (next % span) as u16;
        work.record.ends[8] = FlowKey::ports(port, target_port);
        work.back = FlowValue::backwards(&work.record.ends, work.head.key[9]);
        let only_new = balancer.flow(&work.back, &mut work.other).is_none();
        if (only_new || is_over(balancer, work))
            && balancer.insert(&work.back, &mut work.reply, only_new)
        {
            return Ok(());
        }
        next = next.wrapping_mul(0x9e37_79b1).wrapping_add(1);
        tries += 1;
    }
    Err(BalanceReason::NoPort)
}

/// Whether two are the same. Comparing them as arrays would call a function that the verifier does not take.
#[inline(always)]
fn is_same(one: &Ends, other: &Ends) -> bool {
    let mut different = 0;
    let mut index = 0;
    while index < 9 {
        different |= one[index] ^ other[index];
        index += 1;
    }
    core::hint::black_box(different) == 0
}

/// Whether nobody waits for anything of the flow that is in the way.
#[inline(always)]
fn is_over(balancer: &impl Balancer, work: &Work) -> bool {
    let idle = work.record.seen.saturating_sub(work.other.seen);
    let target = balancer.target(work.other.target);
    if target.is_none_or(|it| it.epoch != work.other.epoch) {
        return true;
    }
    match work.other.state {
        _ if !work.head.tcp => idle > udp_idle(balancer),
        state if state == FlowState::Opening as u16 => idle > OPENING,
        state => state == FlowState::Closing as u16 && idle > LINGER,
    }
}
