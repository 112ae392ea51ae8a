//! Which way connections reach the pools: tried, taken and kept going.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use splitter_common::{Class, Fallback, Pool};
use tokio::sync::watch;

use super::{counters, describe, forwards, hooks, ranges};
use crate::admin::Readiness;
use crate::config::{DataplaneSettings, PoolSettings, Settings, Steering as Mode};
use crate::dataplane::{
    Classifier, DataplaneError, Kernel, KernelOptions, LeftOut, Policy, Prefixes, Ranges, Splits,
    TrafficReader, addresses,
};
use crate::k8s::NodeFacts;
use crate::proxy::Classes;
use crate::telemetry::{Counter, Gauge, INTERFACE_CHANGES, Registry, STEERING_MODE};

/// Why there is no steering.
#[derive(Debug, thiserror::Error)]
pub enum SteeringError {
    /// A mode that was asked for by name.
    #[error("--steering {mode} is not to be had: {error}")]
    Mode {
        /// Its name.
        mode: &'static str,
        /// Why not, and what to do.
        error: DataplaneError,
    },
    /// What no other mode would cure.
    #[error(transparent)]
    Conflict(DataplaneError),
    /// `--connect-hooks on`.
    #[error("--connect-hooks on is not to be had: {0}")]
    Hooks(String),
    /// No memory for the weights.
    #[error("cannot map memory for the weights: {0}")]
    Memory(io::Error),
}

/// The mode in use. The programs are attached as long as this lives.
pub struct Steering {
    mode: Mode,
    /// What was tried before, with the reasons against it.
    stepped: Vec<(Mode, String)>,
    kernel: Option<Kernel>,
    splits: Splits,
    /// What the flags say; what the cluster's Nodes say and the node's own addresses come on top.
    given: Ranges,
    /// What the cluster's Nodes say.
    nodes: NodeFacts,
    /// What is in force.
    ranges: Ranges,
    policy: Policy,
    /// What is in force, for user space: by the address alone.
    classifier: watch::Sender<Classifier>,
    /// For `/config_dump` and `splitter status`.
    description: watch::Sender<Value>,
    changes: [Counter; 2],
    /// Connections of processes to Services' own addresses.
    pub(super) connects: hooks::Connects,
    /// Ports where no HTTP is looked at.
    pub(super) forwards: forwards::Forwards,
    _gauge: Gauge,
}

impl Steering {
    /// Takes the mode that was asked for; with `auto` the best that works.
    ///
    /// # Errors
    /// When a mode that was asked for by name is not to be had, or another instance has the pin
    /// directory.
    ///
    /// `beside` is the pin directory of a running instance that is being taken over.
    pub fn start(
        settings: &Settings,
        registry: &Registry,
        beside: Option<&Path>,
    ) -> Result<Self, SteeringError> {
        let (mode, stepped, kernel) = choose(settings, beside)?;
        let splits = match &kernel {
            Some(kernel) => kernel.splits(),
            None => Splits::in_memory().map_err(SteeringError::Memory)?,
        };
        if let Some(kernel) = &kernel {
            counters::collect(registry, kernel.counters.clone());
            counters::collect_connects(registry, kernel.connects.clone());
            describe::log(mode.name(), kernel.report());
        }
        let connects = hooks::Connects::new(settings.dataplane.hooks, registry);
        let gauge = registry.gauge(&STEERING_MODE, &[("mode", mode.name())]);
        gauge.set(1);
        let mut steering = Steering {
            mode,
            stepped,
            kernel,
            splits,
            given: settings.dataplane.ranges.clone(),
            nodes: NodeFacts::default(),
            ranges: Ranges::default(),
            policy: settings.dataplane.policy.clone(),
            classifier: watch::Sender::new(Classifier::default()),
            description: watch::Sender::new(Value::Null),
            changes: ["moved", "without-xdp"]
                .map(|result| registry.counter(&INTERFACE_CHANGES, &[("result", result)])),
            connects,
            forwards: forwards::Forwards::new(settings, registry),
            _gauge: gauge,
        };
        steering
            .description
            .send_replace(steering.describe(settings));
        steering
            .set_ranges(with_own(&steering.given, &steering.nodes))
            .map_err(|error| SteeringError::Mode {
                mode: mode.name(),
                error,
            })?;
        steering.start_hooks().map_err(SteeringError::Hooks)?;
        Ok(steering)
    }

