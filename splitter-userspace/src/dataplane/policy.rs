use splitter_common::{Class, Limit, MAX_EXTERNAL, Pool, Settings, Spoof, SpoofAction};

use super::cpus::CpuSets;

/// How classes are treated: what the kernel programs get as their settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Pods of other nodes may arrive on a NIC with their own addresses (`--native-routing`).
    /// Default: no.
    pub native_routing: bool,
    /// What is done about sources that cannot be real, by [`Spoof`]. Default: all are dropped but
    /// the rest of the cluster range, which is counted.
    pub spoof: [SpoofAction; Spoof::COUNT],
    /// The pool of each [`Class`]. Default: [`Pool::of`].
    pub pool: [Pool; Class::COUNT],
    /// New connections of one source prefix (/24 of IPv4, /64 of IPv6). Default: no limit.
    pub source_syn: Limit,
    /// Packets of one source prefix. Default: no limit.
    pub source_packets: Limit,
    /// New connections of each class. Default: no limit.
    pub class_syn: [Limit; Class::COUNT],
    /// Packets of each class. Default: no limit.
    pub class_packets: [Limit; Class::COUNT],
    /// The CPUs of each pool's packets (`--cpu-isolation`); XDP only. Default: none set apart.
    pub cpus: CpuSets,
}

impl Default for Policy {
    fn default() -> Self {
        let mut spoof = [SpoofAction::Drop; Spoof::COUNT];
        // Clusters that route pods natively look the same until they say so.
        spoof[Spoof::Cluster as usize] = SpoofAction::Count;
        Policy {
            native_routing: false,
            spoof,
            pool: Class::ALL.map(Pool::of),
            source_syn: Limit::default(),
            source_packets: Limit::default(),
            class_syn: [Limit::default(); Class::COUNT],
            class_packets: [Limit::default(); Class::COUNT],
            cpus: CpuSets::default(),
        }
    }
}

impl Policy {
    /// As the kernel programs read it, with the interfaces that lead outside; those past
    /// [`MAX_EXTERNAL`] are left out.
    pub fn settings(&self, interfaces: &[u32]) -> Settings {
        let mut external = [0; MAX_EXTERNAL];
        external
            .iter_mut()
            .zip(interfaces)
            .for_each(|(place, index)| *place = *index);
        let limits = [self.source_syn, self.source_packets];
        let mut limits = limits
            .iter()
            .chain(&self.class_syn)
            .chain(&self.class_packets);
        let moves = self.cpus.of.iter().any(|cpus| !cpus.is_empty());
        Settings {
            special: u32::from(moves || limits.any(|limit| limit.rate != 0)),
            externals: interfaces.len().min(MAX_EXTERNAL) as u32,
            external,
            native_routing: u32::from(self.native_routing),
            spoof: self.spoof.map(|action| action as u32),
            pool: self.pool.map(Pool::code),
            source_syn: self.source_syn,
            source_packets: self.source_packets,
            class_syn: self.class_syn,
            class_packets: self.class_packets,
            cpus: self.cpus.settings(),
            ..Settings::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_that_are_documented() {
        let settings = Policy::default().settings(&[3]);
        assert_eq!(settings.spoof, [2, 2, 2, 2, 1]);
        assert_eq!(settings.pool, [0, 0, 1, 1, 1]);
        assert_eq!((settings.externals, settings.external[0]), (1, 3));
        assert_eq!((settings.native_routing, settings.special), (0, 0));
    }

    #[test]
    fn one_limit_or_cpu_is_enough_to_be_special() {
        let mut policy = Policy::default();
        policy.class_packets[4] = Limit { rate: 1, burst: 1 };
        assert_eq!(policy.settings(&[3]).special, 1);
        let mut policy = Policy::default();
        policy.cpus.of[1] = vec![0];
        assert_eq!(policy.settings(&[3]).special, 1);
    }
}
