//! The XDP program by test runs: packets in, action, bytes and counters out.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Instant;

use splitter::dataplane::{CpuSets, Policy};
use splitter_common::{Class, Limit, Spoof, SpoofAction};
use splitter_tests::bpf::Loaded;
use splitter_tests::bpf::kernel::address;
use splitter_tests::bpf::packet::{
    ACK, IPV4, IPV6, QINQ, SYN, VLAN, ethernet, extension, ipv4, ipv6, syn, tcp,
};
use splitter_tests::bpf::run::{self, XDP_DROP, XDP_PASS, XDP_REDIRECT};

const CLIENT: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);
const CLIENT6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 9, 0, 0, 0, 0, 7);

/// Runs one packet and checks that it comes out as it went in, counted once, under this class and
/// reason.
#[track_caller]
fn expect(loaded: &Loaded, packet: &[u8], action: u32, reason: &str, class: Option<Class>) {
    assert_eq!(outcome(loaded, packet), (action, class, reason));
}

/// What becomes of a packet: it is counted once, with all its bytes, and goes on as it was.
#[track_caller]
fn outcome(loaded: &Loaded, packet: &[u8]) -> (u32, Option<Class>, &'static str) {
    let before = loaded.counts();
    let run = run::xdp(loaded.program("ingress"), packet, 1).unwrap();
    let after = loaded.counts();
    let mut moved = after
        .all()
        .zip(before.all())
        .filter(|(after, before)| after != before && !after.1.starts_with("seen-"));
    let ((class, reason, after), (_, _, before)) = moved.next().unwrap();
    assert!(moved.next().is_none(), "{reason} is not all");
    let counted = (after.count - before.count, after.bytes - before.bytes);
    assert_eq!(counted, (1, packet.len() as u64), "{reason}");
    assert_eq!(run.packet, packet, "{reason}");
    (run.action, class, reason)
}

#[track_caller]
fn passes(loaded: &Loaded, packet: &[u8], class: Class) {
    expect(loaded, packet, XDP_PASS, "pass-classified", Some(class));
}

#[track_caller]
fn drops(loaded: &Loaded, packet: &[u8], reason: &str) {
    // Whoever claims to be the node is counted as that; all others are nobody.
    let local = reason == "drop-own-address" || reason == "drop-loopback";
    let class = if local { Class::Local } else { Class::Unknown };
    expect(loaded, packet, XDP_DROP, reason, Some(class));
}

#[test]
fn every_class_and_every_spoofed_source() {
    let loaded = Loaded::quiet(&Policy::default());
    for (source, class) in [
        ("198.51.100.7", Class::NorthSouth),
        ("2001:db8:9::7", Class::NorthSouth),
        ("203.0.113.9", Class::Node),
        ("2001:db8::9", Class::Node),
        // A neighbour's link-local address is outside.
        ("fe80::77", Class::NorthSouth),
        // The rest of the cluster range is counted, and not trusted.
        ("10.244.9.7", Class::Unknown),
        ("fd00:244:0:9::7", Class::Unknown),
    ] {
        passes(&loaded, &syn(address(source)), class);
    }
    assert_eq!(loaded.counts().reason("seen-cluster"), 2);
    for (source, reason) in [
        ("203.0.113.1", "drop-own-address"),
        ("10.244.0.1", "drop-own-address"),
        ("2001:db8::1", "drop-own-address"),
        ("10.244.0.7", "drop-own-pods"),
        ("fd00:244::7", "drop-own-pods"),
        ("127.0.0.1", "drop-loopback"),
        ("127.8.8.8", "drop-loopback"),
        ("::1", "drop-loopback"),
        ("0.0.0.0", "drop-martian"),
        ("0.1.2.3", "drop-martian"),
        ("224.0.0.5", "drop-martian"),
        ("240.0.0.1", "drop-martian"),
        ("255.255.255.255", "drop-martian"),
        ("::", "drop-martian"),
        ("ff02::5", "drop-martian"),
        // IPv4-mapped on the wire: the IPv4 address counts.
        ("::ffff:203.0.113.1", "drop-own-address"),
        ("::ffff:127.0.0.1", "drop-loopback"),
    ] {
        drops(&loaded, &syn(address(source)), reason);
    }
}

