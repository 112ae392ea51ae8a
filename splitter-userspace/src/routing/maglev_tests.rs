use proptest::prelude::*;

use super::*;

/// Names as hashes of numbers.
fn name(number: u64) -> u64 {
    let mut hash = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash ^ (hash >> 31)
}

fn equal(numbers: impl IntoIterator<Item = u64>) -> Vec<(u64, u32)> {
    numbers.into_iter().map(|it| (name(it), 1)).collect()
}

/// Whose a place is.
fn at(ring: &Ring, place: u32) -> Option<usize> {
    ring.from(place).next()
}

fn counts(ring: &Ring, endpoints: usize) -> Vec<u32> {
    let mut counts = vec![0; endpoints];
    for place in 0..ring.len() {
        counts[at(ring, place).unwrap()] += 1;
    }
    counts
}

#[test]
fn nobody_has_a_ring_and_one_has_all_of_it() {
    assert!(Ring::of(&[]).is_empty());
    assert!(Ring::of(&[(5, 0)]).is_empty());
    assert_eq!(at(&Ring::of(&[]), 0), None);
    assert_eq!(counts(&Ring::of(&equal([7])), 1), [509]);
    for (endpoints, size) in [(5, 509), (6, 4093), (40, 4093), (41, 65_521), (700, 65_521)] {
        assert_eq!(Ring::of(&equal(0..endpoints)).len(), size, "{endpoints}");
    }
}

#[test]
fn one_and_two_are_a_third_and_two_thirds() {
    let ring = Ring::of(&[(name(1), 1), (name(2), 2)]);
    let counted = counts(&ring, 2);
    assert!(counted[0].abs_diff(509 / 3) <= 1, "{counted:?}");
}

#[test]
fn what_is_cut_of_small_parts_does_not_add_up_in_a_large_one() {
    let weights = [88, 29, 23, 9, 17, 21, 4];
    let endpoints: Vec<_> = (0..).map(name).zip(weights).collect();
    let counted = counts(&Ring::of(&endpoints), weights.len());
    assert_eq!(counted, [1886, 621, 493, 193, 364, 450, 86]);
    assert_eq!(counted.iter().sum::<u32>(), 4093);
}

#[test]
fn from_a_place_everybody_is_met_the_owner_first() {
    let ring = Ring::of(&equal(0..3));
    for place in [0, 1, ring.len() - 1] {
        let met: Vec<usize> = ring.from(place).collect();
        assert_eq!(Some(met[0]), at(&ring, place));
        assert_eq!(met.len(), ring.len() as usize);
        assert!((0..3).all(|number| met.contains(&number)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Each has its part to within one place.
    #[test]
    fn weights_are_kept(weights in prop::collection::vec(0u32..=100, 1..12), salt in 0u64..1000) {
        let endpoints: Vec<(u64, u32)> = (salt..).zip(&weights).map(|(it, weight)| (name(it), *weight)).collect();
        let total: u64 = weights.iter().map(|it| u64::from(*it)).sum();
        let ring = Ring::of(&endpoints);
        prop_assume!(total > 0);
        for (count, weight) in counts(&ring, weights.len()).iter().zip(&weights) {
            let wanted = f64::from(ring.len()) * f64::from(*weight) / total as f64;
            prop_assert!((f64::from(*count) - wanted).abs() < 1.0, "{count} for {wanted}");
        }
    }

    /// One that goes gives its own places away, and hardly any other changes hands.
    #[test]
    fn few_places_change_hands(count in 7u64..20, gone in 0u64..20, salt in 0u64..1000) {
        let gone = gone % count;
        let all = Ring::of(&equal(salt..salt + count));
        let rest = Ring::of(&equal((salt..salt + count).filter(|it| *it != salt + gone)));
        let mut moved = 0;
        for place in 0..all.len() {
            let before = at(&all, place).unwrap() as u64;
            let after = at(&rest, place).unwrap() as u64;
            let after = if after >= gone { after + 1 } else { after };
            moved += u32::from(before != gone && before != after);
        }
        // The paper's figure for a ring of this size is a few in a hundred.
        prop_assert!(moved < all.len() / 8, "{moved} of {}", all.len());
    }

    /// The same names in the same order give the same ring.
    #[test]
    fn is_the_same_each_time(count in 1u64..60) {
        prop_assert_eq!(Ring::of(&equal(0..count)), Ring::of(&equal(0..count)));
    }
}
