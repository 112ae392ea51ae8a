//! What XDP does with packets for ports where no HTTP is looked at: it gives each new flow to an Endpoint,
//! and forwards what belongs to it. What it cannot forward it leaves to user space, which decides alike.

use splitter_common::{BalanceReason, FlowState, FlowValue, PortKey, Target};

use crate::balancer::{AtFront, Balancer, Direction, Table, Work};
use crate::begin::record;
use crate::head::{Head, PacketMut, Piece, address, age, rewrite};
use crate::quoted::{Quoted, readdress};

/// What becomes of a packet.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Balance {
    /// Goes on to the kernel, changed or not.
    Pass(BalanceReason),
    /// Goes out by the NIC that it came in by.
    Transmit(BalanceReason),
    /// Ends here.
    Drop(BalanceReason),
}

/// How long a connection may be in opening, in nanoseconds: the kernel asks for one again for about as long.
pub const OPENING: u64 = 64_000_000_000;

/// Says what becomes of a packet; none when it is not for such a port.
#[inline(always)]
pub fn balance(
    balancer: &impl Balancer,
    packet: &mut impl PacketMut,
    class: u32,
    work: &mut Work,
) -> Option<Balance> {
    let settings = balancer.settings()?;
    work.head = Head::of(packet)?;
    if work.head.is(Piece::Later) {
        work.head.key[8] = balancer.ports_of(&work.head.pieces)?;
    }
    let port = work.head.destination_port();
    let is_front = balancer.uses(port) & PortKey::port_use(work.head.protocol(), false) != 0;
    let is_answer = port >= settings.first_port && port <= settings.last_port;
    if !is_front && !is_answer {
        return None;
    }
    if work.head.is(Piece::First) {
        balancer.remember_ports(&work.head.pieces, work.head.key[8]);
    }
    let now = balancer.now();
    if let Some(table) = balancer.flow(&work.head.key, &mut work.record)
        && let Some(balance) = of_flow(balancer, packet, work, table, now)
    {
        return Some(balance);
    }
    if !is_front {
        return None;
    }
    begin(balancer, packet, class, work, now)
}

/// A packet of a flow that is known; none when the flow has to begin anew.
#[inline(always)]
fn of_flow(
    balancer: &impl Balancer,
    packet: &mut impl PacketMut,
    work: &mut Work,
    table: Table,
    now: u64,
) -> Option<Balance> {
    if work.record.flags & FlowValue::REPLY != 0 {
        if work.record.flags & FlowValue::REMOTE == 0 {
            // Of an Endpoint on this node it would have gone out, and not come in.
            return None;
        }
        note(balancer, work, table, now);
        return Some(forward(balancer, packet, work, BalanceReason::Reply));
    }
    let target = balancer.target(work.record.target)?;
    if target.epoch != work.record.epoch || target.state & Target::KEEPS == 0 {
        let begins = !work.head.tcp || work.head.opens();
        return (!begins).then_some(Balance::Pass(BalanceReason::Gone));
    }
    if begins_anew(balancer, work, target, now) {
        return None;
    }
    note(balancer, work, table, now);
    Some(forward(balancer, packet, work, BalanceReason::Known))
}

/// Whether a packet is the first of another flow between the same ends.
#[inline(always)]
fn begins_anew(balancer: &impl Balancer, work: &Work, target: &Target, now: u64) -> bool {
    let idle = now.saturating_sub(work.record.seen);
    if !work.head.tcp {
        return idle > udp_idle(balancer);
    }
    // One of a connection that is open is for its Endpoint, which knows whether it is a new one: so asking
    // for it in another's name takes nothing away.
    work.head.opens()
        && match work.record.state {
            state if state == FlowState::Opening as u16 => {
                idle > OPENING || target.state & Target::TAKES == 0
            }
            state => state == FlowState::Closing as u16,
        }
}

#[inline(always)]
pub(crate) fn udp_idle(balancer: &impl Balancer) -> u64 {
    let seconds = balancer.settings().map_or(0, |it| it.udp_idle);
    u64::from(seconds) * 1_000_000_000
}

/// How long a flow's time is left as it is, in nanoseconds, so that not every packet writes.
const SEEN_EACH: u64 = 1_000_000_000;

/// Takes down that a packet of a flow has come, for both directions: one may be silent.
#[inline(always)]
fn note(balancer: &impl Balancer, work: &mut Work, table: Table, now: u64) {
    let state = work.record.state;
    let is_answer = work.record.flags & FlowValue::REPLY != 0;
    let goes_on = work.head.tcp && !work.head.opens() && !is_answer;
    let next = match state {
        _ if work.head.ends() => FlowState::Closing,
        state if state == FlowState::Opening as u16 && goes_on => FlowState::Open,
        state if state == FlowState::Opening as u16 => FlowState::Opening,
        state if state == FlowState::Open as u16 => FlowState::Open,
        _ => FlowState::Closing,
    };
    let is_due = now.saturating_sub(work.record.seen) > SEEN_EACH;
    let proves = table == Table::Unproven && is_answer && work.head.proves();
    if next as u16 == state && !is_due && !proves {
        return;
    }
    work.back = FlowValue::backwards(&work.record.ends, work.head.key[9]);
    balancer.note(&work.head.key, next as u16, now);
    balancer.note(&work.back, next as u16, now);
    if proves {
        balancer.prove(&work.head.key, &mut work.other);
        balancer.prove(&work.back, &mut work.other);
    }
}

