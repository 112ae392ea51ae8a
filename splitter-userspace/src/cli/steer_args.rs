//! Flags of steering: what is where, and how each class is treated.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{ArgAction, Args, ValueEnum};
use splitter_common::{Class, Limit, Pool, Spoof, SpoofAction};

use super::named::{self, Named};
use super::pool_args::{General, PoolArgs};
use crate::config::{DataplaneSettings, SettingsError};
use crate::dataplane::{BalanceOptions, Cidr, CpuIsolation, HookMode, Policy, Ranges, XdpKind};

/// What the kernel programs are told. Only the ranges have an effect with `--steering none`.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Steering")]
pub struct SteerArgs {
    /// NIC that leads outside; repeatable [default: those of the default routes]
    #[arg(long, env = "SPLITTER_INTERFACE", value_name = "NAME", value_delimiter = ',', value_parser = interface)]
    pub interface: Vec<String>,

    /// How XDP runs on the NICs
    #[arg(long, env = "SPLITTER_XDP_MODE", value_enum, default_value_t = XdpModeArg::Native)]
    pub xdp_mode: XdpModeArg,

    /// Range of this node's pods; repeatable
    #[arg(
        long,
        env = "SPLITTER_POD_CIDR",
        value_name = "CIDR",
        value_delimiter = ','
    )]
    pub pod_cidr: Vec<Cidr>,

    /// Range of all pods; repeatable
    #[arg(
        long,
        env = "SPLITTER_CLUSTER_CIDR",
        value_name = "CIDR",
        value_delimiter = ','
    )]
    pub cluster_cidr: Vec<Cidr>,

    /// Address of this node that is on none of its interfaces; repeatable
    #[arg(long, env = "SPLITTER_NODE_IP", value_name = "IP", value_delimiter = ',', value_parser = address)]
    pub node_ip: Vec<IpAddr>,

    /// Address of another node; repeatable
    #[arg(long, env = "SPLITTER_PEER_NODE_IP", value_name = "IP", value_delimiter = ',', value_parser = address)]
    pub peer_node_ip: Vec<IpAddr>,

    /// Pods of other nodes arrive on the NIC with their own addresses
    #[arg(
        long,
        env = "SPLITTER_NATIVE_ROUTING",
        action = ArgAction::Set,
        num_args = 0..=1,
        require_equals = true,
        default_value_t = false,
        default_missing_value = "true"
    )]
    pub native_routing: bool,

    /// What each pool has for itself.
    #[command(flatten)]
    pub pools: PoolArgs,

    /// Which pool a class gets; repeatable [default: local, node and east-west get east-west, the others north-south]
    #[arg(long, env = "SPLITTER_CLASS_POOL", value_name = "CLASS=POOL", value_delimiter = ',', value_parser = named::class_pool)]
    pub class_pool: Vec<Named<Class, Pool>>,

    /// What is done about sources that cannot be real, by every rule [default: drop, but count for the rule cluster]
    #[arg(long, env = "SPLITTER_SPOOF", value_name = "drop|count|off", value_parser = named::spoof_action)]
    pub spoof: Option<SpoofAction>,

    /// The same for one rule; repeatable
    #[arg(long, env = "SPLITTER_SPOOF_RULE", value_name = "RULE=ACTION", value_delimiter = ',', value_parser = named::spoof_rule)]
    pub spoof_rule: Vec<Named<Spoof, SpoofAction>>,

    /// New connections a second of one source (/24, /64), and how many at once; XDP only [default: no limit]
    #[arg(long, env = "SPLITTER_SOURCE_SYN_LIMIT", value_name = "RATE[:BURST]", value_parser = named::limit)]
    pub source_syn_limit: Option<Limit>,

    /// Packets a second of one source (/24, /64); XDP only [default: no limit]
    #[arg(long, env = "SPLITTER_SOURCE_PACKET_LIMIT", value_name = "RATE[:BURST]", value_parser = named::limit)]
    pub source_packet_limit: Option<Limit>,

    /// New connections a second of a class; repeatable; XDP only [default: no limit]
    #[arg(long, env = "SPLITTER_CLASS_SYN_LIMIT", value_name = "CLASS=RATE[:BURST]", value_delimiter = ',', value_parser = named::class_limit)]
    pub class_syn_limit: Vec<Named<Class, Limit>>,

    /// Packets a second of a class; repeatable; XDP only [default: no limit]
    #[arg(long, env = "SPLITTER_CLASS_PACKET_LIMIT", value_name = "CLASS=RATE[:BURST]", value_delimiter = ',', value_parser = named::class_limit)]
    pub class_packet_limit: Vec<Named<Class, Limit>>,

    /// CPUs of each pool's threads and, with XDP, of its packets, e.g. north-south=0-3;east-west=4-7; auto: half each, from 4 CPUs on
    #[arg(long, env = "SPLITTER_CPU_ISOLATION", value_name = "off|auto|SETS", default_value_t = CpuIsolation::Off)]
    pub cpu_isolation: CpuIsolation,

    /// Where the maps are pinned: one directory for each instance
    #[command(flatten)]
    pub pin: PinArgs,

    /// Leave the programs attached when the process ends
    #[arg(
        long,
        env = "SPLITTER_KEEP_ATTACHED",
        action = ArgAction::Set,
        num_args = 0..=1,
        require_equals = true,
        default_value_t = false,
        default_missing_value = "true"
    )]
    pub keep_attached: bool,

    /// Split connections that processes of the node make to Services' own addresses; auto: where a Service asks for it and nobody else has programs on these hooks
    #[arg(long, env = "SPLITTER_CONNECT_HOOKS", value_enum, default_value_t = HookArg::Auto)]
    pub connect_hooks: HookArg,

    /// Let XDP forward what TCP and UDP services get, where it runs
    #[arg(
        long,
        env = "SPLITTER_L4_XDP",
        action = ArgAction::Set,
        num_args = 0..=1,
        require_equals = true,
        default_value_t = true,
        default_missing_value = "true"
    )]
    pub l4_xdp: bool,

    /// Ports from which XDP connects to Endpoints on other nodes; nothing else may use them
    #[arg(long, env = "SPLITTER_L4_NAT_PORTS", value_name = "FIRST-LAST", default_value = "61000-65535", value_parser = ports)]
    pub l4_nat_ports: (u16, u16),

    /// New flows of a class that XDP takes in a second, and how many at once; user space gets the others
    #[arg(long, env = "SPLITTER_L4_FLOW_LIMIT", value_name = "off|RATE[:BURST]", default_value = "20000", value_parser = flow_limit)]
    pub l4_flow_limit: Limit,

    /// Cgroup (version 2) below which these processes are [default: the top of the node's]
    #[arg(long, env = "SPLITTER_CGROUP", value_name = "DIR")]
    pub cgroup: Option<PathBuf>,
}

