extern crate std;

use std::collections::BTreeSet;
use std::vec;
use std::vec::Vec;

use super::*;
use crate::flow::tests::SHARES;
use crate::layout::bytes_of;

fn weights(of: &[u32]) -> [u32; MAX_VARIANTS] {
    let mut weights = [0; MAX_VARIANTS];
    weights[..of.len()].copy_from_slice(of);
    weights
}

fn service(lens: &[u32]) -> ServiceValue {
    let mut service = ServiceValue {
        turn: 7,
        ..ServiceValue::default()
    };
    for (index, len) in lens.iter().enumerate() {
        service.lists[index] = EndpointList {
            list: 100 + index as u32,
            len: *len,
        };
    }
    service
}

/// How often each Variant is chosen in these turns.
fn chosen(of: &[u32], turns: impl Iterator<Item = u64>) -> Vec<u32> {
    let (service, weights) = (service(&[1, 1]), weights(of));
    let mut counts = vec![0; MAX_VARIANTS];
    for turn in turns {
        let draw = ConnectDraw {
            turn,
            ..ConnectDraw::default()
        };
        counts[service.pick(&weights, &draw).variant as usize] += 1;
    }
    counts
}

#[test]
fn sixty_four_ki_decisions_in_a_row_have_every_place_once() {
    for start in [0u64, 5 << 16] {
        let points: BTreeSet<_> = (start..start + 65_536)
            .map(|turn| point_of_turn(3, turn))
            .collect();
        assert_eq!(points.len(), 65_536);
    }
}

#[test]
fn shares_are_exact_over_64_ki_and_close_over_any_thousand() {
    for (canary, total) in SHARES {
        let of = [total - canary, canary];
        let wanted = |turns: u32| f64::from(turns) * f64::from(canary) / f64::from(total);
        for start in [0, 65_536, 1000, 123_457] {
            let counted = chosen(&of, start..start + 65_536)[1];
            // Off a multiple of 65,536, the first and the last block of 256 are parts.
            assert!((f64::from(counted) - wanted(65_536)).abs() < 33.0);
            let counted = chosen(&of, start..start + 1000)[1];
            assert!(
                (f64::from(counted) - wanted(1000)).abs() < 50.0,
                "{counted}"
            );
        }
        let exact = chosen(&of, 0..65_536)[1];
        assert!((f64::from(exact) - wanted(65_536)).abs() < 1.0, "{exact}");
    }
}

#[test]
fn who_connects_twice_or_four_times_meets_no_pattern() {
    // Every second, third, ... decision alone is split as all are, within chance.
    for every in 2..=16usize {
        let turns = (0..every as u64 * 4096).step_by(every);
        let counted = chosen(&[50, 50], turns)[1];
        assert!((1_750..2_350).contains(&counted), "{every}: {counted}");
    }
}

#[test]
fn more_weight_moves_only_what_it_takes() {
    let at = |of: &[u32], turn| {
        let point = point_of_turn(1, turn);
        crate::flow::variant_at(&weights(of), point)
    };
    for turn in 0..10_000 {
        if at(&[90, 10], turn) == 1 {
            assert_eq!(at(&[80, 20], turn), 1);
        }
    }
}

#[test]
fn a_client_keeps_its_variant_and_clients_are_split_exactly() {
    let mut service = service(&[1, 1]);
    service.split_by = ConnectBy::Client as u32;
    let weights = weights(&[75, 25]);
    let pick = |client, turn, random| {
        let draw = ConnectDraw {
            turn,
            client,
            random,
        };
        service.pick(&weights, &draw).variant
    };
    let canary = (0..65_536)
        .filter(|client| pick(*client, 0, 0) == 1)
        .count();
    assert_eq!(canary, 16_384);
    for client in 0..100 {
        assert_eq!(pick(client, 0, 0), pick(client, 99, u32::MAX));
    }
}

#[test]
fn endpoints_of_a_list_are_given_alike_and_never_past_its_end() {
    let service = service(&[3]);
    let mut counts = [0; 3];
    for step in 0..3000u64 {
        let draw = ConnectDraw {
            random: (step * u64::from(u32::MAX) / 2999) as u32,
            ..ConnectDraw::default()
        };
        let picked = service.pick(&weights(&[1]), &draw);
        assert_eq!(picked.endpoint.list, 100);
        counts[picked.endpoint.place as usize] += 1;
    }
    assert!(counts.iter().all(|count| (999..=1001).contains(count)));
}

