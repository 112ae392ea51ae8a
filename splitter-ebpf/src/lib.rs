//! What the kernel programs do, apart from how they reach packets, maps and sockets.
//!
//! `ingress` judges packets for XDP, `steer` chooses a pool's socket for sk_lookup, `connect` an Endpoint
//! for processes that connect to a Service, `balance` one for what comes in at the node. All are plain functions over traits, so that the same code
//! runs in the kernel and in the tests of this crate. Nothing here is `unsafe`; the files of the binary
//! that reach packets, maps and sockets are.

#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

pub mod balance;
pub mod balancer;
pub mod begin;
pub mod bucket;
pub mod connect;
pub mod head;
pub mod ingress;
pub mod parse;
pub mod quoted;
pub mod record;
pub mod steer;

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod bench;
#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod packets;
#[cfg(test)]
mod testing;
