//! The splitter: Ingress objects in, requests split by weight out.
//!
//! Data goes one way: `k8s::Objects → k8s::translate → model::Snapshot → { proxy, dataplane,
//! admin }`. [`app`] is the only place that knows every module; ARCHITECTURE.md has the map and the
//! allowed imports, and `cargo xtask verify` holds the code to them.

#![deny(unsafe_code)]

pub mod admin;
pub mod app;
pub mod auth;
pub mod cli;
pub mod config;
pub mod dataplane;
pub mod k8s;
pub mod model;
mod names;
pub mod proxy;
pub mod routing;
pub mod telemetry;
pub mod tls;
pub mod webhook;
mod words;
