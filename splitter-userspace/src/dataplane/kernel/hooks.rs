//! Connections of processes: what they are split by, and the hooks.

use aya::Ebpf;

use super::super::connect::{ConnectPlan, HookMode, HookState, Hooks, PROGRAMS};
use super::super::error::DataplaneError;
use super::super::pin;
use super::{Kernel, KernelOptions, ProgramReport};

impl Kernel {
    /// Splits the connections of processes by a plan. Gives what went wrong: the addresses that it is
    /// about are left to the cluster's own answer.
    pub fn split_connects(&mut self, plan: &ConnectPlan) -> Vec<DataplaneError> {
        self.split = !plan.services.is_empty();
        self.services.apply(plan)
    }

    /// Attaches the programs for that, or detaches them, as it should be now. Gives whether anything has
    /// changed.
    pub fn follow_hooks(&mut self) -> bool {
        let kin = self.dir.path().parent().map(pin::hooks);
        let changed = self
            .hooks
            .follow(&mut self.ebpf, self.split, &kin.unwrap_or_default());
        if changed {
            self.announce_hooks();
        }
        changed
    }

    /// Detaches them for good.
    pub fn release_hooks(&mut self) {
        self.hooks.release();
        self.announce_hooks();
    }

    /// What became of them.
    pub fn hooks(&self) -> &HookState {
        self.hooks.state()
    }

    fn announce_hooks(&self) {
        if let Err(error) = self.dir.announce_hooks(&self.hooks.attached()) {
            tracing::warn!(%error, "a successor will take the hooks of this instance for another owner's");
        }
    }
}

/// Loads the programs of hooks, where they may be wanted. Without them everything else goes on.
pub(super) fn load(
    ebpf: &mut Ebpf,
    options: &KernelOptions,
    programs: &mut Vec<ProgramReport>,
) -> Hooks {
    let names = match options.hooks {
        HookMode::Off => &[][..],
        HookMode::Auto | HookMode::On => &PROGRAMS[..],
    };
    let loaded: Result<Vec<_>, _> = names
        .iter()
        .map(|(name, _)| super::load(ebpf, name))
        .collect();
    let loaded = loaded.map_err(|error| error.to_string());
    let ids = loaded
        .as_ref()
        .map(|all| all.iter().map(|it| it.id).collect());
    let ids = ids.map_err(Clone::clone);
    programs.extend(loaded.unwrap_or_default());
    Hooks::new(options.hooks, options.cgroup.as_deref(), ids)
}
