//! One of several instances writes.

use std::time::Duration;

use splitter_tests::cluster::instance::{self, ClusterSplitter};
use splitter_tests::cluster::{objects, pod};
use splitter_tests::eventually;

use crate::world::World;

fn start(world: &World, name: &str, address: &str) -> ClusterSplitter {
    let (settings, mut cluster) = instance::settings(&world.kubeconfig, name, "node-1");
    cluster.status.addresses = vec![address.to_owned()];
    ClusterSplitter::start((settings, cluster))
}

fn leads(splitter: &ClusterSplitter) -> bool {
    splitter.metrics().sum("splitter_leader", &[]) == 1.0
}

pub fn one_of_two_writes_and_the_other_takes_over(world: &mut World) {
    let ns = world.namespace();
    let _pod = pod(1, "stable");
    world.put_service(&ns, "stable", 1);
    let ingress = objects::ingress(&ns, "main", "leader.test", "stable");
    let lost = objects::ingress(&ns, "lost", "lost.test", "nowhere");
    world.put(&ingress);
    world.put(&lost);
    let first = start(world, "splitter-1", "192.0.2.1");
    eventually("the first one leads", || leads(&first));
    let second = start(world, "splitter-2", "192.0.2.2");
    eventually("the first one writes", || {
        world.addresses(&ingress) == ["192.0.2.1"]
    });
    assert!(!leads(&second));
    let written = |splitter: &ClusterSplitter| {
        let metrics = splitter.metrics();
        metrics.sum("splitter_object_writes_total", &[("result", "written")])
    };
    assert_eq!(written(&second), 0.0, "only the leader writes");

    first.kill();
    eventually("the second one takes over", || leads(&second));
    eventually("the second one writes", || {
        world.addresses(&ingress) == ["192.0.2.2"]
    });

    // One that stops in order leaves at once, however long a Lease lasts.
    let (settings, mut cluster) = instance::settings(&world.kubeconfig, "splitter-3", "node-1");
    cluster.status.addresses = vec!["192.0.2.3".to_owned()];
    cluster.status.election_ttl = Duration::from_secs(3);
    let third = ClusterSplitter::start((settings, cluster));
    drop(second);
    eventually("the third one leads", || leads(&third));
}

pub fn the_last_one_clears_the_status_on_request(world: &mut World) {
    let ns = world.namespace();
    let _pod = pod(1, "stable");
    world.put_service(&ns, "stable", 1);
    let ingress = objects::ingress(&ns, "main", "last.test", "stable");
    world.put(&ingress);
    let start = || {
        let (settings, mut cluster) = world.settings();
        cluster.status.addresses = vec!["192.0.2.50".to_owned()];
        cluster.status.clear_on_shutdown = true;
        let splitter = ClusterSplitter::start((settings, cluster));
        eventually("the status is written", || {
            world.addresses(&ingress) == ["192.0.2.50"]
        });
        splitter
    };
    // Another one is ready and goes on serving.
    world.put_pod("splitter-1", "node-1", true);
    world.put_pod("splitter-9", "node-2", true);
    let splitter = start();
    eventually("the pods are known", || {
        let metrics = splitter.metrics();
        metrics.sum("splitter_ready_instances", &[]) == 2.0
    });
    drop(splitter);
    assert_eq!(world.addresses(&ingress), ["192.0.2.50"]);

    world.remove_pod("splitter-9");
    let splitter = start();
    eventually("only its own pod is known", || {
        let metrics = splitter.metrics();
        metrics.sum("splitter_ready_instances", &[]) == 1.0
    });
    drop(splitter);
    assert!(world.addresses(&ingress).is_empty());
}
