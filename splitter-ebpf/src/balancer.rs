//! What forwarding reads and writes beside the packet.

use splitter_common::{BalanceSettings, Balanced, FlowValue, MAX_VARIANTS, Target};

use crate::head::{Ends, Head, Macs};

/// What lies in the table for one direction of a flow: [`FlowValue`] by words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(8))]
pub struct Record {
    /// What [`FlowKey::print`] gives for the key.
    pub print: u32,
    /// What the packet's ends become.
    pub ends: Ends,
    /// The number of its Endpoint.
    pub target: u32,
    /// The epoch that this must have.
    pub epoch: u32,
    /// Where it is counted.
    pub traffic: u32,
    /// Flags of [`FlowValue`].
    pub flags: u16,
    /// A [`splitter_common::FlowState`] code.
    pub state: u16,
    /// When a packet came last.
    pub seen: u64,
}

const _: () = assert!(size_of::<Record>() == size_of::<FlowValue>());

/// Which table a flow lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// That of connections whose client has been heard from by its Endpoint.
    Proven,
    /// That of all others: what forged addresses fill makes room there only.
    Unproven,
}

/// Memory for one packet: more than a kernel program has on its stack.
#[derive(Clone, Copy, Debug, Default)]
pub struct Work {
    /// The packet's.
    pub head: Head,
    /// The record of its flow.
    pub record: Record,
    /// The key of the other direction.
    pub back: [u32; 10],
    /// Its record.
    pub reply: Record,
    /// One that is in the way.
    pub other: Record,
}

/// Whether there is something at an address.
pub enum AtFront<'a> {
    /// Nothing.
    Nothing,
    /// Who answers there.
    Row(&'a Balanced),
    /// It was being replaced.
    Torn,
}

/// Which direction is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the client.
    In,
    /// To the client.
    Out,
}

/// What the program reads and writes beside the packet.
pub trait Balancer {
    /// How it is done; none: it is not.
    fn settings(&self) -> Option<&BalanceSettings>;
    /// Bits of [`splitter_common::PortUse`].
    fn uses(&self, port: u16) -> u8;
    /// The flow of a key, with a copy of what lies there.
    fn flow(&self, key: &[u32; 10], record: &mut Record) -> Option<Table>;
    /// Writes down a [`splitter_common::FlowState`] code, and that a packet comes now, wherever the flow is.
    fn note(&self, key: &[u32; 10], state: u16, now: u64);
    /// Adds an unproven one; with `only_new` not in the place of another. False when that was not possible.
    fn insert(&self, key: &[u32; 10], record: &mut Record, only_new: bool) -> bool;
    /// Has one lie among those that are proven; `record` is room for it.
    fn prove(&self, key: &[u32; 10], record: &mut Record);
    /// Forgets an unproven one.
    fn remove(&self, key: &[u32; 10]);
    /// The ports of a packet of which only this piece has come now, as [`FlowKey::ports`] has them.
    fn ports_of(&self, pieces: &[u32; 3]) -> Option<u32>;
    /// Remembers them for the pieces that follow.
    fn remember_ports(&self, pieces: &[u32; 3], ports: u32);
    /// Who answers at an address.
    fn front(&self, key: &[u32; 5]) -> AtFront<'_>;
    /// Who has a place of a ring.
    fn place(&self, ring: u32, place: u32) -> u32;
    /// An Endpoint.
    fn target(&self, number: u32) -> Option<&Target>;
    /// The weights of a slot.
    fn weights(&self, slot: u32) -> [u32; MAX_VARIANTS];
    /// Whether one more flow of a class (its code) is not too many.
    fn admit(&self, class: u32) -> bool;
    /// The way from one end to the other by the NIC that the packet has come by.
    fn way(&self, v6: bool, ends: &Ends) -> Option<Macs>;
    /// Nanoseconds since the machine started, to some milliseconds.
    fn now(&self) -> u64;
    /// A random number.
    fn random(&self) -> u32;
    /// Counts a decision for a Variant.
    fn chosen(&self, slot: u32, variant: u32);
    /// Counts a packet.
    fn count(&self, traffic: u32, direction: Direction, bytes: u64, new: bool);
}
