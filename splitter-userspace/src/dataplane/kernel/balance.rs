//! Ports where no HTTP is looked at: what XDP forwards of them.

use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use aya::Ebpf;
use splitter_common::{BalanceSettings, Target};

use super::super::balance::{BalancePlan, BalanceTables, Egress, share_flows};
use super::super::error::DataplaneError;
use super::super::maps::Maps;
use super::super::neighbours;
use super::super::netlink::addresses_of;
use super::{Kernel, KernelOptions, ProgramReport};

/// Whether XDP forwards, and what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Forwarding {
    /// It is not to, or there is nothing to forward.
    #[default]
    Off,
    /// There is no NIC with XDP.
    NoXdp,
    /// The kernel does not take the programs for it.
    Unable {
        /// Why not.
        why: String,
    },
    /// It does.
    On {
        /// Why connections to Endpoints on this node are left to user space, if so.
        no_local: Option<String>,
        /// The addresses from which it connects to Endpoints on other nodes.
        own: Vec<IpAddr>,
    },
}

impl Kernel {
    /// Has XDP forward by a plan. Gives what went wrong: what it is about is left to user space.
    pub fn forward(
        &mut self,
        plan: &BalancePlan,
        udp_idle: Duration,
    ) -> (Forwarding, Vec<DataplaneError>) {
        if !self.balance.on || plan.fronts.is_empty() && !self.balanced.is_on() {
            return (Forwarding::Off, Vec::new());
        }
        if let Some(why) = &self.unable {
            let why = why.clone();
            return (Forwarding::Unable { why }, Vec::new());
        }
        let nics = self.nics.policed();
        let wanted = !plan.fronts.is_empty() && !nics.is_empty();
        let attached = if wanted { &nics[..] } else { &[] };
        // The links of an instance that takes over are kept once it is settled.
        let keep = self.keep && self.beside.is_none();
        let local = self
            .egress
            .follow(&mut self.ebpf, attached, self.dir.path(), keep);
        let mut faults = Vec::new();
        let own: Vec<IpAddr> = nics
            .iter()
            .flat_map(|nic| match addresses_of(nic.index) {
                Ok(found) => found,
                Err(error) => {
                    faults.push(error);
                    Vec::new()
                }
            })
            .collect();
        if wanted && let Err(source) = neighbours::keep(elsewhere(plan)) {
            let what = "neighbours";
            faults.push(DataplaneError::Netlink { what, source });
        }
        let settings = settings(self, local, &own, udp_idle);
        let empty = BalancePlan::default();
        faults.extend(self.balanced.apply(if wanted { plan } else { &empty }));
        let on = u32::from(wanted);
        if let Err(error) = self.balanced.set(BalanceSettings { on, ..settings }) {
            faults.push(error);
        }
        let state = match (plan.fronts.is_empty(), nics.is_empty()) {
            (true, _) => Forwarding::Off,
            (false, true) => Forwarding::NoXdp,
            (false, false) => Forwarding::On {
                no_local: (!local).then(|| self.egress.refused().unwrap_or_default().to_owned()),
                own: [first(&own, true), first(&own, false)]
                    .into_iter()
                    .flatten()
                    .collect(),
            },
        };
        (state, faults)
    }

    /// Has nothing new be forwarded; what there is goes on.
    pub fn forward_nothing_new(&mut self) -> Vec<DataplaneError> {
        self.balanced.close()
    }
}

/// The addresses of Endpoints that are not on this node.
fn elsewhere(plan: &BalancePlan) -> impl Iterator<Item = IpAddr> + '_ {
    let targets = plan.targets.iter();
    let elsewhere = targets.filter(|(_, state)| *state & Target::LOCAL == 0);
    elsewhere.map(|(key, _)| key.ip())
}

