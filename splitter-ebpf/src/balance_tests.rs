extern crate std;

use std::vec;

use super::*;
use crate::bench::Bench;
use crate::packets::{End, TCP, UDP, Wire, end, network, packet, transport, wire};

const SYN: u8 = 2;
const ACK: u8 = 0x10;
const FIN: u8 = 1;

const NEW_HERE: Balance = Balance::Pass(BalanceReason::New);
const KNOWN_HERE: Balance = Balance::Pass(BalanceReason::Known);
const NEW_THERE: Balance = Balance::Transmit(BalanceReason::New);
const KNOWN_THERE: Balance = Balance::Transmit(BalanceReason::Known);
const REPLY: Balance = Balance::Transmit(BalanceReason::Reply);

/// Front, client, an Endpoint here and one elsewhere, of one family.
fn places(v6: bool) -> [End; 4] {
    match v6 {
        false => [
            end("203.0.113.1", 5432),
            end("198.51.100.7", 40_000),
            end("10.244.0.7", 5001),
            end("10.244.9.7", 5003),
        ],
        true => [
            end("2001:db8::1", 5432),
            end("2001:db8:9::7", 40_000),
            end("fd00:244::7", 5001),
            end("fd00:244:0:9::7", 5003),
        ],
    }
}

#[test]
fn a_connection_to_an_endpoint_here_keeps_its_client() {
    for v6 in [false, true] {
        let [front, client, here, _] = places(v6);
        let bench = Bench::new(&[&front], &[(&here, true)], TCP);
        let there = (client.clone(), here.clone());
        assert_eq!(bench.sends(&client, &front, SYN, NEW_HERE), there);
        assert_eq!(
            bench.answers(&here, &client, SYN | ACK),
            Some((front.clone(), client.clone()))
        );
        assert_eq!(bench.sends(&client, &front, ACK, KNOWN_HERE), there);
        // What the pod says to others, or from another port, is its own.
        assert_eq!(bench.answers(&here, &front, ACK), None);
        let other = End {
            port: 9,
            ..here.clone()
        };
        assert_eq!(bench.answers(&other, &client, ACK), None);
        assert_eq!(*bench.chosen.borrow(), [0]);
        assert!(bench.traffic.borrow()[&(100, false)] > 0);
        assert!(bench.traffic.borrow()[&(100, true)] > 0);
    }
}

#[test]
fn a_connection_to_an_endpoint_elsewhere_is_the_nodes_own() {
    for v6 in [false, true] {
        let [front, client, _, there] = places(v6);
        let bench = Bench::new(&[&front], &[(&there, false)], TCP);
        let (own, to) = bench.sends(&client, &front, SYN, NEW_THERE);
        assert_eq!((&own.addr, &to), (&front.addr, &there));
        assert!((61_000..=61_003).contains(&own.port));
        let back = bench.sends(&there, &own, SYN | ACK, REPLY);
        assert_eq!(back, (front.clone(), client.clone()));
        let again = bench.sends(&client, &front, ACK, KNOWN_THERE);
        assert_eq!(again, (own.clone(), there.clone()));
        // Somebody else's packet to that port is not a reply.
        let other = End {
            port: 9,
            ..there.clone()
        };
        bench.leaves(&other, &own, ACK, None);
    }
}

#[test]
fn a_flow_is_safe_from_forged_ones_once_its_endpoint_has_sent_data() {
    let [front, client, here, there] = places(false);
    for (endpoint, local) in [(&here, true), (&there, false)] {
        let bench = Bench::new(&[&front], &[(endpoint, local)], TCP);
        let (new, known) = match local {
            true => (NEW_HERE, KNOWN_HERE),
            false => (NEW_THERE, KNOWN_THERE),
        };
        let (own, _) = bench.sends(&client, &front, SYN, new);
        let reply = |flags: u8, data: &[u8]| {
            let mut it = packet(endpoint, &own, TCP, flags, data);
            if !local {
                assert_eq!(bench.go(&mut it), Some(REPLY));
                return;
            }
            let mut work = Work {
                head: Head::of(&it).unwrap(),
                ..Work::default()
            };
            assert!(answer(&bench, 64, &mut work));
        };
        // All this may be said to one that was never there: SYN and data of a fast opening, what is said of a
        // number that is wrong, a refusal.
        reply(SYN | ACK, b"");
        reply(SYN | ACK, b"data");
        bench.sends(&client, &front, ACK, known);
        reply(ACK, b"");
        reply(4, b"");
        assert_eq!(bench.flows.borrow().len(), 0);
        reply(ACK, b"data");
        assert_eq!(bench.flows.borrow().len(), 2);
        // A flood takes every place.
        bench.unproven.borrow_mut().clear();
        bench.sends(&client, &front, ACK, known);
        reply(ACK, b"data");
        // What comes after it begins like any other.
        bench.sends(&client, &front, FIN | ACK, known);
        bench.sends(&client, &front, SYN, new);
        assert_eq!(bench.unproven.borrow().len(), 2);
        assert!(
            !bench
                .flows
                .borrow()
                .values()
                .any(|it| it.flags & FlowValue::REPLY == 0)
        );
    }
}

