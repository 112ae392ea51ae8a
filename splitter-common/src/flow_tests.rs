extern crate std;

use std::vec;
use std::vec::Vec;

use super::*;

fn v4(address: [u8; 4]) -> [u8; 16] {
    let mut mapped = [0; 16];
    mapped[10..12].fill(0xff);
    mapped[12..].copy_from_slice(&address);
    mapped
}

fn flow(source: [u8; 4], port: u16) -> Flow {
    Flow {
        source: v4(source),
        destination: v4([203, 0, 113, 5]),
        source_port: port,
        destination_port: 5432,
        protocol: PROTO_TCP,
    }
}

fn two(weight: u32, total: u32) -> [u32; MAX_VARIANTS] {
    let mut weights = [0; MAX_VARIANTS];
    (weights[0], weights[1]) = (total - weight, weight);
    weights
}

/// How many of these places each Variant has.
fn counts(weights: &[u32; MAX_VARIANTS], points: impl Iterator<Item = u16>) -> Vec<u32> {
    let mut counts = vec![0; MAX_VARIANTS];
    for point in points {
        counts[variant_at(weights, point)] += 1;
    }
    counts
}

/// Weights of a canary, and what all have.
pub(crate) const SHARES: [(u32, u32); 7] = [
    (0, 100),
    (1, 1000),
    (1, 100),
    (333, 1000),
    (50, 100),
    (999, 1000),
    (100, 100),
];

fn ports() -> impl Iterator<Item = u16> {
    (0..=u16::MAX).map(|port| flow([192, 0, 2, 9], port).point())
}

#[test]
fn all_ports_of_a_client_are_split_within_a_tenth_of_a_point() {
    for (weight, total) in SHARES {
        let counted = counts(&two(weight, total), ports());
        let share = f64::from(counted[1]) / 655.36;
        let wanted = f64::from(weight) * 100.0 / f64::from(total);
        assert!((share - wanted).abs() < 0.1, "{weight} of {total}: {share}");
        if weight == 0 || weight == total {
            assert_eq!(counted[1], if weight == 0 { 0 } else { POINTS });
        }
    }
}

#[test]
fn a_larger_share_takes_only_its_own_points() {
    let (ten, twenty) = (two(10, 100), two(20, 100));
    let moved =
        (0..=u16::MAX).filter(|point| variant_at(&ten, *point) != variant_at(&twenty, *point));
    let moved: Vec<u16> = moved.collect();
    assert!(moved.iter().all(|point| variant_at(&twenty, *point) == 1));
    assert_eq!(moved.len(), 6554);
}

#[test]
fn several_canaries_are_beside_each_other_and_do_not_move_one_another() {
    let mut weights = [0; MAX_VARIANTS];
    weights[..4].copy_from_slice(&[70, 10, 5, 15]);
    let counted = counts(&weights, ports());
    for (count, wanted) in counted.iter().zip([70.0, 10.0, 5.0, 15.0]) {
        assert!(
            (f64::from(*count) / 655.36 - wanted).abs() < 0.01,
            "{counted:?}"
        );
    }
    let mut next = weights;
    (next[0], next[3]) = (60, 25);
    for point in 0..=u16::MAX {
        let (before, after) = (variant_at(&weights, point), variant_at(&next, point));
        assert!(before == after || (before, after) == (0, 3));
    }
}

#[test]
fn no_weight_at_all_is_stable_and_huge_ones_do_not_overflow() {
    assert_eq!(variant_at(&[0; MAX_VARIANTS], 7), 0);
    let all = [u32::MAX; MAX_VARIANTS];
    let counted = counts(&all, 0..=u16::MAX);
    assert_eq!(counted, vec![8192; MAX_VARIANTS]);
}

#[test]
fn neighbours_are_split_exactly_by_address_and_ports_do_not_matter() {
    let points = (0..=u16::MAX).map(|host| {
        let [high, low] = host.to_be_bytes();
        flow([10, 7, high, low], 1).source_point()
    });
    assert_eq!(counts(&two(10, 100), points)[1], 6554);
    let (one, other) = (flow([10, 7, 1, 2], 1), flow([10, 7, 1, 2], 2));
    assert_eq!(one.source_point(), other.source_point());
    assert_ne!(one.point(), other.point());
}

#[test]
fn the_ring_is_seen_whole_by_both_sides_of_a_split() {
    const SIZE: u32 = 64;
    let weights = two(50, 100);
    let mut seen = [[0u32; SIZE as usize]; 2];
    for port in 0..=u16::MAX {
        let flow = flow([192, 0, 2, 9], port);
        let variant = variant_at(&weights, flow.point());
        seen[variant][flow.place(SIZE) as usize] += 1;
    }
    for side in seen {
        // 512 each on average; six deviations.
        assert!(
            side.iter().all(|count| (376..=648).contains(count)),
            "{side:?}"
        );
    }
    assert_eq!(flow([1, 2, 3, 4], 5).place(0), 0);
}

/// Nodes and versions must agree: a change of these sends flows elsewhere.
#[test]
fn is_the_same_for_ever() {
    let flow = flow([192, 0, 2, 9], 40_000);
    assert_eq!(
        (flow.point(), flow.source_point(), flow.place(4093)),
        (21_388, 27_909, 969)
    );
}

/// What a client uses of its ports is a part of them: a part is split as by chance, no worse.
#[test]
fn a_thousand_ports_in_a_row_are_split_as_by_chance() {
    const CLIENTS: u8 = 200;
    let mut squares = 0.0;
    for client in 0..CLIENTS {
        let ports = (40_000..42_000).step_by(2);
        let points = ports.map(|port| flow([192, 0, 2, client], port).point());
        let counted = f64::from(counts(&two(10, 100), points)[1]);
        squares += (counted - 100.0) * (counted - 100.0) / 90.0;
    }
    // The mean of so many squared deviations is 1, to within four of its own.
    let mean = squares / f64::from(CLIENTS);
    assert!((0.6..1.4).contains(&mean), "{mean}");
}
