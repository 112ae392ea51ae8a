//! The objects of the tests.

use std::net::IpAddr;

use serde_json::{Value, json};

use crate::tls::Pair;

/// A namespace.
pub fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

/// A Service without selector, port 80 to 8080.
pub fn service(namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"ports": [{"name": "http", "port": 80, "targetPort": 8080}]},
    })
}

/// The EndpointSlice of a Service: ready and terminating addresses.
pub fn slice(namespace: &str, service: &str, ready: &[IpAddr], terminating: &[IpAddr]) -> Value {
    let ready = ready.iter().map(|ip| json!({"addresses": [ip]}));
    let terminating = terminating.iter().map(|ip| {
        let conditions = json!({"ready": false, "serving": true, "terminating": true});
        json!({"addresses": [ip], "conditions": conditions})
    });
    json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": format!("{service}-1"),
            "namespace": namespace,
            "labels": {"kubernetes.io/service-name": service},
        },
        "addressType": "IPv4",
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
        "endpoints": ready.chain(terminating).collect::<Vec<_>>(),
    })
}

/// A Secret with a certificate and its key.
pub fn tls_secret(namespace: &str, name: &str, pair: &Pair) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace},
        "type": "kubernetes.io/tls",
        "stringData": {"tls.crt": pair.chain, "tls.key": pair.key},
    })
}

/// An Ingress of the class nginx: everything for `host` to port 80 of `service`.
pub fn ingress(namespace: &str, name: &str, host: &str, service: &str) -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "ingressClassName": "nginx",
            "rules": [{"host": host, "http": {"paths": [{
                "path": "/",
                "pathType": "Prefix",
                "backend": {"service": {"name": service, "port": {"number": 80}}},
            }]}}],
        },
    })
}

/// The same as a canary with a weight.
pub fn canary(namespace: &str, name: &str, host: &str, service: &str, weight: u32) -> Value {
    let mut object = ingress(namespace, name, host, service);
    object["metadata"]["annotations"] = json!({
        "nginx.ingress.kubernetes.io/canary": "true",
        "nginx.ingress.kubernetes.io/canary-weight": weight.to_string(),
    });
    object
}
