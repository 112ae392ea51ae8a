extern crate std;

use std::vec;
use std::vec::Vec;

use super::*;
use crate::testing::{ACK, Frame, SYN as SYN_FLAG, ethernet, frame, ipv4, ipv6, tcp};

/// All of it, step by step. What is found in one look is the same.
fn parse(packet: &impl Packet) -> Result<Parsed, PassReason> {
    let parsed = match link(packet)? {
        Network::V4(at) => super::ipv4(packet, at),
        Network::V6(at) => super::ipv6(packet, at),
    };
    if let Some(found) = usual(packet) {
        assert_eq!(parsed.map(|parsed| (parsed, packet.size())), Ok(found));
    }
    parsed
}

const CLIENT: [u8; 4] = [198, 51, 100, 7];
const CLIENT6: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7];

fn v4_peer() -> Peer {
    Peer::v4(u32::from_be_bytes(CLIENT))
}

fn v6_peer() -> Peer {
    Peer::from(core::net::IpAddr::from(CLIENT6))
}

fn syn4() -> Vec<u8> {
    ipv4(CLIENT, TCP, 0, &[], &tcp(SYN_FLAG))
}

fn expect(parts: &[Vec<u8>], source: Peer, syn: bool, reason: PassReason) {
    let parsed = parse(&frame(parts)).unwrap();
    assert_eq!(
        (parsed.source, parsed.syn, parsed.reason),
        (source, syn, reason)
    );
}

fn expect_error(parts: &[Vec<u8>], reason: PassReason) {
    assert_eq!(parse(&frame(parts)), Err(reason));
}

#[test]
fn plain_ipv4_and_ipv6() {
    let classified = PassReason::Classified;
    expect(
        &[ethernet(&[], TYPE_IPV4), syn4()],
        v4_peer(),
        true,
        classified,
    );
    let ack = ipv4(CLIENT, TCP, 0x4000, &[], &tcp(ACK));
    expect(
        &[ethernet(&[], TYPE_IPV4), ack],
        v4_peer(),
        false,
        classified,
    );
    let syn_ack = ipv4(CLIENT, TCP, 0, &[], &tcp(SYN_FLAG | ACK));
    expect(
        &[ethernet(&[], TYPE_IPV4), syn_ack],
        v4_peer(),
        false,
        classified,
    );
    let syn6 = ipv6(CLIENT6, TCP, &tcp(SYN_FLAG));
    expect(
        &[ethernet(&[], TYPE_IPV6), syn6],
        v6_peer(),
        true,
        classified,
    );
    let udp = ipv4(CLIENT, 17, 0, &[], &[0; 8]);
    expect(
        &[ethernet(&[], TYPE_IPV4), udp],
        v4_peer(),
        false,
        classified,
    );
}

#[test]
fn tcp_over_ipv4_is_found_in_one_look() {
    let found = |packet: &[Vec<u8>]| usual(&frame(packet)).is_some();
    let ethernet4 = || ethernet(&[], TYPE_IPV4);
    assert!(found(&[ethernet4(), syn4()]));
    let whole = ipv4(CLIENT, TCP, 0x4000, &[], &tcp(ACK));
    assert!(found(&[ethernet4(), whole, vec![0; 6]]));
    for other in [
        ipv4(CLIENT, TCP, 0x2000, &[], &tcp(ACK)),
        ipv4(CLIENT, TCP, 1, &[], &tcp(ACK)),
        ipv4(CLIENT, TCP, 0, &[1; 4], &tcp(ACK)),
        ipv4(CLIENT, UDP, 0, &[], &tcp(ACK)),
        ipv4(CLIENT, TCP, 0, &[], &tcp(ACK)[..19]),
    ] {
        assert!(!found(&[ethernet4(), other]));
    }
    assert!(!found(&[ethernet(&[0x8100], TYPE_IPV4), syn4()]));
    // Bytes of which not all are in the first piece are counted by other means.
    let long = [
        ethernet4(),
        ipv4(CLIENT, TCP, 0, &[], &[tcp(ACK), vec![0; 100]].concat()),
    ]
    .concat();
    let sizes = [long.len() - 1, long.len()];
    let found = sizes.map(|first| usual(&Frame::in_pieces(&long, first)).map(|it| it.1));
    assert_eq!(found, [None, Some(154)]);
}

