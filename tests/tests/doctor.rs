//! `splitter doctor` on a node of this test's own. Needs root, and fails without.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::Value;
use splitter_tests::bpf::Site;
use splitter_tests::bpf::net::command;

fn site() -> Site {
    Site::new(env!("CARGO_BIN_EXE_splitter-here"))
}

/// The exit code and what is printed.
fn doctor(site: &Site, more: &str) -> (i32, String) {
    let args = format!("doctor --interface en0 --http 0.0.0.0:80 --https off {more}");
    let output = site.output(args.trim_end());
    let text = [output.stdout, output.stderr].concat();
    let code = output.status.code().unwrap();
    (code, String::from_utf8_lossy(&text).into_owned())
}

fn json(site: &Site, more: &str) -> (i32, Value) {
    let (code, text) = doctor(site, &format!("--json {more}"));
    let value = serde_json::from_str(&text);
    (
        code,
        value.unwrap_or_else(|error| panic!("{error}: {text}")),
    )
}

fn check<'a>(report: &'a Value, name: &str) -> &'a Value {
    let checks = report["checks"].as_array().unwrap();
    let found = checks.iter().find(|it| it["check"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {report:#}"))
}

fn sysctl(site: &Site, text: &str) {
    let node = ["netns", "exec", site.nodes.node.name(), "sysctl", "-qw"];
    command("ip", &[&node[..], &[text]].concat());
}

#[test]
fn what_a_node_gives_is_found() {
    let site = site();
    let (code, report) = json(&site, "--steering xdp");
    assert_eq!(code, 0, "{report:#}");
    for name in [
        "kernel",
        "kernel BTF",
        "capabilities",
        "BPF file system",
        "kernel programs",
    ] {
        assert_eq!(check(&report, name)["state"], "ok", "{report:#}");
    }
    let programs = check(&report, "kernel programs")["found"].as_str().unwrap();
    assert!(
        programs.contains("steer (") && programs.contains("ingress ("),
        "{programs}"
    );
    let nic = check(&report, "NIC en0");
    assert_eq!(nic["state"], "ok", "{nic}");
    assert!(nic["found"].as_str().unwrap().contains("MTU 1500"), "{nic}");
    // Nothing stays of what was tried.
    assert!(!site.pin_dir().exists());
    let (_, text) = doctor(&site, "--steering xdp");
    assert!(
        text.lines()
            .any(|line| line.starts_with("ok ") && line.contains("kernel BTF")),
        "{text}"
    );
}

#[test]
fn what_is_missing_is_a_failure_only_where_it_is_asked_for() {
    let site = site();
    let without = |steering: &str| {
        let args = format!("doctor --json --interface en0 --https off --steering {steering}");
        let outer = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--"];
        let output = splitter_tests::bpf::net::output(&mut site.command_under(&outer, &args));
        let output = output.unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        (output.status.code().unwrap(), report)
    };
    let (code, report) = without("xdp");
    let line = check(&report, "capabilities");
    assert_eq!((code, &line["state"]), (1, &"fail".into()), "{report:#}");
    assert!(line["remedy"].as_str().unwrap().contains("CAP_"), "{line}");
    let (code, report) = without("auto");
    assert_eq!(
        (code, &check(&report, "capabilities")["state"]),
        (0, &"warn".into())
    );
    let (code, report) = without("none");
    assert_eq!(code, 0, "{report:#}");
    assert!(
        report["checks"]
            .as_array()
            .unwrap()
            .iter()
            .all(|it| it["check"] != "capabilities")
    );
    let (code, report) = json(&site, "--steering xdp --interface en7");
    assert_eq!((code, &check(&report, "NIC")["state"]), (1, &"fail".into()));
}

#[test]
fn other_owners_and_other_instances_are_named() {
    let mut site = site();
    site.start("--steering xdp --http 0.0.0.0:80");
    let (code, report) = json(&site, "--steering xdp");
    let pins = check(&report, "pin directory");
    assert_eq!((code, &pins["state"]), (0, &"warn".into()), "{report:#}");
    assert!(
        pins["remedy"].as_str().unwrap().contains("--take-over"),
        "{pins}"
    );
    // Our own program on the NIC is no other owner's.
    assert_eq!(check(&report, "NIC en0")["state"], "ok", "{report:#}");
}

#[test]
fn what_is_too_low_is_raised_when_it_is_asked_for() {
    let site = site();
    sysctl(&site, "net.core.somaxconn=128");
    sysctl(&site, "net.ipv4.tcp_max_syn_backlog=64");
    sysctl(&site, "net.ipv4.ip_local_port_range=40000 41000");
    sysctl(&site, "net.ipv4.tcp_tw_reuse=0");
    let names = [
        "net.core.somaxconn",
        "net.ipv4.tcp_max_syn_backlog",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.tcp_tw_reuse",
    ];
    let (code, before) = json(&site, "--steering none");
    assert_eq!(code, 0);
    for name in names {
        assert_eq!(check(&before, name)["state"], "warn", "{name}");
    }
    let (code, fixed) = json(&site, "--steering none --fix");
    assert_eq!(code, 0, "{fixed:#}");
    let changes = fixed["changes"].as_array().unwrap();
    for name in names {
        assert_eq!(check(&fixed, name)["state"], "ok", "{name}");
        let change = changes.iter().find(|it| it["sysctl"] == name).unwrap();
        assert_eq!(change["error"], Value::Null, "{change}");
    }
    assert_eq!(changes[0]["from"], "128", "{changes:?}");
    let (_, again) = json(&site, "--steering none --fix");
    let again = again["changes"].as_array().unwrap();
    assert!(
        again
            .iter()
            .all(|it| !names.contains(&it["sysctl"].as_str().unwrap())),
        "{again:?}"
    );
}
