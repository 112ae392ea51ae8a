//! New versions of splitter itself, as Kubernetes rolls the shipped DaemonSet out.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use splitter_tests::bpf::load::{Habit, Load};
use splitter_tests::client::Client;
use splitter_tests::cluster::objects;
use splitter_tests::cluster::runner::{NodeSettings, Runner, Seen};
use splitter_tests::cluster::site::{NODE, Site};
use splitter_tests::eventually_within;

use crate::pods::{PATIENCE, await_ready, deployment};
use crate::world::World;

const HOST: &str = "update.test";
const DAEMON_SET: &str = "/apis/apps/v1/namespaces/splitter/daemonsets/splitter";

/// What a new instance logs once the former one has handed everything over.
const TAKEN_OVER: &str = "the former instance finishes what it has in hand";

/// How often it is updated.
const UPDATES: usize = 3;

pub fn updates_of_the_daemon_set_lose_nothing() {
    let mut world = World::with_daemon_sets();
    let site = Site::new();
    let images = [
        ("splitter", env!("CARGO_BIN_EXE_splitter-here")),
        ("tests/echo", env!("CARGO_BIN_EXE_echo-pod")),
    ];
    let images = images.map(|(name, program)| (name.to_owned(), program.into()));
    let settings = NodeSettings {
        name: "node-1",
        range: [10, 244, 1],
        images: BTreeMap::from(images),
    };
    let runner = Runner::start(&world.plane, settings);
    let ns = world.namespace();
    let web = deployment(&ns, "web");
    world.put(&web);
    let mut service = objects::service(&ns, "web");
    service["spec"]["selector"] = json!({"app": "web"});
    world.put(&service);
    world.put(&objects::ingress(&ns, "web", HOST, "web"));
    await_ready(&world, &web);
    await_rolled_out(&world);
    let address = (NODE, 80).into();
    eventually_within("it is served outside", PATIENCE, || {
        site.outside(|| Client::connect(address).get(HOST, "/").status == 200)
    });

    let mut load = Load::new();
    for habit in [Habit::Keep, Habit::Close, Habit::Keep, Habit::Close] {
        load.client(site.network(), &address.to_string(), HOST, habit);
    }
    load.wait_for(100);
    for update in 0..UPDATES {
        let before = splitters(&runner);
        assert_eq!(before.len(), 1, "{before:?}");
        // As `kubectl rollout restart` does it.
        let annotations = json!({"tests/update": update.to_string()});
        let template = json!({"metadata": {"annotations": annotations}});
        let change = json!({"spec": {"template": template}});
        world.admin.merge(DAEMON_SET, &change).unwrap();
        await_rolled_out(&world);
        eventually_within("the former pod is gone", PATIENCE, || {
            let now = splitters(&runner);
            now.len() == 1 && now[0].name != before[0].name
        });
        let log = std::fs::read_to_string(&splitters(&runner)[0].log).unwrap();
        assert!(log.contains(TAKEN_OVER), "{log}");
        load.wait_for(100);
    }
    let (answered, failures) = load.stop();
    assert!(failures.is_empty(), "of {answered}: {failures:?}");
    for pod in splitters(&runner) {
        let (_, name) = pod.name.split_once('/').unwrap();
        let path = format!("/api/v1/namespaces/splitter/pods/{name}");
        let status = world.admin.get(&path).unwrap();
        let restarts = &status["status"]["containerStatuses"][0]["restartCount"];
        assert_eq!(*restarts, 0, "{status}");
    }
}

/// The pods of the DaemonSet.
fn splitters(runner: &Runner) -> Vec<Seen> {
    let mut pods = runner.pods();
    pods.retain(|it| it.name.starts_with("splitter/"));
    pods
}

/// Waits until the only node has a ready pod of the newest kind, as far as the controller knows.
fn await_rolled_out(world: &World) {
    eventually_within("the DaemonSet is rolled out", PATIENCE, || {
        let now: Value = world.admin.get(DAEMON_SET).unwrap();
        let status = &now["status"];
        status["observedGeneration"] == now["metadata"]["generation"]
            && status["desiredNumberScheduled"] == 1
            && status["updatedNumberScheduled"] == 1
            && status["numberAvailable"] == 1
    });
}