/// Values of `--connect-hooks`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum HookArg {
    /// Where a Service asks for it and nobody else has programs on these hooks
    Auto,
    /// Always, also beside programs of others; an error at the start where that cannot be
    On,
    /// Never
    Off,
}

/// By what an instance is found.
#[derive(Args, Clone, Debug)]
pub struct PinArgs {
    /// Directory of the pinned maps, on a BPF file system
    #[arg(
        long,
        env = "SPLITTER_PIN_DIR",
        value_name = "DIR",
        default_value = DataplaneSettings::PIN_DIR
    )]
    pub pin_dir: PathBuf,
}

/// Values of `--xdp-mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum XdpModeArg {
    /// In the driver
    Native,
    /// In the kernel's stack: any NIC, much slower
    Generic,
}

impl SteerArgs {
    /// The settings, with pools that are as `general` says where they are given nothing of their
    /// own. Without a number of threads a pool has one for each of its CPUs.
    ///
    /// # Errors
    /// When one thing is given two values, or a CPU is named that is not there.
    pub fn settings(self, general: &General) -> Result<DataplaneSettings, SettingsError> {
        let policy = self.policy()?;
        let pools = self.pools.settings(general, &policy.cpus)?;
        Ok(DataplaneSettings {
            interfaces: self.interface.clone(),
            xdp: match self.xdp_mode {
                XdpModeArg::Native => XdpKind::Native,
                XdpModeArg::Generic => XdpKind::Generic,
            },
            policy,
            pools,
            ranges: Ranges {
                own: self.node_ip,
                pods: self.pod_cidr,
                cluster: self.cluster_cidr,
                nodes: self.peer_node_ip,
            },
            pin_dir: self.pin.pin_dir,
            keep_attached: self.keep_attached,
            hooks: match self.connect_hooks {
                HookArg::Auto => HookMode::Auto,
                HookArg::On => HookMode::On,
                HookArg::Off => HookMode::Off,
            },
            cgroup: self.cgroup,
            balance: BalanceOptions {
                on: self.l4_xdp,
                ports: self.l4_nat_ports,
                new_flows: self.l4_flow_limit,
            },
        })
    }

    fn policy(&self) -> Result<Policy, SettingsError> {
        let mut policy = Policy {
            native_routing: self.native_routing,
            source_syn: self.source_syn_limit.unwrap_or_default(),
            source_packets: self.source_packet_limit.unwrap_or_default(),
            cpus: self.cpu_isolation.resolve()?,
            ..Policy::default()
        };
        if let Some(action) = self.spoof {
            policy.spoof = [action; Spoof::COUNT];
        }
        for (place, rule) in policy.spoof.iter_mut().zip(Spoof::ALL) {
            let action = named::value("spoof-rule", "rule", &self.spoof_rule, rule, Spoof::name)?;
            *place = action.unwrap_or(*place);
        }
        for (index, class) in Class::ALL.into_iter().enumerate() {
            let of = |flag, list| named::value(flag, "class", list, class, Class::name);
            let pool = named::value("class-pool", "class", &self.class_pool, class, Class::name)?;
            policy.pool[index] = pool.unwrap_or(policy.pool[index]);
            let syn = of("class-syn-limit", &self.class_syn_limit)?;
            policy.class_syn[index] = syn.unwrap_or_default();
            let packets = of("class-packet-limit", &self.class_packet_limit)?;
            policy.class_packets[index] = packets.unwrap_or_default();
        }
        Ok(policy)
    }
}

/// A name as the kernel takes it.
fn interface(text: &str) -> Result<String, String> {
    let fits = (1..=15).contains(&text.len()) && !text.contains(['/', ' ', ':']);
    let name = fits.then(|| text.to_owned());
    name.ok_or_else(|| "expected the name of a network interface such as eth0".to_owned())
}

fn ports(text: &str) -> Result<(u16, u16), String> {
    let found = text.split_once('-').and_then(|(first, last)| {
        let (first, last) = (first.parse().ok()?, last.parse().ok()?);
        (first > 0 && first <= last).then_some((first, last))
    });
    found.ok_or_else(|| "expected first and last port such as 61000-65535".to_owned())
}

fn flow_limit(text: &str) -> Result<Limit, String> {
    match text {
        "off" => Ok(Limit::default()),
        text => named::limit(text).map_err(|why| format!("{why}, or off")),
    }
}

fn address(text: &str) -> Result<IpAddr, String> {
    let addr = text.parse();
    addr.map_err(|_| "expected an IP address such as 192.0.2.1 or 2001:db8::1".to_owned())
}

#[cfg(test)]
#[path = "steer_args_tests.rs"]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests;
