//! The rights that are shipped are those that are needed.

use std::collections::BTreeSet;

use serde::Deserialize as _;
use serde_json::{Value, json};
use splitter_tests::cluster::api::Api;
use splitter_tests::cluster::objects;

use crate::world::{INSTALLATION, World};

pub fn what_is_not_granted_is_refused(world: &mut World) {
    let ns = world.namespace();
    let ingress = objects::ingress(&ns, "main", "rights.test", "stable");
    world.put(&ingress);
    let own = Api::new(&std::fs::read_to_string(&world.kubeconfig).unwrap());
    let ingresses = format!("/apis/networking.k8s.io/v1/namespaces/{ns}/ingresses");
    let leases = "/apis/coordination.k8s.io/v1/namespaces/splitter/leases";
    let patch = json!({"metadata": {"labels": {"a": "b"}}});
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}});
    let refusals = [
        (
            "an Ingress",
            own.merge(&format!("{ingresses}/main"), &patch),
        ),
        ("its deletion", own.delete(&format!("{ingresses}/main"))),
        (
            "a Service",
            own.merge(&format!("/api/v1/namespaces/{ns}/services/a"), &patch),
        ),
        (
            "a Secret",
            own.post(&format!("/api/v1/namespaces/{ns}/secrets"), &secret),
        ),
        ("a Node", own.merge("/api/v1/nodes/node-1", &patch)),
        (
            "another Lease",
            own.merge(&format!("{leases}/other"), &patch),
        ),
        // Those that Ingresses name are read, so all may be; none is changed.
        (
            "a ConfigMap",
            own.merge(&format!("/api/v1/namespaces/{ns}/configmaps/a"), &patch),
        ),
        (
            "pods elsewhere",
            own.get(&format!("/api/v1/namespaces/{ns}/pods")),
        ),
        (
            "Events of others",
            own.get(&format!("/api/v1/namespaces/{ns}/events")),
        ),
    ];
    for (what, answer) in refusals {
        let refusal = answer.expect_err(what);
        assert_eq!(refusal.code, 403, "{what}: {}", refusal.message);
    }
}

/// Looks at what the tests before made splitter do.
pub fn every_right_is_used(world: &mut World) {
    let granted = granted();
    let used = world
        .plane
        .used_by("system:serviceaccount:splitter:splitter");
    let unused: Vec<_> = granted.difference(&used).collect();
    assert!(unused.is_empty(), "granted, but never used: {unused:?}");
    assert!(!granted.is_empty());
}

/// Verb and resource of every rule.
fn granted() -> BTreeSet<(String, String)> {
    let text = std::fs::read_to_string(INSTALLATION).unwrap();
    let texts = |value: &Value| -> Vec<String> {
        let all = value.as_array().into_iter().flatten();
        all.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let mut granted = BTreeSet::new();
    for document in serde_norway::Deserializer::from_str(&text) {
        let object = Value::deserialize(document).unwrap();
        for rule in object["rules"].as_array().into_iter().flatten() {
            for resource in texts(&rule["resources"]) {
                let verbs = texts(&rule["verbs"]).into_iter();
                granted.extend(verbs.map(|verb| (verb, resource.clone())));
            }
        }
    }
    granted
}
