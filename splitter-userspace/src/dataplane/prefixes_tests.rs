use proptest::prelude::*;
use splitter_common::{Class, kind4, kind6};

use super::*;

/// The slow way: the longest range that contains the address, then the first kind.
fn oracle(ranges: &Ranges, addr: IpAddr) -> PrefixKind {
    let holding = ranges.all().filter(|(range, _)| range.contains(addr));
    let best = holding.max_by_key(|(range, kind)| (range.len(), std::cmp::Reverse(*kind)));
    best.map_or(PrefixKind::None, |(_, kind)| kind)
}

fn kind_of(table: &Classifier, addr: IpAddr) -> PrefixKind {
    match addr {
        IpAddr::V4(addr) => kind4(table, addr.to_bits()),
        IpAddr::V6(addr) => {
            let bits = addr.to_bits();
            kind6(table, (bits >> 64) as u64, bits as u64)
        }
    }
}

/// Addresses close to each other, so that ranges meet: few values in each byte.
fn close() -> impl Strategy<Value = IpAddr> {
    let byte = prop_oneof![Just(0u8), Just(1), Just(10), Just(244), Just(255)];
    prop_oneof![
        proptest::array::uniform4(byte.clone()).prop_map(IpAddr::from),
        proptest::array::uniform16(byte).prop_map(IpAddr::from),
    ]
}

fn ranges() -> impl Strategy<Value = Ranges> {
    // Few lengths, so that none is left out.
    let len = prop_oneof![
        Just(0u8),
        Just(8),
        Just(15),
        Just(16),
        Just(17),
        Just(24),
        Just(31)
    ];
    let range = (close(), len)
        .prop_map(|(addr, len)| Cidr::cut(addr, len))
        .boxed();
    let many = || proptest::collection::vec(range.clone(), 0..12);
    let hosts = || proptest::collection::vec(close(), 0..12);
    (hosts(), many(), many(), hosts()).prop_map(|(own, pods, cluster, nodes)| Ranges {
        own,
        pods,
        cluster,
        nodes,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_tables_find_the_longest_range(ranges in ranges(), addrs in proptest::collection::vec(close(), 40)) {
        let (prefixes, left_out) = Prefixes::new(&ranges);
        prop_assert_eq!(&left_out, &[]);
        let table = Classifier::new(prefixes);
        for addr in addrs {
            // An own or node address in IPv4-mapped form counts as IPv4; close() makes none.
            prop_assert_eq!(kind_of(&table, addr), oracle(&ranges, addr), "{}", addr);
        }
    }
}

fn range(text: &str) -> Cidr {
    text.parse().unwrap()
}

#[test]
fn of_equal_ranges_the_nearest_counts() {
    let ranges = Ranges {
        pods: vec![range("10.244.0.0/16")],
        cluster: vec![range("10.244.0.0/16")],
        own: vec!["10.0.0.1".parse().unwrap()],
        nodes: vec!["10.0.0.1".parse().unwrap()],
    };
    let table = Classifier::new(Prefixes::new(&ranges).0);
    assert_eq!(
        kind_of(&table, "10.244.1.1".parse().unwrap()),
        PrefixKind::Pods
    );
    assert_eq!(
        kind_of(&table, "10.0.0.1".parse().unwrap()),
        PrefixKind::Own
    );
}

#[test]
fn too_many_lengths_leave_out_the_last_and_say_so() {
    let lens = 17..=24;
    let cluster = lens
        .map(|len| Cidr::cut("10.0.0.0".parse().unwrap(), len))
        .collect();
    let ranges = Ranges {
        cluster,
        ..Ranges::default()
    };
    let (prefixes, left_out) = Prefixes::new(&ranges);
    assert_eq!(prefixes.v4.len(), 7);
    assert_eq!(left_out.len(), 1);
    let text = left_out[0].to_string();
    assert!(
        text.contains("10.0.0.0/24") && text.contains("prefix lengths"),
        "{text}"
    );
    // What has a place still works.
    let table = Classifier::new(prefixes);
    assert_eq!(
        kind_of(&table, "10.0.0.5".parse().unwrap()),
        PrefixKind::Cluster
    );
}

#[test]
fn a_full_table_leaves_out_the_rest() {
    let host = |n: u32| IpAddr::from(std::net::Ipv4Addr::from_bits(0x0a00_0000 + n));
    let ranges = Ranges {
        nodes: (0..MAX_PREFIXES / 2 + 3).map(host).collect(),
        ..Ranges::default()
    };
    let (prefixes, left_out) = Prefixes::new(&ranges);
    assert_eq!(prefixes.v4.len(), MAX_PREFIXES as usize / 2);
    assert_eq!(left_out.len(), 3);
}

#[test]
fn without_interfaces_what_is_not_known_is_outside() {
    let ranges = Ranges {
        pods: vec![range("10.244.0.0/24")],
        ..Ranges::default()
    };
    let classifier = Classifier::new(Prefixes::new(&ranges).0);
    let class = |addr: &str| classifier.classify(addr.parse().unwrap(), 2).class;
    assert_eq!(class("10.244.0.9"), Class::EastWest);
    assert_eq!(class("::ffff:10.244.0.9"), Class::EastWest);
    assert_eq!(class("10.245.0.9"), Class::NorthSouth);
    assert_eq!(class("127.0.0.1"), Class::Local);
}

#[test]
fn some_own_addresses_are_listed_apart() {
    let own = ["127.0.0.1", "203.0.113.1", "2001:db8::1", "192.0.2.1"];
    let (prefixes, _) = Prefixes::new(&Ranges {
        own: own.map(|addr| addr.parse().unwrap()).to_vec(),
        nodes: vec!["192.0.2.2".parse().unwrap()],
        ..Ranges::default()
    });
    let word = |octets: [u8; 4]| u32::from_ne_bytes(octets);
    let expected = [word([192, 0, 2, 1]), word([203, 0, 113, 1]), 0, 0];
    assert_eq!(prefixes.own4(), expected);
}
