//! Connections where no HTTP is looked at: ports of the node that lead to Services.
//!
//! The control thread opens the ports ([`L4Ports`]), which takes rights that workers do not have. Each
//! worker accepts from sockets of its own ([`serve`]), chooses by the same pure function as the kernel
//! will (`routing::L4Live`), and carries bytes in the kernel's memory ([`relay`]), or datagrams ([`udp`]).

mod connection;
mod datagram;
mod pipe;
mod ports;
mod relay;
mod serve;
mod tracked;
mod udp;

pub use ports::L4Ports;
pub use serve::{L4Config, L4Worker};