#[test]
fn datagrams_prove_nothing() {
    let [front, client, here, _] = places(false);
    let bench = Bench::new(&[&front], &[(&here, true)], UDP);
    bench.sends(&client, &front, 0, NEW_HERE);
    assert!(bench.answers(&here, &client, 0).is_some());
    bench.sends(&client, &front, 0, KNOWN_HERE);
    assert!(bench.answers(&here, &client, 0).is_some());
    assert_eq!(bench.flows.borrow().len(), 0);
}

#[test]
fn what_is_not_for_a_front_is_untouched() {
    let [front, client, here, _] = places(false);
    let bench = Bench::new(&[&front], &[(&here, true)], TCP);
    let other_port = End {
        port: 80,
        ..front.clone()
    };
    let other_addr = end("203.0.113.9", front.port);
    for to in [&other_port, &other_addr] {
        bench.leaves(&client, to, SYN, None);
    }
    let mut udp = packet(&client, &front, UDP, 0, b"");
    assert_eq!(bench.go(&mut udp), None);
    // Of a connection that user space has, or that nobody has.
    bench.leaves(&client, &front, ACK, Some(BalanceReason::NoFlow));
}

#[test]
fn weights_move_what_is_new_and_a_repeated_opening_stays() {
    let [front, client, here, there] = places(false);
    let bench = Bench::new(&[&front], &[(&here, true), (&there, false)], TCP);
    bench.sends(&client, &front, SYN, NEW_HERE);
    bench.weigh(&[0, 1]);
    bench.sends(&client, &front, SYN, KNOWN_HERE);
    bench.sends(&client, &front, ACK, KNOWN_HERE);
    // Whoever asks for it once more in the client's name changes nothing: the Endpoint answers that.
    bench.sends(&client, &front, SYN, KNOWN_HERE);
    let next = End {
        port: 40_001,
        ..client.clone()
    };
    bench.sends(&next, &front, SYN, NEW_THERE);
    // A connection that has ended makes room for another one from the same port.
    bench.sends(&client, &front, FIN | ACK, KNOWN_HERE);
    bench.sends(&client, &front, SYN, NEW_THERE);
    assert_eq!(*bench.chosen.borrow(), [0, 1, 1]);
}

#[test]
fn an_opening_is_believed_for_a_minute_and_only_while_the_endpoint_takes_any() {
    let [front, client, here, there] = places(false);
    let mut bench = Bench::new(&[&front], &[(&here, true), (&there, false)], TCP);
    bench.sends(&client, &front, SYN, NEW_HERE);
    bench.weigh(&[0, 1]);
    bench.later(65);
    bench.sends(&client, &front, SYN, NEW_THERE);
    bench.weigh(&[1, 0]);
    bench.targets[1].state = Target::KEEPS;
    bench.sends(&client, &front, SYN, NEW_HERE);
}

#[test]
fn an_endpoint_that_is_gone_is_told_and_replaced() {
    for (protocol, is_tcp) in [(TCP, true), (UDP, false)] {
        let [front, client, here, there] = places(false);
        let mut bench = Bench::new(&[&front], &[(&here, true), (&there, false)], protocol);
        bench.sends(&client, &front, SYN, NEW_HERE);
        bench.sends(&client, &front, ACK, KNOWN_HERE);
        bench.forget(0);
        bench.weigh(&[0, 1]);
        if is_tcp {
            bench.leaves(&client, &front, ACK, Some(BalanceReason::Gone));
        }
        bench.sends(&client, &front, SYN, NEW_THERE);
        // Another one that has its place is not it.
        bench.targets[1].epoch = 8;
        match is_tcp {
            true => bench.leaves(&client, &front, ACK, Some(BalanceReason::Gone)),
            false => {
                bench.sends(&client, &front, ACK, NEW_THERE);
            }
        }
    }
}

#[test]
fn datagrams_after_a_silence_are_decided_anew() {
    let [front, client, here, there] = places(false);
    let bench = Bench::new(&[&front], &[(&here, true), (&there, false)], UDP);
    bench.sends(&client, &front, 0, NEW_HERE);
    bench.weigh(&[0, 1]);
    bench.later(29);
    bench.sends(&client, &front, 0, KNOWN_HERE);
    bench.later(31);
    bench.sends(&client, &front, 0, NEW_THERE);
}

