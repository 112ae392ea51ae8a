use crate::class::Class;
use crate::classify::Spoof;
use crate::iface::Role;
use crate::layout::layout;
use crate::limits::{MAX_EXTERNAL, MAX_OWN, MAX_SET_CPUS, POOLS};

/// The one entry of the map `config`.
///
/// The prefix tables and the [`Settings`] exist twice. A change fills the buffer that is not in
/// use and then writes `epoch`, which moves every program to it at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Config {
    /// Counts the changes. Its lowest bit is the buffer in use.
    pub epoch: u32,
    /// The process that the maps belong to.
    pub pid: u32,
    /// The settings, by buffer.
    pub settings: [Settings; 2],
}

/// What is done about a source address that cannot be real. The codes lie in [`Settings::spoof`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum SpoofAction {
    /// Nothing.
    Off = 0,
    /// It is counted.
    Count = 1,
    /// It is counted and dropped.
    Drop = 2,
}

impl SpoofAction {
    /// The action of a number in a map; a number that means nothing is [`SpoofAction::Count`].
    #[inline(always)]
    pub const fn from_code(code: u32) -> SpoofAction {
        match code {
            0 => SpoofAction::Off,
            2 => SpoofAction::Drop,
            _ => SpoofAction::Count,
        }
    }

    /// The name in options.
    pub const fn name(self) -> &'static str {
        match self {
            SpoofAction::Off => "off",
            SpoofAction::Count => "count",
            SpoofAction::Drop => "drop",
        }
    }
}

/// A token bucket's size and rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Limit {
    /// Tokens a second; 0: no limit.
    pub rate: u32,
    /// The most tokens that gather while nothing comes.
    pub burst: u32,
}

/// The CPUs of one pool: packets of its classes are moved to them, each flow to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct CpuSet {
    /// How many there are; 0: packets stay where the NIC put them.
    pub count: u32,
    /// Their numbers.
    pub cpu: [u32; MAX_SET_CPUS],
}

impl Default for CpuSet {
    fn default() -> Self {
        CpuSet {
            count: 0,
            cpu: [0; MAX_SET_CPUS],
        }
    }
}

impl CpuSet {
    /// The CPU of a flow: the same for all its packets while the set stays the same.
    #[inline(always)]
    pub fn of_flow(&self, flow: u32) -> u32 {
        let place = (u64::from(flow) * u64::from(self.count)) >> 32;
        // Below the count by itself; the mask is for the verifier.
        self.cpu[place as usize & (MAX_SET_CPUS - 1)]
    }
}

/// What the programs go by beside the tables: one in each buffer of [`Config`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Settings {
    /// 1 when pods of other nodes may arrive on a NIC with their own addresses.
    pub native_routing: u32,
    /// What is done by each rule: a [`SpoofAction`] code at each [`Spoof`] number.
    pub spoof: [u32; Spoof::COUNT],
    /// The [`crate::Pool`] code of each [`Class`].
    pub pool: [u32; Class::COUNT],
    /// How many interfaces lead outside.
    pub externals: u32,
    /// Their numbers. All others lead inside.
    pub external: [u32; MAX_EXTERNAL],
    /// 1 when any limit below has a rate or any pool has CPUs: saves the programs looking at each.
    pub special: u32,
    /// New connections (SYN) of one source prefix (/24, /64).
    pub source_syn: Limit,
    /// Packets of one source prefix (/24, /64).
    pub source_packets: Limit,
    /// New connections (SYN) of each class.
    pub class_syn: [Limit; Class::COUNT],
    /// Packets of each class.
    pub class_packets: [Limit; Class::COUNT],
    /// The CPUs of each [`crate::Pool`].
    pub cpus: [CpuSet; POOLS as usize],
    /// Some of this node's own IPv4 addresses, as [`crate::Cidr4Key::words`] has them; zeros at the
    /// end. They are in the tables too: who calls from the node itself is found here sooner.
    pub own4: [u32; MAX_OWN],
}

impl Settings {
    /// What the interface `ifindex` is.
    #[inline(always)]
    pub fn role(&self, ifindex: u32) -> Role {
        // Counted, so that the verifier of older kernels sees where it ends.
        for place in 0..MAX_EXTERNAL {
            if place as u32 >= self.externals {
                break;
            }
            if self.external[place] == ifindex {
                return Role::External;
            }
        }
        Role::Inner
    }

    /// Whether an address is among [`Self::own4`].
    #[inline(always)]
    pub fn is_own4(&self, addr: u32) -> bool {
        let [a, b, c, d] = self.own4;
        let addr = addr.to_be();
        addr != 0 && (addr == a || addr == b || addr == c || addr == d)
    }

    /// Words of the settings in memory.
    pub const WORDS: usize = size_of::<Settings>() / size_of::<u32>();

