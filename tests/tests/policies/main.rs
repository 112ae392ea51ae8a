//! The policies of Locations, each on real sockets: what an annotation says is what a client meets.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod hosts;
mod https;
mod redirect;
mod upstream_host;

use splitter_tests::backend::Backend;
use splitter_tests::instance::Splitter;
use splitter_tests::manifests::Manifests;

/// One Ingress `web` for `a.test/` with these annotations, before `backend`.
pub fn before(backend: &Backend, annotations: &[(&str, &str)]) -> Splitter {
    Splitter::start(
        &Manifests::new()
            .ingress("web", "a.test", "/", "Prefix", "app", annotations)
            .service("app", &[backend.addr()]),
    )
}
