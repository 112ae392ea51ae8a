//! Fixtures shared by the tests.

pub mod prometheus;
pub mod telemetry;
