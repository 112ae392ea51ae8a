#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

mod addresses;
mod affinity;
mod attach;
mod auth;
mod backends;
mod canary;
mod classes;
mod compare;
mod config_map;
mod defaults;
mod external;
mod fallback;
mod incremental;
mod issues;
mod l4;
mod oracle;
mod own;
mod paths;
mod policy;
mod property;
mod reference;
mod rules;
mod shared;
mod site;
mod support;
mod weights;
