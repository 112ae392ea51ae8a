//! What people reported about canaries of ingress-nginx, and what is right instead. Each test is
//! named after the report's row in the project's list: sections A to E, and what real traffic shows
//! of F. Rows that need session affinity, are about documentation only, or wish for what the
//! annotations cannot say are left out.
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

mod a_policy_belongs_to_the_location;
mod b_matching;
mod c_endpoints_and_failure;
mod d_headers_and_cookies;
mod e_weights_and_updates;
mod f_logs_and_metrics;
mod seen_in_the_code;

use splitter_tests::backend::{Backend, refusing};
use splitter_tests::client::Client;
use splitter_tests::eventually;
use splitter_tests::instance::Splitter;
use splitter_tests::manifests::Manifests;

/// A stable backend, two canaries, and manifests that know their Services `m`, `c` and `d`.
struct Cast {
    m: Backend,
    c: Backend,
    d: Backend,
}

impl Cast {
    fn new() -> Self {
        Cast {
            m: Backend::named("M"),
            c: Backend::named("C"),
            d: Backend::named("D"),
        }
    }

    fn services(&self) -> Manifests {
        Manifests::new()
            .service("m", &[self.m.addr()])
            .service("c", &[self.c.addr()])
            .service("d", &[self.d.addr()])
    }
}

/// Starts `ingresses` before the usual Services.
fn serve(ingresses: impl FnOnce(Manifests) -> Manifests) -> (Cast, Splitter) {
    let cast = Cast::new();
    let splitter = Splitter::start(&ingresses(cast.services()));
    (cast, splitter)
}

/// Who answers a GET with these fields; the status if it is nobody.
fn who(splitter: &Splitter, host: &str, path: &str, fields: &str) -> String {
    let answer = splitter.get_with(host, path, fields);
    match answer.status {
        200 => answer.text(),
        status => status.to_string(),
    }
}

/// Every of ten requests is answered by `by`.
#[track_caller]
fn always(splitter: &Splitter, host: &str, path: &str, fields: &str, by: &str) {
    for _ in 0..10 {
        assert_eq!(
            who(splitter, host, path, fields),
            by,
            "{host}{path} {fields:?}"
        );
    }
}

/// How many of `n` requests on one connection `by` answers.
fn share(splitter: &Splitter, host: &str, n: usize, by: &str) -> usize {
    let mut client = splitter.client();
    (0..n)
        .filter(|_| client.get(host, "/").text() == by)
        .count()
}

const ALL: &[(&str, &str)] = &[("canary-weight", "100")];
