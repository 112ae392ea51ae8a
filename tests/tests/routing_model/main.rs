//! The request path against slow models of its rules, written apart from it, over random input.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

mod decide_model;
mod decide_test;
mod draw_test;
mod find_model;
mod find_test;
mod fuzz_test;