    /// The same for what XDP forwards.
    pub(super) fn forwarding(
        &mut self,
    ) -> (
        Option<&mut Kernel>,
        &mut forwards::Forwards,
        &Ranges,
        &watch::Sender<Value>,
    ) {
        (
            self.kernel.as_mut(),
            &mut self.forwards,
            &self.ranges,
            &self.description,
        )
    }

    /// What XDP has forwarded, if there is XDP.
    pub fn forwarded(&self) -> Option<Arc<TrafficReader>> {
        let kernel = self.kernel.as_ref()?;
        Some(Arc::clone(&kernel.forwarded))
    }

    /// What the kernel has, if there is steering, with what is told of it.
    pub(super) fn parts(
        &mut self,
    ) -> (
        Option<&mut Kernel>,
        &mut hooks::Connects,
        &watch::Sender<Value>,
    ) {
        (self.kernel.as_mut(), &mut self.connects, &self.description)
    }

    /// Where the weights are.
    pub fn splits(&self) -> &Splits {
        &self.splits
    }

    /// The same classes in user space, by the address alone; what that cannot tell is outside.
    pub fn classes(&self) -> Arc<dyn Classes> {
        let pools = self.has_pools().then_some(self.policy.pool);
        Arc::new(ByAddress(self.classifier.subscribe(), pools))
    }

    /// Whether there is a pool for each class; else there is one for all.
    pub fn has_pools(&self) -> bool {
        self.kernel.is_some()
    }

    /// Says which mode is in use, and why no better one.
    pub fn note(&self, readiness: &Readiness) {
        let mut text = self.mode.name().to_owned();
        for (mode, why) in &self.stepped {
            // A verifier's log has lines; a note is one.
            let why = why.split_whitespace().collect::<Vec<_>>().join(" ");
            text.push_str(&format!("; no {}: {why}", mode.name()));
        }
        readiness.note("steering", text);
    }

    /// The same and more for `/config_dump` and `splitter status`.
    pub fn description(&self) -> watch::Receiver<Value> {
        self.description.subscribe()
    }

    fn describe(&self, settings: &Settings) -> Value {
        let stepped = self.stepped.iter();
        let stepped = stepped.map(|(mode, why)| json!({"mode": mode.name(), "why": why}));
        let pools = if self.has_pools() {
            let pools = Pool::ALL.into_iter().zip(&settings.dataplane.pools);
            pools
                .map(|(pool, of)| describe::pool(pool.name(), of))
                .collect()
        } else {
            let all = PoolSettings {
                workers: settings.workers,
                timeouts: settings.timeouts,
                limits: settings.limits,
            };
            vec![describe::pool("all", &all)]
        };
        json!({
            "asked": settings.steering.name(),
            "mode": self.mode.name(),
            "not_to_be_had": stepped.collect::<Vec<_>>(),
            "pid": std::process::id(),
            "pools": pools,
            "kernel": self.kernel.as_ref().map(|kernel| describe::kernel(kernel.report())),
        })
    }

