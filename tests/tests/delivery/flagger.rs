//! Flagger with the provider nginx, which asks a Prometheus about our metrics.

use serde_json::{Value, json};
use splitter_tests::cluster::api::path_of;
use splitter_tests::cluster::instance::ClusterSplitter;
use splitter_tests::cluster::objects;
use splitter_tests::eventually_within;

use super::PATIENCE;
use super::controller::Controller;
use super::prometheus::{self, Prometheus};
use super::world::{Load, World, await_about};

const HOST: &str = "app.example.com";
const STEP: u32 = 20;
const MOST: u32 = 40;

/// Longer than the answers of a good version take, and shorter than those of the bad one.
const LIMIT_MS: u32 = 500;
const SLOW_MS: u32 = 1500;

fn deployment(namespace: &str, answer: &str, delay: u32) -> Value {
    let labels = json!({"app": "app"});
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "app", "namespace": namespace},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "terminationGracePeriodSeconds": 20,
                    "containers": [{
                        "name": "echo",
                        "image": "tests/echo:1",
                        "env": [
                            {"name": "ANSWER", "value": answer},
                            {"name": "DELAY_MS", "value": delay.to_string()},
                        ],
                        "ports": [{"containerPort": 8080}],
                    }],
                },
            },
        },
    })
}

fn canary(namespace: &str) -> Value {
    json!({
        "apiVersion": "flagger.app/v1beta1",
        "kind": "Canary",
        "metadata": {"name": "app", "namespace": namespace},
        "spec": {
            "provider": "nginx",
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "app"},
            "ingressRef": {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "name": "app"},
            "progressDeadlineSeconds": 120,
            "service": {"port": 80, "targetPort": 8080},
            "analysis": {
                "interval": "10s",
                "threshold": 2,
                "maxWeight": MOST,
                "stepWeight": STEP,
                "metrics": [
                    {"name": "request-success-rate", "interval": "1m", "thresholdRange": {"min": 99}},
                    {"name": "request-duration", "interval": "30s", "thresholdRange": {"max": LIMIT_MS}},
                ],
            },
        },
    })
}

struct Watched<'w> {
    world: &'w World,
    controller: Controller,
    splitter: ClusterSplitter,
    namespace: String,
}

impl Watched<'_> {
    fn await_phase(&mut self, phase: &str) {
        eventually_within(&format!("the Canary is {phase}"), PATIENCE, || {
            self.controller.check();
            let canary = self.world.get(&canary(&self.namespace));
            canary["status"]["phase"] == phase
        });
    }

    /// Waits until the controller has written a weight, and splitter splits by it.
    fn await_weight(&mut self, weight: u32, answer: &str) {
        let ingress = objects::ingress(&self.namespace, "app-canary", HOST, "app-canary");
        let name = "nginx.ingress.kubernetes.io/canary-weight";
        let written = weight.to_string();
        eventually_within(&format!("the weight is {written}"), PATIENCE, || {
            self.controller.check();
            let ingress = self.world.admin.get(&path_of(&ingress));
            ingress.is_ok_and(|it| it["metadata"]["annotations"][name] == *written)
        });
        await_about(&self.splitter, HOST, answer, weight as usize);
        println!("  Flagger: {weight} % {answer}");
    }
}

pub fn promotes_and_rolls_back(world: &mut World) {
    let ns = world.namespace();
    let splitter = world.splitter();
    let _prometheus = Prometheus::start(splitter.admin());
    let kubeconfig = world.plane.admin_kubeconfig();
    let args = [
        format!("-kubeconfig={}", kubeconfig.display()),
        "-mesh-provider=nginx".to_owned(),
        format!("-metrics-server={}", prometheus::url()),
        "-port=10080".to_owned(),
    ];
    let controller = Controller::start(world, "SPLITTER_FLAGGER", &args);
    world.put(&deployment(&ns, "v1", 0));
    world.put(&objects::ingress(&ns, "app", HOST, "app"));
    world.put(&canary(&ns));
    let mut watched = Watched {
        splitter,
        world,
        controller,
        namespace: ns.clone(),
    };
    watched.await_phase("Initialized");
    await_about(&watched.splitter, HOST, "v1", 100);
    let load = Load::start(&watched.splitter, HOST);

    watched.world.put(&deployment(&ns, "v2", 0));
    for weight in (STEP..=MOST).step_by(STEP as usize) {
        watched.await_weight(weight, "v2");
    }
    watched.await_phase("Succeeded");
    await_about(&watched.splitter, HOST, "v2", 100);
    println!("  Flagger: v2 is promoted");

    watched.world.put(&deployment(&ns, "v3", SLOW_MS));
    let seen = |it: &ClusterSplitter| it.get(HOST).text() == "v3";
    eventually_within("the slow version gets requests", PATIENCE, || {
        seen(&watched.splitter)
    });
    watched.await_phase("Failed");
    await_about(&watched.splitter, HOST, "v2", 100);
    println!("  Flagger: v3 is taken back, as it is slow");
    load.await_more(50);
    load.assert_none_failed();
}
