//! Fixtures shared by the tests.

pub mod bpf;
