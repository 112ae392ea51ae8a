//! Whole splitter processes whose XDP program forwards what TCP and UDP services get. Needs root, and fails
//! without.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod changes;
mod fixture;
mod forwarded;
mod hostile;
mod instances;
mod real;
