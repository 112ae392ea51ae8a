//! The policies of Locations, each on real sockets: what an annotation says is what a client meets.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod access_log;
mod addresses;
mod affinity;
mod affinity_cookie;
mod affinity_endpoints;
mod answer_edits;
mod balance;
mod body_size;
mod buffering;
mod canary_rules;
mod cors;
mod dump;
mod error_pages;
mod external_name;
mod hosts;
mod http_version;
mod https;
mod limits;
mod mirror;
mod pace;
mod proxy_protocol;
mod redirect;
mod retry;
mod rewrite;
mod service_upstream;
mod times;
mod traffic_class;
mod upstream_host;
mod websocket;

use splitter::config::{Limits, Settings};
use splitter_tests::backend::Backend;
use splitter_tests::instance::Splitter;
use splitter_tests::manifests::Manifests;

/// One Ingress `web` for `a.test/` with these annotations, before `backend`.
pub fn before(backend: &Backend, annotations: &[(&str, &str)]) -> Splitter {
    before_with(backend, annotations, |settings| {
        settings.limits = Limits::default()
    })
}

/// The same with other settings.
pub fn before_with(
    backend: &Backend,
    annotations: &[(&str, &str)],
    change: impl FnOnce(&mut Settings),
) -> Splitter {
    let manifests = Manifests::new()
        .ingress("web", "a.test", "/", "Prefix", "app", annotations)
        .service("app", &[backend.addr()]);
    Splitter::start_with(&manifests, change)
}

/// Bodies of any size where nothing else is written.
pub fn any_size(settings: &mut Settings) {
    settings.limits.max_body_bytes = 0;
}