#[test]
fn what_cannot_be_forwarded_is_left_to_user_space_with_a_reason() {
    let [front, client, here, there] = places(false);
    let mut bench = Bench::new(&[&front], &[(&here, true)], TCP);
    bench.settings.local = 0;
    bench.leaves(&client, &front, SYN, Some(BalanceReason::NoWay));
    let mut bench = Bench::new(&[&front], &[(&there, false)], TCP);
    for addr in [&there, &client] {
        let word = u32::from_ne_bytes([addr.addr[0], addr.addr[1], addr.addr[2], addr.addr[3]]);
        bench.no_way.borrow_mut().insert(word);
        bench.leaves(&client, &front, SYN, Some(BalanceReason::NoWay));
        bench.no_way.borrow_mut().clear();
    }
    bench.settings.own4 = [0; 4];
    bench.leaves(&client, &front, SYN, Some(BalanceReason::NoWay));
    let bench = Bench::new(&[&front], &[(&end("fd00::7", 1), true)], TCP);
    bench.leaves(&client, &front, SYN, Some(BalanceReason::NoWay));
    let mut bench = Bench::new(&[&front], &[(&here, true)], TCP);
    bench
        .fronts
        .values_mut()
        .for_each(|row| row.variants[0].len = 0);
    bench.leaves(&client, &front, SYN, Some(BalanceReason::NoEndpoint));
    let bench = Bench::new(&[&front], &[(&here, true)], TCP);
    bench.admitted.set(0);
    bench.leaves(&client, &front, SYN, Some(BalanceReason::TooMany));
    bench.admitted.set(9);
    for room in [0, 1] {
        bench.room.set(room);
        bench.leaves(&client, &front, SYN, Some(BalanceReason::NoRoom));
        assert!(bench.unproven.borrow().is_empty(), "nothing is left of it");
    }
    let mut bench = Bench::new(&[&front], &[(&here, true)], TCP);
    bench.forget(0);
    bench.leaves(&client, &front, SYN, Some(BalanceReason::Torn));
}

#[test]
fn ports_to_other_nodes_are_used_again_only_when_nobody_waits() {
    let [front, client, _, there] = places(false);
    let mut bench = Bench::new(&[&front], &[(&there, false)], TCP);
    // One port: tried more than once, it is found.
    bench.settings.last_port = 61_000;
    bench.sends(&client, &front, SYN, NEW_THERE);
    let next = End {
        port: 40_001,
        ..client.clone()
    };
    bench.leaves(&next, &front, SYN, Some(BalanceReason::NoPort));
    bench.sends(&client, &front, ACK, KNOWN_THERE);
    bench.later(1_000);
    bench.leaves(&next, &front, SYN, Some(BalanceReason::NoPort));
    bench.sends(&there, &end("203.0.113.1", 61_000), ACK, REPLY);
    bench.leaves(&next, &front, SYN, Some(BalanceReason::NoPort));
    bench.sends(&client, &front, FIN | ACK, KNOWN_THERE);
    bench.later(9);
    bench.leaves(&next, &front, SYN, Some(BalanceReason::NoPort));
    bench.later(1_000);
    bench.sends(&next, &front, SYN, NEW_THERE);
    let own = end("203.0.113.1", 61_000);
    assert_eq!(bench.sends(&there, &own, ACK, REPLY).1, next);
}

#[test]
fn one_client_port_at_two_fronts_of_one_endpoint_is_not_mixed_up() {
    let [front, client, here, _] = places(false);
    let other = end("203.0.113.80", 5432);
    let bench = Bench::new(&[&front, &other], &[(&here, true)], TCP);
    bench.sends(&client, &front, SYN, NEW_HERE);
    bench.leaves(&client, &other, SYN, Some(BalanceReason::NoPort));
    let back = bench.answers(&here, &client, ACK);
    assert_eq!(back, Some((front.clone(), client.clone())));
}

#[test]
fn a_way_that_is_lost_and_the_last_hop_end_a_packet() {
    let [front, client, _, there] = places(false);
    let bench = Bench::new(&[&front], &[(&there, false)], TCP);
    bench.sends(&client, &front, SYN, NEW_THERE);
    let word = u32::from_ne_bytes([there.addr[0], there.addr[1], there.addr[2], there.addr[3]]);
    bench.no_way.borrow_mut().insert(word);
    let mut it = packet(&client, &front, TCP, ACK, b"");
    assert_eq!(
        bench.go(&mut it),
        Some(Balance::Drop(BalanceReason::LostWay))
    );
    bench.no_way.borrow_mut().clear();
    let mut bytes = packet(&client, &front, TCP, ACK, b"").bytes();
    bytes[14 + 8] = 1;
    let expired = Some(Balance::Drop(BalanceReason::Expired));
    assert_eq!(bench.go(&mut Wire::new(&bytes)), expired);
}

