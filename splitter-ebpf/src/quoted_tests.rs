extern crate std;

use std::vec::Vec;

use super::*;
use crate::packets::{
    Dice, End, TCP, UDP, Wire, checked, checksum, end, network, sum, transport, wire,
};

/// An error of this kind from a router about a packet, of which it quotes so many bytes.
fn error(router: &End, to: &End, kind: u8, about: &[u8], quoted: usize) -> Wire {
    let v6 = router.addr.len() == 16;
    let mut message = [&[kind, 1, 0, 0, 0, 0, 5, 0xdc][..], &about[..quoted]].concat();
    let found = match v6 {
        false => !sum(&[&message]),
        true => checksum(&router.addr, &to.addr, ICMP6, &message),
    };
    message[2..4].copy_from_slice(&found.to_be_bytes());
    let protocol = if v6 { ICMP6 } else { ICMP };
    wire(&network(&router.addr, &to.addr, protocol, 0, &message))
}

/// Checks the message's own checksums; gives its ends and what it quotes.
#[track_caller]
fn read(packet: &Wire) -> (Vec<u8>, Vec<u8>, Vec<u8>) {
    let ip = packet.bytes()[14..].to_vec();
    let v6 = ip[0] >> 4 == 6;
    let (from, to, message) = match v6 {
        false => (&ip[12..16], &ip[16..20], &ip[20..]),
        true => (&ip[8..24], &ip[24..40], &ip[40..]),
    };
    if v6 {
        assert_eq!(checksum(from, to, ICMP6, message), 0);
    } else {
        assert_eq!(sum(&[message]), 0xffff);
        assert_eq!(sum(&[&ip[..20]]), 0xffff);
    }
    (from.to_vec(), to.to_vec(), message[8..].to_vec())
}

fn ends(from: &End, to: &End) -> Ends {
    crate::head::tests::ends(from, to)
}

/// A packet without the checksum of TCP, which lies behind what is always quoted.
fn without(ip: &[u8]) -> Vec<u8> {
    let (v6, mut bytes) = (ip[0] >> 4 == 6, ip.to_vec());
    let (protocol, header) = if v6 { (ip[6], 40) } else { (ip[9], 20) };
    if protocol == TCP {
        bytes[header + 16..header + 18].fill(0);
    } else {
        checked(ip);
    }
    bytes
}

#[test]
fn an_error_reaches_whom_the_packet_was_from_and_quotes_what_that_has_sent() {
    let mut dice = Dice(11);
    for round in 0..800 {
        let (v6, protocol) = (round % 2 == 0, if round % 4 < 2 { TCP } else { UDP });
        let [front, client, own, pod, router] = std::array::from_fn(|_| dice.end(v6));
        // What the client was sent, and what the Endpoint had sent.
        let sent = |from: &End, to: &End| {
            network(
                &from.addr,
                &to.addr,
                protocol,
                0,
                &transport(from, to, protocol, 0x10, &[1; 40]),
            )
        };
        let seen = sent(&front, &client);
        let kind = if v6 { 2 } else { 3 };
        let mut packet = error(&router, &front, kind, &seen, seen.len());
        let quoted = Quoted::of(&packet).unwrap();
        let mut key = [0; 10];
        key[..9].copy_from_slice(&ends(&client, &front));
        key[9] = FlowKey::kind(protocol, if v6 { 6 } else { 4 });
        assert_eq!(quoted.key, key);
        // Packets of the client go from `own` to the pod.
        readdress(&mut packet, &quoted, &ends(&own, &pod), true).unwrap();
        let (from, to, quote) = read(&packet);
        assert_eq!((from, to), (own.addr.clone(), pod.addr.clone()));
        assert_eq!(without(&quote), without(&sent(&pod, &own)));
        // On this node the client is seen as it is, and the router as well.
        let mut packet = error(&router, &front, kind, &seen, seen.len());
        readdress(&mut packet, &quoted, &ends(&client, &pod), false).unwrap();
        let (from, to, quote) = read(&packet);
        assert_eq!((from, to), (router.addr.clone(), pod.addr.clone()));
        assert_eq!(without(&quote), without(&sent(&pod, &client)));
    }
}

#[test]
fn eight_bytes_of_the_packet_are_enough() {
    let (front, client, pod) = (
        end("203.0.113.1", 5432),
        end("192.0.2.1", 40_000),
        end("10.244.0.7", 5001),
    );
    let seen = transport(&front, &client, TCP, 0x10, &[1; 40]);
    let seen = network(&front.addr, &client.addr, TCP, 0x4000, &seen);
    let mut packet = error(&client, &front, 3, &seen, 28);
    let quoted = Quoted::of(&packet).unwrap();
    readdress(&mut packet, &quoted, &ends(&client, &pod), false).unwrap();
    let (_, to, quote) = read(&packet);
    assert_eq!(to, pod.addr);
    assert_eq!(sum(&[&quote[..20]]), 0xffff);
    assert_eq!(quote[20..24], [0x13, 0x89, 0x9c, 0x40]);
    assert!(Quoted::of(&error(&client, &front, 3, &seen, 27)).is_none());
}

#[test]
fn other_messages_are_left_alone() {
    let (front, client) = (end("203.0.113.1", 5432), end("192.0.2.1", 40_000));
    let of = |protocol: u8, field: u16| {
        let seen = transport(&front, &client, UDP, 0, &[1; 40]);
        network(&front.addr, &client.addr, protocol, field, &seen)
    };
    for kind in [0, 4, 5, 8, 13] {
        assert!(Quoted::of(&error(&client, &front, kind, &of(UDP, 0), 28)).is_none());
    }
    // Of something else, and of a piece that has no ports.
    assert!(Quoted::of(&error(&client, &front, 3, &of(1, 0), 28)).is_none());
    assert!(Quoted::of(&error(&client, &front, 3, &of(UDP, 5), 28)).is_none());
    assert!(Quoted::of(&error(&client, &front, 3, &of(UDP, 0x2000), 28)).is_some());
    assert!(is_message(&error(&client, &front, 8, &of(UDP, 0), 28)));
    assert!(!is_message(&wire(&of(UDP, 0))));
}
