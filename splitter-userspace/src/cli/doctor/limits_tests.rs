use clap::Parser;

use super::*;
use crate::cli::{Cli, Command};

/// A node on which all is well.
pub(in super::super) fn facts() -> Facts {
    let sysctls = [
        ("net.core.netdev_max_backlog", "1000"),
        ("net.core.somaxconn", "4096"),
        ("net.ipv4.ip_local_port_range", "32768 60999"),
        ("net.ipv4.tcp_max_syn_backlog", "4096"),
        ("net.ipv4.tcp_rmem", "4096 131072 6291456"),
        ("net.ipv4.tcp_syncookies", "1"),
        ("net.ipv4.tcp_tw_reuse", "1"),
        ("net.ipv4.tcp_wmem", "4096 16384 4194304"),
        ("net.netfilter.nf_conntrack_max", "1000"),
    ];
    Facts {
        steering: None,
        nics: Ok(Vec::new()),
        btf: true,
        sysctls: sysctls.map(|(name, value)| (name, value.to_owned())).into(),
        files: Some((1_048_576, 1_048_576)),
        followed: Some(800),
        cpu: ["aes", "pclmulqdq"].map(str::to_owned).to_vec(),
    }
}

pub(in super::super) fn settings(flags: &[&str]) -> Settings {
    let flags = ["splitter", "run", "--manifests=m", "--workers=2"]
        .iter()
        .chain(flags);
    let Command::Run(args) = Cli::try_parse_from(flags).unwrap().command else {
        panic!("these are flags of run");
    };
    Settings::try_from(*args).unwrap()
}

/// The only line that is not ok.
fn fault(change: impl FnOnce(&mut Facts), flags: &[&str]) -> Line {
    let mut facts = facts();
    change(&mut facts);
    let lines = judge(&facts, &settings(flags)).into_iter();
    let mut bad = lines.filter(|line| line.state != State::Ok);
    let line = bad.next().unwrap();
    assert_eq!(bad.next(), None);
    assert!(!line.remedy.is_empty());
    line
}

#[test]
fn all_is_well_where_nothing_is_too_low() {
    for line in judge(&facts(), &settings(&[])) {
        assert_eq!(
            (line.state, line.remedy.as_str()),
            (State::Ok, ""),
            "{}",
            line.check
        );
    }
}

#[test]
fn each_sysctl_that_is_too_low_is_raised_and_none_is_lowered() {
    let cases = [
        ("net.core.netdev_max_backlog", "300", "1000"),
        ("net.core.somaxconn", "128", "4096"),
        ("net.ipv4.ip_local_port_range", "40000 50000", "32768 60999"),
        ("net.ipv4.tcp_max_syn_backlog", "512", "4096"),
        ("net.ipv4.tcp_rmem", "4096 87380 1000", "4096 87380 6291456"),
        ("net.ipv4.tcp_syncookies", "0", "1"),
        ("net.ipv4.tcp_tw_reuse", "2", "1"),
        ("net.ipv4.tcp_wmem", "1 2 3", "1 2 4194304"),
    ];
    for (name, low, wanted) in cases {
        let line = fault(
            |facts| drop(facts.sysctls.insert(name, low.to_owned())),
            &[],
        );
        let raise = line.raise.unwrap();
        assert_eq!(
            (raise.sysctl, raise.from.as_str(), raise.to.as_str()),
            (name, low, wanted)
        );
        assert!(line.remedy.contains(name), "{}", line.remedy);
    }
    let high = |facts: &mut Facts| {
        for (name, value) in [
            ("net.core.somaxconn", "9999"),
            ("net.ipv4.tcp_syncookies", "2"),
        ] {
            facts.sysctls.insert(name, value.to_owned());
        }
    };
    let mut facts = facts();
    high(&mut facts);
    assert!(
        judge(&facts, &settings(&[]))
            .iter()
            .all(|line| line.raise.is_none())
    );
}

#[test]
fn files_are_counted_by_workers_and_connections() {
    // Two pools of two workers with 16,384 connections each, and as many to pods.
    let needed = 2 * 2 * 16_384 * 2 + OTHER_FILES;
    let line = fault(|facts| facts.files = Some((needed - 1, needed)), &[]);
    assert!(
        line.remedy.contains(&format!("ulimit -n {needed}")),
        "{}",
        line.remedy
    );
    assert!(
        line.remedy.contains("--max-connections to 16383"),
        "{}",
        line.remedy
    );
    let lines = judge(
        &facts(),
        &settings(&["--steering=none", "--max-connections=10"]),
    );
    assert!(lines[0].found.ends_with(&format!(
        "{} that --max-connections may take",
        2 * 10 * 2 + OTHER_FILES
    )));
}

#[test]
fn a_listener_among_the_outgoing_ports_is_named() {
    let line = fault(|_| {}, &["--admin=0.0.0.0:40000"]);
    assert!(line.remedy.contains("0.0.0.0:40000"), "{}", line.remedy);
    assert!(
        line.remedy.contains("ip_local_reserved_ports=40000"),
        "{}",
        line.remedy
    );
    assert_eq!(line.raise, None, "others may have reserved some");
}

#[test]
fn more_kept_connections_than_ports_are_no_sysctl() {
    let line = fault(|_| {}, &["--upstream-idle-per-endpoint=10000"]);
    assert!(
        line.remedy.contains("lower --upstream-idle-per-endpoint"),
        "{}",
        line.remedy
    );
    assert_eq!(line.raise, None);
}

#[test]
fn a_table_of_connections_that_is_nearly_full_is_named() {
    let line = fault(|facts| facts.followed = Some(801), &[]);
    assert!(
        line.remedy.contains("nf_conntrack_max=2000"),
        "{}",
        line.remedy
    );
}

#[test]
fn a_cpu_without_aes_is_named() {
    let line = fault(|facts| facts.cpu = Vec::new(), &[]);
    assert_eq!(
        (line.check.as_str(), line.found.as_str()),
        ("CPU cryptography", "none")
    );
    let mut arm = facts();
    arm.cpu = ["aes", "pmull"].map(str::to_owned).to_vec();
    assert_eq!(judge(&arm, &settings(&[])).last().unwrap().state, State::Ok);
}

#[test]
fn what_the_kernel_does_not_have_is_no_line() {
    let mut bare = facts();
    bare.sysctls.clear();
    bare.followed = None;
    assert_eq!(judge(&bare, &settings(&[])).len(), 2);
}