fn settings(kernel: &Kernel, local: bool, own: &[IpAddr], udp_idle: Duration) -> BalanceSettings {
    let (first_port, last_port) = kernel.balance.ports;
    let mut settings = BalanceSettings {
        local: u32::from(local),
        first_port,
        last_port,
        new_flows: kernel.balance.new_flows,
        udp_idle: u32::try_from(udp_idle.as_secs().max(1)).unwrap_or(u32::MAX),
        ..BalanceSettings::default()
    };
    if let Some(IpAddr::V4(addr)) = first(own, true) {
        settings.own4 = addr.octets();
    }
    if let Some(IpAddr::V6(addr)) = first(own, false) {
        settings.own6 = addr.octets();
    }
    settings
}

fn first(all: &[IpAddr], v4: bool) -> Option<IpAddr> {
    all.iter().copied().find(|addr| addr.is_ipv4() == v4)
}

/// Loads the programs that steer and police, able to forward where the kernel takes them so; and why they
/// are not, if so. What they did before forwarding came does not depend on it.
pub(super) fn police(
    object: &[u8],
    options: &KernelOptions,
    dir: &Path,
) -> Result<(Ebpf, Vec<ProgramReport>, Option<String>), DataplaneError> {
    let old = !is_new_enough(&super::release());
    let mut unable = old.then(|| "it is older than 6.6".to_owned());
    loop {
        let forwards = unable.is_none() && options.xdp.is_some() && options.balance.on;
        let mut ebpf = super::open(object, Some(dir), forwards)?;
        super::check(&Maps(&mut ebpf), dir)?;
        let mut programs = vec![super::load(&mut ebpf, "steer")?];
        if options.xdp.is_none() {
            return Ok((ebpf, programs, unable));
        }
        match super::load(&mut ebpf, "ingress") {
            Ok(report) => {
                programs.push(report);
                return Ok((ebpf, programs, unable));
            }
            Err(error) if forwards => {
                tracing::warn!(%error, "XDP will not forward TCP and UDP services");
                unable = Some("it refuses an XDP program that forwards".to_owned());
            }
            Err(error) => return Err(error),
        }
    }
}

/// What is said when flows do not go on with a successor.
const RESET: &str = "connections that XDP forwards will be reset";

/// Has this instance go on with the flows of the one that it takes over.
pub(super) fn share(beside: Option<&Path>, dir: &Path) {
    let shared = beside.map(|beside| share_flows(beside, dir));
    if let Some(Err(error)) = shared {
        tracing::warn!(%error, "{RESET}");
    }
}

/// Takes the maps, with the numbers that the other instance's flows name.
pub(super) fn tables(
    maps: &mut Maps<'_>,
    beside: Option<&Path>,
) -> Result<BalanceTables, DataplaneError> {
    let mut tables = BalanceTables::new(maps)?;
    let learnt = beside.map(|beside| tables.learn_targets(beside));
    if let Some(Err(error)) = learnt {
        tracing::warn!(%error, "{RESET}");
    }
    Ok(tables)
}

/// Whether a kernel can have the programs that forward: links of traffic control came with 6.6, and the
/// verifiers of older ones find the XDP program too large.
pub(super) fn is_new_enough(release: &str) -> bool {
    let mut numbers = release.split(|it: char| !it.is_ascii_digit());
    let mut next = || numbers.next()?.parse::<u32>().ok();
    (next(), next()) >= (Some(6), Some(6))
}

/// Loads the program for answers, where XDP is to forward. Without it everything else goes on.
pub(super) fn load(
    ebpf: &mut Ebpf,
    options: &KernelOptions,
    programs: &mut Vec<ProgramReport>,
    able: bool,
) -> Egress {
    if options.xdp.is_none() || !options.balance.on || !able {
        return Egress::new(Err("not loaded".to_owned()));
    }
    let loaded = super::load(ebpf, "egress");
    Egress::new(match loaded {
        Ok(report) => {
            programs.push(report);
            Ok(())
        }
        Err(error) => Err(error.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_from_6_6_on_forward() {
        for old in ["6.1.0-57-cloud-amd64", "5.15.1", "6.5", "", "next"] {
            assert!(!is_new_enough(old), "{old}");
        }
        for new in ["6.6.0", "6.12.117+deb12", "6.18.44-fc", "7.0-rc1"] {
            assert!(is_new_enough(new), "{new}");
        }
    }
}
