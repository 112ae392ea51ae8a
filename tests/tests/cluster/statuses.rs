//! What is written into objects and about them.

use serde_json::{Value, json};
use splitter_tests::cluster::instance::ClusterSplitter;
use splitter_tests::cluster::{objects, pod};
use splitter_tests::eventually;

use crate::world::{World, await_status};

pub fn nodes_say_where_ingresses_are(world: &mut World) {
    let ns = world.namespace();
    let _pod = pod(1, "stable");
    world.put_service(&ns, "stable", 1);
    world.put_pod("splitter-1", "node-1", true);
    world.put_pod("splitter-2", "node-2", false);
    let ingress = objects::ingress(&ns, "main", "status.test", "stable");
    world.put(&ingress);
    let _splitter = ClusterSplitter::start(world.settings());
    eventually("the node with a ready pod is in the status", || {
        world.addresses(&ingress) == ["192.0.2.11"]
    });
    world.put_pod("splitter-2", "node-2", true);
    eventually("both nodes are in the status", || {
        world.addresses(&ingress) == ["192.0.2.11", "192.0.2.12"]
    });
    // A new one too, and once it is there, it is served.
    let later = objects::ingress(&ns, "later", "later.test", "stable");
    world.put(&later);
    eventually("the later one has a status", || {
        world.addresses(&later).len() == 2
    });
    assert_eq!(_splitter.get("later.test").status, 200);
    world.remove_pod("splitter-2");
}

pub fn a_service_says_where_ingresses_are(world: &mut World) {
    let ns = world.namespace();
    let mut service = objects::service(&ns, "edge");
    service["spec"]["type"] = "LoadBalancer".into();
    world.put(&service);
    let balanced = |entries: Value| {
        let path = format!("/api/v1/namespaces/{ns}/services/edge/status");
        let status = json!({"status": {"loadBalancer": {"ingress": entries}}});
        world.admin.merge(&path, &status).unwrap();
    };
    balanced(json!([{"ip": "203.0.113.5"}]));
    let ingress = objects::ingress(&ns, "main", "lb.test", "edge");
    world.put(&ingress);
    let (settings, mut cluster) = world.settings();
    cluster.status.publish_service = Some(format!("{ns}/edge").parse().unwrap());
    let _splitter = ClusterSplitter::start((settings, cluster));
    eventually("the balancer is in the status", || {
        world.addresses(&ingress) == ["203.0.113.5"]
    });
    balanced(json!([{"ip": "203.0.113.9"}, {"hostname": "lb.example"}]));
    eventually("the status follows", || {
        world.addresses(&ingress) == ["203.0.113.9", "lb.example"]
    });
}

pub fn foreign_ingresses_keep_their_status(world: &mut World) {
    let ns = world.namespace();
    let _pod = pod(1, "stable");
    world.put_service(&ns, "stable", 1);
    let own = objects::ingress(&ns, "own", "own.test", "stable");
    let mut foreign = objects::ingress(&ns, "foreign", "foreign.test", "stable");
    foreign["spec"]["ingressClassName"] = "traefik".into();
    world.put(&own);
    world.put(&foreign);
    let say = |name: &str, ip: &str| {
        let path = format!("/apis/networking.k8s.io/v1/namespaces/{ns}/ingresses/{name}/status");
        let status = json!({"status": {"loadBalancer": {"ingress": [{"ip": ip}]}}});
        world.admin.merge(&path, &status).unwrap();
    };
    say("foreign", "203.0.113.7");
    let (settings, mut cluster) = world.settings();
    cluster.status.addresses = vec!["192.0.2.99".to_owned(), "edge.example".to_owned()];
    let splitter = ClusterSplitter::start((settings, cluster));
    eventually("ours says where we are", || {
        world.addresses(&own) == ["192.0.2.99", "edge.example"]
    });
    assert_eq!(world.addresses(&foreign), ["203.0.113.7"]);

    // One that goes to another class no longer says that it is here.
    let mut leaving = own.clone();
    leaving["spec"]["ingressClassName"] = "traefik".into();
    world.put(&leaving);
    await_status(&splitter, "own.test", 404);
    eventually("it says nothing", || world.addresses(&own).is_empty());
    assert_eq!(world.addresses(&foreign), ["203.0.113.7"]);
}

pub fn problems_become_events(world: &mut World) {
    let ns = world.namespace();
    let ingress = objects::ingress(&ns, "lost", "lost.test", "nowhere");
    world.put(&ingress);
    let _splitter = ClusterSplitter::start(world.settings());
    let uid = world.get(&ingress)["metadata"]["uid"].clone();
    let mut found = Vec::new();
    eventually("there is an Event", || {
        found = events(world, &ns);
        !found.is_empty()
    });
    let event = &found[0];
    assert_eq!(event["reason"], "ServiceNotFound");
    assert_eq!(event["type"], "Warning");
    // What `kubectl describe` looks for.
    assert_eq!(event["involvedObject"]["uid"], uid);
    assert_eq!(event["involvedObject"]["kind"], "Ingress");
    let message = event["message"].as_str().unwrap();
    assert!(
        message.contains(&format!("there is no Service {ns}/nowhere")),
        "{message}"
    );
    assert!(message.contains("503"), "{message}");

    // Gone and back again: the same Event once more.
    let _pod = pod(1, "stable");
    world.put_service(&ns, "nowhere", 1);
    await_status(&_splitter, "lost.test", 200);
    // What is told next is told by one who has seen that it was gone.
    world.put(&objects::ingress(&ns, "other", "other.test", "elsewhere"));
    eventually("the other one has an Event", || {
        let found = events(world, &ns);
        found
            .iter()
            .any(|it| it["involvedObject"]["name"] == "other")
    });
    world.remove(&objects::service(&ns, "nowhere"));
    let of = |events: &[Value]| -> Vec<Value> {
        let ours = events.iter().filter(|it| {
            it["reason"] == "ServiceNotFound" && it["involvedObject"]["name"] == "lost"
        });
        ours.cloned().collect()
    };
    eventually("it is told again", || {
        let found = of(&events(world, &ns));
        assert!(found.len() <= 1, "{found:?}");
        found.iter().any(|it| it["count"].as_i64() >= Some(2))
    });
}

fn events(world: &World, ns: &str) -> Vec<Value> {
    let list = world
        .admin
        .get(&format!("/api/v1/namespaces/{ns}/events"))
        .unwrap();
    let items = list["items"].as_array().cloned().unwrap_or_default();
    let ours = items
        .into_iter()
        .filter(|it| it["source"]["component"] == "splitter");
    ours.collect()
}
