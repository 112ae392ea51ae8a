//! The HTTP proxy: pools of workers, each a thread with its own listeners, connections and clock.
//!
//! The way of a request: [`handshake`] on TLS listeners, [`conn`] (bytes in, judged by [`guard`], parsed by hyper) → [`service`]
//! (check, find, decide) → [`forward`] (pick, connect, exchange, retry) → [`body`] (stream back) →
//! [`journal`] (count, log).

#[doc(hidden)]
pub mod apart;
mod body;
mod client;
mod clock;
mod codec;
mod conn;
mod copied;
mod fallback;
mod fault;
mod flush;
mod forward;
mod grpc;
mod guard;
mod handshake;
mod hasher;
mod headers;
mod hex;
mod http2;
mod io;
mod journal;
mod l4;
mod limiter;
mod listen;
mod mirror;
mod origin;
mod own;
mod passthrough;
mod policy;
mod pool;
mod proxy_header;
mod real_ip;
mod retry;
mod service;
mod socket;
mod start;
mod target;
mod terms;
mod tunnel;
mod upstream;
mod worker;

pub use fault::Fault;
pub use l4::{L4Config, L4Ports};
pub use limiter::Limiter;
pub use listen::{BACKLOG, Sockets};
pub use start::{Drain, Proxy, ProxyConfig, StartError};
pub use worker::Classes;