    /// The settings as the words that they are in memory.
    pub fn words(&self) -> [u32; Settings::WORDS] {
        let mut words = [0; Settings::WORDS];
        let limits = [self.source_syn, self.source_packets];
        let limits = limits
            .iter()
            .chain(&self.class_syn)
            .chain(&self.class_packets);
        let cpus = self.cpus.iter();
        let values = [self.native_routing]
            .into_iter()
            .chain(self.spoof)
            .chain(self.pool)
            .chain([self.externals])
            .chain(self.external)
            .chain([self.special])
            .chain(limits.flat_map(|limit| [limit.rate, limit.burst]))
            .chain(cpus.flat_map(|set| [set.count].into_iter().chain(set.cpu)))
            .chain(self.own4);
        words
            .iter_mut()
            .zip(values)
            .for_each(|(word, value)| *word = value);
        words
    }
}

layout!(Config, size 2528, align 4, { epoch: 0, pid: 4, settings: 8 });
layout!(Limit, size 8, align 4, { rate: 0, burst: 4 });
layout!(CpuSet, size 516, align 4, { count: 0, cpu: 4 });
layout!(Settings, size 1260, align 4, {
    native_routing: 0,
    spoof: 4,
    pool: 24,
    externals: 44,
    external: 48,
    special: 112,
    source_syn: 116,
    source_packets: 124,
    class_syn: 132,
    class_packets: 172,
    cpus: 212,
    own4: 1244,
});

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::bytes_of;

    #[test]
    fn settings_bytes() {
        let mut settings = Settings {
            native_routing: 1,
            ..Settings::default()
        };
        settings.spoof[4] = 2;
        settings.pool[2] = 1;
        settings.external[0] = 9;
        settings.special = 1;
        settings.source_syn = Limit { rate: 5, burst: 6 };
        settings.class_packets[4].burst = 7;
        settings.cpus[1].cpu[127] = 8;
        settings.own4[3] = 10;
        let mut golden = [0u8; 1260];
        golden[0] = 1;
        golden[20] = 2;
        golden[32] = 1;
        golden[48] = 9;
        golden[112] = 1;
        golden[116] = 5;
        golden[120] = 6;
        golden[208] = 7;
        golden[1240] = 8;
        golden[1256] = 10;
        assert_eq!(bytes_of(&settings), golden);
    }

    #[test]
    fn words_are_the_memory() {
        let mut settings = Settings {
            native_routing: 1,
            spoof: [2, 3, 4, 5, 6],
            pool: [7, 8, 9, 10, 11],
            externals: 20,
            external: [19; MAX_EXTERNAL],
            special: 18,
            source_syn: Limit {
                rate: 12,
                burst: 13,
            },
            source_packets: Limit {
                rate: 14,
                burst: 15,
            },
            ..Settings::default()
        };
        settings.class_syn[1].rate = 16;
        settings.class_packets[4].burst = 17;
        settings.cpus[0].count = 21;
        settings.cpus[1].cpu[3] = 22;
        settings.own4 = [23, 24, 25, 26];
        let words = settings.words();
        let memory = bytes_of(&settings).chunks_exact(4);
        for (word, bytes) in words.iter().zip(memory) {
            assert_eq!(word.to_ne_bytes(), bytes);
        }
    }

    #[test]
    fn own_addresses_are_those_in_the_list() {
        let mut settings = Settings::default();
        settings.own4[1] = 0xcb00_7101u32.to_be();
        assert!(settings.is_own4(0xcb00_7101) && !settings.is_own4(0xcb00_7102));
        assert!(!settings.is_own4(0), "no address is a zero in the list");
    }

    #[test]
    fn interfaces_in_the_list_lead_outside() {
        let mut settings = Settings {
            externals: 2,
            ..Settings::default()
        };
        settings.external[..3].copy_from_slice(&[7, 9, 8]);
        assert_eq!(settings.role(9), Role::External);
        assert_eq!(settings.role(8), Role::Inner);
        assert_eq!(settings.role(0), Role::Inner);
        // A count beyond the list is held to it.
        settings.externals = u32::MAX;
        settings.external = [5; MAX_EXTERNAL];
        settings.external[MAX_EXTERNAL - 1] = 6;
        assert_eq!(settings.role(6), Role::External);
    }

    #[test]
    fn flows_are_spread_over_all_cpus_of_a_set_and_no_other() {
        let mut set = CpuSet {
            count: 3,
            ..CpuSet::default()
        };
        set.cpu[..4].copy_from_slice(&[4, 5, 6, 99]);
        let of = |flow: u32| set.of_flow(flow);
        assert_eq!([of(0), of(u32::MAX / 2), of(u32::MAX)], [4, 5, 6]);
        // A count beyond the list does not lead beyond it.
        set.count = u32::MAX;
        let _any = set.of_flow(u32::MAX);
    }

    #[test]
    fn config_bytes() {
        let mut config = Config {
            epoch: 5,
            pid: 6,
            ..Config::default()
        };
        config.settings[1].native_routing = 7;
        let mut golden = [0u8; 2528];
        (golden[0], golden[4], golden[1268]) = (5, 6, 7);
        assert_eq!(bytes_of(&config), golden);
    }
}
