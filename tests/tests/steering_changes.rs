//! What becomes of steering when the network changes, and of weights when the process does.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use splitter_tests::bpf::net::command;
use splitter_tests::bpf::{Site, site::HOST};
use splitter_tests::eventually;

const BOTH: &str = "--http 0.0.0.0:80 --http [::]:80";

fn site() -> Site {
    Site::new(env!("CARGO_BIN_EXE_splitter-here"))
}

/// Runs a command that must succeed; gives what it printed.
fn printed(site: &Site, args: &str) -> String {
    let output = site.output(args);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn steering_moves_with_the_default_route() {
    let mut site = site();
    let (node, out) = (&site.nodes.node, &site.nodes.out);
    node.ip(&format!(
        "link add en1 type veth peer name wire1 netns {}",
        out.name()
    ));
    for (place, nic, addr) in [
        (node, "en1", "198.51.100.1/24"),
        (out, "wire1", "198.51.100.2/24"),
    ] {
        place.ip(&format!("link set {nic} up"));
        place.ip(&format!("addr add {addr} dev {nic}"));
    }
    node.ip("route add default via 203.0.113.2");
    let args = site.run_args(&format!("--steering xdp {BOTH}"));
    let command = site.command(&args.replace("--interface en0 ", ""));
    site.start_as(command);
    let has_nic = |site: &Site, name: &str| {
        let line = format!("interfaces {name} (xdp native)");
        printed(site, "status").lines().any(|found| found == line)
    };
    assert!(has_nic(&site, "en0"));
    site.nodes.node.ip("route replace default via 198.51.100.2");
    eventually("the new NIC is found", || has_nic(&site, "en1"));
    let link = |name: &str| site.nodes.node.ip(&format!("-d link show {name}"));
    assert!(link("en1").contains("prog/xdp") && !link("en0").contains("prog/xdp"));
    // What comes by the new NIC is from outside and policed.
    assert_eq!(site.get(&site.nodes.out, "198.51.100.1:80").status, 200);
    eventually("the request is logged", || site.requests().len() == 1);
    assert_eq!(site.requests()[0]["pool"], "north-south");
    let metrics = site.metrics();
    let moved = [("result", "moved")];
    assert_eq!(metrics.sum("splitter_interface_changes_total", &moved), 1.0);
    assert!(site.log().contains("other NICs lead outside"));
    assert!(site.admin("/readyz").contains("interfaces: en1\n"));
    assert!(site.stop().success());
}

#[test]
fn an_override_ends_with_its_process() {
    let mut site = site();
    let args = format!("--steering sk-lookup {BOTH}");
    for end in [Site::stop, Site::kill] {
        site.start(&args);
        printed(&site, &format!("weight set {HOST} / stable=0 web-next=1"));
        assert_eq!(
            site.get(&site.nodes.out, "203.0.113.1:80").text(),
            "web-next"
        );
        end(&mut site);
        // The objects are what the next process knows.
        site.start(&args);
        let status = printed(&site, "status");
        for line in [
            "overrides  0",
            "  stable            80          80             0  -",
            "  web-next          20          20             0  -",
        ] {
            assert!(
                status.lines().any(|found| found == line),
                "{line:?}:\n{status}"
            );
        }
        assert_eq!(site.metrics().sum("splitter_weight_overrides", &[]), 0.0);
        site.stop();
    }
}

#[test]
fn a_pool_without_a_socket_is_in_the_log_and_not_for_each_caller() {
    const TEXT: &str = "the pool east-west has no socket for a listener";
    const CALLERS: usize = 20;
    let mut site = site();
    let lines = |site: &Site| site.log().matches(TEXT).count();
    // The second time the programs are loaded with nothing to say.
    for (level, shown) in [("info", true), ("error", false)] {
        let mut start = site.command(&site.run_args(&format!("--steering sk-lookup {BOTH}")));
        start.env("SPLITTER_LOG", level);
        site.start_as(start);
        let other = [("reason", "other-pool")];
        let fell_back = |site: &Site| site.metrics().sum("splitter_steer_total", &other);
        // Both outlive the process that they are of.
        let (before, counted) = (lines(&site), fell_back(&site));
        // Somebody takes the sockets for callers from inside out of the map: IPv4, then IPv6.
        for index in ["1", "3"] {
            let pools = site.map("pools");
            let key = ["key", index, "0", "0", "0"];
            let args = [&["map", "delete", "pinned", &pools], &key[..]].concat();
            command("bpftool", &args);
        }
        for _ in 0..CALLERS {
            let answer = site.get(&site.nodes.pod, "203.0.113.1:80");
            assert_eq!(answer.status, 200);
        }
        assert!(fell_back(&site) >= counted + CALLERS as f64);
        if shown {
            eventually("the fallback is in the log", || lines(&site) > before);
            assert!(lines(&site) < CALLERS, "{}", site.log());
        }
        // Whatever was said is in the log at the latest when the process ends.
        assert!(site.stop().success());
        assert_eq!(lines(&site) > before, shown, "{}", site.log());
    }
}
