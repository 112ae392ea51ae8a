//! The maps: where the weights live, what the kernel programs read, and how both are loaded.
//!
//! [`plan`] and [`diff`] are pure; [`apply`] and the loader do the I/O. The weights are read through
//! [`SlotTable`] alone, whether they lie in a BPF map or in the process's own memory.

mod attach;
mod balance;
mod caps;
mod cidr;
mod connect;
mod counters;
mod cpus;
mod error;
mod examine;
mod ids;
mod inspect;
mod kernel;
mod kernel_log;
mod maps;
mod memory;
mod names;
mod neighbours;
mod netlink;
mod nics;
mod object;
mod overrides;
mod pin;
mod plan;
mod policy;
mod pools;
mod prefixes;
mod slots;
mod spec;
mod splits;
mod stats;
mod sys;
mod tables;
mod tracker;
mod xdp_features;

pub use attach::XdpKind;
pub use balance::{BalanceOptions, BalancePlan, ForwardedTraffic, TrafficReader, balance_plan};
pub use cidr::{Cidr, CidrError};
pub use connect::{ConnectCounter, ConnectPlan, HookMode, HookState, PlannedConnect, connect_plan};
pub use counters::{ClassCount, Counters, Counts};
pub use cpus::{CpuError, CpuIsolation, CpuSets};
pub use error::{DataplaneError, XDP_MTU};
pub use examine::{Examined, examine};
pub use inspect::{Pinned, PinnedConnect, PinnedListener, PinnedName};
pub use kernel::{Forwarding, Kernel, KernelOptions, ProgramReport, Report};
pub use netlink::{Interface, addresses, default_interfaces, interfaces};
pub use nics::NicChange;
pub use object::object;
pub use overrides::{Override, overrides};
pub use pin::detach;
pub use plan::{
    NO_SLOT, SlotAllocator, SlotContent, SlotError, SlotOp, SlotPlan, apply, diff, plan, replan,
};
pub use policy::Policy;
pub use pools::Pools;
pub use prefixes::{Classifier, LeftOut, Prefixes, Ranges};
pub use slots::SlotTable;
pub use splits::Splits;
pub use stats::SplitStats;
pub use tracker::LiveTracker;
pub use xdp_features::{XdpFeatures, xdp_features};
