//! Ports of the node that lead to Services, over real sockets.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

mod changes;
mod ends;
mod fixture;
mod proxy_header;
mod real;
mod share;
mod udp;
