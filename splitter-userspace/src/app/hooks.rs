//! Connections that processes of the node make to Services' own addresses: kept as they should be, and told.

use std::sync::Arc;

use serde_json::{Value, json};

use super::steering::Steering;
use crate::dataplane::{ConnectPlan, HookMode, HookState, connect_plan};
use crate::model::{Kind, L4Key, ObjectRef, Problem, Severity};
use crate::routing::L4Live;
use crate::telemetry::{CONNECT_FAILURES, CONNECT_HOOKS, Counter, Gauge, Registry};

/// What is split there, and what is told of it.
pub struct Connects {
    mode: HookMode,
    plan: ConnectPlan,
    /// The maps do not hold all of it.
    failing: bool,
    failures: Counter,
    gauges: [(&'static str, Gauge); HookState::NAMES.len()],
}

/// Why nothing is split there where no kernel programs are.
const NO_PROGRAMS: &str = "there are no kernel programs without steering (--steering)";

impl Connects {
    /// Nothing yet.
    pub fn new(mode: HookMode, registry: &Registry) -> Self {
        let gauge = |state| (state, registry.gauge(&CONNECT_HOOKS, &[("state", state)]));
        Connects {
            mode,
            plan: ConnectPlan::default(),
            failing: false,
            failures: registry.counter(&CONNECT_FAILURES, &[]),
            gauges: HookState::NAMES.map(gauge),
        }
    }

    fn show(&self, state: &HookState) {
        for (name, gauge) in &self.gauges {
            gauge.set(i64::from(*name == state.name()));
        }
    }

    /// Where no kernel programs are.
    fn without_programs(&self) -> HookState {
        match (self.mode, self.plan.services.is_empty()) {
            (HookMode::Off, _) => HookState::Off,
            (HookMode::Auto | HookMode::On, true) => HookState::Waiting,
            (HookMode::Auto | HookMode::On, false) => HookState::Aside {
                why: NO_PROGRAMS.to_owned(),
            },
        }
    }
}

impl Steering {
    /// Attaches what is asked for by name.
    ///
    /// # Errors
    /// Why it cannot be, in words.
    pub(super) fn start_hooks(&mut self) -> Result<(), String> {
        let (kernel, connects, _) = self.parts();
        let asked = connects.mode == HookMode::On;
        let state = match kernel {
            Some(kernel) => {
                kernel.follow_hooks();
                kernel.hooks().clone()
            }
            None if asked => return Err(NO_PROGRAMS.to_owned()),
            None => connects.without_programs(),
        };
        if asked && let HookState::Aside { why } = state {
            return Err(why);
        }
        self.tell_hooks(&state, false);
        Ok(())
    }

    /// Splits what a state asks for. Gives the Services for which there is no room.
    pub fn split_connects(&mut self, all: &[Arc<L4Live>]) -> Vec<Problem> {
        let plan = connect_plan(all);
        if self.connects.plan != plan {
            self.connects.plan = plan;
            self.write_splits();
            self.follow_hooks();
        }
        self.connects.plan.left_out.iter().map(problem).collect()
    }

    /// Tries again what could not be written, as when there was no memory.
    pub fn split_again(&mut self) {
        if self.connects.failing {
            self.write_splits();
        }
    }

    fn write_splits(&mut self) {
        let (kernel, connects, _) = self.parts();
        let faults = kernel.map(|it| it.split_connects(&connects.plan));
        let faults = faults.unwrap_or_default();
        for error in &faults {
            connects.failures.inc();
            // Once; it is counted each time.
            if !connects.failing {
                tracing::error!(%error, "connections to a Service are left to the cluster");
            }
        }
        if connects.failing && faults.is_empty() {
            tracing::info!("connections to Services are split as they should be again");
        }
        connects.failing = !faults.is_empty();
    }

    /// Attaches or detaches as it should be now.
    pub fn follow_hooks(&mut self) {
        let (kernel, connects, description) = self.parts();
        let state = match kernel {
            Some(kernel) => {
                kernel.follow_hooks();
                kernel.hooks().clone()
            }
            None => connects.without_programs(),
        };
        let told = description.borrow()["connect_hooks"]["told"] == json!(state.to_string());
        if !told {
            self.tell_hooks(&state, true);
        }
    }

    /// Detaches for good.
    pub(super) fn release_hooks(&mut self) {
        if let (Some(kernel), ..) = self.parts() {
            kernel.release_hooks();
            let state = kernel.hooks().clone();
            self.tell_hooks(&state, false);
        }
    }

    fn tell_hooks(&mut self, state: &HookState, log: bool) {
        let (_, connects, description) = self.parts();
        connects.show(state);
        match state {
            HookState::Aside { .. } => {
                tracing::warn!("connections to Services' own addresses are not split: {state}");
            }
            _ if log => tracing::info!("connections to Services' own addresses: {state}"),
            _ => {}
        }
        let told = json!({
            "asked": connects.mode.name(),
            "state": state.name(),
            "told": state.to_string(),
        });
        description.send_modify(|all: &mut Value| all["connect_hooks"] = told);
    }
}

fn problem(key: &L4Key) -> Problem {
    Problem {
        severity: Severity::Error,
        object: ObjectRef::new(Kind::Service, &key.namespace, &key.service),
        source: String::new(),
        field: "metadata.annotations.splitter.io/split".to_owned(),
        code: "split-connect-limit",
        message: format!(
            "there is no room for connections to the address of port {} ({})",
            key.port, key.transport
        ),
        effect: "those that pods and the node make are not split".to_owned(),
    }
}
