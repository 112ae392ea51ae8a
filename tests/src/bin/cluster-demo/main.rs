//! `cargo xtask demo --cluster`: splitter on a Kubernetes of its own, installed from `deploy/` and used
//! as everywhere, with kubectl. Everything is in a network namespace and ends with this program.
//!
//! `SPLITTER_BINARY`, `SPLITTER_ECHO_POD`, `SPLITTER_KUBECTL` and `SPLITTER_CONTROL_PLANE` name the
//! programs.

#![allow(clippy::expect_used, reason = "the demo ends where it cannot go on")]
#![allow(clippy::print_stdout, reason = "it talks to the person who runs it")]

mod kubectl;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use splitter_tests::client::Client;
use splitter_tests::cluster::enter_namespace;
use splitter_tests::cluster::plane::ControlPlane;
use splitter_tests::cluster::runner::{NodeSettings, Runner};
use splitter_tests::cluster::site::{self, Site};
use splitter_tests::eventually_within;

use kubectl::Kubectl;

const INSTALLATION: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/splitter.yaml");
const OBJECTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/cluster/demo.yaml");

const HOST: &str = "shop.test";

/// For pods to be ready and for changes to count.
const PATIENCE: Duration = Duration::from_secs(180);

fn main() -> ExitCode {
    enter_namespace();
    let site = Site::new();
    println!("\n== a control plane: etcd, kube-apiserver, kube-controller-manager");
    let plane = ControlPlane::start_with(&["daemonset-controller"]);
    let kubectl = Kubectl::new(variable("SPLITTER_KUBECTL"), plane.admin_kubeconfig());
    let images = BTreeMap::from([
        ("splitter".to_owned(), variable("SPLITTER_BINARY")),
        ("demo/echo".to_owned(), variable("SPLITTER_ECHO_POD")),
    ]);
    let settings = NodeSettings {
        name: "node-1",
        range: [10, 244, 1],
        images,
    };
    let runner = Runner::start(&plane, settings);
    kubectl.run(&["version"]);

    println!("\n== splitter, as deploy/ installs it");
    kubectl.run(&["apply", "-f", INSTALLATION]);
    kubectl.run(&[
        "-n",
        "splitter",
        "rollout",
        "status",
        "daemonset/splitter",
        "--timeout=180s",
    ]);

    println!("\n== an application with a canary of 20 %");
    kubectl.run(&["apply", "-f", OBJECTS]);
    for deployment in ["stable", "canary"] {
        let name = format!("deployment/{deployment}");
        kubectl.run(&["-n", "shop", "rollout", "status", &name, "--timeout=180s"]);
    }
    let address = [
        "-n",
        "shop",
        "get",
        "ingress",
        "shop",
        "-o",
        "jsonpath={.status.loadBalancer.ingress[*].ip}",
    ];
    eventually_within("the status names an address", PATIENCE, || {
        !kubectl.output(&address).is_empty()
    });
    kubectl.run(&["get", "pods", "--all-namespaces", "-o", "wide"]);
    kubectl.run(&["-n", "shop", "get", "ingress"]);

    let pods = runner.pods();
    let pod = pods.iter().find(|it| it.name.starts_with("shop/stable"));
    let pod = pod.and_then(|it| it.network.clone()).expect("a pod");
    let show = |share: usize| {
        let outside = || site.outside(|| count(site::NODE));
        let inside = || Site::inside(&pod, || count(site::BRIDGE));
        await_share("from outside", share, outside) & await_share("from a pod", share, inside)
    };
    println!("\n== 200 requests each");
    let mut good = show(20);

    println!("\n== kubectl makes it 70 %");
    let weight = "nginx.ingress.kubernetes.io/canary-weight=70";
    kubectl.run(&[
        "-n",
        "shop",
        "annotate",
        "--overwrite",
        "ingress",
        "shop-canary",
        weight,
    ]);
    good &= show(70);
    kubectl.run(&["-n", "shop", "get", "events"]);

    println!("\n== away with it");
    kubectl.run(&["delete", "-f", OBJECTS, "--timeout=120s"]);
    kubectl.run(&["delete", "-f", INSTALLATION, "--timeout=120s"]);
    eventually_within("every pod is gone", PATIENCE, || runner.pods().is_empty());
    println!("every pod is gone; the control plane and the networks end now");
    match good {
        true => ExitCode::SUCCESS,
        false => {
            println!("the shares are not as they should be");
            ExitCode::FAILURE
        }
    }
}

fn variable(name: &str) -> PathBuf {
    let path = std::env::var_os(name);
    path.unwrap_or_else(|| panic!("{name} is not set: run `cargo xtask demo --cluster`"))
        .into()
}

/// How many of 200 requests get the canary; none when one of them fails.
fn count(address: IpAddr) -> Option<usize> {
    // Several connections, as there are several workers.
    let mut canary = 0;
    for _ in 0..4 {
        let mut client = Client::connect(SocketAddr::new(address, 80));
        for _ in 0..50 {
            let answer = client.get(HOST, "/");
            if answer.status != 200 {
                return None;
            }
            canary += usize::from(answer.text() == "canary");
        }
    }
    Some(canary)
}

/// Shows the share once it is about what is wanted.
fn await_share(from: &str, share: usize, mut count: impl FnMut() -> Option<usize>) -> bool {
    let mut last = None;
    let until = std::time::Instant::now() + PATIENCE;
    while std::time::Instant::now() < until {
        last = count();
        if last.is_some_and(|it| it.abs_diff(2 * share) <= 20) {
            break;
        }
    }
    let shown = last.map_or_else(|| "failed".to_owned(), |it| format!("{it} of 200"));
    let good = last.is_some_and(|it| it.abs_diff(2 * share) <= 20);
    println!("{from:<14} canary {shown:>12}, wanted {share} %");
    good
}
