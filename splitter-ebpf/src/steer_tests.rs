extern crate std;

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::vec::Vec;

use splitter_common::{PrefixKind, PrefixTable, Role};

use super::*;
use crate::testing::Addresses;

const NIC: u32 = 2;
const BRIDGE: u32 = 4;
const NODE: [u8; 4] = [203, 0, 113, 1];
const POD: [u8; 4] = [10, 244, 0, 7];
const CLIENT: [u8; 4] = [198, 51, 100, 7];

#[derive(Default)]
struct Bench {
    addresses: Addresses,
    listeners: HashMap<u32, ListenerValue>,
    exact: HashMap<[u32; 5], ListenerValue>,
    sockets: HashSet<u32>,
    refuses: bool,
    local: Cell<[u32; 4]>,
    chosen: RefCell<Vec<u32>>,
    said: RefCell<Vec<Pool>>,
}

fn port(port: u16) -> u32 {
    PortKey::word(port, 6, 4)
}

fn local(addr: [u8; 4]) -> [u32; 4] {
    [u32::from_ne_bytes(addr), 0, 0, 0]
}

impl Bench {
    /// Listener 0 on every address, port 80, with both pools.
    fn new(fallback: Fallback) -> Bench {
        let mut bench = Bench {
            addresses: Addresses::default()
                .v4(POD, PrefixKind::Pods)
                .v4(NODE, PrefixKind::Own),
            sockets: [0, 1].into(),
            ..Bench::default()
        };
        let value = ListenerValue {
            listener: 0,
            fallback: fallback as u32,
            exact: 0,
        };
        bench.listeners.insert(port(80), value);
        bench
    }

    fn from(&self, peer: [u8; 4], ifindex: u32) -> SteerReason {
        self.to(peer, ifindex, NODE, 80)
    }

    fn to(&self, peer: [u8; 4], ifindex: u32, addr: [u8; 4], port: u16) -> SteerReason {
        self.chosen.borrow_mut().clear();
        self.local.set(local(addr));
        let lookup = Lookup {
            family: 4,
            protocol: 6,
            peer: Peer::v4(u32::from_be_bytes(peer)),
            port,
            ifindex,
        };
        steer(self, &lookup).reason
    }

    fn chosen(&self) -> Vec<u32> {
        self.chosen.borrow().clone()
    }
}

impl PrefixTable for Bench {
    fn index4(&self, top: u16) -> u64 {
        self.addresses.index4(top)
    }
    fn index6(&self, top: u16) -> u64 {
        self.addresses.index6(top)
    }
    fn find4(&self, len: u32, addr: u32) -> Option<u32> {
        self.addresses.find4(len, addr)
    }
    fn find6(&self, len: u32, high: u64, low: u64) -> Option<u32> {
        self.addresses.find6(len, high, low)
    }
}

impl Tables for Bench {
    fn role(&self, ifindex: u32) -> Role {
        self.addresses.role(ifindex)
    }
    fn native_routing(&self) -> bool {
        false
    }
}

impl Sockets for Bench {
    fn local(&self) -> [u32; 4] {
        self.local.get()
    }
    fn listener(&self, port: u32) -> Option<ListenerValue> {
        self.listeners.get(&port).copied()
    }
    fn listener_at(&self, key: &[u32; 5]) -> Option<ListenerValue> {
        self.exact.get(key).copied()
    }
    fn pool(&self, class: Class) -> Pool {
        Pool::of(class)
    }
    fn assign(&self, index: u32) -> Assigned {
        if !self.sockets.contains(&index) {
            return Assigned::Empty;
        }
        if self.refuses {
            return Assigned::Refused;
        }
        self.chosen.borrow_mut().push(index);
        Assigned::Done
    }
    fn no_socket(&self, pool: Pool) {
        self.said.borrow_mut().push(pool);
    }
}

#[test]
fn each_class_gets_its_pool() {
    let bench = Bench::new(Fallback::OtherPool);
    assert_eq!(bench.from(CLIENT, NIC), SteerReason::Assigned);
    assert_eq!(bench.chosen(), [0]);
    assert_eq!(bench.from(POD, BRIDGE), SteerReason::Assigned);
    assert_eq!(bench.chosen(), [1]);
    // The node itself, though its traffic carries the NIC's index.
    assert_eq!(bench.from(NODE, NIC), SteerReason::Assigned);
    assert_eq!(bench.chosen(), [1]);
    // Nobody knows who that is.
    assert_eq!(bench.from([192, 0, 2, 1], BRIDGE), SteerReason::Assigned);
    assert_eq!(bench.chosen(), [0]);
}

#[test]
fn other_ports_and_protocols_are_untouched() {
    let bench = Bench::new(Fallback::Reset);
    assert_eq!(bench.to(CLIENT, NIC, NODE, 22), SteerReason::NotOurs);
    assert_eq!(bench.to(CLIENT, NIC, NODE, 10250), SteerReason::NotOurs);
    let lookup = Lookup {
        family: 4,
        protocol: 17,
        peer: Peer::v4(1),
        port: 80,
        ifindex: NIC,
    };
    assert_eq!(steer(&bench, &lookup).reason, SteerReason::NotOurs);
    let six = Lookup {
        family: 6,
        protocol: 6,
        ..lookup
    };
    assert_eq!(steer(&bench, &six).reason, SteerReason::NotOurs);
    assert!(bench.chosen().is_empty());
}

#[test]
fn an_exact_address_comes_before_every_address() {
    let mut bench = Bench::new(Fallback::OtherPool);
    bench.listeners.insert(
        port(81),
        ListenerValue {
            listener: ListenerValue::NONE,
            fallback: 0,
            exact: 1,
        },
    );
    bench.exact.insert(
        AddressKey::words(local(NODE), port(81)),
        ListenerValue {
            listener: 3,
            fallback: 0,
            exact: 0,
        },
    );
    bench.sockets.insert(6);
    assert_eq!(bench.to(CLIENT, NIC, NODE, 81), SteerReason::Assigned);
    assert_eq!(bench.chosen(), [6]);
    // Another address of that port is not ours.
    assert_eq!(
        bench.to(CLIENT, NIC, [203, 0, 113, 2], 81),
        SteerReason::NotOurs
    );
}

#[test]
fn an_empty_pool_falls_back_as_its_listener_says() {
    let mut bench = Bench::new(Fallback::OtherPool);
    bench.sockets.remove(&1);
    assert_eq!(bench.from(POD, BRIDGE), SteerReason::OtherPool);
    assert_eq!(*bench.said.borrow(), [Pool::EastWest]);
    assert_eq!(bench.chosen(), [0]);
    bench.sockets.clear();
    assert_eq!(bench.from(POD, BRIDGE), SteerReason::Kernel);

    let mut bench = Bench::new(Fallback::Kernel);
    bench.sockets.remove(&1);
    assert_eq!(bench.from(POD, BRIDGE), SteerReason::Kernel);
    assert!(bench.chosen().is_empty());

    let mut bench = Bench::new(Fallback::Reset);
    bench.sockets.remove(&1);
    assert_eq!(bench.from(POD, BRIDGE), SteerReason::Reset);
    assert_eq!(bench.from(CLIENT, NIC), SteerReason::Assigned);
}

#[test]
fn a_socket_that_the_kernel_does_not_take_is_no_reset() {
    let bench = Bench {
        refuses: true,
        ..Bench::new(Fallback::Reset)
    };
    assert_eq!(bench.from(CLIENT, NIC), SteerReason::Refused);
}
