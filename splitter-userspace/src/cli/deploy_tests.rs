//! What is shipped for clusters says only what the command line knows.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;

use clap::{CommandFactory as _, Parser as _};
use serde::Deserialize as _;
use serde_norway::Value;

use super::{Cli, Command};
use crate::config::{AfterHandOver, Settings, Source};

const INSTALLATION: &str = include_str!("../../../deploy/splitter.yaml");

fn daemon_set() -> Value {
    let documents = serde_norway::Deserializer::from_str(INSTALLATION);
    let mut objects = documents.map(|it| Value::deserialize(it).unwrap());
    objects.find(|it| it["kind"] == "DaemonSet").unwrap()
}

/// The container of the DaemonSet.
fn container() -> Value {
    daemon_set()["spec"]["template"]["spec"]["containers"][0].clone()
}

fn texts<'a>(list: &'a Value, field: Option<&str>) -> Vec<&'a str> {
    let all = list.as_sequence().unwrap().iter();
    let all = all.map(|it| field.map_or(it, |field| &it[field]));
    all.map(|it| it.as_str().unwrap()).collect()
}

#[test]
fn its_flags_are_taken() {
    let container = container();
    let args = texts(&container["args"], None);
    let cli = Cli::try_parse_from(["splitter"].into_iter().chain(args)).unwrap();
    let Command::Run(args) = cli.command else {
        panic!("{:?}", cli.command);
    };
    let settings = Settings::try_from(*args).unwrap();
    let Source::Cluster(cluster) = settings.source else {
        panic!("{:?}", settings.source);
    };
    assert_eq!(cluster.config_map.unwrap().to_string(), "splitter/splitter");
    let listening = [settings.http[0], settings.https[0], settings.admin];
    assert_eq!(listening.map(|addr| addr.port()), [80, 443, 10254]);
    assert_eq!(settings.hand_over.after, AfterHandOver::Wait);
}

/// On the host's network a port that is named is one that no second pod can have on the node, and
/// the API server refuses such a pod where updates may bring a second one.
#[test]
fn two_pods_fit_on_a_node_in_an_update() {
    let update = &daemon_set()["spec"]["updateStrategy"]["rollingUpdate"];
    assert_eq!(
        (&update["maxSurge"], &update["maxUnavailable"]),
        (&1.into(), &0.into())
    );
    let container = container();
    assert!(container["ports"].is_null(), "{:?}", container["ports"]);
    for (probe, page) in [("livenessProbe", "healthz"), ("readinessProbe", "readyz")] {
        // The address is the same for both, so a probe by address may reach the other one.
        let command = texts(&container[probe]["exec"]["command"], None);
        assert_eq!(command, ["/usr/bin/splitter", "probe", page]);
    }
}

#[test]
fn its_variables_are_read() {
    let command = Cli::command();
    let run = command.find_subcommand("run").unwrap();
    let known = run.get_arguments().filter_map(|it| it.get_env()?.to_str());
    let known: BTreeSet<_> = known.collect();
    let container = container();
    for name in texts(&container["env"], Some("name")) {
        assert!(known.contains(name), "{name}");
    }
}

#[test]
fn its_capabilities_are_those_that_are_used() {
    let context = &container()["securityContext"]["capabilities"];
    assert_eq!(texts(&context["drop"], None), ["ALL"]);
    let added = texts(&context["add"], None);
    assert_eq!(added, ["BPF", "NET_ADMIN", "NET_BIND_SERVICE", "PERFMON"]);
}
