//! Who may call, by what clients know or were given, on real sockets.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod basic;
mod external;
mod external_told;
mod faults;
mod jwks_url;
mod jwt;
mod matrix;
mod satisfy;

use splitter_tests::backend::Backend;
use splitter_tests::cluster::base64;
use splitter_tests::instance::Splitter;
use splitter_tests::manifests::Manifests;
use splitter_tests::tls::secret;

/// Of `secret`.
const APR1: &str = "$apr1$abcdefgh$h9FWgUz3n9YxylKLlR5SQ/";
const BCRYPT: &str = "$2y$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a";

/// A Secret `users` in which `ann` and `bob` have the password `secret`.
fn users() -> String {
    let file = format!("ann:{APR1}\nbob:{BCRYPT}\nkim:{{SHA}}5en6G6MezRroT3XKqkdPOmY/BfQ=\n");
    secret("users", &[("auth", &file)])
}

/// An Authorization field.
fn basic(user: &str, password: &str) -> String {
    let encoded = base64(&format!("{user}:{password}"));
    format!("Authorization: Basic {encoded}\r\n")
}

/// One Ingress `web` for `a.test/` with these annotations, before `backend`, with the Secret `users`.
fn before(backend: &Backend, annotations: &[(&str, &str)]) -> Splitter {
    let manifests = Manifests::new()
        .ingress("web", "a.test", "/", "Prefix", "app", annotations)
        .service("app", &[backend.addr()])
        .raw(&users());
    Splitter::start(&manifests)
}

const ASKS: [(&str, &str); 3] = [
    ("auth-type", "basic"),
    ("auth-secret", "users"),
    ("auth-realm", "Shop \"1\""),
];
