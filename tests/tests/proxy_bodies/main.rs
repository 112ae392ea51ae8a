//! Bodies: streamed both ways at the slower side's pace, framed as they came, never cut silently.
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

mod connections;
mod cuts;
mod framing;
mod interim;
mod large;
mod pressure;
mod streaming;
mod trailers;
mod without_a_body;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use splitter_tests::backend::Backend;
use splitter_tests::client::Client;
use splitter_tests::instance::Splitter;
use splitter_tests::noise::Noise;
use splitter_tests::{PATIENCE, eventually};

/// More than a body test can keep in any buffer by mistake.
const LARGE: usize = 20 * 1024 * 1024;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// A splitter before a backend that answers one way.
fn answering(bytes: &str) -> (Backend, Splitter) {
    let backend = Backend::answering(bytes);
    let splitter = Splitter::before(&backend);
    (backend, splitter)
}
