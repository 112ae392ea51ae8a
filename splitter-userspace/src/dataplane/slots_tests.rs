use std::thread::{self, ScopedJoinHandle};

use super::*;

const SLOT: SlotId = SlotId(3);

fn content(weights: &[u32]) -> SlotContent {
    SlotContent::new(weights.iter().map(|weight| (*weight, weight ^ 0xffff)))
}

fn table() -> SlotTable {
    SlotTable::in_memory().unwrap()
}

#[test]
fn what_is_written_is_read() {
    let table = table();
    table.write(SLOT, &content(&[80, 20]), 9).unwrap();
    let weights = table.weights(SLOT);
    assert_eq!((weights.len, weights.total()), (2, 100));
    assert_eq!(weights.values, [80, 20, 0, 0, 0, 0, 0, 0]);
    let slot = table.read(SLOT);
    assert_eq!((slot.seq, slot.generation, slot.count), (2, 9, 2));
    assert_eq!(slot.variants[1].backend, 20 ^ 0xffff);
    // Its neighbours are untouched.
    assert_eq!(table.weights(SlotId(2)), Weights::default());
    assert_eq!(table.weights(SlotId(4)), Weights::default());
}

#[test]
fn fewer_variants_leave_nothing_behind() {
    let table = table();
    table
        .write(SLOT, &content(&[1, 2, 3, 4, 5, 6, 7, 8]), 1)
        .unwrap();
    table.write(SLOT, &content(&[5]), 2).unwrap();
    assert_eq!(table.read(SLOT).variants[1..], [SlotVariant::default(); 7]);
    assert_eq!(table.weights(SLOT).total(), 5);
}

#[test]
fn the_last_slot_is_there_and_the_next_is_not() {
    let table = table();
    let last = SlotId(MAX_SLOTS - 1);
    table.write(last, &content(&[1]), 1).unwrap();
    assert_eq!(table.weights(last).len, 1);
    for slot in [SlotId(MAX_SLOTS), SlotId(u32::MAX)] {
        let error = table.write(slot, &content(&[1]), 1).unwrap_err();
        assert_eq!(error, SlotError::NoSuchSlot(slot));
        assert_eq!(table.weights(slot), Weights::default());
    }
}

/// Writes raw words, as a tool without the sequence does.
fn poke(table: &SlotTable, word: usize, value: u32) {
    table.words[SLOT.0 as usize * WORDS + word].store(value, Ordering::Relaxed);
}

#[test]
fn rubbish_in_memory_is_a_valid_split() {
    let table = table();
    for word in 0..WORDS {
        poke(&table, word, u32::MAX);
    }
    let weights = table.weights(SLOT);
    assert_eq!(weights.len, 8);
    assert_eq!(weights.total(), u32::MAX);
    assert!(weights.at(u32::MAX - 1) < 8);
}

#[test]
fn a_sequence_left_odd_is_read_anyway_and_mended_by_the_next_write() {
    let table = table();
    table.write(SLOT, &content(&[80, 20]), 1).unwrap();
    poke(&table, SEQ, 7);
    poke(&table, VARIANTS + VARIANT_WORDS + WEIGHT, 30);
    assert_eq!(table.weights(SLOT).values[..2], [80, 30]);
    table.write(SLOT, &content(&[1, 1]), 2).unwrap();
    assert_eq!(table.read(SLOT).seq, 8);
}

/// Content whose words all follow from one number.
fn of_one_number(n: u32) -> SlotContent {
    let count = n as usize % MAX_VARIANTS + 1;
    SlotContent::new((0..count as u32).map(|i| (n.wrapping_add(i), n.wrapping_mul(31) ^ i)))
}

/// Different states that each reader must have seen whole before the test ends.
const STATES: u32 = 5_000;

#[test]
fn readers_never_see_half_of_a_write() {
    let table = table();
    let seen = [AtomicU32::new(0), AtomicU32::new(0)];
    table.write(SLOT, &of_one_number(0), 0).unwrap();
    thread::scope(|scope| {
        let table = &table;
        let start = |seen| scope.spawn(move || read_until(table, seen));
        let readers: Vec<_> = seen.iter().map(start).collect();
        for n in 1..u32::MAX {
            table.write(SLOT, &of_one_number(n), u64::from(n)).unwrap();
            if readers.iter().all(ScopedJoinHandle::is_finished) {
                break;
            }
        }
        for reader in readers {
            reader.join().unwrap();
        }
    });
}

/// Checks each read until enough states were seen.
fn read_until(table: &SlotTable, seen: &AtomicU32) {
    let mut last = u32::MAX;
    while seen.load(Ordering::Relaxed) < STATES {
        // None: the writer was stopped in the middle of a write for longer than a reader waits.
        let Some(slot) = consistent(table.slot(SLOT).unwrap(), whole) else {
            continue;
        };
        let expected = of_one_number(slot.generation);
        assert_eq!(slot.count, expected.count(), "torn: {slot:?}");
        assert_eq!(slot.variants, *expected.all(), "torn: {slot:?}");
        if slot.generation != last {
            last = slot.generation;
            seen.fetch_add(1, Ordering::Relaxed);
        }
    }
}
