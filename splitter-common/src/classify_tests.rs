extern crate std;

use core::net::IpAddr;
use std::collections::BTreeMap;
use std::vec::Vec;

use super::*;
use crate::prefix::{Cidr4Key, Cidr6Key, PrefixIndex};

const NIC: u32 = 2;
const BRIDGE: u32 = 4;
const UNSEEN: u32 = 0;

/// Tables made by hand, entry by entry.
#[derive(Default)]
struct Hand {
    v4: BTreeMap<Cidr4Key, u32>,
    v6: BTreeMap<Cidr6Key, u32>,
    native: bool,
}

impl Hand {
    fn node() -> Hand {
        let mut hand = Hand::default();
        hand.add4([203, 0, 113, 1], 32, PrefixKind::Own);
        hand.add4([10, 244, 0, 1], 32, PrefixKind::Own);
        hand.add4([10, 244, 0, 0], 24, PrefixKind::Pods);
        hand.add4([10, 244, 0, 0], 16, PrefixKind::Cluster);
        hand.add4([203, 0, 113, 9], 32, PrefixKind::Node);
        hand.add6("fd00:244:0:1::", 64, PrefixKind::Pods);
        hand.add6("fd00:244::", 48, PrefixKind::Cluster);
        hand.add6("2001:db8::1", 128, PrefixKind::Own);
        hand.add6("fe80::1", 128, PrefixKind::Own);
        hand
    }

    fn add4(&mut self, addr: [u8; 4], len: u8, kind: PrefixKind) {
        let key = Cidr4Key {
            len,
            addr,
            ..Cidr4Key::default()
        };
        self.v4.insert(key, kind.code());
    }

    fn add6(&mut self, addr: &str, len: u8, kind: PrefixKind) {
        let addr: core::net::Ipv6Addr = addr.parse().unwrap();
        let key = Cidr6Key {
            len,
            addr: addr.octets(),
            ..Cidr6Key::default()
        };
        self.v6.insert(key, kind.code());
    }
}

fn index(prefixes: impl Iterator<Item = (u8, [u8; 2], u32)>, top: u16) -> PrefixIndex {
    let mut found = PrefixIndex::default();
    let mut lens: Vec<u8> = Vec::new();
    let mut best = 0;
    for (len, first, kind) in prefixes {
        let first = u16::from_be_bytes(first);
        if len > 16 && first == top {
            lens.push(len);
        } else if len <= 16 && len >= best && (top ^ first) >> (16 - len) == 0 {
            (best, found.kind) = (len, kind as u8);
        }
    }
    lens.sort_by(|a, b| b.cmp(a));
    lens.dedup();
    found.lens[..lens.len()].copy_from_slice(&lens);
    found
}

impl PrefixTable for Hand {
    fn index4(&self, top: u16) -> u64 {
        let prefixes = self.v4.iter();
        let prefixes = prefixes.map(|(k, v)| (k.len, [k.addr[0], k.addr[1]], *v));
        index(prefixes, top).word()
    }
    fn index6(&self, top: u16) -> u64 {
        let prefixes = self.v6.iter();
        let prefixes = prefixes.map(|(k, v)| (k.len, [k.addr[0], k.addr[1]], *v));
        index(prefixes, top).word()
    }
    fn find4(&self, len: u32, addr: u32) -> Option<u32> {
        let key = Cidr4Key {
            len: len as u8,
            addr: addr.to_be_bytes(),
            ..Cidr4Key::default()
        };
        self.v4.get(&key).copied()
    }
    fn find6(&self, len: u32, high: u64, low: u64) -> Option<u32> {
        let bits = u128::from(high) << 64 | u128::from(low);
        let key = Cidr6Key {
            len: len as u8,
            addr: bits.to_be_bytes(),
            ..Cidr6Key::default()
        };
        self.v6.get(&key).copied()
    }
}

impl Tables for Hand {
    fn role(&self, ifindex: u32) -> Role {
        match ifindex {
            NIC => Role::External,
            UNSEEN => Role::Unseen,
            _ => Role::Inner,
        }
    }
    fn native_routing(&self) -> bool {
        self.native
    }
}