/// Whatever a byte says, one look and the other steps agree on it.
#[test]
fn one_look_sees_what_the_steps_see() {
    let packet = [ethernet(&[], TYPE_IPV4), syn4()].concat();
    for at in 12..packet.len() {
        for byte in 0..=u8::MAX {
            let mut packet = packet.clone();
            packet[at] = byte;
            let _ = parse(&Frame::new(&packet));
        }
    }
}

#[test]
fn up_to_two_vlan_tags() {
    for tags in [
        &[0x8100][..],
        &[0x88a8, 0x8100],
        &[0x8100, 0x8100],
        &[0x9100],
    ] {
        let parts = [ethernet(tags, TYPE_IPV4), syn4()];
        expect(&parts, v4_peer(), true, PassReason::Classified);
    }
    let three = ethernet(&[0x88a8, 0x8100, 0x8100], TYPE_IPV4);
    expect_error(&[three, syn4()], PassReason::TooManyTags);
}

#[test]
fn ipv4_options_move_the_tcp_header() {
    for words in 1..=10 {
        let packet = ipv4(CLIENT, TCP, 0, &vec![1; words * 4], &tcp(SYN_FLAG));
        let parts = [ethernet(&[], TYPE_IPV4), packet];
        expect(&parts, v4_peer(), true, PassReason::Classified);
    }
}

#[test]
fn headers_that_contradict_themselves() {
    let malformed = PassReason::Malformed;
    for first in [0x44, 0x55, 0x65, 0x05] {
        let mut packet = syn4();
        packet[0] = first;
        expect_error(&[ethernet(&[], TYPE_IPV4), packet], malformed);
    }
    let mut short = syn4();
    short[2..4].copy_from_slice(&19u16.to_be_bytes());
    expect_error(&[ethernet(&[], TYPE_IPV4), short], malformed);
    let mut packet = ipv6(CLIENT6, TCP, &tcp(SYN_FLAG));
    packet[0] = 0x40;
    expect_error(&[ethernet(&[], TYPE_IPV6), packet], malformed);
}

#[test]
fn what_is_not_ip_passes() {
    expect_error(&[ethernet(&[], 0x0806), vec![0; 28]], PassReason::NotIp);
    expect_error(
        &[ethernet(&[0x8100], 0x88cc), vec![0; 28]],
        PassReason::NotIp,
    );
    // An IEEE 802.3 length instead of a type.
    expect_error(&[ethernet(&[], 40), vec![0; 40]], PassReason::NotIp);
}

#[test]
fn fragments_have_ports_in_the_first_only() {
    let fragment = PassReason::Fragment;
    let more = 0x2000;
    let first = ipv4(CLIENT, TCP, more, &[], &tcp(SYN_FLAG));
    expect(
        &[ethernet(&[], TYPE_IPV4), first],
        v4_peer(),
        true,
        fragment,
    );
    // What lies where the TCP header would be is payload. One byte of it is enough.
    let second = ipv4(CLIENT, TCP, more | 185, &[], &tcp(SYN_FLAG));
    expect(
        &[ethernet(&[], TYPE_IPV4), second],
        v4_peer(),
        false,
        fragment,
    );
    let last = ipv4(CLIENT, TCP, 370, &[], &[1]);
    expect(
        &[ethernet(&[], TYPE_IPV4), last],
        v4_peer(),
        false,
        fragment,
    );
    let tiny = ipv4(CLIENT, TCP, more, &[], &tcp(SYN_FLAG)[..8]);
    expect(
        &[ethernet(&[], TYPE_IPV4), tiny],
        v4_peer(),
        false,
        fragment,
    );
}

fn extension(next: u8, length: u8, size: usize) -> Vec<u8> {
    let mut bytes = vec![next, length];
    bytes.resize(size, 0);
    bytes
}