/// Begins a flow, if there is something at its address.
#[inline(always)]
fn begin(
    balancer: &impl Balancer,
    packet: &mut impl PacketMut,
    class: u32,
    work: &mut Work,
    now: u64,
) -> Option<Balance> {
    let [_, _, _, _, a, b, c, d, _, _] = work.head.key;
    let family = if work.head.v6 { 6 } else { 4 };
    let port = PortKey::word(work.head.destination_port(), work.head.protocol(), family);
    let row = match balancer.front(&[a, b, c, d, port]) {
        AtFront::Nothing => return None,
        AtFront::Torn => return Some(Balance::Pass(BalanceReason::Torn)),
        AtFront::Row(row) => row,
    };
    if work.head.is(Piece::Later) || work.head.tcp && !work.head.opens() {
        return Some(Balance::Pass(BalanceReason::NoFlow));
    }
    if !balancer.admit(class) {
        return Some(Balance::Pass(BalanceReason::TooMany));
    }
    Some(match record(balancer, work, row, now) {
        Ok(()) => forward(balancer, packet, work, BalanceReason::New),
        Err(reason) => Balance::Pass(reason),
    })
}

/// Forwards a packet by the record of its flow.
#[inline(always)]
fn forward(
    balancer: &impl Balancer,
    packet: &mut impl PacketMut,
    work: &Work,
    reason: BalanceReason,
) -> Balance {
    let direction = match work.record.flags & FlowValue::REPLY {
        0 => Direction::In,
        _ => Direction::Out,
    };
    let bytes = packet.size();
    let is_remote = work.record.flags & FlowValue::REMOTE != 0;
    if is_remote {
        let Some(macs) = balancer.way(work.head.v6, &work.record.ends) else {
            return Balance::Drop(BalanceReason::LostWay);
        };
        if !age(packet, work.head.v6) {
            return Balance::Drop(BalanceReason::Expired);
        }
        if !address(packet, &macs) {
            return Balance::Drop(BalanceReason::LostWay);
        }
    }
    if !rewrite(packet, &work.head, &work.record.ends) {
        return Balance::Drop(BalanceReason::LostWay);
    }
    let is_new = reason == BalanceReason::New;
    balancer.count(work.record.traffic, direction, bytes, is_new);
    match is_remote {
        false => Balance::Pass(reason),
        true => Balance::Transmit(reason),
    }
}

/// Gives an error message about a packet of a flow to the side that has sent that packet; none when it is
/// none of ours.
#[inline(always)]
pub fn error(
    balancer: &impl Balancer,
    packet: &mut impl PacketMut,
    work: &mut Work,
) -> Option<Balance> {
    balancer.settings()?;
    let quoted = Quoted::of(packet)?;
    work.back = quoted.key;
    balancer.flow(&work.back, &mut work.record)?;
    let is_remote = work.record.flags & FlowValue::REMOTE != 0;
    if is_remote {
        let Some(macs) = balancer.way(quoted.v6, &work.record.ends) else {
            return Some(Balance::Drop(BalanceReason::LostWay));
        };
        if !age(packet, quoted.v6) || !address(packet, &macs) {
            return Some(Balance::Drop(BalanceReason::Expired));
        }
    }
    readdress(packet, &quoted, &work.record.ends, is_remote)?;
    Some(match is_remote {
        true => Balance::Transmit(BalanceReason::Error),
        false => Balance::Pass(BalanceReason::Error),
    })
}

/// The flow of a packet that an Endpoint on this node sends to a client, if it is one: its source is to
/// become that of the record.
#[inline(always)]
pub fn answer(balancer: &impl Balancer, bytes: u64, work: &mut Work) -> bool {
    if work.head.is(Piece::Later) {
        match balancer.ports_of(&work.head.pieces) {
            Some(ports) => work.head.key[8] = ports,
            None => return false,
        }
    }
    let uses = balancer.uses(work.head.source_port());
    if uses & PortKey::port_use(work.head.protocol(), true) == 0 {
        return false;
    }
    if work.head.is(Piece::First) {
        balancer.remember_ports(&work.head.pieces, work.head.key[8]);
    }
    let Some(table) = balancer.flow(&work.head.key, &mut work.record) else {
        return false;
    };
    if work.record.flags & (FlowValue::REPLY | FlowValue::REMOTE) != FlowValue::REPLY {
        return false;
    }
    note(balancer, work, table, balancer.now());
    balancer.count(work.record.traffic, Direction::Out, bytes, false);
    true
}

#[cfg(test)]
#[path = "balance_tests.rs"]
mod tests;
