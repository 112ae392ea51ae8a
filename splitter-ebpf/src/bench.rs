//! A node made by hand, for the tests of forwarding.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::vec::Vec;

use splitter_common::{
    AddressKey, BalanceReason, BalanceSettings, Balanced, BalancedVariant, MAX_VARIANTS, PortKey,
    Target,
};

use crate::balance::{Balance, answer, balance};
use crate::balancer::{AtFront, Balancer, Direction, Record, Table, Work};
use crate::head::{Ends, Head, Macs, rewrite};
use crate::packets::{Dice, End, Wire, end, ends_of, packet};

/// A node with the Service of `FRONT`, whose Endpoints are `targets`.
pub struct Bench {
    pub settings: BalanceSettings,
    pub fronts: HashMap<[u32; 5], Balanced>,
    pub targets: Vec<Target>,
    pub ring: Vec<u32>,
    pub weights: Cell<[u32; MAX_VARIANTS]>,
    pub flows: RefCell<HashMap<[u32; 10], Record>>,
    pub unproven: RefCell<HashMap<[u32; 10], Record>>,
    pub pieces: RefCell<HashMap<[u32; 3], u32>>,
    pub no_way: RefCell<HashSet<u32>>,
    pub admitted: Cell<u32>,
    pub now: Cell<u64>,
    pub dice: RefCell<Dice>,
    pub traffic: RefCell<HashMap<(u32, bool), u64>>,
    pub chosen: RefCell<Vec<u32>>,
    pub room: Cell<usize>,
}

pub fn key(end: &End, protocol: u8) -> AddressKey {
    let mut addr = [0; 16];
    addr[..end.addr.len()].copy_from_slice(&end.addr);
    let family = if end.addr.len() == 16 { 6 } else { 4 };
    AddressKey {
        addr,
        port: PortKey {
            port: end.port,
            protocol,
            family,
        },
    }
}

impl Bench {
    /// Variant n has the nth Endpoint alone; `local` are on this node.
    pub fn new(fronts: &[&End], targets: &[(&End, bool)], protocol: u8) -> Bench {
        let mut row = Balanced {
            slot: 3,
            ..Balanced::default()
        };
        for index in 0..targets.len() {
            row.variants[index] = BalancedVariant {
                ring: index as u32,
                len: 1,
                traffic: 100 + index as u32,
            };
        }
        let of = |(at, local): &(&End, bool)| Target {
            address: key(at, protocol),
            epoch: 7,
            state: Target::KEEPS | Target::TAKES | if *local { Target::LOCAL } else { 0 },
        };
        let mut own6 = [0; 16];
        own6.copy_from_slice(&end("2001:db8::1", 0).addr);
        Bench {
            settings: BalanceSettings {
                on: 1,
                local: 1,
                first_port: 61_000,
                last_port: 61_003,
                own4: [203, 0, 113, 1],
                own6,
                udp_idle: 30,
                ..BalanceSettings::default()
            },
            fronts: fronts
                .iter()
                .map(|at| (key(at, protocol).as_words(), row))
                .collect(),
            targets: targets.iter().map(of).collect(),
            ring: (0..targets.len() as u32).collect(),
            weights: Cell::new([1, 0, 0, 0, 0, 0, 0, 0]),
            flows: RefCell::default(),
            unproven: RefCell::default(),
            pieces: RefCell::default(),
            no_way: RefCell::default(),
            admitted: Cell::new(u32::MAX),
            now: Cell::new(1_000_000_000_000),
            dice: RefCell::new(Dice(5)),
            traffic: RefCell::default(),
            chosen: RefCell::default(),
            room: Cell::new(usize::MAX),
        }
    }

    pub fn go(&self, packet: &mut Wire) -> Option<Balance> {
        balance(self, packet, 1, &mut Work::default())
    }

    /// Sends a packet that must be forwarded; gives the ends that it has then.
    #[track_caller]
    pub fn sends(&self, from: &End, to: &End, flags: u8, expected: Balance) -> (End, End) {
        let protocol = self.fronts.keys().next().unwrap()[4].to_be_bytes()[1];
        let mut it = packet(from, to, protocol, flags, b"data");
        assert_eq!(self.go(&mut it), Some(expected));
        ends_of(&it)
    }

    /// The same where it is left as it is.
    #[track_caller]
    pub fn leaves(&self, from: &End, to: &End, flags: u8, expected: Option<BalanceReason>) {
        let protocol = self.fronts.keys().next().unwrap()[4].to_be_bytes()[1];
        let mut it = packet(from, to, protocol, flags, b"data");
        let before = it.bytes();
        assert_eq!(self.go(&mut it), expected.map(Balance::Pass));
        assert_eq!(it.bytes(), before);
    }

