//! The double-buffered tables: prefixes and settings, changed as a whole.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::mem::offset_of;
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use aya::Pod;
use aya::maps::{CpuMap, HashMap, MapData, MapError};
use splitter_common::{
    Cidr4Key, Cidr6Key, Config, CpuSet, INDEX_ENTRIES, PrefixIndex, PrefixValue, Settings,
};

use super::error::DataplaneError;
use super::maps::{Maps, map_error};
use super::memory::{Word, Words};
use super::prefixes::Prefixes;
use super::sys;

/// Where the fields of [`Config`] lie, in words.
const EPOCH: usize = offset_of!(Config, epoch) / 4;
const PID: usize = offset_of!(Config, pid) / 4;
const SETTINGS: usize = offset_of!(Config, settings) / 4;

/// Packets that wait for one CPU before more are dropped.
const CPU_QUEUE: u32 = 2_048;

/// How long a kernel program may still use a buffer where the kernel cannot be asked. They run
/// for some hundred nanoseconds.
const GRACE: Duration = Duration::from_millis(10);

/// The tables that the programs classify by.
pub struct ClassTables {
    config: Words<AtomicU32>,
    cidr4: HashMap<MapData, Cidr4Key, PrefixValue>,
    cidr6: HashMap<MapData, Cidr6Key, PrefixValue>,
    index4: Words<AtomicU64>,
    index6: Words<AtomicU64>,
    cpus: CpuMap<MapData>,
    /// CPUs that packets can be moved to already.
    ready: BTreeSet<u32>,
}

impl ClassTables {
    pub(super) fn new(maps: &mut Maps<'_>) -> Result<Self, DataplaneError> {
        let entries = INDEX_ENTRIES as usize;
        Ok(ClassTables {
            config: words(maps, "config", size_of::<Config>() / size_of::<u32>())?,
            index4: words(maps, "cidr4_index", entries)?,
            index6: words(maps, "cidr6_index", entries)?,
            cidr4: maps.take("cidr4")?,
            cidr6: maps.take("cidr6")?,
            cpus: maps.take("cpus")?,
            ready: BTreeSet::new(),
        })
    }

    /// Puts new tables in the place of the old ones, for all programs at once. Gives the epoch.
    ///
    /// # Errors
    /// When a map cannot be written; then everything stays as it was.
    pub fn replace(
        &mut self,
        prefixes: &Prefixes,
        settings: &Settings,
    ) -> Result<u32, DataplaneError> {
        let epoch = self.config[EPOCH].load(Ordering::Relaxed).wrapping_add(1);
        let buffer = (epoch & 1) as u8;
        // Nobody reads that buffer any more, but for a program that began before the last change.
        if sys::wait_for_running_programs().is_err() {
            thread::sleep(GRACE);
        }
        let v4 = prefixes
            .v4
            .iter()
            .map(|(key, kind)| (Cidr4Key { buffer, ..*key }, *kind));
        fill(&mut self.cidr4, v4.collect(), |key| key.buffer == buffer)
            .map_err(map_error("write", "cidr4"))?;
        let v6 = prefixes
            .v6
            .iter()
            .map(|(key, kind)| (Cidr6Key { buffer, ..*key }, *kind));
        fill(&mut self.cidr6, v6.collect(), |key| key.buffer == buffer)
            .map_err(map_error("write", "cidr6"))?;
        for set in &settings.cpus {
            self.make_ready(set)?;
        }
        fill_index(&self.index4, buffer, &prefixes.index4);
        fill_index(&self.index6, buffer, &prefixes.index6);
        let start = SETTINGS + usize::from(buffer) * Settings::WORDS;
        for (word, value) in self.config.iter().skip(start).zip(settings.words()) {
            word.store(value, Ordering::Relaxed);
        }
        self.config[PID].store(std::process::id(), Ordering::Relaxed);
        self.config[EPOCH].store(epoch, Ordering::Release);
        Ok(epoch)
    }
}

impl ClassTables {
    /// Makes queues for CPUs before packets are moved to them. They stay until the programs go:
    /// taking one away would lose what waits in it.
    fn make_ready(&mut self, set: &CpuSet) -> Result<(), DataplaneError> {
        for cpu in set.cpu.iter().take(set.count as usize) {
            if !self.ready.contains(cpu) {
                let made = self.cpus.set(*cpu, CPU_QUEUE, None, 0);
                made.map_err(|error| DataplaneError::Map {
                    what: "write",
                    map: "cpus",
                    source: io::Error::other(error.to_string()),
                })?;
                self.ready.insert(*cpu);
            }
        }
        Ok(())
    }
}

/// Maps the memory of an array.
fn words<W: Word>(
    maps: &mut Maps<'_>,
    name: &'static str,
    len: usize,
) -> Result<Words<W>, DataplaneError> {
    let data = maps.take_data(name)?;
    Words::of_map(data.fd().as_fd(), len).map_err(|source| DataplaneError::Map {
        what: "map",
        map: name,
        source,
    })
}

/// Makes the entries of a hash map that are `ours` those that are wanted.
fn fill<K: Pod + Ord>(
    map: &mut HashMap<MapData, K, PrefixValue>,
    wanted: BTreeMap<K, u32>,
    ours: impl Fn(&K) -> bool,
) -> Result<(), MapError> {
    let there: Vec<K> = map.keys().collect::<Result<_, _>>()?;
    for key in there
        .iter()
        .filter(|key| ours(key) && !wanted.contains_key(key))
    {
        map.remove(key)?;
    }
    for (key, kind) in &wanted {
        map.insert(key, PrefixValue { kind: *kind }, 0)?;
    }
    Ok(())
}

fn fill_index(words: &Words<AtomicU64>, buffer: u8, entries: &[PrefixIndex]) {
    let start = usize::from(buffer) * (INDEX_ENTRIES as usize / 2);
    for (word, entry) in words.iter().skip(start).zip(entries) {
        word.store(entry.word().to_le(), Ordering::Relaxed);
    }
}

/// The kernel's reason in an error of aya.
pub(super) fn reason(error: MapError) -> io::Error {
    match error {
        MapError::SyscallError(error) => error.io_error,
        MapError::IoError(error) => error,
        error => io::Error::other(error.to_string()),
    }
}
