extern crate std;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::vec::Vec;

use splitter_common::{BucketKey, PrefixKind, PrefixTable, Role};

use super::*;
use crate::testing::{Addresses, SYN, ethernet, frame, ipv4, ipv6, tcp};

const NIC: u32 = 2;
const OWN: [u8; 4] = [203, 0, 113, 1];
const POD: [u8; 4] = [10, 244, 0, 7];
const FAR_POD: [u8; 4] = [10, 244, 9, 7];
const CLIENT: [u8; 4] = [198, 51, 100, 7];

#[derive(Clone, Default)]
struct Shared(Rc<Cell<u64>>);

impl Bucket for Shared {
    fn full_at(&self) -> u64 {
        self.0.get()
    }
    fn set(&self, full_at: u64) {
        self.0.set(full_at);
    }
    fn advance(&self, by: u64) {
        self.0.set(self.0.get() + by);
    }
}

struct Bench {
    addresses: Addresses,
    settings: Settings,
    now: Cell<u64>,
    notes: RefCell<Vec<Note>>,
    class_buckets: RefCell<HashMap<(u32, u32), Shared>>,
    source_buckets: RefCell<HashMap<[u32; 5], Shared>>,
}

impl Bench {
    fn with(change: impl FnOnce(&mut Settings)) -> Bench {
        let mut settings = Settings {
            spoof: [SpoofAction::Drop as u32; Spoof::COUNT],
            special: 1,
            ..Settings::default()
        };
        change(&mut settings);
        let addresses = Addresses::default()
            .v4(OWN, PrefixKind::Own)
            .v4(POD, PrefixKind::Pods)
            .v4(FAR_POD, PrefixKind::Cluster);
        Bench {
            addresses,
            settings,
            now: Cell::new(1_000_000_000),
            notes: RefCell::default(),
            class_buckets: RefCell::default(),
            source_buckets: RefCell::default(),
        }
    }

    fn syn(&self, source: [u8; 4]) -> Verdict {
        self.judge(source).verdict
    }

    fn judge(&self, source: [u8; 4]) -> Judged {
        let packet = [ethernet(&[], 0x0800), ipv4(source, 6, 0, &[], &tcp(SYN))];
        judge(self, &frame(&packet), NIC)
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
        self.settings.native_routing != 0
    }
}

impl Node for Bench {
    type Bucket = Shared;
    fn settings(&self) -> &Settings {
        &self.settings
    }
    fn now(&self) -> u64 {
        self.now.get()
    }
    fn note(&self, _class: Class, note: Note, _bytes: u64) {
        self.notes.borrow_mut().push(note);
    }
    fn class_bucket(&self, class: Class, kind: BucketKind) -> Option<Shared> {
        let mut buckets = self.class_buckets.borrow_mut();
        Some(
            buckets
                .entry((class.code(), kind as u32))
                .or_default()
                .clone(),
        )
    }
    fn source_bucket(&self, source: Peer, kind: BucketKind) -> Option<Shared> {
        let mut buckets = self.source_buckets.borrow_mut();
        let key = BucketKey::words(source, kind);
        Some(buckets.entry(key).or_default().clone())
    }
}

const PASSED: Verdict = Verdict::Pass(PassReason::Classified);

#[test]
fn what_cannot_be_real_is_dropped_and_the_rest_counted_by_class() {
    let bench = Bench::with(|_| ());
    let cases = [
        (OWN, DropReason::OwnAddress),
        (POD, DropReason::OwnPods),
        ([127, 0, 0, 1], DropReason::Loopback),
        ([224, 0, 0, 1], DropReason::Martian),
        ([0, 0, 0, 0], DropReason::Martian),
        (FAR_POD, DropReason::Cluster),
    ];
    for (source, reason) in cases {
        assert_eq!(bench.syn(source), Verdict::Drop(reason), "{source:?}");
    }
    let class = Class::NorthSouth.code();
    let passed = Judged {
        class,
        verdict: PASSED,
        bytes: 54,
    };
    assert_eq!(bench.judge(CLIENT), passed);
}

