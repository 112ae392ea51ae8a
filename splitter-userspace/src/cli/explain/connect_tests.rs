use super::*;
use crate::config::{ClassSettings, L4Settings};
use crate::k8s::{Manifests, translate};

const OBJECTS: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: tcp, namespace: in}
data: {\"5432\": \"shop/db:5432::PROXY\"}
---
apiVersion: v1
kind: Service
metadata: {name: db, namespace: shop, annotations: {splitter.io/split: next=100, splitter.io/split-by: BY}}
spec: {clusterIP: 10.96.0.9, ports: [{name: sql, port: 5432}]}
---
apiVersion: v1
kind: Service
metadata: {name: next, namespace: shop}
spec: {ports: [{name: sql, port: 5432}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: next-1, namespace: shop, labels: {kubernetes.io/service-name: next}}
addressType: IPv4
ports: [{name: sql, port: 5432}]
endpoints: [{addresses: [10.0.0.1]}, {addresses: [10.0.0.2], conditions: {ready: false}}]
";

fn explained(by: &str, to: &str, client: Option<&str>) -> String {
    let (objects, _) = Manifests::from_text("test", &OBJECTS.replace("BY", by));
    let settings = ClassSettings {
        l4: L4Settings {
            tcp_services: Some("in/tcp".parse().unwrap()),
            ..L4Settings::default()
        },
        ..ClassSettings::default()
    };
    let translation = translate(&objects, &settings);
    let client = client.map(|it| from(it).unwrap());
    let explanation = explain(
        &translation.snapshot,
        &translation.problems,
        target(to).unwrap(),
        client,
    );
    let mut out = Vec::new();
    write(&explanation, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn a_connection_with_its_port_has_one_answer() {
    let text = explained("connection", "203.0.113.1:5432", Some("192.0.2.9:40000"));
    for line in [
        "TCP 203.0.113.1:5432",
        "  service/shop/db:5432 by the ConfigMap in/tcp",
        "  endpoints get a PROXY header",
        "  stable: 0 (0.0 %), 0 of 0 endpoints ready",
        "  next: 100 (100.0 %), 1 of 2 endpoints ready",
        "=> next by weight; endpoints in this order: 10.0.0.1:5432",
    ] {
        assert!(text.lines().any(|it| it == line), "{line}:\n{text}");
    }
    assert!(text.contains("no EndpointSlice has the label"), "{text}");
}

#[test]
fn an_address_is_enough_where_it_decides() {
    let by_address = explained("source-address", "203.0.113.1:5432", Some("192.0.2.9"));
    assert!(by_address.contains("=> next by weight\n"), "{by_address}");
    let by_connection = explained("connection", "203.0.113.1:5432", Some("192.0.2.9"));
    assert!(
        by_connection.contains("--from ADDR:PORT"),
        "{by_connection}"
    );
}

#[test]
fn what_is_not_split_or_not_there_is_said() {
    let own = explained("connection", "10.96.0.9:5432", Some("10.0.0.3:1"));
    assert!(
        own.contains("by its own address") && own.contains("gets one when it is made"),
        "{own}"
    );
    let own = explained("source-address", "10.96.0.9:5432", None);
    assert!(own.contains("each pod has one"), "{own}");
    let nothing = explained("connection", "203.0.113.1:5433", None);
    assert!(nothing.contains("no port of the node"), "{nothing}");
    let udp = explained("connection", "203.0.113.1:5432/udp", None);
    assert!(
        udp.starts_with("UDP 203.0.113.1:5432\n  no port of the node"),
        "{udp}"
    );
}

#[test]
fn targets_and_clients_are_read_as_written() {
    assert!(target("192.0.2.1:53/sctp").is_err());
    assert!(target("192.0.2.1").is_err());
    assert!(target("db:5432").is_err());
    assert!(from("192.0.2.1:").is_err());
    assert_eq!(from("::1").unwrap().port, None);
    assert_eq!(target("[::1]:53/UDP").unwrap().transport, Transport::Udp);
}
