extern crate std;

use super::*;
use crate::layout::bytes_of;

#[test]
fn flow_bytes() {
    let mut key = FlowKey {
        source_port: 0x9c40,
        destination_port: 0x1538,
        protocol: 6,
        family: 4,
        ..FlowKey::default()
    };
    key.source[..4].copy_from_slice(&[198, 51, 100, 7]);
    key.destination[..4].copy_from_slice(&[203, 0, 113, 1]);
    let words = [
        u32::from_ne_bytes([198, 51, 100, 7]),
        0,
        0,
        0,
        u32::from_ne_bytes([203, 0, 113, 1]),
        0,
        0,
        0,
        FlowKey::ports(0x9c40, 0x1538),
        FlowKey::kind(6, 4),
    ];
    assert_eq!(bytes_of(&key), bytes_of(&words));
    let mut golden = [0u8; 40];
    golden[..4].copy_from_slice(&[198, 51, 100, 7]);
    golden[16..20].copy_from_slice(&[203, 0, 113, 1]);
    golden[32..38].copy_from_slice(&[0x40, 0x9c, 0x38, 0x15, 6, 4]);
    assert_eq!(bytes_of(&key), golden);
    // What the other direction's key is, and back again.
    let [a, b, c, d, e, f, g, h, ports, kind] = words;
    let back = FlowValue::backwards(&[a, b, c, d, e, f, g, h, ports], kind);
    assert_eq!(back[8], FlowKey::ports(0x1538, 0x9c40));
    let [a, b, c, d, e, f, g, h, ports, kind] = back;
    assert_eq!(
        FlowValue::backwards(&[a, b, c, d, e, f, g, h, ports], kind),
        words
    );
}

#[test]
fn front_and_target_bytes() {
    let front = Front { row: 1, print: 2 };
    assert_eq!(bytes_of(&front), [1, 0, 0, 0, 2, 0, 0, 0]);
    let target = Target {
        epoch: 3,
        state: Target::KEEPS | Target::LOCAL,
        ..Target::default()
    };
    let mut golden = [0u8; 28];
    (golden[20], golden[24]) = (3, 5);
    assert_eq!(bytes_of(&target), golden);
}

#[test]
fn prints_differ_with_every_bit() {
    let zero = [0u32; 10];
    let mut seen = std::collections::BTreeSet::from([FlowKey::print(&zero)]);
    for bit in 0..320 {
        let mut words = zero;
        words[bit / 32] = 1 << (bit % 32);
        assert!(seen.insert(FlowKey::print(&words)), "bit {bit}");
    }
    let mut seen = std::collections::BTreeSet::from([AddressKey::print(&[0; 5])]);
    for bit in 0..160 {
        let mut words = [0; 5];
        words[bit / 32] = 1 << (bit % 32);
        assert!(seen.insert(AddressKey::print(&words)), "bit {bit}");
    }
}

#[test]
fn places_of_another_instance_are_not_counted() {
    let settings = BalanceSettings {
        era: 7 << 16,
        ..BalanceSettings::default()
    };
    assert_eq!(settings.place(7 << 16 | 5), Some(5));
    assert_eq!(settings.place(8 << 16 | 5), None);
    assert_eq!(settings.place(5), None);
}
