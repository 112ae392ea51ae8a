//! Handshakes that nobody finishes, from outside: the other class keeps its share.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::net::SocketAddr;

use splitter_tests::bpf::{Namespace, Site};
use splitter_tests::client::Client;
use splitter_tests::eventually;
use splitter_tests::tls::shown;

const TO: &str = "203.0.113.1:443";

/// A handshake that stops in its middle.
fn stalled(from: &Namespace) -> Client {
    let to: SocketAddr = TO.parse().unwrap();
    from.run(|| {
        let mut client = Client::connect(to);
        client.send(b"\x16\x03\x01\x02\x00\x01");
        client
    })
}

#[test]
fn a_flood_of_open_handshakes_from_outside_is_refused_there_and_ends_in_time() {
    let mut site = Site::new(env!("CARGO_BIN_EXE_splitter-here"));
    let args = site.run_args(
        "--steering sk-lookup --http 0.0.0.0:80 --pools north-south=1,east-west=1 \
         --pool-limit north-south:handshakes=3 --pool-timeout north-south:handshake=2s",
    );
    let args = args.replace("--https off", "--https 0.0.0.0:443");
    let command = site.command(&args);
    site.start_as(command);
    let (out, pod) = (&site.nodes.out, &site.nodes.pod);
    let handshakes = |pool, reason| {
        let labels = [("pool", pool), ("reason", reason)];
        site.metrics().sum("splitter_tls_handshakes_total", &labels)
    };
    let flood: Vec<_> = (0..10).map(|_| stalled(out)).collect();
    eventually("the limit is met", || {
        handshakes("north-south", "overloaded") >= 7.0
    });
    let to: SocketAddr = TO.parse().unwrap();
    // Each is a handshake of its own.
    for _ in 0..5 {
        pod.run(|| shown(to, None));
    }
    assert_eq!(handshakes("east-west", "overloaded"), 0.0);
    eventually("those that are open have their time", || {
        handshakes("north-south", "timeout") == 3.0
    });
    drop(flood);
    out.run(|| shown(to, None));
}
