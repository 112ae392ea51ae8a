//! Weights that somebody changed in the map, past the objects.

use super::plan::{SlotContent, SlotPlan};
use super::slots::SlotTable;
use crate::routing::SlotId;

/// A slot that does not hold what the objects ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Override {
    /// Which slot.
    pub slot: SlotId,
    /// What the objects ask for.
    pub wanted: SlotContent,
    /// What the slot holds and everybody follows.
    pub found: SlotContent,
}

/// The slots that hold something else than `plan`, which must be the one last applied.
pub fn overrides(table: &SlotTable, plan: &SlotPlan) -> Vec<Override> {
    let contents = plan.contents.iter();
    contents
        .filter_map(|(slot, wanted)| {
            let memory = table.read(*slot);
            let in_use = memory.variants.iter().take(memory.count as usize);
            let found = SlotContent::new(in_use.map(|v| (v.weight, v.backend)));
            (found != *wanted).then_some(Override {
                slot: *slot,
                wanted: *wanted,
                found,
            })
        })
        .collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::super::plan::{SlotOp, apply, diff};
    use super::*;

    fn plan_of(weights: [u32; 2]) -> SlotPlan {
        let content = SlotContent::new(weights.map(|weight| (weight, 1)));
        SlotPlan {
            contents: [(SlotId(5), content)].into(),
            ..SlotPlan::default()
        }
    }

    #[test]
    fn a_changed_weight_is_seen_until_the_object_changes() {
        let table = SlotTable::in_memory().unwrap();
        let first = plan_of([90, 10]);
        apply(&table, &diff(&SlotPlan::default(), &first), 1).unwrap();
        assert!(overrides(&table, &first).is_empty());

        let other = SlotContent::new([(50, 1), (50, 1)]);
        table.write(SlotId(5), &other, 1).unwrap();
        let found = overrides(&table, &first);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].slot, found[0].found), (SlotId(5), other));

        // The same objects again: the override stays.
        assert!(diff(&first, &plan_of([90, 10])).is_empty());
        // Another weight in the object: it is replaced.
        let next = plan_of([80, 20]);
        let ops = diff(&first, &next);
        assert!(matches!(ops[..], [SlotOp::Write(SlotId(5), _)]));
        apply(&table, &ops, 2).unwrap();
        assert!(overrides(&table, &next).is_empty());
    }
}