#[test]
fn a_rule_can_count_or_be_off() {
    let bench = Bench::with(|settings| {
        settings.spoof[Spoof::Cluster as usize] = SpoofAction::Count as u32;
        settings.spoof[Spoof::OwnPods as usize] = SpoofAction::Off as u32;
    });
    assert_eq!(bench.syn(FAR_POD), PASSED);
    assert_eq!(*bench.notes.borrow(), [Note::Cluster]);
    assert_eq!(bench.syn(POD), PASSED);
    assert_eq!(bench.notes.borrow().len(), 1);
    // Whoever they are, they are not trusted.
    for source in [POD, FAR_POD] {
        assert_eq!(bench.judge(source).class, Class::Unknown.code());
    }
}

#[test]
fn spoofed_fragments_are_dropped_and_others_pass() {
    let bench = Bench::with(|_| ());
    let fragment = |source| {
        let packet = [
            ethernet(&[], 0x0800),
            ipv4(source, 17, 0x2000, &[], &[0; 8]),
        ];
        judge(&bench, &frame(&packet), NIC).verdict
    };
    assert_eq!(fragment(POD), Verdict::Drop(DropReason::OwnPods));
    assert_eq!(fragment(CLIENT), Verdict::Pass(PassReason::Fragment));
}

#[test]
fn address_configuration_passes_without_a_source() {
    let bench = Bench::with(|_| ());
    let unspecified = |bytes| Judged::without_class(PassReason::Unspecified, bytes);
    let dhcp = [ethernet(&[], 0x0800), ipv4([0; 4], 17, 0, &[], &[0; 8])];
    assert_eq!(judge(&bench, &frame(&dhcp), NIC), unspecified(42));
    let discovery = [ethernet(&[], 0x86dd), ipv6([0; 16], 58, &[0; 24])];
    assert_eq!(judge(&bench, &frame(&discovery), NIC), unspecified(78));
    let tcp = [ethernet(&[], 0x86dd), ipv6([0; 16], 6, &tcp(SYN))];
    assert_eq!(
        judge(&bench, &frame(&tcp), NIC).verdict,
        Verdict::Drop(DropReason::Martian)
    );
}

#[test]
fn a_flooding_source_is_stopped_before_it_takes_from_its_class() {
    let limit = Limit { rate: 10, burst: 5 };
    let bench = Bench::with(|settings| {
        settings.source_syn = limit;
        settings.class_syn[Class::NorthSouth as usize] = Limit { rate: 10, burst: 8 };
    });
    let passed = |source| (0..100).filter(|_| bench.syn(source) == PASSED).count();
    assert_eq!(passed(CLIENT), 5);
    assert_eq!(bench.syn(CLIENT), Verdict::Drop(DropReason::SourceSyn));
    // The same /24 shares the bucket; another one has its own, but the class has only 8 in all.
    assert_eq!(
        bench.syn([198, 51, 100, 200]),
        Verdict::Drop(DropReason::SourceSyn)
    );
    assert_eq!(passed([192, 0, 2, 1]), 3);
    assert_eq!(
        bench.syn([192, 0, 3, 1]),
        Verdict::Drop(DropReason::ClassSyn)
    );
    bench.now.set(bench.now.get() + 100_000_000);
    assert_eq!(bench.syn([192, 0, 4, 1]), PASSED);
}

#[test]
fn packet_limits_count_every_packet() {
    let bench = Bench::with(|settings| {
        settings.class_packets[Class::NorthSouth as usize] = Limit { rate: 10, burst: 2 };
        settings.source_packets = Limit { rate: 10, burst: 1 };
    });
    let udp = |source| {
        let packet = [ethernet(&[], 0x0800), ipv4(source, 17, 0, &[], &[0; 8])];
        judge(&bench, &frame(&packet), NIC).verdict
    };
    assert_eq!(udp(CLIENT), PASSED);
    assert_eq!(udp(CLIENT), Verdict::Drop(DropReason::SourcePackets));
    assert_eq!(udp([192, 0, 2, 1]), PASSED);
    assert_eq!(udp([192, 0, 3, 1]), Verdict::Drop(DropReason::ClassPackets));
}