    /// Gives connections to `addr` to these sockets.
    ///
    /// # Errors
    /// When the kernel would not take a socket.
    pub fn publish(
        &mut self,
        addr: SocketAddr,
        sockets: &[(Pool, BorrowedFd<'_>)],
    ) -> Result<(), DataplaneError> {
        match &mut self.kernel {
            Some(kernel) => kernel.pools.publish(addr, Fallback::OtherPool, sockets),
            None => Ok(()),
        }
    }

    /// Leaves connections to the kernel's own look-up again.
    pub fn withdraw(&mut self, addrs: &[SocketAddr]) {
        self.release_hooks();
        self.forward_nothing_new();
        let Some(kernel) = &mut self.kernel else {
            return;
        };
        for addr in addrs {
            if let Err(error) = kernel.pools.withdraw(*addr) {
                tracing::warn!(%error, %addr, "a listener stays in the map; it has no socket");
            }
        }
    }

    /// Leaves word of the admin address for the other commands.
    pub fn announce(&self, admin: SocketAddr) {
        let announced = self.kernel.as_ref().map(|kernel| kernel.announce(admin));
        if let Some(Err(error)) = announced {
            tracing::warn!(%error, "splitter status will need --admin to find this instance");
        }
    }

    /// Gets everything ready that a successor needs. Gives the pin directory, if there is one.
    pub fn lend(&mut self) -> Option<PathBuf> {
        let lent = self.kernel.as_mut()?.lend();
        match lent {
            Ok(dir) => Some(dir.to_owned()),
            Err(error) => {
                tracing::error!(%error, "the successor cannot go on with XDP");
                None
            }
        }
    }

    /// The opposite, as the successor is gone.
    pub fn take_back(&mut self) {
        let back = self.kernel.as_mut().map(Kernel::take_back);
        if let Some(Err(error)) = back {
            tracing::warn!(%error, "XDP would stay attached after the end of this process");
        }
    }

    /// Leaves the place to a successor that serves. Gives whether its directory has changed places
    /// with ours.
    pub fn supersede(&mut self, successor: Option<&Path>) -> bool {
        let Some(kernel) = &mut self.kernel else {
            return false;
        };
        match kernel.supersede(successor) {
            Ok(()) => successor.is_some(),
            Err(error) => {
                tracing::warn!(%error, "the successor's maps stay under another name");
                false
            }
        }
    }

    /// Where the maps are that are to take the place of a running instance's.
    pub fn staged(&self) -> Option<PathBuf> {
        let staged = self.kernel.as_ref()?.staged()?;
        Some(staged.to_owned())
    }

    /// Ends the taking over: the other instance has stopped accepting, or is gone.
    pub fn settle(&mut self, moved: bool, readiness: &Readiness) {
        let Some(kernel) = &mut self.kernel else {
            return;
        };
        let faults = kernel.settle(moved);
        for error in &faults {
            tracing::error!(%error, "what the former instance had attached has not been taken over");
        }
        if !faults.is_empty() {
            let text: Vec<_> = faults.iter().map(ToString::to_string).collect();
            readiness.note("take-over", text.join("; "));
        }
        let kernel = describe::kernel(kernel.report());
        self.description.send_modify(|all| all["kernel"] = kernel);
    }

    /// Takes in what the cluster's Nodes say about addresses.
    pub fn learn(&mut self, nodes: NodeFacts) {
        if nodes != self.nodes {
            self.nodes = nodes;
            self.follow_addresses(false);
        }
    }

    /// Follows the node's own addresses, and the NICs that lead outside; passes on what the kernel
    /// programs have said.
    pub fn refresh(&mut self, readiness: &Readiness) {
        if let Some(kernel) = &mut self.kernel {
            kernel.flush_log();
        }
        let moved = self.follow_nics(readiness);
        self.follow_addresses(moved);
        self.split_again();
        self.follow_hooks();
        self.forward_again();
    }

    fn follow_addresses(&mut self, moved: bool) {
        let ranges = with_own(&self.given, &self.nodes);
        if ranges != self.ranges {
            tracing::info!(
                own = ?ranges.own,
                pods = ?ranges.pods,
                cluster = ranges.cluster.len(),
                nodes = ranges.nodes.len(),
                "the addresses around have changed"
            );
        }
        if (moved || ranges != self.ranges)
            && let Err(error) = self.set_ranges(ranges)
        {
            tracing::error!(%error, "the former addresses stay in force");
        }
    }

    /// Whether other NICs lead outside than before.
    fn follow_nics(&mut self, readiness: &Readiness) -> bool {
        let Some(kernel) = &mut self.kernel else {
            return false;
        };
        let change = match kernel.follow_nics() {
            Ok(Some(change)) => change,
            Ok(None) => return false,
            Err(error) => {
                tracing::warn!(%error, "the NICs stay those that they were");
                return false;
            }
        };
        let (before, now) = (change.before.join(", "), change.now.join(", "));
        tracing::info!(before, now, "other NICs lead outside");
        for error in &change.faults {
            tracing::error!(%error, "XDP has not moved to where it should be");
        }
        self.changes[usize::from(!change.faults.is_empty())].inc();
        let faults = change.faults.iter().map(ToString::to_string);
        let text = [now].into_iter().chain(faults).collect::<Vec<_>>();
        readiness.note("interfaces", text.join("; "));
        let kernel = describe::kernel(kernel.report());
        self.description.send_modify(|all| all["kernel"] = kernel);
        true
    }

    fn set_ranges(&mut self, ranges: Ranges) -> Result<(), DataplaneError> {
        if let Some(kernel) = &mut self.kernel {
            kernel.set_ranges(&ranges, &self.policy)?;
        }
        let (prefixes, left_out) = Prefixes::new(&ranges);
        left_out.iter().for_each(left);
        self.classifier.send_replace(Classifier::new(prefixes));
        self.ranges = ranges;
        Ok(())
    }
}

/// With the pool of each class, if there are pools.
struct ByAddress(watch::Receiver<Classifier>, Option<[Pool; Class::COUNT]>);

impl Classes for ByAddress {
    fn class_of(&self, peer: IpAddr) -> &'static str {
        self.0.borrow().classify(peer, 0).class.name()
    }

    fn is_inside(&self, addr: IpAddr, pool: &str) -> bool {
        let class = self.0.borrow().classify(addr, 0).class;
        // What the kernel found otherwise, say by the NIC, has led to another pool.
        let agreed = |pools: &[Pool; Class::COUNT]| {
            let its = pools.get(class.code() as usize);
            its.is_some_and(|it| it.name() == pool)
        };
        matches!(class, Class::EastWest | Class::Local) && self.1.as_ref().is_none_or(agreed)
    }
}

fn left(range: &LeftOut) {
    tracing::warn!("{range}; its callers are taken for callers from outside");
}

/// The mode to use, those that were tried before it, and its programs.
type Chosen = (Mode, Vec<(Mode, String)>, Option<Kernel>);

fn choose(settings: &Settings, beside: Option<&Path>) -> Result<Chosen, SteeringError> {
    let modes: &[Mode] = match settings.steering {
        Mode::Auto => &[Mode::Xdp, Mode::SkLookup],
        Mode::None => &[],
        ref named => std::slice::from_ref(named),
    };
    let mut stepped = Vec::new();
    for &mode in modes {
        match Kernel::load(&options(mode, &settings.dataplane, beside)) {
            Ok(kernel) => return Ok((mode, stepped, Some(kernel))),
            // Two instances would fight for the same connections: no lesser mode cures that.
            Err(error @ DataplaneError::InUse { .. }) => {
                return Err(SteeringError::Conflict(error));
            }
            Err(error) if settings.steering != Mode::Auto => {
                let mode = mode.name();
                return Err(SteeringError::Mode { mode, error });
            }
            Err(error) => {
                tracing::warn!(mode = mode.name(), %error, "this way of steering is not to be had");
                stepped.push((mode, error.to_string()));
            }
        }
    }
    Ok((Mode::None, stepped, None))
}

fn options(mode: Mode, settings: &DataplaneSettings, beside: Option<&Path>) -> KernelOptions {
    KernelOptions {
        xdp: (mode == Mode::Xdp).then_some(settings.xdp),
        interfaces: settings.interfaces.clone(),
        pin_dir: settings.pin_dir.clone(),
        keep_attached: settings.keep_attached,
        beside: beside.map(Path::to_owned),
        hooks: settings.hooks,
        cgroup: settings.cgroup.clone(),
        balance: settings.balance,
    }
}

/// The ranges with the addresses on the node's interfaces.
fn with_own(given: &Ranges, nodes: &NodeFacts) -> Ranges {
    let interfaces = addresses().unwrap_or_else(|error| {
        tracing::warn!(%error, "the node's own addresses are only those that are named");
        Vec::new()
    });
    ranges::combine(given, nodes, &interfaces)
}
