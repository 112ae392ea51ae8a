use std::fmt;
use std::fs;
use std::str::FromStr;

use splitter_common::{CpuSet, MAX_SET_CPUS, POOLS, Pool};

/// CPUs below which `auto` sets none apart: there is nothing to spare.
const AUTO_FROM: usize = 4;

/// Which CPUs the packets of each pool's classes are moved to before the kernel works on them, so
/// that a flood of one never runs on the CPUs of the other.
///
/// The NIC's own interrupts stay where they are; what is moved is everything after XDP.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuSets {
    /// By [`Pool`], ascending; empty: packets stay where the NIC put them.
    pub of: [Vec<u32>; POOLS as usize],
}

/// What `--cpu-isolation` asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CpuIsolation {
    /// Packets stay where the NIC put them.
    #[default]
    Off,
    /// Half of the CPUs for each pool where there are four or more, else as `Off`.
    Auto,
    /// These.
    Sets(CpuSets),
}

/// Why a text does not say which CPUs, or why they cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CpuError {
    /// It cannot be read.
    #[error(
        "{0:?} is not off, auto or CPUs of pools such as north-south=0-3;east-west=4-7 (either \
         may be left out)"
    )]
    Text(String),
    /// A CPU of both pools.
    #[error("CPU {0} is in both sets: nothing would be apart")]
    Shared(u32),
    /// No such CPU.
    #[error("CPU {0} is not online; online are {1}")]
    NotOnline(u32, String),
    /// Too long a list.
    #[error("{0} CPUs are more than the {MAX_SET_CPUS} that one pool can have")]
    TooMany(usize),
}

impl CpuIsolation {
    /// The CPUs, of those that are online.
    ///
    /// # Errors
    /// When one that is asked for is not.
    pub fn resolve(&self) -> Result<CpuSets, CpuError> {
        let text = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
        let online = list(text.trim()).unwrap_or_default();
        self.among(&online, text.trim())
    }

    fn among(&self, online: &[u32], text: &str) -> Result<CpuSets, CpuError> {
        let sets = match self {
            CpuIsolation::Auto if online.len() >= AUTO_FROM => {
                let (first, second) = online.split_at(online.len() / 2);
                let most = |cpus: &[u32]| cpus.iter().copied().take(MAX_SET_CPUS).collect();
                CpuSets {
                    of: [most(first), most(second)],
                }
            }
            CpuIsolation::Off | CpuIsolation::Auto => CpuSets::default(),
            CpuIsolation::Sets(sets) => sets.clone(),
        };
        let all = sets.of.iter().flatten();
        match all.copied().find(|cpu| !online.contains(cpu)) {
            Some(cpu) => Err(CpuError::NotOnline(cpu, text.to_owned())),
            None => Ok(sets),
        }
    }
}

impl CpuSets {
    /// As the kernel programs read them.
    pub fn settings(&self) -> [CpuSet; POOLS as usize] {
        self.of.each_ref().map(|cpus| {
            let mut set = CpuSet {
                count: cpus.len().min(MAX_SET_CPUS) as u32,
                ..CpuSet::default()
            };
            set.cpu
                .iter_mut()
                .zip(cpus)
                .for_each(|(place, cpu)| *place = *cpu);
            set
        })
    }
}

impl FromStr for CpuIsolation {
    type Err = CpuError;

    fn from_str(text: &str) -> Result<Self, CpuError> {
        match text {
            "off" => Ok(CpuIsolation::Off),
            "auto" => Ok(CpuIsolation::Auto),
            text => sets(text).map(CpuIsolation::Sets),
        }
    }
}

impl fmt::Display for CpuIsolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CpuIsolation::Off => f.write_str("off"),
            CpuIsolation::Auto => f.write_str("auto"),
            CpuIsolation::Sets(sets) => sets.fmt(f),
        }
    }
}

impl fmt::Display for CpuSets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pools = Pool::ALL.into_iter().zip(&self.of);
        let named = pools.filter(|(_, cpus)| !cpus.is_empty());
        let parts = named.map(|(pool, cpus)| {
            let cpus: Vec<_> = cpus.iter().map(u32::to_string).collect();
            format!("{}={}", pool.name(), cpus.join(","))
        });
        f.write_str(&parts.collect::<Vec<_>>().join(";"))
    }
}

fn sets(text: &str) -> Result<CpuSets, CpuError> {
    let wrong = || CpuError::Text(text.to_owned());
    let mut sets = CpuSets::default();
    for part in text.split(';') {
        let (name, cpus) = part.split_once('=').ok_or_else(wrong)?;
        let pool = Pool::ALL.into_iter().find(|pool| pool.name() == name);
        let place = &mut sets.of[pool.ok_or_else(wrong)? as usize];
        if !place.is_empty() {
            return Err(wrong());
        }
        *place = list(cpus).ok_or_else(wrong)?;
        if place.len() > MAX_SET_CPUS {
            return Err(CpuError::TooMany(place.len()));
        }
    }
    let [first, second] = &sets.of;
    match first.iter().find(|cpu| second.contains(cpu)) {
        Some(cpu) => Err(CpuError::Shared(*cpu)),
        None => Ok(sets),
    }
}

/// Reads a list as the kernel writes it: `0-3,8`.
fn list(text: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        // No machine has more; a slip of the hand must not fill the memory.
        if first > last || last > 0xffff {
            return None;
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Some(cpus)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn parsed(text: &str) -> CpuIsolation {
        text.parse().unwrap()
    }

    #[test]
    fn sets_are_read_and_written() {
        assert_eq!(parsed("off"), CpuIsolation::Off);
        assert_eq!(parsed("auto"), CpuIsolation::Auto);
        let sets = parsed("north-south=0-2,5;east-west=3");
        assert_eq!(sets.to_string(), "north-south=0,1,2,5;east-west=3");
        assert_eq!(parsed("east-west=1").to_string(), "east-west=1");
    }

    #[test]
    fn wrong_texts_say_what_is_right() {
        for text in [
            "",
            "on",
            "0-3",
            "north-south=",
            "north-south=3-1",
            "pods=1",
            "east-west=x",
        ] {
            let error = text.parse::<CpuIsolation>().unwrap_err();
            let error = error.to_string();
            assert!(error.contains("north-south=0-3;east-west=4-7"), "{text}");
        }
        let shared = "north-south=0-2;east-west=2-3".parse::<CpuIsolation>();
        assert_eq!(shared, Err(CpuError::Shared(2)));
        let many = "north-south=0-999".parse::<CpuIsolation>();
        assert_eq!(many, Err(CpuError::TooMany(1000)));
    }

    #[test]
    fn only_cpus_that_are_there() {
        let online = [0, 1, 2, 3, 4];
        let among = |text: &str, online: &[u32]| parsed(text).among(online, "0-4");
        let auto = among("auto", &online).unwrap();
        assert_eq!(auto.of, [vec![0, 1], vec![2, 3, 4]]);
        assert_eq!(among("auto", &online[..3]).unwrap(), CpuSets::default());
        assert_eq!(among("off", &online).unwrap(), CpuSets::default());
        let error = among("east-west=7", &online).unwrap_err();
        assert_eq!(error.to_string(), "CPU 7 is not online; online are 0-4");
    }

    #[test]
    fn the_kernel_gets_count_and_numbers() {
        let CpuIsolation::Sets(sets) = parsed("east-west=4-5") else {
            panic!("sets");
        };
        let [none, two] = sets.settings();
        assert_eq!((none.count, two.count), (0, 2));
        assert_eq!(two.cpu[..3], [4, 5, 0]);
    }
}
