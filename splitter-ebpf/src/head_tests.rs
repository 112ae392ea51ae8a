extern crate std;

use super::*;
use crate::packets::{Dice, End, TCP, UDP, Wire, end, ends_of, network, packet, transport, wire};

/// Both ends as a flow has them.
pub fn ends(from: &End, to: &End) -> Ends {
    let word = |end: &End, index: usize| {
        let bytes = end.addr.get(4 * index..4 * index + 4);
        bytes.map_or(0, |it| u32::from_ne_bytes([it[0], it[1], it[2], it[3]]))
    };
    let mut all = [0; 9];
    for index in 0..4 {
        (all[index], all[4 + index]) = (word(from, index), word(to, index));
    }
    all[8] = FlowKey::ports(from.port, to.port);
    all
}

#[test]
fn any_packet_gets_any_ends_and_right_checksums() {
    let mut dice = Dice(7);
    for round in 0..4_000 {
        let (v6, protocol) = (round % 2 == 0, if round % 4 < 2 { TCP } else { UDP });
        let (from, to) = (dice.end(v6), dice.end(v6));
        let (new_from, new_to) = (dice.end(v6), dice.end(v6));
        let size = (dice.next() >> 40) as usize % 64;
        let data = dice.bytes(size);
        let mut packet = packet(&from, &to, protocol, 0x10, &data);
        let head = Head::of(&packet).unwrap();
        assert_eq!(head.both(), ends(&from, &to));
        assert_eq!((head.v6, head.tcp), (v6, protocol == TCP));
        assert!(rewrite(&mut packet, &head, &ends(&new_from, &new_to)));
        assert!(age(&mut packet, v6));
        assert_eq!(ends_of(&packet), (new_from, new_to));
        assert!(packet.bytes().ends_with(&data));
    }
}

#[test]
fn a_datagram_without_a_checksum_keeps_none_and_one_that_comes_out_as_zero_is_written_as_ones() {
    let (from, to) = (end("192.0.2.1", 1), end("203.0.113.1", 53));
    let mut bytes = packet(&from, &to, UDP, 0, b"hi").bytes();
    bytes[40..42].fill(0);
    let mut packet_without = Wire::new(&bytes);
    let head = Head::of(&packet_without).unwrap();
    assert!(rewrite(&mut packet_without, &head, &ends(&to, &from)));
    assert_eq!(packet_without.bytes()[40..42], [0, 0]);
    // All source ports: one of them brings the checksum to zero.
    let mut ones = 0;
    for port in 0..=u16::MAX {
        let mut it = packet(&from, &to, UDP, 0, b"hi");
        let from = End {
            port,
            ..from.clone()
        };
        assert!(rewrite(&mut it, &head, &ends(&from, &to)));
        let checksum = [it.bytes()[40], it.bytes()[41]];
        assert_ne!(checksum, [0, 0]);
        ones += u32::from(checksum == [0xff, 0xff]);
    }
    assert!(ones > 0);
}

#[test]
fn a_source_for_the_way_out_is_what_a_rewrite_would_make() {
    let mut dice = Dice(9);
    for round in 0..400 {
        let v6 = round % 2 == 0;
        let (from, to, new) = (dice.end(v6), dice.end(v6), dice.end(v6));
        let it = packet(&from, &to, TCP, 0x10, b"x");
        let head = Head::of(&it).unwrap();
        let source = Source::of(&head, &ends(&new, &to));
        let mut bytes = it.bytes();
        let at = head.checksum_at();
        let mut checksum = u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        Change(u32::from(source.addresses) + u32::from(source.ports)).apply(&mut checksum);
        bytes[at..at + 2].copy_from_slice(&checksum.to_ne_bytes());
        let addr: std::vec::Vec<u8> = source.addr.iter().flat_map(|it| it.to_ne_bytes()).collect();
        let size = if v6 { 16 } else { 4 };
        bytes[head.source_at()..][..size].copy_from_slice(&addr[..size]);
        bytes[head.transport_at()..][..2].copy_from_slice(&source.port.to_ne_bytes());
        if !v6 {
            let mut checksum = u16::from_ne_bytes([bytes[24], bytes[25]]);
            Change(u32::from(source.addresses)).apply(&mut checksum);
            bytes[24..26].copy_from_slice(&checksum.to_ne_bytes());
        }
        assert_eq!(ends_of(&Wire::new(&bytes)), (new, to));
    }
}

#[test]
fn pieces_are_told_apart_and_later_ones_keep_their_content() {
    let (from, to) = (end("192.0.2.1", 40_000), end("203.0.113.1", 53));
    let datagram = transport(&from, &to, UDP, 0, &[7; 32]);
    let piece = |field: u16, part: &[u8]| wire(&network(&from.addr, &to.addr, UDP, field, part));
    let first = Head::of(&piece(0x2000, &datagram[..24])).unwrap();
    assert!(first.is(Piece::First));
    assert_eq!(first.both(), ends(&from, &to));
    for field in [0x2003, 3] {
        let mut it = piece(field, &datagram[24..]);
        let later = Head::of(&it).unwrap();
        assert!(later.is(Piece::Later));
        assert_eq!((later.pieces, later.key[8]), (first.pieces, 0));
        assert!(rewrite(&mut it, &later, &ends(&to, &from)));
        assert_eq!(it.bytes()[34..], datagram[24..]);
        assert_eq!(crate::packets::sum(&[&it.bytes()[14..34]]), 0xffff);
    }
    let other = Head::of(&wire(&network(&from.addr, &to.addr, TCP, 0x2000, &[0; 20]))).unwrap();
    assert_ne!(other.pieces, first.pieces);
    assert_eq!(Head::of(&piece(0, &datagram[..7])), None, "too short");
    assert_eq!(
        Head::of(&wire(&network(&from.addr, &to.addr, 1, 3, &[0; 20]))),
        None
    );
}

#[test]
fn the_last_hop_is_not_taken() {
    for (from, to) in [("192.0.2.1", "203.0.113.1"), ("2001:db8::1", "2001:db8::2")] {
        let it = packet(&end(from, 1), &end(to, 2), TCP, 2, &[]);
        let mut bytes = it.bytes();
        let v6 = from.contains(':');
        bytes[if v6 { 14 + 7 } else { 14 + 8 }] = 1;
        let mut it = Wire::new(&bytes);
        assert!(!age(&mut it, v6));
        assert_eq!(it.bytes(), bytes);
    }
}

#[test]
fn any_bytes_are_read_without_a_panic() {
    let mut dice = Dice(3);
    for round in 0..20_000usize {
        let mut bytes = dice.bytes(round % 130);
        if bytes.len() > 14 {
            bytes[12..14].copy_from_slice(if round % 2 == 0 {
                &[8, 0]
            } else {
                &[0x86, 0xdd]
            });
            bytes[14] = if round % 2 == 0 { 0x45 } else { 0x60 };
        }
        let mut it = Wire::new(&bytes);
        if let Some(head) = Head::of(&it) {
            let _ = (age(&mut it, head.v6), rewrite(&mut it, &head, &[5; 9]));
        }
        let _ = crate::quoted::Quoted::of(&it);
    }
}
