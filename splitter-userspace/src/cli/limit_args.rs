use std::time::Duration;

use clap::Args;

use super::values::{duration, number};
use crate::config::{Limits, Timeouts};

/// Flags for how long things may take.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Timeouts")]
pub struct TimeoutArgs {
    /// To connect to an endpoint
    #[arg(long, env = "SPLITTER_CONNECT_TIMEOUT", value_name = "TIME", default_value = "5s", value_parser = duration)]
    pub connect_timeout: Duration,

    /// Between two reads from a backend
    #[arg(long, env = "SPLITTER_READ_TIMEOUT", value_name = "TIME", default_value = "60s", value_parser = duration)]
    pub read_timeout: Duration,

    /// Between two writes that make progress
    #[arg(long, env = "SPLITTER_SEND_TIMEOUT", value_name = "TIME", default_value = "60s", value_parser = duration)]
    pub send_timeout: Duration,

    /// For a client to send a whole request head
    #[arg(long, env = "SPLITTER_HEADER_TIMEOUT", value_name = "TIME", default_value = "60s", value_parser = duration)]
    pub header_timeout: Duration,

    /// For a client to finish its TLS handshake
    #[arg(long, env = "SPLITTER_HANDSHAKE_TIMEOUT", value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub handshake_timeout: Duration,

    /// For which an idle client connection is kept
    #[arg(long, env = "SPLITTER_KEEP_ALIVE_TIMEOUT", value_name = "TIME", default_value = "75s", value_parser = duration)]
    pub keep_alive_timeout: Duration,

    /// For which an idle connection to an endpoint is kept
    #[arg(long, env = "SPLITTER_UPSTREAM_IDLE_TIMEOUT", value_name = "TIME", default_value = "60s", value_parser = duration)]
    pub upstream_idle_timeout: Duration,

    /// For which an upgraded connection (WebSocket) is kept without a byte either way
    #[arg(long, env = "SPLITTER_TUNNEL_TIMEOUT", value_name = "TIME", default_value = "1h", value_parser = duration)]
    pub tunnel_timeout: Duration,
}

/// Flags for how much there may be of things.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Limits")]
pub struct LimitArgs {
    /// Client connections of one worker; further ones are closed at once
    #[arg(long, env = "SPLITTER_MAX_CONNECTIONS", value_name = "N", default_value = "16384", value_parser = number(1..=1_048_576))]
    pub max_connections: usize,

    /// TLS handshakes of one worker that are open at once; further ones are closed at once
    #[arg(long, env = "SPLITTER_MAX_HANDSHAKES", value_name = "N", default_value = "1024", value_parser = number(1..=1_048_576))]
    pub max_handshakes: usize,

    /// Requests that one worker answers at a time; further ones get a 503
    #[arg(long, env = "SPLITTER_MAX_REQUESTS", value_name = "N", default_value = "16384", value_parser = number(1..=1_048_576))]
    pub max_requests: usize,

    /// Bytes of a request's head
    #[arg(long, env = "SPLITTER_MAX_HEAD_BYTES", value_name = "N", default_value = "65536", value_parser = number(8_192..=1_048_576))]
    pub max_head_bytes: usize,

    /// Header lines of a request
    #[arg(long, env = "SPLITTER_MAX_HEADERS", value_name = "N", default_value = "100", value_parser = number(1..=10_000))]
    pub max_headers: usize,

    /// Idle connections to one endpoint that one worker keeps
    #[arg(long, env = "SPLITTER_UPSTREAM_IDLE_PER_ENDPOINT", value_name = "N", default_value = "320", value_parser = number(0..=65_536))]
    pub upstream_idle_per_endpoint: usize,

    /// Bytes of a request's body where no proxy-body-size says otherwise; 0 is no limit
    #[arg(
        long,
        env = "SPLITTER_MAX_BODY_BYTES",
        value_name = "N",
        default_value = "1048576",
        value_parser = bytes
    )]
    pub max_body_bytes: u64,
}

fn bytes(text: &str) -> Result<u64, String> {
    let allowed = "expected a whole number of bytes, without a unit; 0 is no limit";
    text.parse().map_err(|_| allowed.to_owned())
}

impl From<TimeoutArgs> for Timeouts {
    fn from(args: TimeoutArgs) -> Self {
        Timeouts {
            connect: args.connect_timeout,
            read: args.read_timeout,
            send: args.send_timeout,
            header: args.header_timeout,
            handshake: args.handshake_timeout,
            keep_alive: args.keep_alive_timeout,
            upstream_idle: args.upstream_idle_timeout,
            tunnel: args.tunnel_timeout,
        }
    }
}

impl From<LimitArgs> for Limits {
    fn from(args: LimitArgs) -> Self {
        Limits {
            max_connections: args.max_connections,
            max_handshakes: args.max_handshakes,
            max_requests: args.max_requests,
            max_head_bytes: args.max_head_bytes,
            max_headers: args.max_headers,
            upstream_idle_per_endpoint: args.upstream_idle_per_endpoint,
            max_body_bytes: args.max_body_bytes,
        }
    }
}
