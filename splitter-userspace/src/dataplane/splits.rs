//! The weights with the decisions made by them.

use std::io;
use std::os::fd::AsFd as _;
use std::sync::{Arc, Mutex, PoisonError};

use aya::maps::MapData;
use splitter_common::MAX_SLOTS;

use super::error::DataplaneError;
use super::maps::Maps;
use super::names::Names;
use super::plan::{SlotError, SlotOp, SlotPlan, apply};
use super::slots::SlotTable;
use super::stats::SplitStats;
use crate::model::{MAX_VARIANTS, Snapshot, Weights};
use crate::routing::{SlotId, WeightSource};

/// The slots of all Splits and their counters. Cheap to clone.
#[derive(Clone)]
pub struct Splits {
    /// The weights.
    pub table: Arc<SlotTable>,
    /// How often each Variant was chosen.
    pub stats: Arc<SplitStats>,
    /// What the slots are called, where they lie in maps.
    pub(super) names: Option<Arc<Mutex<Names>>>,
}

impl Splits {
    /// Both in the process's own memory.
    ///
    /// # Errors
    /// When there is no memory left.
    pub fn in_memory() -> io::Result<Self> {
        Ok(Splits {
            table: Arc::new(SlotTable::in_memory()?),
            stats: Arc::new(SplitStats::in_memory()?),
            names: None,
        })
    }

    /// The maps of the loaded object.
    pub(super) fn of_maps(maps: &mut Maps<'_>) -> Result<Self, DataplaneError> {
        let (slots, stats) = (maps.take_data("splits")?, maps.take_data("split_stats")?);
        let names = Names::new(maps)?;
        Ok(Splits {
            names: Some(Arc::new(Mutex::new(names))),
            ..Splits::over(&slots, &stats)?
        })
    }

    /// The memory of these two maps.
    pub(super) fn over(slots: &MapData, stats: &MapData) -> Result<Self, DataplaneError> {
        let mapped = |map| {
            move |source| DataplaneError::Map {
                what: "map",
                map,
                source,
            }
        };
        let table = SlotTable::of_map(slots.fd().as_fd()).map_err(mapped("splits"))?;
        let stats = SplitStats::of_map(stats.fd().as_fd()).map_err(mapped("split_stats"))?;
        Ok(Splits {
            table: Arc::new(table),
            stats: Arc::new(stats),
            names: None,
        })
    }

    /// Empties everything: what a former process left is of no use to this one.
    pub(super) fn clear(&self) {
        self.table.clear();
        for slot in 0..MAX_SLOTS {
            self.stats.clear(SlotId(slot));
        }
    }

    /// As [`apply`]; a slot that belongs to nobody any more forgets its decisions too.
    ///
    /// # Errors
    /// As [`apply`].
    pub fn apply(&self, ops: &[SlotOp], generation: u64) -> Result<(), SlotError> {
        apply(&self.table, ops, generation)?;
        for op in ops {
            if let SlotOp::Clear(slot) = op {
                self.stats.clear(*slot);
            }
        }
        Ok(())
    }
}

impl Splits {
    /// Says what the slots of a plan are called, for whoever reads the maps.
    ///
    /// # Errors
    /// When the map cannot be written. The weights do not depend on it.
    pub fn name(&self, plan: &SlotPlan, snapshot: &Snapshot) -> Result<(), DataplaneError> {
        match &self.names {
            Some(names) => {
                let mut names = names.lock().unwrap_or_else(PoisonError::into_inner);
                names.update(plan, snapshot)
            }
            None => Ok(()),
        }
    }
}

impl WeightSource for Splits {
    fn weights(&self, slot: SlotId) -> Weights {
        self.table.weights(slot)
    }

    fn count(&self, slot: SlotId, variant: usize) {
        self.stats.count(slot, variant);
    }

    fn counted(&self, slot: SlotId) -> [u64; MAX_VARIANTS] {
        self.stats.read(slot)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::super::plan::SlotContent;
    use super::*;

    #[test]
    fn a_slot_that_is_given_back_forgets_weights_and_decisions() {
        let splits = Splits::in_memory().unwrap();
        let slot = SlotId(3);
        let content = SlotContent::new([(90, 1), (10, 2)]);
        splits.apply(&[SlotOp::Write(slot, content)], 1).unwrap();
        splits.count(slot, 1);
        assert_eq!(splits.weights(slot).values[..2], [90, 10]);
        assert_eq!(splits.counted(slot)[..2], [0, 1]);
        // New weights keep the counts.
        splits.apply(&[SlotOp::Write(slot, content)], 2).unwrap();
        assert_eq!(splits.counted(slot)[..2], [0, 1]);
        splits.apply(&[SlotOp::Clear(slot)], 3).unwrap();
        assert_eq!(splits.weights(slot).len, 0);
        assert_eq!(splits.counted(slot), [0; MAX_VARIANTS]);
    }
}
