//! Ports where no HTTP is looked at, forwarded by the XDP program: what it decides by, and the program that
//! translates answers of Endpoints on this node on their way out.

mod egress;
mod plan;
mod regions;
mod rows;
mod tables;
mod traffic;

pub(super) use egress::Egress;
pub use plan::{BalancePlan, balance_plan};
pub(super) use tables::{BalanceTables, share_flows};
pub use traffic::{ForwardedTraffic, TrafficReader};

use splitter_common::Limit;

/// How packets are forwarded by XDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BalanceOptions {
    /// Whether they are.
    pub on: bool,
    /// First and last port from which connections to Endpoints on other nodes are made.
    pub ports: (u16, u16),
    /// New flows of one class in a second; further ones are left to user space.
    pub new_flows: Limit,
}

impl BalanceOptions {
    /// Ports above those that the kernel takes by itself (`ip_local_port_range`).
    pub const PORTS: (u16, u16) = (61_000, 65_535);

    /// A flood fills the table of flows no faster than this.
    pub const NEW_FLOWS: Limit = Limit {
        rate: 20_000,
        burst: 20_000,
    };
}

impl Default for BalanceOptions {
    fn default() -> Self {
        BalanceOptions {
            on: true,
            ports: Self::PORTS,
            new_flows: Self::NEW_FLOWS,
        }
    }
}
