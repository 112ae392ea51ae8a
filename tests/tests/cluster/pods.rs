//! Real pods, made and removed by Kubernetes' own controllers.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use splitter_tests::cluster::api::path_of;
use splitter_tests::cluster::objects;
use splitter_tests::cluster::runner::{NodeSettings, Runner};
use splitter_tests::eventually_within;

use crate::world::{Load, World, await_status};

const REPLICAS: usize = 3;

/// Far more than it needs, as several controllers take turns.
pub const PATIENCE: std::time::Duration = std::time::Duration::from_secs(120);

pub fn deployment(namespace: &str, answer: &str) -> Value {
    let labels = json!({"app": "web"});
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {
            "replicas": REPLICAS,
            "selector": {"matchLabels": labels},
            "strategy": {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "terminationGracePeriodSeconds": 20,
                    "containers": [{
                        "name": "echo",
                        "image": "tests/echo:1",
                        "env": [{"name": "ANSWER", "value": answer}],
                        "ports": [{"containerPort": 8080}],
                    }],
                },
            },
        },
    })
}

pub fn rolling_pods_lose_no_request(world: &mut World) {
    let ns = world.namespace();
    let images = [(
        "tests/echo".to_owned(),
        env!("CARGO_BIN_EXE_echo-pod").into(),
    )];
    let runner = Runner::start(
        &world.plane,
        NodeSettings {
            name: "runner-1",
            range: [10, 244, 7],
            images: BTreeMap::from(images),
        },
    );
    let first = deployment(&ns, "v0");
    world.put(&first);
    let mut service = objects::service(&ns, "web");
    service["spec"]["selector"] = json!({"app": "web"});
    world.put(&service);
    world.put(&objects::ingress(&ns, "web", "pods.test", "web"));
    let splitter = world.splitter();
    await_ready(world, &first);
    await_status(&splitter, "pods.test", 200);
    let load = Load::start(&splitter, "pods.test");
    load.await_more(50);

    for round in 1..3 {
        let answer = format!("v{round}");
        let next = deployment(&ns, &answer);
        world.put(&next);
        await_ready(world, &next);
        eventually_within("the old pods are gone", PATIENCE, || {
            runner.pods().len() == REPLICAS
        });
        load.await_more(50);
        assert_eq!(splitter.get("pods.test").text(), answer);
    }
    load.assert_none_failed();
    world.remove(&first);
    eventually_within("all pods are gone", PATIENCE, || runner.pods().is_empty());
}

/// Waits until as many pods as wanted are of the newest kind, and no others.
pub fn await_ready(world: &World, deployment: &Value) {
    let path = path_of(deployment);
    eventually_within("the pods are ready", PATIENCE, || {
        let now = world.admin.get(&path).unwrap();
        let status = &now["status"];
        status["observedGeneration"] == now["metadata"]["generation"]
            && status["updatedReplicas"] == REPLICAS
            && status["availableReplicas"] == REPLICAS
            && status["replicas"] == REPLICAS
    });
}
