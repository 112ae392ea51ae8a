//! What happens when one side does not do its part: refused, retried, timed out, counted, told.
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

mod answers_that_are_none;
mod draining;
mod endpoints;
mod leaving_clients;
mod limits;
mod random;
mod refusing_endpoints;
mod retries;
mod timeouts;

use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use splitter::config::Settings;
use splitter_tests::backend::{Backend, Conversation, Refusing, refusing};
use splitter_tests::client::Answer;
use splitter_tests::instance::Splitter;
use splitter_tests::manifests::Manifests;
use splitter_tests::{PATIENCE, eventually};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// The shortest time that all timeouts allow: one tick of the clock.
const SHORT: Duration = Duration::from_millis(250);

/// One Service with these endpoints for host `a.test`.
fn service(endpoints: &[SocketAddr]) -> Manifests {
    Manifests::new()
        .main("main", "a.test", "/", "main")
        .service("main", endpoints)
}

/// What scripts tell a test, and what a test tells them.
struct Line {
    tell: Mutex<Sender<&'static str>>,
    hear: Mutex<Receiver<()>>,
}

impl Line {
    /// The script's end, what it tells, and how to let it go on.
    fn new() -> (Self, Receiver<&'static str>, Sender<()>) {
        let ((tell, told), (go, hear)) = (channel(), channel());
        let line = Line {
            tell: Mutex::new(tell),
            hear: Mutex::new(hear),
        };
        (line, told, go)
    }

    fn say(&self, what: &'static str) {
        let tell = self.tell.lock().unwrap_or_else(|e| e.into_inner());
        let _ = tell.send(what);
    }

    fn wait(&self) {
        let hear = self.hear.lock().unwrap_or_else(|e| e.into_inner());
        let _ = hear.recv_timeout(PATIENCE);
    }
}

/// A backend that reads requests, never answers, and tells when it was asked and left.
fn silent() -> (Backend, Receiver<&'static str>) {
    let (line, told, _) = Line::new();
    let backend = Backend::scripted(move |conversation| {
        if conversation.request().is_some() {
            line.say("asked");
            conversation.wait_for_close();
            line.say("left");
        }
    });
    (backend, told)
}

/// A backend that closes as soon as it has read a request.
fn closing() -> Backend {
    Backend::scripted(|conversation| {
        conversation.request();
    })
}

#[track_caller]
fn assert_ok(answer: &Answer) {
    assert_eq!(answer.status, 200, "{answer:?}");
}
