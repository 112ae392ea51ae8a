//! What the programs have counted.

use aya::maps::{MapData, PerCpuArray};
use splitter_common::{ConnectCounts, ConnectReason};

use super::super::error::DataplaneError;
use super::super::maps::{Maps, map_error};

/// The map `l4_counts`.
pub struct ConnectCounter(PerCpuArray<MapData, ConnectCounts>);

impl ConnectCounter {
    pub(in super::super) fn new(maps: &mut Maps<'_>) -> Result<Self, DataplaneError> {
        maps.take("l4_counts").map(ConnectCounter)
    }

    /// The counters of a map that was opened elsewhere.
    pub(in super::super) fn over(map: PerCpuArray<MapData, ConnectCounts>) -> Self {
        ConnectCounter(map)
    }

    /// How often each thing happened, by its name.
    ///
    /// # Errors
    /// When the map cannot be read.
    pub fn read(&self) -> Result<Vec<(&'static str, u64)>, DataplaneError> {
        let failed = map_error("read", "l4_counts");
        let values = self.0.get(&0, 0).map_err(failed)?;
        let mut sums: Vec<_> = ConnectReason::ALL.iter().map(|it| (it.name(), 0)).collect();
        for value in values.iter() {
            for (sum, (_, count)) in sums.iter_mut().zip(value.named()) {
                sum.1 += count;
            }
        }
        Ok(sums)
    }
}
