//! What the kernel programs do, apart from how they reach packets, maps and sockets.
//!
//! `ingress` judges packets for XDP, `steer` chooses a pool's socket for sk_lookup. Both are plain
//! functions over traits, so that the same code runs in the kernel and in the tests of this crate.
//! Nothing here is `unsafe`; `packet.rs` and `maps.rs` of the binary are the only files that are.

#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

pub mod bucket;
pub mod ingress;
pub mod parse;
pub mod record;
pub mod steer;

#[cfg(test)]
mod testing;
