//! What a kubelet writes about its node and its pods.

use std::net::IpAddr;

use serde_json::{Value, json};

/// How a pod is.
pub struct Running {
    pub ip: IpAddr,
    pub node: IpAddr,
    pub ready: bool,
    pub restarts: u32,
}

/// A merge patch for a pod's status.
pub fn pod(object: &Value, running: &Running) -> Value {
    let Running { ip, node, .. } = running;
    let condition = |kind: &str, holds: bool| {
        let status = if holds { "True" } else { "False" };
        json!({"type": kind, "status": status})
    };
    let containers = object["spec"]["containers"].as_array();
    let containers = containers.into_iter().flatten().map(|container| {
        json!({
            "name": container["name"],
            "image": container["image"],
            "imageID": container["image"],
            "ready": running.ready,
            "started": true,
            "restartCount": running.restarts,
            "state": {"running": {}},
        })
    });
    json!({
        "metadata": {"uid": object["metadata"]["uid"]},
        "status": {
            "phase": "Running",
            "hostIP": node,
            "podIP": ip,
            "podIPs": [{"ip": ip}],
            "containerStatuses": containers.collect::<Vec<_>>(),
            "conditions": [
                condition("PodScheduled", true),
                condition("Initialized", true),
                condition("ContainersReady", running.ready),
                condition("Ready", running.ready),
            ],
        },
    })
}

/// A merge patch for the node's status.
pub fn node(name: &str, address: IpAddr) -> Value {
    let room = json!({"cpu": "64", "memory": "64Gi", "pods": "200"});
    json!({"status": {
        "capacity": room,
        "allocatable": room,
        "addresses": [
            {"type": "InternalIP", "address": address},
            {"type": "Hostname", "address": name},
        ],
        "conditions": [{"type": "Ready", "status": "True", "reason": "PodRunner"}],
    }})
}