#[test]
fn rules_can_count_be_off_and_follow_native_routing() {
    let mut policy = Policy {
        spoof: [SpoofAction::Count; Spoof::COUNT],
        ..Policy::default()
    };
    let mut loaded = Loaded::quiet(&policy);
    passes(&loaded, &syn(address("203.0.113.1")), Class::Local);
    passes(&loaded, &syn(address("10.244.0.7")), Class::Unknown);
    passes(&loaded, &syn(address("127.0.0.1")), Class::Local);
    passes(&loaded, &syn(address("224.0.0.1")), Class::Unknown);
    let counts = loaded.counts();
    for rule in Spoof::ALL.iter().filter(|rule| **rule != Spoof::Cluster) {
        assert_eq!(
            counts.reason(&format!("seen-{}", rule.name())),
            1,
            "{rule:?}"
        );
    }
    policy.spoof = [SpoofAction::Off; Spoof::COUNT];
    let ranges = splitter_tests::bpf::kernel::ranges();
    loaded.set(&ranges, &policy);
    passes(&loaded, &syn(address("10.244.0.7")), Class::Unknown);
    assert_eq!(loaded.counts().reason("seen-own-pods"), 1);
    policy.spoof = [SpoofAction::Drop; Spoof::COUNT];
    loaded.set(&ranges, &policy);
    drops(&loaded, &syn(address("10.244.9.7")), "drop-cluster");
    policy.native_routing = true;
    loaded.set(&ranges, &policy);
    passes(&loaded, &syn(address("10.244.9.7")), Class::EastWest);
    drops(&loaded, &syn(address("10.244.0.7")), "drop-own-pods");
}

#[test]
fn vlan_tags_options_and_other_protocols() {
    let loaded = Loaded::quiet(&Policy::default());
    let north_south = Class::NorthSouth;
    let packet = ipv4(CLIENT, 6, 0, &[], &tcp(SYN));
    for tags in [&[VLAN][..], &[QINQ, VLAN], &[VLAN, VLAN], &[0x9100]] {
        passes(
            &loaded,
            &[ethernet(tags, IPV4), packet.clone()].concat(),
            north_south,
        );
        let six = ipv6(CLIENT6, 6, &tcp(SYN));
        passes(&loaded, &[ethernet(tags, IPV6), six].concat(), north_south);
    }
    let three = [ethernet(&[QINQ, VLAN, VLAN], IPV4), packet].concat();
    expect(&loaded, &three, XDP_PASS, "pass-too-many-tags", None);
    for words in 0..=10 {
        let packet = ipv4(CLIENT, 6, 0, &vec![1; words * 4], &tcp(SYN));
        passes(
            &loaded,
            &[ethernet(&[], IPV4), packet].concat(),
            north_south,
        );
    }
    // A spoofed source is seen behind tags and options.
    let spoofed = ipv4(Ipv4Addr::new(10, 244, 0, 7), 6, 0, &[1; 40], &tcp(SYN));
    drops(
        &loaded,
        &[ethernet(&[QINQ, VLAN], IPV4), spoofed].concat(),
        "drop-own-pods",
    );
    for protocol in [1, 17, 47, 50, 132] {
        let packet = ipv4(CLIENT, protocol, 0, &[], &[0; 8]);
        passes(
            &loaded,
            &[ethernet(&[], IPV4), packet].concat(),
            north_south,
        );
    }
    // "Fragmentation needed" quotes only eight bytes of the packet that it is about.
    let quoted = ipv4(CLIENT, 6, 0, &[], &tcp(ACK)[..8]);
    let icmp = ipv4(
        CLIENT,
        1,
        0,
        &[],
        &[&[3, 4, 0, 0, 0, 0, 5, 220], &quoted[..]].concat(),
    );
    passes(&loaded, &[ethernet(&[], IPV4), icmp].concat(), north_south);
}

