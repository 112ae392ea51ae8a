//! Flags for connections where no HTTP is looked at.

use std::time::Duration;

use clap::Args;

use super::values::{duration, number};
use crate::config::L4Limits;

/// Limits of the ports that `--tcp-services-configmap` and `--udp-services-configmap` open.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "TCP and UDP services")]
pub struct L4Args {
    /// TCP connections of one worker to ports of ConfigMaps; further ones are reset
    #[arg(long, env = "SPLITTER_MAX_L4_CONNECTIONS", value_name = "N", default_value = "16384", value_parser = number(1..=1_048_576))]
    pub max_l4_connections: usize,

    /// For which such a connection is kept without a byte either way; then it is reset
    #[arg(long, env = "SPLITTER_L4_IDLE_TIMEOUT", value_name = "TIME", default_value = "10m", value_parser = duration)]
    pub l4_idle_timeout: Duration,

    /// UDP sessions of one worker; datagrams of further ones are dropped
    #[arg(long, env = "SPLITTER_MAX_UDP_SESSIONS", value_name = "N", default_value = "16384", value_parser = number(1..=1_048_576))]
    pub max_udp_sessions: usize,

    /// For which a UDP session is kept without a datagram either way
    #[arg(long, env = "SPLITTER_UDP_IDLE_TIMEOUT", value_name = "TIME", default_value = "30s", value_parser = duration)]
    pub udp_idle_timeout: Duration,
}

impl From<L4Args> for L4Limits {
    fn from(args: L4Args) -> Self {
        L4Limits {
            max_connections: args.max_l4_connections,
            idle: args.l4_idle_timeout,
            max_sessions: args.max_udp_sessions,
            udp_idle: args.udp_idle_timeout,
        }
    }
}