fn peer(addr: &str) -> Peer {
    Peer::from(addr.parse::<IpAddr>().unwrap())
}

#[track_caller]
fn check(addr: &str, ifindex: u32, class: Class, spoof: Option<Spoof>) {
    let got = classify(&Hand::node(), peer(addr), ifindex);
    assert_eq!(got, Origin { class, spoof }, "{addr} on {ifindex}");
}

#[test]
fn this_node_is_local_even_on_the_nic() {
    check("127.0.0.1", 1, Class::Local, None);
    check("::1", 1, Class::Local, None);
    check("203.0.113.1", BRIDGE, Class::Local, None);
    // Host-local traffic carries the NIC's index: the class must not change with it.
    check("203.0.113.1", NIC, Class::Local, Some(Spoof::OwnAddress));
    check("10.244.0.1", BRIDGE, Class::Local, None);
    check("fe80::1", NIC, Class::Local, Some(Spoof::OwnAddress));
    check("127.9.9.9", NIC, Class::Local, Some(Spoof::Loopback));
    check("::1", NIC, Class::Local, Some(Spoof::Loopback));
}

#[test]
fn pods_are_east_west_but_not_from_the_wire() {
    check("10.244.0.7", BRIDGE, Class::EastWest, None);
    check("10.244.0.7", NIC, Class::Unknown, Some(Spoof::OwnPods));
    check("10.244.9.7", BRIDGE, Class::EastWest, None);
    check("10.244.9.7", NIC, Class::Unknown, Some(Spoof::Cluster));
    check("fd00:244:0:1::5", BRIDGE, Class::EastWest, None);
    check("fd00:244:0:1::5", NIC, Class::Unknown, Some(Spoof::OwnPods));
    check("fd00:244:0:2::5", NIC, Class::Unknown, Some(Spoof::Cluster));
}

#[test]
fn native_routing_lets_pods_of_other_nodes_arrive_on_the_nic() {
    let tables = Hand {
        native: true,
        ..Hand::node()
    };
    let other = classify(&tables, peer("10.244.9.7"), NIC);
    assert_eq!(other, real(Class::EastWest));
    // Its own pods never do.
    let own = classify(&tables, peer("10.244.0.7"), NIC);
    assert_eq!(own, spoofed(Class::Unknown, Spoof::OwnPods));
}

#[test]
fn others() {
    check("203.0.113.9", NIC, Class::Node, None);
    check("203.0.113.10", NIC, Class::NorthSouth, None);
    check("203.0.113.10", BRIDGE, Class::Unknown, None);
    check("2001:db8::2", NIC, Class::NorthSouth, None);
    // A neighbour's link-local address is outside.
    check("fe80::2", NIC, Class::NorthSouth, None);
}

#[test]
fn mapped_addresses_have_the_class_of_the_ipv4_address() {
    check("::ffff:10.244.0.7", BRIDGE, Class::EastWest, None);
    check("::ffff:203.0.113.1", BRIDGE, Class::Local, None);
    check("::ffff:8.8.8.8", NIC, Class::NorthSouth, None);
    check("::ffff:127.0.0.1", NIC, Class::Local, Some(Spoof::Loopback));
}

#[test]
fn martians() {
    for addr in [
        "0.0.0.0",
        "0.1.2.3",
        "224.0.0.1",
        "255.255.255.255",
        "::",
        "ff02::1",
    ] {
        check(addr, NIC, Class::Unknown, Some(Spoof::Martian));
        check(addr, BRIDGE, Class::Unknown, None);
    }
}

#[test]
fn without_an_interface_the_address_alone_decides() {
    check("10.244.0.7", UNSEEN, Class::EastWest, None);
    check("10.244.9.7", UNSEEN, Class::EastWest, None);
    check("203.0.113.9", UNSEEN, Class::Node, None);
    check("127.0.0.1", UNSEEN, Class::Local, None);
    check("8.8.8.8", UNSEEN, Class::NorthSouth, None);
    check("224.0.0.1", UNSEEN, Class::NorthSouth, None);
}

#[test]
fn spoof_numbers_are_positions() {
    for (index, spoof) in Spoof::ALL.iter().enumerate() {
        assert_eq!(*spoof as usize, index);
    }
}