#[test]
fn what_is_not_ip_or_contradicts_itself_is_left_to_the_kernel() {
    let loaded = Loaded::quiet(&Policy::default());
    let arp = [ethernet(&[], 0x0806), vec![0; 28]].concat();
    expect(&loaded, &arp, XDP_PASS, "pass-not-ip", None);
    let length = [ethernet(&[], 46), vec![0; 46]].concat();
    expect(&loaded, &length, XDP_PASS, "pass-not-ip", None);
    for first in [0x44u8, 0x40, 0x55, 0x65] {
        let mut packet = ipv4(CLIENT, 6, 0, &[], &tcp(SYN));
        packet[0] = first;
        let packet = [ethernet(&[], IPV4), packet].concat();
        expect(&loaded, &packet, XDP_PASS, "pass-malformed", None);
    }
    let mut packet = ipv6(CLIENT6, 6, &tcp(SYN));
    packet[0] = 0x45;
    let packet = [ethernet(&[], IPV6), packet].concat();
    expect(&loaded, &packet, XDP_PASS, "pass-malformed", None);
}

#[test]
fn fragments_pass_and_spoofed_ones_do_not() {
    let loaded = Loaded::quiet(&Policy::default());
    let (more, offset) = (0x2000, 185);
    let class = Some(Class::NorthSouth);
    // First, middle, last with one byte, and out of order: each by itself.
    for (fragment, payload) in [
        (offset, &[1u8][..]),
        (more | offset, &[0; 8]),
        (more, &tcp(SYN)),
    ] {
        for protocol in [6, 17] {
            let packet = ipv4(CLIENT, protocol, fragment, &[], payload);
            let packet = [ethernet(&[], IPV4), packet].concat();
            expect(&loaded, &packet, XDP_PASS, "pass-fragment", class);
            let spoofed = ipv4(
                Ipv4Addr::new(10, 244, 0, 7),
                protocol,
                fragment,
                &[],
                payload,
            );
            drops(
                &loaded,
                &[ethernet(&[], IPV4), spoofed].concat(),
                "drop-own-pods",
            );
        }
    }
    for field in [1u16, 8, 8 | 1, 0xfff8] {
        let header = [&[6, 0][..], &field.to_be_bytes(), &[0, 0, 0, 9]].concat();
        let packet = ipv6(CLIENT6, 44, &[header, vec![7]].concat());
        let packet = [ethernet(&[], IPV6), packet].concat();
        expect(&loaded, &packet, XDP_PASS, "pass-fragment", class);
    }
    // "Do not fragment" is no fragment.
    let whole = ipv4(CLIENT, 6, 0x4000, &[], &tcp(SYN));
    passes(
        &loaded,
        &[ethernet(&[], IPV4), whole].concat(),
        Class::NorthSouth,
    );
}

#[test]
fn ipv6_extension_headers() {
    let loaded = Loaded::quiet(&Policy::default());
    let wrap = |next: u8, rest: &[u8]| [ethernet(&[], IPV6), ipv6(CLIENT6, next, rest)].concat();
    for kind in [0, 43, 60, 135, 139, 140] {
        for (length, size) in [(0, 8), (1, 16), (3, 32)] {
            let rest = [extension(6, length, size), tcp(SYN)].concat();
            passes(&loaded, &wrap(kind, &rest), Class::NorthSouth);
        }
    }
    // The authentication header counts in words of four bytes.
    passes(
        &loaded,
        &wrap(51, &[extension(6, 4, 24), tcp(SYN)].concat()),
        Class::NorthSouth,
    );
    let chain = |count: usize| {
        let mut rest = Vec::new();
        for left in (0..count).rev() {
            rest.extend(extension(if left == 0 { 6 } else { 60 }, 0, 8));
        }
        wrap(60, &[rest, tcp(SYN)].concat())
    };
    passes(&loaded, &chain(6), Class::NorthSouth);
    let class = Some(Class::NorthSouth);
    expect(
        &loaded,
        &chain(7),
        XDP_PASS,
        "pass-too-many-extensions",
        class,
    );
    passes(&loaded, &wrap(59, &[]), Class::NorthSouth);
}

