use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::handle::Apart;
use super::text::{Labels, Text};
use super::{Family, MetricKind};

/// Label names and values, as given.
type Key = Vec<(&'static str, String)>;

/// The families of the named counters and gauges.
#[derive(Default)]
pub(super) struct Named {
    families: BTreeMap<&'static str, Series>,
}

struct Series {
    family: Family,
    cells: BTreeMap<Key, Cells>,
}

/// The cells of one label set.
#[derive(Default)]
struct Cells {
    /// What cells without a handle have counted.
    retired: u64,
    live: Vec<Arc<Apart>>,
}

impl Named {
    /// A new cell for these labels.
    pub(super) fn cell(&mut self, family: &Family, labels: &[(&'static str, &str)]) -> Arc<Apart> {
        let series = self.families.entry(family.name).or_insert_with(|| Series {
            family: *family,
            cells: BTreeMap::new(),
        });
        debug_assert_eq!(series.family.kind, family.kind, "{}", family.name);
        let key = labels.iter().map(|(k, v)| (*k, (*v).to_owned())).collect();
        let cell = Arc::new(Apart::default());
        series.cells.entry(key).or_default().live.push(cell.clone());
        cell
    }

    /// The sum over all labels of a family.
    pub(super) fn sum(&self, family: &Family) -> u64 {
        let Some(series) = self.families.get(family.name) else {
            return 0;
        };
        let totals = series.cells.values().map(Cells::total);
        totals.fold(0, u64::wrapping_add)
    }

    /// Writes every family in the order of the names.
    pub(super) fn write(&mut self, text: &mut Text) {
        for series in self.families.values_mut() {
            let is_gauge = series.family.kind == MetricKind::Gauge;
            for cells in series.cells.values_mut() {
                cells.retire(is_gauge);
            }
            if is_gauge {
                series.cells.retain(|_, cells| !cells.live.is_empty());
            }
            if series.cells.is_empty() {
                continue;
            }
            text.family(&series.family);
            for (key, cells) in &series.cells {
                let mut labels = Labels::of(&series.family, text);
                for (name, value) in key {
                    labels.push(name, value);
                }
                text.signed(&series.family, &labels, cells.total(), is_gauge);
            }
        }
    }
}

impl Cells {
    /// Lets go of cells that nobody can write any more, keeping what counters counted.
    fn retire(&mut self, is_gauge: bool) {
        let retired = &mut self.retired;
        self.live.retain(|cell| {
            let held = Arc::strong_count(cell) > 1;
            if !held && !is_gauge {
                *retired = retired.wrapping_add(cell.0.load(Ordering::Acquire));
            }
            held
        });
    }

    /// The sum, with a gauge's negative parts as two's complement.
    fn total(&self) -> u64 {
        self.live.iter().fold(self.retired, |sum, cell| {
            sum.wrapping_add(cell.0.load(Ordering::Relaxed))
        })
    }
}
