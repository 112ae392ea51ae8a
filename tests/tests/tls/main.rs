//! TLS towards clients, on real sockets: who is shown which certificate, what is agreed on, what
//! becomes of requests, and what of those who do not speak TLS.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod bad_input;
mod certificates;
mod client_certs;
mod faults;
mod handshakes;
mod passthrough;
mod pod_terms;
mod pods;
mod requests;
mod rotation;
mod table;
mod terms;
mod tickets;

use std::sync::Arc;

use rustls::ClientConfig;
use splitter::config::Settings;
use splitter_tests::backend::Backend;
use splitter_tests::instance::Splitter;
use splitter_tests::manifests::Manifests;
use splitter_tests::noise::Noise;
use splitter_tests::tls::{Authority, TlsClient, connect};

/// A splitter with `a.test` over TLS, before a backend.
struct Site {
    backend: Backend,
    authority: Authority,
    splitter: Splitter,
    config: Arc<ClientConfig>,
}

impl Site {
    fn new() -> Self {
        Self::before(Backend::reflecting())
    }

    fn before(backend: Backend) -> Self {
        Self::before_with(backend, |_| {})
    }

    fn before_with(backend: Backend, change: impl FnOnce(&mut Settings)) -> Self {
        let authority = Authority::new("test root");
        let manifests = Manifests::new()
            .tls("a", &["a.test"])
            .main("main", "a.test", "/", "main")
            .service("main", &[backend.addr()])
            .raw(&authority.issue(&["a.test"]).secret("a"));
        let splitter = Splitter::start_with(&manifests, |settings| {
            secure(settings);
            change(settings);
        });
        let config = Arc::new(authority.client());
        Site {
            backend,
            authority,
            splitter,
            config,
        }
    }

    fn client(&self) -> TlsClient {
        connect(self.splitter.https(), "a.test", &self.config)
    }

    /// How many handshakes were counted with these labels.
    fn handshakes(&self, labels: &[(&str, &str)]) -> f64 {
        self.splitter
            .metrics()
            .sum("splitter_tls_handshakes_total", labels)
    }
}

/// Has it listen for TLS on a port of its own.
fn secure(settings: &mut Settings) {
    settings.https = vec!["127.0.0.1:0".parse().expect("an address")];
}

/// `n` bytes that look like no others.
fn noise(seed: usize, n: usize) -> Vec<u8> {
    const PIECE: usize = 10_000;
    let mut noise = Noise::new(seed);
    let mut bytes = Vec::with_capacity(n + PIECE);
    while bytes.len() < n {
        bytes.extend_from_slice(noise.next(PIECE));
    }
    bytes.truncate(n);
    bytes
}
