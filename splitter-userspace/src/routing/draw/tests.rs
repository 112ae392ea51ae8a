use super::*;
use crate::routing::fixtures::weights;

fn blocks(seed: u64) -> Blocks {
    Blocks::new(fastrand::Rng::with_seed(seed))
}

fn one(blocks: &mut Blocks, slot: u32, weights: &Weights) -> usize {
    weights.at(blocks.slot(SlotId(slot), weights).point(weights.total()))
}

fn run(blocks: &mut Blocks, slot: u32, weights: &Weights, length: usize) -> Vec<usize> {
    (0..length).map(|_| one(blocks, slot, weights)).collect()
}

fn counts(run: &[usize]) -> [u32; MAX_VARIANTS] {
    run.iter().fold([0; MAX_VARIANTS], |mut counts, variant| {
        counts[*variant] += 1;
        counts
    })
}

#[test]
fn every_block_is_exact() {
    for values in [
        &[95, 5][..],
        &[1, 1],
        &[50, 50],
        &[999, 1],
        &[1, 999],
        &[0, 3, 4],
        &[7_000, 1, 2, 3, 4, 5, 6, 2_979],
        &[1; 8],
    ] {
        let weights = weights(values);
        let mut blocks = blocks(1);
        for block in 0..20 {
            let run = run(&mut blocks, 3, &weights, weights.total() as usize);
            assert_eq!(counts(&run), weights.values, "{values:?}, block {block}");
        }
    }
}

#[test]
fn orders_differ_between_blocks_and_are_not_even() {
    let weights = weights(&[90, 10]);
    let mut blocks = blocks(2);
    let orders: Vec<_> = (0..50)
        .map(|_| run(&mut blocks, 0, &weights, 100))
        .collect();
    for (index, order) in orders.iter().enumerate() {
        assert!(
            !orders[..index].contains(order),
            "block {index} repeats an earlier one"
        );
    }
    // Evenly spread canaries would stand 10 apart in every block.
    let gaps = |order: &[usize]| {
        let at: Vec<_> = (0..100).filter(|index| order[*index] == 1).collect();
        at.windows(2)
            .map(|pair| pair[1] - pair[0])
            .collect::<std::collections::BTreeSet<_>>()
    };
    let uneven = orders.iter().filter(|order| gaps(order).len() > 3).count();
    assert!(uneven > 45, "{uneven} of 50");
}

#[test]
fn each_place_in_a_block_is_equally_likely() {
    let weights = weights(&[9, 1]);
    let mut blocks = blocks(3);
    let mut at = [0_u32; 10];
    for _ in 0..10_000 {
        let order = run(&mut blocks, 0, &weights, 10);
        for (place, variant) in order.iter().enumerate() {
            at[place] += *variant as u32;
        }
    }
    // 1,000 each are expected, with a deviation of 30.
    assert!(
        at.iter().all(|count| (850..1_150).contains(count)),
        "{at:?}"
    );
}

#[test]
fn slots_do_not_disturb_each_other() {
    let (a, b) = (weights(&[3, 7]), weights(&[19, 1]));
    let mut blocks = blocks(4);
    let (mut first, mut second) = (vec![], vec![]);
    for _ in 0..20 {
        first.push(one(&mut blocks, 0, &a));
        second.push(one(&mut blocks, 9, &b));
    }
    assert_eq!(counts(&first[..10]), a.values);
    assert_eq!(counts(&first[10..]), a.values);
    assert_eq!(counts(&second), b.values);
}

#[test]
fn new_weights_start_a_new_block() {
    let (old, new) = (weights(&[900, 100]), weights(&[500, 500]));
    let mut blocks = blocks(5);
    run(&mut blocks, 0, &old, 333);
    assert_eq!(counts(&run(&mut blocks, 0, &new, 1_000)), new.values);
    run(&mut blocks, 0, &new, 1);
    assert_eq!(counts(&run(&mut blocks, 0, &old, 1_000)), old.values);
}

#[test]
fn workers_draw_apart() {
    let weights = weights(&[50, 50]);
    let length = 10_000;
    let draws: Vec<_> = (0..8)
        .map(|seed| run(&mut blocks(seed), 0, &weights, length))
        .collect();
    for (index, a) in draws.iter().enumerate() {
        for b in &draws[..index] {
            let same = a.iter().zip(b).filter(|(a, b)| a == b).count();
            // 5,000 are expected, with a deviation of 50.
            assert!((4_750..5_250).contains(&same), "{same}");
        }
    }
}

#[test]
fn any_weights_and_slots_give_a_point() {
    let mut blocks = blocks(8);
    for values in [
        [u32::MAX; 8],
        [0, u32::MAX, 0, 0, 0, 0, 0, 1],
        [1, 0, 0, 0, 0, 0, 0, 0],
    ] {
        let weights = Weights { values, len: 8 };
        for slot in [0, MAX_BLOCKS as u32 - 1, MAX_BLOCKS as u32, u32::MAX] {
            for _ in 0..100 {
                assert!(
                    blocks.slot(SlotId(slot), &weights).point(weights.total()) < weights.total()
                );
            }
        }
    }
    assert_eq!(blocks.urns.len(), MAX_BLOCKS);
}

#[test]
fn slots_past_the_limit_are_drawn_by_their_weights() {
    let weights = weights(&[75, 25]);
    let run = run(&mut blocks(9), u32::MAX, &weights, 10_000);
    let canary = counts(&run)[1];
    assert!((2_200..2_800).contains(&canary), "{canary}");
}

#[test]
fn memory_is_small_and_reserved_once() {
    assert_eq!(size_of::<Urn>(), 36);
    let mut blocks = blocks(10);
    blocks.reserve(10);
    let room = blocks.urns.as_ptr();
    run(&mut blocks, 9, &weights(&[1, 1]), 4);
    assert_eq!(blocks.urns.as_ptr(), room);
    blocks.reserve(5);
    assert_eq!(blocks.urns.len(), 10);
}

#[test]
fn fingerprints_differ() {
    let mut seen = std::collections::BTreeSet::new();
    for canary in 0..=1_000 {
        assert!(seen.insert(fingerprint(&weights(&[1_000 - canary, canary]))));
    }
}
