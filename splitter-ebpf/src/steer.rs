//! Which socket a new connection gets.

use splitter_common::{
    AddressKey, Class, Fallback, ListenerValue, NO_CLASS, Peer, Pool, PortKey, SteerReason, Tables,
    classify,
};

/// A look-up that the kernel asks about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lookup {
    /// 4 or 6.
    pub family: u8,
    /// Protocol number.
    pub protocol: u8,
    /// Who connects.
    pub peer: Peer,
    /// The port connected to.
    pub port: u16,
    /// The interface, as the kernel sees it.
    pub ifindex: u32,
}

/// What became of an attempt to choose a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assigned {
    /// The kernel took it.
    Done,
    /// There is no socket at that place.
    Empty,
    /// The kernel did not take it: another program chose already, or the socket does not fit.
    Refused,
}

/// What [`steer`] reads and writes beside the look-up.
pub trait Sockets: Tables {
    /// The address connected to, by words in network order; IPv4 in the first.
    fn local(&self) -> [u32; 4];
    /// The entry of a port, by [`PortKey::word`].
    fn listener(&self, port: u32) -> Option<ListenerValue>;
    /// The entry of an address and port, by [`AddressKey::words`].
    fn listener_at(&self, key: &[u32; 5]) -> Option<ListenerValue>;
    /// The pool of a class.
    fn pool(&self, class: Class) -> Pool;
    /// Chooses the socket at this place of the pool map.
    fn assign(&self, index: u32) -> Assigned;
    /// Says that a pool has no socket where one was wanted. Rare, and may be slow.
    fn no_socket(&self, pool: Pool);
}

/// How a look-up was answered, and whose it was.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steered {
    /// A [`Class`] code, or [`NO_CLASS`].
    pub class: u32,
    /// How. Only [`SteerReason::Reset`] ends the kernel's own search without a socket.
    pub reason: SteerReason,
}

/// Answers one look-up.
///
/// The answer depends on nothing but the look-up and the maps: while SYN cookies are in use the
/// kernel asks twice for one connection, and a different answer would reset it.
#[inline(always)]
pub fn steer(sockets: &impl Sockets, lookup: &Lookup) -> Steered {
    let Some(listener) = find(sockets, lookup) else {
        return Steered {
            class: NO_CLASS,
            reason: SteerReason::NotOurs,
        };
    };
    let class = classify(sockets, lookup.peer, lookup.ifindex).class;
    let pool = sockets.pool(class);
    let reason = match sockets.assign(pool.socket_index(listener.listener)) {
        Assigned::Done => SteerReason::Assigned,
        Assigned::Refused => SteerReason::Refused,
        Assigned::Empty => fall_back(sockets, listener, pool),
    };
    Steered {
        class: class.code(),
        reason,
    }
}

#[inline(always)]
fn fall_back(sockets: &impl Sockets, listener: ListenerValue, pool: Pool) -> SteerReason {
    sockets.no_socket(pool);
    match Fallback::from_code(listener.fallback) {
        Fallback::Kernel => SteerReason::Kernel,
        Fallback::Reset => SteerReason::Reset,
        Fallback::OtherPool => match sockets.assign(pool.other().socket_index(listener.listener)) {
            Assigned::Done => SteerReason::OtherPool,
            Assigned::Refused => SteerReason::Refused,
            Assigned::Empty => SteerReason::Kernel,
        },
    }
}

/// The listener of a look-up: that of the exact address before that of every address.
#[inline(always)]
fn find(sockets: &impl Sockets, lookup: &Lookup) -> Option<ListenerValue> {
    let port = PortKey::word(lookup.port, lookup.protocol, lookup.family);
    let every = sockets.listener(port)?;
    if every.exact != 0 {
        let exact = sockets.listener_at(&AddressKey::words(sockets.local(), port));
        if exact.is_some() {
            return exact;
        }
    }
    (every.listener != ListenerValue::NONE).then_some(every)
}

#[cfg(test)]
#[path = "steer_tests.rs"]
mod tests;
