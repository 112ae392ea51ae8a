//! What the kernel programs have counted.

use aya::maps::{MapData, PerCpuArray};
use splitter_common::{Class, ClassCount, MAX_REASONS, ReasonCount, reason_name};

use super::error::DataplaneError;
use super::maps::{Maps, map_error};

/// The counters of the kernel programs.
pub struct Counters {
    classes: PerCpuArray<MapData, ClassCount>,
    reasons: PerCpuArray<MapData, ReasonCount>,
}

/// All counters at one moment, summed over the CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// By class, in the order of [`Class::ALL`].
    pub classes: Vec<(Class, ClassCount)>,
    /// By name; those that never happened are there too, with 0.
    pub reasons: Vec<(&'static str, ReasonCount)>,
}

impl Counts {
    /// How often something happened.
    pub fn reason(&self, name: &str) -> u64 {
        let found = self.reasons.iter().find(|(other, _)| *other == name);
        found.map_or(0, |(_, count)| count.count)
    }

    /// The counters of a class.
    pub fn class(&self, class: Class) -> ClassCount {
        let found = self.classes.iter().find(|(other, _)| *other == class);
        found.map_or_else(ClassCount::default, |(_, count)| *count)
    }
}

impl Counters {
    pub(super) fn new(maps: &mut Maps<'_>) -> Result<Self, DataplaneError> {
        Ok(Counters {
            classes: maps.take("class_counts")?,
            reasons: maps.take("reason_counts")?,
        })
    }

    /// Reads them all.
    ///
    /// # Errors
    /// When a map cannot be read.
    pub fn read(&self) -> Result<Counts, DataplaneError> {
        let mut counts = Counts::default();
        for class in Class::ALL {
            let values = self.classes.get(&class.code(), 0);
            let values = values.map_err(map_error("read", "class_counts"))?;
            let mut sum = ClassCount::default();
            for value in values.iter() {
                sum.packets += value.packets;
                sum.bytes += value.bytes;
                sum.lookups += value.lookups;
            }
            counts.classes.push((class, sum));
        }
        for code in 0..MAX_REASONS {
            let Some(name) = reason_name(code) else {
                continue;
            };
            let values = self.reasons.get(&code, 0);
            let values = values.map_err(map_error("read", "reason_counts"))?;
            let mut sum = ReasonCount::default();
            for value in values.iter() {
                sum.count += value.count;
                sum.bytes += value.bytes;
            }
            counts.reasons.push((name, sum));
        }
        Ok(counts)
    }
}
