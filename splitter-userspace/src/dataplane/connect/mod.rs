//! Splits of connections that processes of the node make to Services' own addresses: what the kernel
//! programs decide by, and the hooks of a cgroup in which they run.

mod cgroup;
mod counts;
mod hooks;
mod plan;
mod tables;

pub use counts::ConnectCounter;
pub use hooks::{HookMode, HookState};
pub(super) use hooks::{Hooks, PROGRAMS, others};
pub(super) use plan::key;
pub use plan::{ConnectPlan, PlannedConnect, connect_plan};
pub(super) use tables::{ConnectTables, share, share_asked};

pub(super) use cgroup::Cgroup;
