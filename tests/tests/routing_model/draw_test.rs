use proptest::prelude::*;
use splitter::model::Weights;
use splitter::routing::{Blocks, Draw, SlotId};

fn weights(values: &[u32]) -> Weights {
    let mut weights = Weights {
        len: values.len() as u8,
        ..Weights::default()
    };
    weights.values[..values.len()].copy_from_slice(values);
    weights
}

fn one(blocks: &mut Blocks, slot: u32, weights: &Weights) -> usize {
    weights.at(blocks.slot(SlotId(slot), weights).point(weights.total()))
}

fn count(blocks: &mut Blocks, slot: u32, weights: &Weights) -> [u32; 8] {
    let mut counts = [0; 8];
    for _ in 0..weights.total() {
        counts[one(blocks, slot, weights)] += 1;
    }
    counts
}

/// Weights with a sum of 1 to 10,000.
fn shares() -> impl Strategy<Value = Weights> {
    let values = prop::collection::vec(prop_oneof![Just(0), 0..10_u32, 0..1_250_u32], 1..=8);
    values
        .prop_map(|values| weights(&values))
        .prop_filter("no weight", |it| it.total() > 0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_block_is_exact(weights in shares(), seed in any::<u64>(), slot in 0..100_u32) {
        let mut blocks = Blocks::new(fastrand::Rng::with_seed(seed));
        for _ in 0..3 {
            prop_assert_eq!(count(&mut blocks, slot, &weights), weights.values);
        }
    }

    #[test]
    fn a_change_of_weights_starts_a_block(
        before in shares(),
        after in shares(),
        done in any::<prop::sample::Index>(),
        seed in any::<u64>(),
    ) {
        prop_assume!(before != after);
        let mut blocks = Blocks::new(fastrand::Rng::with_seed(seed));
        for _ in 0..done.index(before.total() as usize) {
            one(&mut blocks, 0, &before);
        }
        prop_assert_eq!(count(&mut blocks, 0, &after), after.values);
    }

    #[test]
    fn two_slots_used_in_turn_are_both_exact(a in shares(), b in shares(), seed in any::<u64>()) {
        let mut blocks = Blocks::new(fastrand::Rng::with_seed(seed));
        let (mut counted_a, mut counted_b) = ([0; 8], [0; 8]);
        for turn in 0..a.total().max(b.total()) {
            if turn < a.total() {
                counted_a[one(&mut blocks, 1, &a)] += 1;
            }
            if turn < b.total() {
                counted_b[one(&mut blocks, 0, &b)] += 1;
            }
        }
        prop_assert_eq!((counted_a, counted_b), (a.values, b.values));
    }
}

/// One in a thousand over a million requests: exactly a thousand, where independent draws would
/// miss by about thirty.
#[test]
fn one_in_a_thousand_is_exact() {
    let weights = weights(&[999, 1]);
    let mut blocks = Blocks::new(fastrand::Rng::with_seed(1));
    let canaries = (0..1_000_000)
        .filter(|_| one(&mut blocks, 0, &weights) == 1)
        .count();
    assert_eq!(canaries, 1_000);
}

/// The place of a single canary in its block: every place is taken, none foretells the next.
#[test]
fn places_are_spread_and_do_not_follow_each_other() {
    let weights = weights(&[19, 1]);
    let mut blocks = Blocks::new(fastrand::Rng::with_seed(2));
    let places: Vec<usize> = (0..20_000)
        .map(|_| {
            let block: Vec<usize> = (0..20).map(|_| one(&mut blocks, 0, &weights)).collect();
            block.iter().position(|variant| *variant == 1).unwrap()
        })
        .collect();
    let mut pairs = [[0_u32; 20]; 20];
    for pair in places.windows(2) {
        pairs[pair[0]][pair[1]] += 1;
    }
    // 50 of each pair are expected, with a deviation of 7.
    let counts = pairs.iter().flatten();
    assert!(
        counts.clone().all(|count| (10..100).contains(count)),
        "{pairs:?}"
    );
}
