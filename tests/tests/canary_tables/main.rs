//! What ingress-nginx's canary does, row by row: the tables of one request's decision, of how its
//! header and cookie are read, of weights, of what else counts on a canary Ingress, and of what logs
//! and metrics say. Where the row is a fault of ingress-nginx, the test says what is right here.
//! The table of session affinity is in `policies/affinity`.
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

mod annotations;
mod decisions;
mod readings;
mod telling;
mod weights;

use splitter_tests::backend::Backend;
use splitter_tests::eventually;
use splitter_tests::instance::Splitter;
use splitter_tests::manifests::Manifests;

type Notes<'a> = &'a [(&'a str, &'a str)];

/// Main `m` and canary `c` behind one splitter.
struct Pair {
    m: Backend,
    c: Backend,
    splitter: Splitter,
}

impl Pair {
    /// Both are there; the main Ingress has `main`, the canary `canary` beside `canary: "true"`.
    fn new(main: Notes<'_>, canary: Notes<'_>) -> Self {
        Self::with(main, canary, (true, true))
    }

    /// The same with pods or without, of main and canary.
    fn with(main: Notes<'_>, canary: Notes<'_>, pods: (bool, bool)) -> Self {
        let (m, c) = (Backend::named("M"), Backend::named("C"));
        let of = |backend: &Backend, there: bool| match there {
            true => vec![backend.addr()],
            false => Vec::new(),
        };
        let manifests = Manifests::new()
            .ingress("main", "a.test", "/", "Prefix", "m", main)
            .canary("canary", "a.test", "/", "c", canary)
            .service("m", &of(&m, pods.0))
            .service("c", &of(&c, pods.1));
        let splitter = Splitter::start(&manifests);
        Pair { m, c, splitter }
    }

    /// Who answers a GET with these fields; the status if it is nobody.
    fn who(&self, fields: &str) -> String {
        let answer = self.splitter.get_with("a.test", "/", fields);
        match answer.status {
            200 => answer.text(),
            status => status.to_string(),
        }
    }

    /// Every of ten requests with these fields is answered so.
    #[track_caller]
    fn always(&self, fields: &str, by: &str) {
        for _ in 0..10 {
            assert_eq!(self.who(fields), by, "{fields:?}");
        }
    }

    /// How many of `n` requests on one connection the canary answers.
    fn share(&self, n: usize) -> usize {
        let mut client = self.splitter.client();
        let answers = (0..n).map(|_| client.get("a.test", "/").text());
        answers.filter(|it| it == "C").count()
    }
}

const HEADER: (&str, &str) = ("canary-by-header", "X");
const COOKIE: (&str, &str) = ("canary-by-cookie", "k");
const ALL: (&str, &str) = ("canary-weight", "100");
const NONE: (&str, &str) = ("canary-weight", "0");
