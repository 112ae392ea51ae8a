//! What the kernel programs have counted.

use aya::maps::{MapData, PerCpuArray};
use splitter_common::{
    BalanceReason, Class, Count, Counters as Value, DropReason, NO_CLASS, PassReason, REASONS,
    SteerReason, reason_name,
};

use super::error::DataplaneError;
use super::maps::{Maps, map_error};

/// The counters of the kernel programs.
pub struct Counters(PerCpuArray<MapData, Value>);

/// All counters at one moment, summed over the CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// By class (last: what has none), then by the codes of the reasons.
    rows: Vec<(Option<Class>, [Count; REASONS])>,
}

/// What was counted of one class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassCount {
    /// Packets that XDP saw, dropped ones among them.
    pub packets: u64,
    /// Their bytes, from the Ethernet header on.
    pub bytes: u64,
    /// Look-ups of new connections that sk_lookup answered. While SYN cookies are in use, one
    /// connection is two look-ups.
    pub lookups: u64,
}

impl Counts {
    /// Every counter: class (none: not IP, not ours), name of the reason, count. Those that never
    /// happened are there too.
    pub fn all(&self) -> impl Iterator<Item = (Option<Class>, &'static str, Count)> {
        self.rows.iter().flat_map(|(class, counts)| {
            let named = counts.iter().zip(0u32..);
            named.filter_map(|(count, code)| Some((*class, reason_name(code)?, *count)))
        })
    }

    /// How often something happened, whatever the class.
    pub fn reason(&self, name: &str) -> u64 {
        let found = self.all().filter(|(_, other, _)| *other == name);
        found.map(|(_, _, count)| count.count).sum()
    }

    /// What was counted of a class.
    pub fn class(&self, class: Class) -> ClassCount {
        let mut sum = ClassCount::default();
        let row = self.rows.iter().find(|(other, _)| *other == Some(class));
        for (count, code) in row
            .into_iter()
            .flat_map(|(_, counts)| counts.iter().zip(0u32..))
        {
            let forwarded = BalanceReason::FIRST..BalanceReason::END;
            if (PassReason::FIRST..DropReason::END).contains(&code) || forwarded.contains(&code) {
                sum.packets += count.count;
                sum.bytes += count.bytes;
            } else if (SteerReason::FIRST..SteerReason::END).contains(&code) {
                sum.lookups += count.count;
            }
        }
        sum
    }
}

impl Counters {
    pub(super) fn new(maps: &mut Maps<'_>) -> Result<Self, DataplaneError> {
        maps.take("counters").map(Counters)
    }

    /// The counters of a map that was opened elsewhere.
    pub(super) fn over(map: PerCpuArray<MapData, Value>) -> Self {
        Counters(map)
    }

    /// Reads them all.
    ///
    /// # Errors
    /// When the map cannot be read.
    pub fn read(&self) -> Result<Counts, DataplaneError> {
        let mut counts = Counts::default();
        for key in 0..=NO_CLASS {
            let values = self.0.get(&key, 0).map_err(map_error("read", "counters"))?;
            let mut row = [Count::default(); REASONS];
            for (code, count) in values.iter().flat_map(row_of) {
                row[code].count += count.count;
                row[code].bytes += count.bytes;
            }
            let class = (key != NO_CLASS).then(|| Class::from_code(key));
            counts.rows.push((class, row));
        }
        Ok(counts)
    }
}

/// The counts of one CPU with their codes.
fn row_of(value: &Value) -> impl Iterator<Item = (usize, Count)> + use<> {
    value.by_code().into_iter().enumerate()
}