#[test]
fn a_canary_without_endpoints_gives_way_and_stable_does_not() {
    let draw = ConnectDraw::default();
    let picked = |lens: &[u32], of: &[u32]| {
        let picked = service(lens).pick(&weights(of), &draw);
        (picked.variant, picked.reason)
    };
    assert_eq!(picked(&[1, 0], &[0, 1]), (0, ConnectReason::Fallback));
    assert_eq!(picked(&[0, 1], &[1, 0]).1, ConnectReason::NoEndpoint);
    assert_eq!(picked(&[0, 0], &[0, 1]).1, ConnectReason::NoEndpoint);
    assert_eq!(
        picked(&[1, 1], &[]),
        (0, ConnectReason::Split),
        "no weights"
    );
}

/// Whom a socket would be given.
fn given(asked: &mut Asked, for_this: &[u32; 5], now: u64) -> Option<[u32; 5]> {
    asked.fresh(for_this, now).map(|entry| entry.given)
}

const A: [u32; 5] = [1, 0, 0, 0, 9];
const B: [u32; 5] = [2, 0, 0, 0, 9];

#[test]
fn a_socket_remembers_what_it_asked_for() {
    let mut asked = Asked::default();
    assert_eq!(given(&mut asked, &A, 5), None);
    asked.note(&A, &B, 5);
    assert_eq!(given(&mut asked, &A, 6), Some(B));
    assert_eq!(asked.asked(&B), Some(&A));
    assert_eq!((given(&mut asked, &B, 6), asked.asked(&A)), (None, None));
    // The same again takes its own place.
    asked.note(&A, &A, 7);
    assert_eq!(given(&mut asked, &A, 8), Some(A));
    assert_eq!(asked.next, 1);
}

#[test]
fn a_silent_socket_is_given_another_one_but_still_knows_the_first() {
    let mut asked = Asked::default();
    asked.note(&A, &B, 100);
    assert_eq!(given(&mut asked, &A, 100 + ASKED_NANOSECONDS - 1), Some(B));
    assert_eq!(given(&mut asked, &A, 100 + ASKED_NANOSECONDS), None);
    assert_eq!(asked.asked(&B), Some(&A), "late answers are still its own");
}

#[test]
fn the_fifth_service_takes_the_place_of_the_first() {
    let mut asked = Asked::default();
    for number in 1..=5u32 {
        asked.note(&[number, 0, 0, 0, 1], &[number, 0, 0, 0, 2], 1);
    }
    assert_eq!(given(&mut asked, &[1, 0, 0, 0, 1], 2), None);
    for number in 2..=5u32 {
        let found = given(&mut asked, &[number, 0, 0, 0, 1], 2);
        assert_eq!(found, Some([number, 0, 0, 0, 2]));
    }
}

#[test]
fn service_bytes() {
    let mut service = service(&[3, 0]);
    (service.slot, service.split_by) = (0x0102, 1);
    let mut golden = [0u8; 80];
    (golden[0], golden[1], golden[4], golden[8]) = (2, 1, 7, 1);
    (golden[16], golden[20], golden[24]) = (100, 3, 101);
    assert_eq!(bytes_of(&service), golden);
    let key = KeepKey {
        slot: 5,
        endpoint: AddressKey::of([7; 16], 0x1f90, 6, 4),
    };
    let mut golden = [7u8; 24];
    golden[..4].copy_from_slice(&[5, 0, 0, 0]);
    golden[20..].copy_from_slice(&[0x90, 0x1f, 6, 4]);
    assert_eq!(bytes_of(&key), golden);
}

#[test]
fn reasons_have_names_of_their_own() {
    let names: BTreeSet<_> = ConnectReason::ALL.iter().map(|it| it.name()).collect();
    assert_eq!(names.len(), ConnectReason::ALL.len());
    for (code, reason) in ConnectReason::ALL.iter().enumerate() {
        assert_eq!(code, *reason as usize);
        assert_eq!(ConnectCounts::default().named()[code].0, reason.name());
    }
}

#[test]
fn rows_that_differ_have_other_prints() {
    let row = service(&[3, 1]);
    let mut others = vec![row; 6];
    others[0].slot = 1;
    others[1].turn = 8;
    others[2].split_by = 1;
    others[3].lists[0].len = 4;
    others[4].lists[1].list = 9;
    others[5].lists[7].len = 1;
    others.push(row);
    let prints: BTreeSet<_> = others.iter().map(ServiceValue::print).collect();
    assert_eq!(prints.len(), 7);
}