#[test]
fn ipv6_extension_headers_are_walked() {
    let classified = PassReason::Classified;
    for kind in [
        HOP_BY_HOP,
        ROUTING,
        DESTINATION,
        MOBILITY,
        HOST_IDENTITY,
        SHIM6,
    ] {
        let payload = [extension(TCP, 2, 24), tcp(SYN_FLAG)].concat();
        let parts = [ethernet(&[], TYPE_IPV6), ipv6(CLIENT6, kind, &payload)];
        expect(&parts, v6_peer(), true, classified);
    }
    // The authentication header counts in words of four bytes.
    let payload = [extension(TCP, 4, 24), tcp(SYN_FLAG)].concat();
    let parts = [
        ethernet(&[], TYPE_IPV6),
        ipv6(CLIENT6, AUTHENTICATION, &payload),
    ];
    expect(&parts, v6_peer(), true, classified);
    // The longest extension header.
    let payload = [extension(TCP, 255, 2048), tcp(SYN_FLAG)].concat();
    let parts = [
        ethernet(&[], TYPE_IPV6),
        ipv6(CLIENT6, DESTINATION, &payload),
    ];
    expect(&parts, v6_peer(), true, classified);
}

#[test]
fn six_extension_headers_and_no_more() {
    let chain = |count: usize| {
        let mut payload = Vec::new();
        for left in (0..count).rev() {
            payload.extend(extension(if left == 0 { TCP } else { DESTINATION }, 0, 8));
        }
        payload.extend(tcp(SYN_FLAG));
        [
            ethernet(&[], TYPE_IPV6),
            ipv6(CLIENT6, DESTINATION, &payload),
        ]
    };
    expect(&chain(6), v6_peer(), true, PassReason::Classified);
    expect(&chain(7), v6_peer(), false, PassReason::TooManyExtensions);
}

#[test]
fn ipv6_fragments() {
    let header = |field: u16| [&[TCP, 0][..], &field.to_be_bytes(), &[0, 0, 0, 1]].concat();
    let with = |field| {
        let payload = [header(field), tcp(SYN_FLAG)].concat();
        [ethernet(&[], TYPE_IPV6), ipv6(CLIENT6, FRAGMENT, &payload)]
    };
    expect(&with(1), v6_peer(), true, PassReason::Fragment);
    expect(&with(8 | 1), v6_peer(), false, PassReason::Fragment);
    expect(&with(8), v6_peer(), false, PassReason::Fragment);
    // A fragment of its own: whole, though it has the header. Reserved bits do not matter.
    expect(&with(0), v6_peer(), true, PassReason::Classified);
    expect(&with(6), v6_peer(), true, PassReason::Classified);
}

#[test]
fn no_next_header_and_other_protocols_pass() {
    for next in [58, 59, 17, 132] {
        let parts = [ethernet(&[], TYPE_IPV6), ipv6(CLIENT6, next, &[0; 8])];
        expect(&parts, v6_peer(), false, PassReason::Classified);
    }
}

#[test]
fn a_packet_cut_at_every_byte_is_passed() {
    let v4 = [
        ethernet(&[0x8100], TYPE_IPV4),
        ipv4(CLIENT, TCP, 0, &[1; 8], &tcp(SYN_FLAG)),
    ];
    let inner = [extension(TCP, 0, 8), tcp(SYN_FLAG)].concat();
    let v6 = [
        ethernet(&[0x8100], TYPE_IPV6),
        ipv6(CLIENT6, HOP_BY_HOP, &inner),
    ];
    for (packet, ip) in [(v4.concat(), 18 + 20), (v6.concat(), 18 + 40)] {
        for length in 0..packet.len() {
            let cut = parse(&Frame::new(&packet[..length]));
            if length < ip {
                assert_eq!(cut, Err(PassReason::Truncated), "cut at {length}");
            } else {
                let parsed = cut.unwrap();
                assert_eq!(parsed.reason, PassReason::Truncated, "cut at {length}");
                assert!(!parsed.syn);
            }
        }
        assert_eq!(
            parse(&Frame::new(&packet)).unwrap().reason,
            PassReason::Classified
        );
    }
}