#[test]
fn sources_of_address_configuration_pass() {
    let loaded = Loaded::quiet(&Policy::default());
    let dhcp = [
        ethernet(&[], IPV4),
        ipv4(Ipv4Addr::UNSPECIFIED, 17, 0, &[], &[0; 8]),
    ]
    .concat();
    expect(&loaded, &dhcp, XDP_PASS, "pass-unspecified", None);
    let discovery = [
        ethernet(&[], IPV6),
        ipv6(Ipv6Addr::UNSPECIFIED, 58, &[0; 24]),
    ]
    .concat();
    expect(&loaded, &discovery, XDP_PASS, "pass-unspecified", None);
}

#[test]
fn packets_cut_at_every_byte_pass() {
    let loaded = Loaded::quiet(&Policy::default());
    let v4 = ipv4(CLIENT, 6, 0, &[1; 8], &tcp(SYN));
    let rest = [extension(60, 0, 8), extension(6, 1, 16), tcp(SYN)].concat();
    let v6 = ipv6(CLIENT6, 0, &rest);
    let packets = [
        ([ethernet(&[VLAN], IPV4), v4].concat(), 18 + 20),
        ([ethernet(&[QINQ, VLAN], IPV6), v6].concat(), 22 + 40),
    ];
    for (packet, address_known) in packets {
        // The kernel itself takes no shorter test packet than an Ethernet header.
        for length in 14..packet.len() {
            let class = (length >= address_known).then_some(Class::NorthSouth);
            expect(
                &loaded,
                &packet[..length],
                XDP_PASS,
                "pass-truncated",
                class,
            );
        }
        passes(&loaded, &packet, Class::NorthSouth);
    }
}

/// Limits of one a second, and who has sent how much since when.
struct Flood<'l> {
    loaded: &'l Loaded,
    began: Instant,
}

impl Flood<'_> {
    /// Sends until a packet is dropped; gives the reason. `tokens` pass, and those that come back
    /// meanwhile, for a test may take its time.
    #[track_caller]
    fn until_dropped(
        &self,
        tokens: u64,
        packets: impl IntoIterator<Item = Vec<u8>>,
    ) -> &'static str {
        let mut passed = 0;
        for packet in packets {
            match outcome(self.loaded, &packet) {
                (XDP_PASS, Some(Class::NorthSouth), _) => passed += 1,
                (XDP_DROP, Some(Class::NorthSouth), reason) => {
                    assert!(passed >= tokens, "{passed} of {tokens} before {reason}");
                    return reason;
                }
                other => panic!("{other:?}"),
            }
            let back = self.began.elapsed().as_secs() + 1;
            assert!(passed <= tokens + back, "{passed} of {tokens} in {back} s");
        }
        panic!("nothing is dropped");
    }
}

fn flood(loaded: &Loaded) -> Flood<'_> {
    let began = Instant::now();
    Flood { loaded, began }
}

/// A new source each time, of another prefix than all before.
fn strangers(packet: impl Fn(&str) -> Vec<u8>) -> impl Iterator<Item = Vec<u8>> {
    (0..10_000).map(move |number| packet(&format!("2001:db9:{number:x}::7")))
}

