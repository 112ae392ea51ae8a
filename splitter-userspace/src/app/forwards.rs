//! Ports where no HTTP is looked at: what XDP forwards of them, kept as it should be, and told.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::steering::Steering;
use crate::config::Settings;
use crate::dataplane::{Forwarding, balance_plan};
use crate::model::Transport;
use crate::routing::Live;
use crate::telemetry::{
    Counter, Forwarded, Gauge, L4_XDP_FAILURES, L4_XDP_STATE, L4Forwarded, L4Stats, Registry,
};

/// The ports of the node that are open.
type OpenPorts = BTreeSet<(Transport, u16)>;

/// What is forwarded, and what is told of it.
pub struct Forwards {
    udp_idle: Duration,
    /// What is served, and the ports that are open.
    asked: Option<(Arc<Live>, OpenPorts)>,
    /// There was something to forward when it was last looked.
    wanted: bool,
    state: Forwarding,
    /// The maps do not hold all of it.
    failing: bool,
    failures: Counter,
    gauges: [(&'static str, Gauge); 5],
}

impl Forwards {
    /// Nothing yet.
    pub fn new(settings: &Settings, registry: &Registry) -> Self {
        let gauge = |state| (state, registry.gauge(&L4_XDP_STATE, &[("state", state)]));
        Forwards {
            udp_idle: settings.l4.udp_idle,
            asked: None,
            wanted: false,
            state: Forwarding::Off,
            failing: false,
            failures: registry.counter(&L4_XDP_FAILURES, &[]),
            gauges: ["off", "no-xdp", "unable", "remote-only", "on"].map(gauge),
        }
    }
}

impl Steering {
    /// Has XDP forward what a state asks for at these ports.
    pub fn forward(&mut self, live: &Arc<Live>, open: OpenPorts) {
        self.forwards.asked = Some((Arc::clone(live), open));
        self.forward_again();
    }

    /// The same as the addresses around, the NICs and what could not be written are now.
    pub(super) fn forward_again(&mut self) {
        let (kernel, forwards, ranges, description) = self.forwarding();
        let (Some(kernel), Some((live, open))) = (kernel, &forwards.asked) else {
            return;
        };
        let is_open = |transport, port| open.contains(&(transport, port));
        let plan = balance_plan(&live.l4, &live.snapshot.l4, is_open, ranges);
        let wanted = !plan.fronts.is_empty();
        if !wanted && !forwards.wanted && !forwards.failing {
            forwards.show();
            return;
        }
        let (state, faults) = kernel.forward(&plan, forwards.udp_idle);
        forwards.wanted = wanted;
        for error in &faults {
            forwards.failures.inc();
            // Once; it is counted each time.
            if !forwards.failing {
                tracing::error!(%error, "XDP does not forward all that it should; user space serves the rest");
            }
        }
        if forwards.failing && faults.is_empty() {
            tracing::info!("XDP forwards what it should again");
        }
        forwards.failing = !faults.is_empty();
        if forwards.state != state {
            match &state {
                Forwarding::On {
                    no_local: Some(_), ..
                } => tracing::warn!("{}", told(&state)),
                _ => tracing::info!("{}", told(&state)),
            }
            forwards.state = state;
            let value = json!({ "state": name(&forwards.state), "told": told(&forwards.state) });
            description.send_modify(|all: &mut Value| all["forwarding"] = value);
        }
        forwards.show();
    }

    /// Has nothing new be forwarded; what there is goes on.
    pub(super) fn forward_nothing_new(&mut self) {
        let (kernel, forwards, _, _) = self.forwarding();
        forwards.asked = None;
        let faults = kernel.map(|it| it.forward_nothing_new());
        for error in faults.unwrap_or_default() {
            tracing::warn!(%error, "XDP goes on taking connections to TCP and UDP services");
        }
    }
}

/// Has what XDP forwards be counted with what user space carries.
pub fn count(stats: &L4Stats, steering: &Steering) {
    let Some(reader) = steering.forwarded() else {
        return;
    };
    stats.add_forwarded(move || match reader.read() {
        Ok(all) => all
            .into_iter()
            .map(|it| {
                let counts = L4Forwarded {
                    connections: it.traffic.flows,
                    packets_in: it.traffic.packets_in,
                    received: it.traffic.bytes_in,
                    packets_out: it.traffic.packets_out,
                    sent: it.traffic.bytes_out,
                };
                ((it.service, it.variant), counts)
            })
            .collect(),
        Err(error) => {
            tracing::warn!(%error, "what XDP forwards is missing in the metrics");
            Forwarded::default()
        }
    });
}

impl Forwards {
    fn show(&self) {
        let now = name(&self.state);
        for (name, gauge) in &self.gauges {
            gauge.set(i64::from(*name == now));
        }
    }
}

fn name(state: &Forwarding) -> &'static str {
    match state {
        Forwarding::Off => "off",
        Forwarding::NoXdp => "no-xdp",
        Forwarding::Unable { .. } => "unable",
        Forwarding::On {
            no_local: Some(_), ..
        } => "remote-only",
        Forwarding::On { no_local: None, .. } => "on",
    }
}

fn told(state: &Forwarding) -> String {
    match state {
        Forwarding::Off => "XDP forwards nothing of TCP and UDP services".to_owned(),
        Forwarding::NoXdp => "no NIC has XDP: user space serves TCP and UDP services".to_owned(),
        Forwarding::Unable { why } => {
            format!("the kernel does not forward ({why}): user space serves TCP and UDP services")
        }
        Forwarding::On { no_local, own } => {
            let own: Vec<_> = own.iter().map(ToString::to_string).collect();
            let own = own.join(", ");
            match no_local {
                None => {
                    format!("XDP forwards what TCP and UDP services get; to other nodes from {own}")
                }
                Some(why) => format!(
                    "XDP forwards what TCP and UDP services get to other nodes, from {own}; user space \
                     serves Endpoints on this node, as their answers cannot be translated: {why}"
                ),
            }
        }
    }
}
