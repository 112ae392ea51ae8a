//! The command line.

pub mod check;
pub mod class_args;