#[test]
fn pieces_follow_the_first_one_both_ways() {
    let [front, client, here, _] = places(false);
    let bench = Bench::new(&[&front], &[(&here, true)], UDP);
    let pieces = |from: &End, to: &End| {
        let datagram = transport(from, to, UDP, 0, &[3; 48]);
        let of = |field: u16, part: &[u8]| wire(&network(&from.addr, &to.addr, UDP, field, part));
        [of(0x2000, &datagram[..32]), of(4, &datagram[32..])]
    };
    let [mut first, mut second] = pieces(&client, &front);
    assert_eq!(bench.go(&mut second), None, "nobody knows its ports yet");
    assert_eq!(bench.go(&mut first), Some(NEW_HERE));
    assert_eq!(bench.go(&mut second), Some(KNOWN_HERE));
    assert_eq!(second.bytes()[30..34], here.addr);
    let [first, second] = pieces(&here, &client);
    for it in [first, second] {
        let head = Head::of(&it).unwrap();
        let mut work = Work {
            head,
            ..Work::default()
        };
        assert!(answer(&bench, 64, &mut work));
        let source = work.record.ends[0].to_ne_bytes();
        assert_eq!(source[..], front.addr);
    }
}

#[test]
fn over_all_ports_the_share_is_exact_and_a_change_moves_its_own_part_only() {
    let [front, client, here, there] = places(false);
    let mut before = vec![0; 65_536];
    for (canary, total) in [
        (100, 1_000),
        (200, 1_000),
        (1, 1_000),
        (333, 1_000),
        (0, 5),
        (5, 5),
    ] {
        let bench = Bench::new(&[&front], &[(&here, true), (&there, true)], TCP);
        bench.weigh(&[total - canary, canary]);
        let mut moved = 0u32;
        for port in 0..=u16::MAX {
            let client = End {
                port,
                ..client.clone()
            };
            bench.sends(&client, &front, SYN, NEW_HERE);
        }
        let chosen = bench.chosen.borrow();
        let share = chosen.iter().filter(|it| **it == 1).count() as f64 / 65_536.0;
        let wanted = f64::from(canary) / f64::from(total);
        assert!((share - wanted).abs() < 0.001, "{share} for {wanted}");
        if canary == 200 {
            for (port, variant) in chosen.iter().enumerate() {
                assert!(before[port] <= *variant, "who had the canary keeps it");
                moved += u32::from(before[port] != *variant);
            }
            assert!(f64::from(moved) / 65_536.0 < 0.105, "{moved}");
        }
        before.copy_from_slice(&chosen);
    }
}

#[test]
fn errors_reach_the_side_that_sent_the_packet() {
    let [front, client, here, there] = places(false);
    for (endpoint, local) in [(&here, true), (&there, false)] {
        let bench = Bench::new(&[&front], &[(endpoint, local)], TCP);
        let (own, _) = match local {
            true => bench.sends(&client, &front, SYN, NEW_HERE),
            false => bench.sends(&client, &front, SYN, NEW_THERE),
        };
        // A router on the way to the client finds an answer too large.
        let seen = transport(&front, &client, TCP, ACK, &[0; 8]);
        let seen = network(&front.addr, &client.addr, TCP, 0x4000, &seen);
        let message = [&[3, 4, 0, 0, 0, 0, 5, 0][..], &seen].concat();
        let router = end("192.0.2.254", 0);
        let mut it = wire(&network(&router.addr, &front.addr, 1, 0, &message));
        let expected = match local {
            true => Balance::Pass(BalanceReason::Error),
            false => Balance::Transmit(BalanceReason::Error),
        };
        let found = error(&bench, &mut it, &mut Work::default());
        assert_eq!(found, Some(expected));
        assert_eq!(it.bytes()[30..34], endpoint.addr);
        assert_eq!(
            it.bytes()[54..58],
            endpoint.addr,
            "it quotes what the Endpoint sent"
        );
        assert_eq!(it.bytes()[58..62], own.addr);
        // Of a flow that nobody has it is left alone.
        let other = network(&front.addr, &[192, 0, 2, 9], TCP, 0, &seen[20..]);
        let message = [&[3, 4, 0, 0, 0, 0, 5, 0][..], &other].concat();
        let mut it = wire(&network(&router.addr, &front.addr, 1, 0, &message));
        assert_eq!(error(&bench, &mut it, &mut Work::default()), None);
    }
}