    /// What an Endpoint on this node sends, as it leaves the node.
    pub fn answers(&self, from: &End, to: &End, flags: u8) -> Option<(End, End)> {
        let protocol = self.fronts.keys().next().unwrap()[4].to_be_bytes()[1];
        let mut it = packet(from, to, protocol, flags, b"data");
        let mut work = Work {
            head: Head::of(&it)?,
            ..Work::default()
        };
        answer(self, 64, &mut work).then(|| {
            let head = work.head;
            assert!(rewrite(&mut it, &head, &work.record.ends));
            ends_of(&it)
        })
    }

    pub fn later(&self, seconds: u64) {
        self.now.set(self.now.get() + seconds * 1_000_000_000);
    }

    pub fn forget(&mut self, target: usize) {
        self.targets[target].state = 0;
    }

    pub fn weigh(&self, weights: &[u32]) {
        let mut all = [0; MAX_VARIANTS];
        all[..weights.len()].copy_from_slice(weights);
        self.weights.set(all);
    }
}

impl Balancer for Bench {
    fn settings(&self) -> Option<&BalanceSettings> {
        (self.settings.on != 0).then_some(&self.settings)
    }
    fn uses(&self, port: u16) -> u8 {
        let mut uses = 0;
        for key in self.fronts.keys() {
            let [low, high, protocol, _] = key[4].to_le_bytes();
            if u16::from_le_bytes([low, high]) == port {
                uses |= PortKey::port_use(protocol, false);
            }
        }
        for target in &self.targets {
            if target.address.port.port == port {
                uses |= PortKey::port_use(target.address.port.protocol, true);
            }
        }
        uses
    }
    fn flow(&self, key: &[u32; 10], record: &mut Record) -> Option<Table> {
        let (flows, unproven) = (self.flows.borrow(), self.unproven.borrow());
        let found = flows.get(key).map(|it| (it, Table::Proven));
        let (found, table) = found.or_else(|| Some((unproven.get(key)?, Table::Unproven)))?;
        *record = *found;
        Some(table)
    }
    fn note(&self, key: &[u32; 10], state: u16, now: u64) {
        let (mut flows, mut unproven) = (self.flows.borrow_mut(), self.unproven.borrow_mut());
        for found in [flows.get_mut(key), unproven.get_mut(key)]
            .into_iter()
            .flatten()
        {
            (found.state, found.seen) = (state, now);
        }
    }
    fn insert(&self, key: &[u32; 10], record: &mut Record, only_new: bool) -> bool {
        let (mut flows, mut unproven) = (self.flows.borrow_mut(), self.unproven.borrow_mut());
        let is_there = flows.contains_key(key) || unproven.contains_key(key);
        if only_new && is_there || unproven.len() >= self.room.get() {
            return false;
        }
        unproven.insert(*key, *record);
        flows.remove(key);
        true
    }
    fn prove(&self, key: &[u32; 10], record: &mut Record) {
        if let Some(found) = self.unproven.borrow().get(key) {
            *record = *found;
            self.flows.borrow_mut().entry(*key).or_insert(*record);
        }
    }
    fn remove(&self, key: &[u32; 10]) {
        self.unproven.borrow_mut().remove(key);
    }
    fn ports_of(&self, pieces: &[u32; 3]) -> Option<u32> {
        self.pieces.borrow().get(pieces).copied()
    }
    fn remember_ports(&self, pieces: &[u32; 3], ports: u32) {
        self.pieces.borrow_mut().insert(*pieces, ports);
    }
    fn front(&self, key: &[u32; 5]) -> AtFront<'_> {
        self.fronts.get(key).map_or(AtFront::Nothing, AtFront::Row)
    }
    fn place(&self, ring: u32, place: u32) -> u32 {
        assert_eq!(place, 0);
        self.ring[ring as usize]
    }
    fn target(&self, number: u32) -> Option<&Target> {
        self.targets.get(number as usize)
    }
    fn weights(&self, slot: u32) -> [u32; MAX_VARIANTS] {
        assert_eq!(slot, 3);
        self.weights.get()
    }
    fn admit(&self, class: u32) -> bool {
        assert_eq!(class, 1);
        let left = self.admitted.get();
        self.admitted.set(left.saturating_sub(1));
        left > 0
    }
    fn way(&self, _v6: bool, ends: &Ends) -> Option<Macs> {
        let known = !self.no_way.borrow().contains(&ends[4]);
        known.then_some([1, 2, 3, 4, 5, 6])
    }
    fn now(&self) -> u64 {
        self.now.get()
    }
    fn random(&self) -> u32 {
        self.dice.borrow_mut().next() as u32
    }
    fn chosen(&self, slot: u32, variant: u32) {
        assert_eq!(slot, 3);
        self.chosen.borrow_mut().push(variant);
    }
    fn count(&self, traffic: u32, direction: Direction, bytes: u64, _new: bool) {
        let place = (traffic, direction == Direction::Out);
        *self.traffic.borrow_mut().entry(place).or_default() += bytes;
    }
}
