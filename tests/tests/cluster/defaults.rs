//! The ConfigMap with what holds where an Ingress says nothing.

use serde_json::{Value, json};
use splitter_tests::cluster::instance::ClusterSplitter;
use splitter_tests::cluster::{objects, pod};
use splitter_tests::eventually;

use crate::world::{World, await_status};

/// The one that is shipped, with these keys.
fn config_map(data: &Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "splitter", "namespace": "splitter"},
        "data": data,
    })
}

/// What Problems of the ConfigMap there are in the end.
#[track_caller]
fn await_problems(splitter: &ClusterSplitter, codes: &[&str]) {
    eventually(&format!("the problems are {codes:?}"), || {
        splitter.problems("splitter") == codes
    });
}

pub fn a_config_map_says_what_holds_for_all(world: &mut World) {
    let ns = world.namespace();
    let _pod = pod(1, "stable");
    world.put_service(&ns, "stable", 1);
    world.put(&objects::ingress(&ns, "main", "defaults.test", "stable"));
    let (settings, mut cluster) = world.settings();
    cluster.config_map = Some("splitter/splitter".parse().unwrap());
    let splitter = ClusterSplitter::start((settings, cluster));
    // The one that is installed says nothing.
    assert_eq!(splitter.get("defaults.test").status, 200);
    await_problems(&splitter, &[]);

    world.put(&config_map(&json!({"denylist-source-range": "0.0.0.0/0"})));
    await_status(&splitter, "defaults.test", 403);

    // Of the process, so it would take a new one.
    world.put(&config_map(&json!({"use-forwarded-headers": "true"})));
    await_status(&splitter, "defaults.test", 200);
    await_problems(&splitter, &["default-needs-restart"]);
    await_event(world, "DefaultNeedsRestart");

    world.put(&config_map(&json!({"proxy-body-size": "much"})));
    eventually("a bad value is told", || {
        let problems = splitter.problems("splitter");
        !problems.is_empty() && !problems.contains(&"default-needs-restart".to_owned())
    });
    assert_eq!(splitter.get("defaults.test").status, 200);

    world.remove(&config_map(&json!({})));
    await_problems(&splitter, &["configmap-not-found"]);
    world.put(&config_map(&json!({})));
    await_problems(&splitter, &[]);
}

pub fn fields_of_answers_come_from_a_named_config_map(world: &mut World) {
    let ns = world.namespace();
    let _pod = pod(1, "stable");
    world.put_service(&ns, "stable", 1);
    let fields = |value: &str| {
        json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "fields", "namespace": ns},
            "data": {"X-Own": value},
        })
    };
    world.put(&fields("a"));
    let mut ingress = objects::ingress(&ns, "main", "fields.test", "stable");
    let note = "nginx.ingress.kubernetes.io/custom-headers";
    ingress["metadata"]["annotations"][note] = format!("{ns}/fields").into();
    world.put(&ingress);
    let allowed = "global-allowed-response-headers";
    world.put(&config_map(&json!({allowed: "X-Own"})));
    let (settings, mut cluster) = world.settings();
    cluster.config_map = Some("splitter/splitter".parse().unwrap());
    let splitter = ClusterSplitter::start((settings, cluster));
    let await_field = |value: Option<&str>, status: u16| {
        eventually(&format!("the field is {value:?}"), || {
            let answer = splitter.get("fields.test");
            answer.status == status && answer.field("x-own") == value
        });
    };
    await_field(Some("a"), 200);
    world.put(&fields("b"));
    await_field(Some("b"), 200);
    world.remove(&fields("b"));
    await_field(None, 503);
    world.remove(&ingress);
    world.put(&config_map(&json!({})));
}

fn await_event(world: &World, reason: &str) {
    eventually(&format!("an Event says {reason}"), || {
        let path = "/api/v1/namespaces/splitter/events";
        let events = world.admin.get(path).unwrap();
        let mut events = events["items"].as_array().into_iter().flatten();
        events.any(|it| it["reason"] == reason && it["involvedObject"]["kind"] == "ConfigMap")
    });
}
