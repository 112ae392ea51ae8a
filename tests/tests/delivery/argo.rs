//! Argo Rollouts with `trafficRouting.nginx`.

use serde_json::{Value, json};
use splitter_tests::cluster::api::path_of;
use splitter_tests::cluster::instance::ClusterSplitter;
use splitter_tests::cluster::objects;
use splitter_tests::eventually_within;

use super::PATIENCE;
use super::controller::Controller;
use super::world::{Load, World, await_about};

const HOST: &str = "rollout.test";
const STEPS: [u32; 2] = [20, 60];

fn rollout(namespace: &str, answer: &str) -> Value {
    let labels = json!({"app": "demo"});
    let steps = STEPS.iter().flat_map(|weight| {
        [
            json!({"setWeight": weight}),
            json!({"pause": {"duration": "15s"}}),
        ]
    });
    json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Rollout",
        "metadata": {"name": "demo", "namespace": namespace},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "strategy": {"canary": {
                "canaryService": "canary",
                "stableService": "stable",
                "trafficRouting": {"nginx": {"stableIngress": "demo"}},
                "steps": steps.collect::<Vec<_>>(),
            }},
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

struct Watched<'w> {
    world: &'w World,
    controller: Controller,
    splitter: ClusterSplitter,
    namespace: String,
}

impl Watched<'_> {
    fn rollout(&self) -> Value {
        self.world.get(&rollout(&self.namespace, ""))
    }

    fn await_phase(&mut self, phase: &str) {
        eventually_within(&format!("the Rollout is {phase}"), PATIENCE, || {
            self.controller.check();
            let rollout = self.rollout();
            let seen = rollout["status"]["observedGeneration"].as_str();
            let current = rollout["metadata"]["generation"].to_string();
            rollout["status"]["phase"] == phase && seen == Some(&current)
        });
    }

    /// Waits until the controller has written a weight, and splitter splits by it.
    fn await_weight(&mut self, weight: u32, answer: &str) {
        let canary = objects::ingress(&self.namespace, "demo-demo-canary", HOST, "canary");
        let name = "nginx.ingress.kubernetes.io/canary-weight";
        let written = weight.to_string();
        eventually_within(&format!("the weight is {written}"), PATIENCE, || {
            self.controller.check();
            let canary = self.world.admin.get(&path_of(&canary));
            canary.is_ok_and(|it| it["metadata"]["annotations"][name] == *written)
        });
        await_about(&self.splitter, HOST, answer, weight as usize);
        println!("  Argo Rollouts: {weight} % {answer}");
    }
}

pub fn promotes_and_aborts(world: &mut World) {
    let ns = world.namespace();
    world.put(&objects::namespace("argo-rollouts"));
    let kubeconfig = world.plane.admin_kubeconfig();
    // It is alone, and would end when a machine stands still for longer than its Lease lasts.
    let args = [
        "--leader-elect=false".to_owned(),
        format!("--kubeconfig={}", kubeconfig.display()),
    ];
    let controller = Controller::start(world, "SPLITTER_ARGO_ROLLOUTS", &args);
    for name in ["stable", "canary"] {
        let mut service = objects::service(&ns, name);
        service["spec"]["selector"] = json!({"app": "demo"});
        world.put(&service);
    }
    world.put(&objects::ingress(&ns, "demo", HOST, "stable"));
    world.put(&rollout(&ns, "v1"));
    let mut watched = Watched {
        splitter: world.splitter(),
        world,
        controller,
        namespace: ns.clone(),
    };
    watched.await_phase("Healthy");
    await_about(&watched.splitter, HOST, "v1", 100);
    let load = Load::start(&watched.splitter, HOST);

    watched.world.put(&rollout(&ns, "v2"));
    for weight in STEPS {
        watched.await_weight(weight, "v2");
    }
    watched.await_phase("Healthy");
    await_about(&watched.splitter, HOST, "v2", 100);
    println!("  Argo Rollouts: v2 is promoted");

    watched.world.put(&rollout(&ns, "v3"));
    watched.await_weight(STEPS[0], "v3");
    // As `kubectl argo rollouts abort` does it.
    let path = format!("{}/status", path_of(&rollout(&ns, "")));
    let abort = json!({"status": {"abort": true}});
    watched.world.admin.merge(&path, &abort).unwrap();
    watched.await_phase("Degraded");
    await_about(&watched.splitter, HOST, "v2", 100);
    println!("  Argo Rollouts: v3 is taken back");
    load.await_more(50);
    load.assert_none_failed();
}
