#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::{Value, json};

use super::*;

fn service(spec: Value, status: Value) -> Vec<String> {
    let service = serde_json::from_value(json!({"spec": spec, "status": status})).unwrap();
    texts(&of_service(&service))
}

fn texts(addresses: &BTreeSet<Address>) -> Vec<String> {
    let text = |address: &Address| match address {
        Address::Ip(ip) => ip.to_string(),
        Address::Name(name) => format!("name {name}"),
    };
    addresses.iter().map(text).collect()
}

#[test]
fn flags_are_sorted_and_said_once() {
    let flags = ["edge.example", "192.0.2.2", "192.0.2.1", "192.0.2.2"];
    let found = of_flags(&flags.map(str::to_owned));
    assert_eq!(
        texts(&found),
        ["192.0.2.1", "192.0.2.2", "name edge.example"]
    );
}

#[test]
fn a_service_is_where_its_type_says() {
    let balanced = json!({"loadBalancer": {"ingress": [
        {"ip": "192.0.2.7"}, {"hostname": "lb.example"}, {"ip": ""},
    ]}});
    let all =
        json!({"type": "LoadBalancer", "clusterIP": "10.96.0.1", "externalIPs": ["192.0.2.9"]});
    assert_eq!(
        service(all, balanced.clone()),
        ["192.0.2.7", "192.0.2.9", "name lb.example"]
    );
    let waiting = json!({"type": "LoadBalancer", "clusterIP": "10.96.0.1"});
    assert!(service(waiting, json!({})).is_empty());
    let inside = json!({"type": "ClusterIP", "clusterIP": "10.96.0.1"});
    assert_eq!(service(inside, balanced), ["10.96.0.1"]);
    let port = json!({"type": "NodePort", "clusterIP": "10.96.0.1", "externalIPs": ["192.0.2.9"]});
    assert_eq!(service(port, json!({})), ["192.0.2.9"]);
    let headless = json!({"clusterIP": "None"});
    assert!(service(headless, json!({})).is_empty());
    let named = json!({"type": "ExternalName", "externalName": "edge.example"});
    assert_eq!(service(named, json!({})), ["name edge.example"]);
}

fn node(addresses: &[(&str, &str)]) -> Node {
    let addresses: Vec<_> = addresses
        .iter()
        .map(|(kind, address)| json!({"type": kind, "address": address}))
        .collect();
    serde_json::from_value(json!({"status": {"addresses": addresses}})).unwrap()
}

#[test]
fn a_node_has_external_and_internal_addresses() {
    let both = node(&[
        ("Hostname", "n1"),
        ("InternalIP", "10.0.0.1"),
        ("ExternalIP", "192.0.2.1"),
        ("ExternalIP", "2001:db8::1"),
    ]);
    assert_eq!(texts(&of_node(&both, false)), ["192.0.2.1", "2001:db8::1"]);
    assert_eq!(texts(&of_node(&both, true)), ["10.0.0.1"]);
    let inside = node(&[("InternalIP", "10.0.0.1")]);
    assert_eq!(texts(&of_node(&inside, false)), ["10.0.0.1"]);
    assert!(of_node(&Node::default(), false).is_empty());
}

fn pod(node: &str, ready: &str) -> Pod {
    serde_json::from_value(json!({
        "spec": {"nodeName": node, "containers": []},
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }))
    .unwrap()
}

fn names(nodes: &ReadyNodes) -> Vec<&str> {
    nodes.names().collect()
}

#[test]
fn a_node_is_said_while_its_instance_restarts_and_no_longer() {
    let mut nodes = ReadyNodes::default();
    let start = Instant::now();
    let both = [pod("n1", "True"), pod("n2", "True"), Pod::default()];
    assert_eq!(nodes.update(&both, start), None);
    assert_eq!(names(&nodes), ["n1", "n2"]);
    // n2's pod is replaced.
    let one = [pod("n1", "True"), pod("n2", "False")];
    let soon = start + KEPT / 2;
    assert_eq!(nodes.update(&one, soon), Some(start + KEPT));
    assert_eq!(names(&nodes), ["n1", "n2"]);
    assert_eq!(nodes.update(&both, soon), None, "it is back");
    let late = soon + KEPT;
    assert_eq!(nodes.update(&one, late), None);
    assert_eq!(names(&nodes), ["n1"]);
}

#[test]
fn an_instance_that_was_never_ready_is_not_said() {
    let mut nodes = ReadyNodes::default();
    nodes.update(&[pod("n1", "False")], Instant::now());
    assert!(names(&nodes).is_empty());
}
