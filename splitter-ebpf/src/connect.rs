//! Who answers a process of the node that connects, or sends, to a Service's own address.

use splitter_common::{
    Asked, ConnectDraw, ConnectReason, EndpointKey, MAX_VARIANTS, PROTO_UDP, Picked, ServiceValue,
};

/// An address and port, as [`splitter_common::AddressKey::words`] has them.
pub type Words = [u32; 5];

/// What the programs read and write beside the address.
pub trait Services {
    /// The row of a Service's address. Another row's content may take its place at any time.
    fn service(&self, asked: &Words) -> Option<&ServiceValue>;
    /// An Endpoint.
    fn endpoint(&self, key: EndpointKey) -> Option<&Words>;
    /// The weights of a slot.
    fn weights(&self, slot: u32) -> [u32; MAX_VARIANTS];
    /// Takes the next turn of a Service.
    fn turn(&self, turn: u32) -> u64;
    /// The number of the client's network namespace.
    fn client(&self) -> u64;
    /// A random number.
    fn random(&self) -> u32;
    /// Whether an Endpoint keeps what it has.
    fn keeps(&self, slot: u32, endpoint: &Words) -> bool;
    /// Nanoseconds since the machine started.
    fn now(&self) -> u64;
    /// Counts a decision for a Variant.
    fn chosen(&self, slot: u32, variant: u32);
    /// Counts what became of it.
    fn count(&self, reason: ConnectReason);
    /// Runs with what the socket has asked for, if there is anything.
    fn with_asked<R>(&self, run: impl FnOnce(&mut Asked) -> R) -> Option<R>;
    /// The same, made if need be; none when the kernel has no memory for it.
    fn with_asked_or_new<R>(&self, run: impl FnOnce(&mut Asked) -> R) -> Option<R>;
    /// Forgets what the socket has asked for.
    fn forget(&self);
}

/// Says where a connection goes that a process asks for, if it is not to go there.
#[inline(always)]
pub fn connect(services: &impl Services, asked: &Words, put: impl FnOnce(&Words)) {
    if services.service(asked).is_none() {
        // A socket for datagrams can be connected anew.
        if asked[4].to_le() >> 16 & 0xff == u32::from(PROTO_UDP) {
            services.forget();
        }
        return;
    }
    let Some(given) = choose(services, asked) else {
        return;
    };
    let now = services.now();
    let noted = services.with_asked_or_new(|all| all.note(asked, given, now));
    if noted.is_none() {
        services.count(ConnectReason::NotRemembered);
    }
    put(given);
}

/// Says where a datagram goes of a socket that is not connected, if it is not to go where it is sent.
#[inline(always)]
pub fn send(services: &impl Services, asked: &Words, put: impl FnOnce(&Words)) {
    let Some(service) = services.service(asked) else {
        return;
    };
    let slot = service.slot;
    let sent = services.with_asked_or_new(|all| {
        let now = services.now();
        if let Some(entry) = all.fresh(asked, now)
            && services.keeps(slot, &entry.given)
        {
            entry.sent = now;
            services.count(ConnectReason::Kept);
            return put(&entry.given);
        }
        if let Some(given) = choose(services, asked) {
            all.note(asked, given, now);
            put(given);
        }
    });
    if sent.is_none() {
        // Nobody would know the answer for one.
        services.count(ConnectReason::NotRemembered);
    }
}

/// Says whom a socket has asked when this is who it speaks with, if that is another one.
#[inline(always)]
pub fn seen(services: &impl Services, peer: &Words, put: impl FnOnce(&Words)) {
    let _it_may_have_asked_for_nothing = services.with_asked(|all| {
        if let Some(asked) = all.asked(peer) {
            put(asked);
        }
    });
}

#[inline(always)]
fn choose<'a>(services: &'a impl Services, asked: &Words) -> Option<&'a Words> {
    let (mut settled, mut first) = attempt(services, asked);
    if !settled {
        (settled, first) = attempt(services, asked);
    }
    let reason = match settled {
        true => first.1.reason,
        false => ConnectReason::Unsettled,
    };
    let (slot, picked) = first;
    if !matches!(reason, ConnectReason::Split | ConnectReason::Fallback) {
        services.count(reason);
        return None;
    }
    let Some(endpoint) = services.endpoint(picked.endpoint) else {
        services.count(ConnectReason::Missing);
        return None;
    };
    services.chosen(slot, picked.variant);
    services.count(reason);
    Some(endpoint)
}

/// Decides, and says whether what was read was the row's: it was if the row is the same afterwards. With
/// the slot.
#[inline(always)]
fn attempt(services: &impl Services, asked: &Words) -> (bool, (u32, Picked)) {
    const NOTHING: Picked = Picked {
        variant: 0,
        endpoint: EndpointKey { list: 0, place: 0 },
        reason: ConnectReason::NoEndpoint,
    };
    let Some(service) = services.service(asked) else {
        return (true, (0, NOTHING));
    };
    let print = service.print();
    let (slot, turn) = (service.slot, service.turn);
    let draw = ConnectDraw {
        turn: services.turn(turn),
        client: services.client(),
        random: services.random(),
    };
    let picked = service.pick(&services.weights(slot), &draw);
    let after = services.service(asked).map_or(0, ServiceValue::print);
    (after == print, (slot, picked))
}

/// An IPv4 address in IPv6's words is one of IPv4.
#[inline(always)]
pub fn is_mapped(addr: &[u32; 4]) -> bool {
    addr[0] | addr[1] == 0 && addr[2] == 0xffff_u32.to_be()
}

#[cfg(test)]
#[path = "connect_tests.rs"]
mod tests;