#[test]
fn token_buckets_of_sources_and_classes() {
    let slow = |burst| Limit { rate: 1, burst };
    let mut policy = Policy {
        source_syn: slow(3),
        ..Policy::default()
    };
    policy.class_syn[Class::NorthSouth as usize] = slow(5);
    let loaded = Loaded::quiet(&policy);
    let flood = flood(&loaded);
    let from = |host: &str| std::iter::repeat(syn(address(host)));
    let source = flood.until_dropped(3, from("198.51.100.7"));
    assert_eq!(source, "drop-source-syn");
    // The same /24; then others, which find two tokens left in the class.
    let same = flood.until_dropped(0, from("198.51.100.200"));
    assert_eq!(same, "drop-source-syn");
    let class = flood.until_dropped(2, strangers(|host| syn(address(host))));
    assert_eq!(class, "drop-class-syn");
    // Packets that open nothing are not limited, nor are other classes.
    let ack = [ethernet(&[], IPV4), ipv4(CLIENT, 6, 0, &[], &tcp(ACK))].concat();
    passes(&loaded, &ack, Class::NorthSouth);
    passes(&loaded, &syn(address("203.0.113.9")), Class::Node);
    // A SYN in a first fragment is one, too. A token of the source's may have come back, the class
    // has none.
    let fragment = ipv4(CLIENT, 6, 0x2000, &[], &tcp(SYN));
    let fragment = [ethernet(&[], IPV4), fragment].concat();
    let dropped = flood.until_dropped(0, std::iter::repeat(fragment));
    assert!(dropped.ends_with("-syn"), "{dropped}");
}

#[test]
fn packet_limits() {
    let slow = |burst| Limit { rate: 1, burst };
    let mut policy = Policy {
        source_packets: slow(2),
        ..Policy::default()
    };
    policy.class_packets[Class::NorthSouth as usize] = slow(3);
    let loaded = Loaded::quiet(&policy);
    let flood = flood(&loaded);
    let udp = |source: Ipv4Addr| [ethernet(&[], IPV4), ipv4(source, 17, 0, &[], &[0; 8])].concat();
    let source = flood.until_dropped(2, std::iter::repeat(udp(CLIENT)));
    assert_eq!(source, "drop-source-packets");
    let others = (0..100).map(|number| udp(Ipv4Addr::new(192, 0, number, 1)));
    let class = flood.until_dropped(1, others);
    assert_eq!(class, "drop-class-packets");
}

#[test]
fn packets_are_moved_to_the_cpus_of_their_pool() {
    let policy = Policy {
        cpus: CpuSets {
            of: [vec![0], Vec::new()],
        },
        ..Policy::default()
    };
    let mut loaded = Loaded::quiet(&policy);
    let from = |host: &str| syn(address(host));
    let class = Some(Class::NorthSouth);
    let (moved, udp) = ("pass-moved", ipv4(CLIENT, 17, 0, &[], &[0; 8]));
    expect(&loaded, &from("198.51.100.7"), XDP_REDIRECT, moved, class);
    expect(&loaded, &from("2001:db8:9::7"), XDP_REDIRECT, moved, class);
    expect(
        &loaded,
        &[ethernet(&[VLAN], IPV4), udp].concat(),
        XDP_REDIRECT,
        moved,
        class,
    );
    // The other pool has no CPUs of its own; what is not IP has no pool.
    passes(&loaded, &from("203.0.113.9"), Class::Node);
    let arp = [ethernet(&[], 0x0806), vec![0; 28]].concat();
    expect(&loaded, &arp, XDP_PASS, "pass-not-ip", None);
    drops(&loaded, &from("10.244.0.7"), "drop-own-pods");
    // A CPU that is not there: the packet stays where it is.
    let none = CpuSets {
        of: [vec![100_000], Vec::new()],
    };
    let wrong = Policy {
        cpus: none,
        ..Policy::default()
    };
    let result = loaded
        .kernel
        .set_ranges(&splitter_tests::bpf::kernel::ranges(), &wrong);
    assert!(result.is_err());
    expect(&loaded, &from("198.51.100.7"), XDP_REDIRECT, moved, class);
    loaded.set(&splitter_tests::bpf::kernel::ranges(), &Policy::default());
    passes(&loaded, &from("198.51.100.7"), Class::NorthSouth);
}
