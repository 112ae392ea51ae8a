//! Locations for one side only, on a node with an outside and a pod, in every mode of steering.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::net::SocketAddr;
use std::process::Command;

use splitter_tests::bpf::{Namespace, Site};
use splitter_tests::client::{self, Client};
use splitter_tests::manifests::Manifests;

fn site() -> Site {
    let site = Site::new(env!("CARGO_BIN_EXE_splitter-here"));
    let note = |class| ("splitter.io/traffic-class", class);
    let manifests = Manifests::new()
        .ingress("in", "in.test", "/", "Prefix", "web", &[note("east-west")])
        .ingress(
            "out",
            "out.test",
            "/",
            "Prefix",
            "web",
            &[note("north-south")],
        );
    let objects = site.dir().join("objects");
    fs::write(objects.join("classes.yaml"), manifests.yaml()).unwrap();
    site
}

/// What callers from there get of the location for inside, and of that for outside.
fn statuses(from: &Namespace, to: &str) -> (u16, u16) {
    let to: SocketAddr = to.parse().unwrap();
    from.run(|| {
        let status = |host| client::get(to, host, "/").status;
        (status("in.test"), status("out.test"))
    })
}

const INSIDE: (u16, u16) = (200, 403);
const OUTSIDE: (u16, u16) = (403, 200);

#[test]
fn the_class_that_was_found_decides_in_every_mode() {
    for mode in ["xdp", "sk-lookup", "none"] {
        let mut site = site();
        site.start(&format!(
            "--steering {mode} --http 0.0.0.0:80 --http [::]:80"
        ));
        let (out, node, pod) = (&site.nodes.out, &site.nodes.node, &site.nodes.pod);
        for (from, to, expected) in [
            (out, "203.0.113.1:80", OUTSIDE),
            (out, "[2001:db8::1]:80", OUTSIDE),
            (pod, "203.0.113.1:80", INSIDE),
            (pod, "10.244.0.1:80", INSIDE),
            (pod, "[fd00:244::1]:80", INSIDE),
            (node, "127.0.0.1:80", INSIDE),
            (node, "203.0.113.1:80", INSIDE),
        ] {
            assert_eq!(statuses(from, to), expected, "{mode}: to {to}");
        }
        let labels = [("fault", "class-denied")];
        site.expect_sum("splitter_faults_total", &labels, 7.0);
    }
}

/// Runs `ip` in a namespace.
fn ip(namespace: &Namespace, args: &str) {
    let output = namespace.run(|| Command::new("ip").args(args.split(' ')).output().unwrap());
    assert!(output.status.success(), "ip {args}: {output:?}");
}

#[test]
fn callers_that_the_kernel_has_not_put_there_are_outside() {
    let mut site = site();
    site.start("--steering sk-lookup --http 0.0.0.0:80");
    assert_eq!(statuses(&site.nodes.pod, "203.0.113.1:80"), INSIDE);
    // By its address it is a pod of another node; but it comes by the NIC, where pods do not travel.
    ip(&site.nodes.out, "addr add 10.244.9.9/32 dev lo");
    ip(&site.nodes.node, "route add 10.244.9.9/32 via 203.0.113.2");
    let to: SocketAddr = "203.0.113.1:80".parse().unwrap();
    let status = site.nodes.out.run(|| {
        let source = "10.244.9.9".parse().unwrap();
        Client::connect_from(source, to).get("in.test", "/").status
    });
    assert_eq!(status, 403);
}

#[test]
fn a_class_whose_pool_is_another_one_by_the_flags_is_found_there() {
    let mut site = site();
    site.start("--steering sk-lookup --http 0.0.0.0:80 --class-pool local=north-south");
    assert_eq!(statuses(&site.nodes.node, "127.0.0.1:80"), INSIDE);
    assert_eq!(statuses(&site.nodes.pod, "203.0.113.1:80"), INSIDE);
    assert_eq!(statuses(&site.nodes.out, "203.0.113.1:80"), OUTSIDE);
}
