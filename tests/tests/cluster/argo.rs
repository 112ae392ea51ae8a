//! Argo Rollouts, by the objects that its nginx router writes: a canary Ingress of its own for each
//! stable Ingress, made once, then patched, never deleted; and the selectors of the two Services,
//! which are EndpointSlices here, as nobody runs pods.

use serde_json::{Value, json};
use splitter_tests::cluster::api::path_of;
use splitter_tests::cluster::instance::ClusterSplitter;
use splitter_tests::cluster::{objects, pod, pod_ip};
use splitter_tests::eventually;

use crate::world::{Load, World, await_about, await_share_at};

const PREFIX: &str = "nginx.ingress.kubernetes.io";

/// A Rollout with `trafficRouting.nginx`.
struct Rollout<'w> {
    world: &'w World,
    namespace: String,
    name: &'static str,
    stable: &'static str,
    canary: &'static str,
    /// `spec.strategy.canary.trafficRouting.nginx.stableIngress`
    ingress: Value,
}

impl Rollout<'_> {
    fn canary_name(&self) -> String {
        let ingress = self.ingress["metadata"]["name"].as_str().unwrap();
        format!("{}-{ingress}-canary", self.name)
    }

    /// Every rule that has a path to the stable Service, whole; in it only that Service is renamed.
    fn rules(&self) -> Vec<Value> {
        let paths = |rule: &Value| {
            rule["http"]["paths"]
                .as_array()
                .cloned()
                .unwrap_or_default()
        };
        let is_stable = |path: &Value| path["backend"]["service"]["name"] == self.stable;
        let rules = self.ingress["spec"]["rules"].as_array().unwrap();
        let rules = rules
            .iter()
            .filter(|rule| paths(rule).iter().any(is_stable));
        let rules = rules.cloned().map(|mut rule| {
            for path in rule["http"]["paths"].as_array_mut().unwrap() {
                if is_stable(path) {
                    path["backend"]["service"]["name"] = self.canary.into();
                }
            }
            rule
        });
        rules.collect()
    }

    fn desired(&self, weight: u32) -> Value {
        let spec = &self.ingress["spec"];
        json!({
            "apiVersion": "networking.k8s.io/v1",
            "kind": "Ingress",
            "metadata": {
                "name": self.canary_name(),
                "namespace": self.namespace,
                "annotations": {
                    format!("{PREFIX}/canary"): "true",
                    format!("{PREFIX}/canary-weight"): weight.to_string(),
                },
                "ownerReferences": [{
                    "apiVersion": "argoproj.io/v1alpha1",
                    "kind": "Rollout",
                    "name": self.name,
                    "uid": format!("00000000-0000-4000-8000-{:012}", self.name.len()),
                    "controller": true,
                    "blockOwnerDeletion": true,
                }],
            },
            "spec": {"ingressClassName": spec["ingressClassName"], "rules": self.rules()},
        })
    }

    /// As the router does it for each `setWeight`: made if it is not there, else patched.
    fn set_weight(&self, weight: u32) {
        let desired = self.desired(weight);
        let path = path_of(&desired);
        if self.world.admin.get(&path).is_err() {
            let (list, _) = path.rsplit_once('/').unwrap();
            self.world.admin.post(list, &desired).unwrap();
            return;
        }
        let annotations = &desired["metadata"]["annotations"];
        let patch = json!({"metadata": {"annotations": annotations}, "spec": desired["spec"]});
        self.world.admin.merge(&path, &patch).unwrap();
    }

    /// Has a Service's selector find the pod with this number, or none.
    fn select(&self, service: &str, pod: Option<u8>) {
        let pods: Vec<_> = pod.into_iter().map(pod_ip).collect();
        let slice = objects::slice(&self.namespace, service, &pods, &[]);
        self.world.put(&slice);
    }
}

fn share(splitter: &ClusterSplitter, body: &str, share: usize) {
    await_about(splitter, "rollout.test", body, share);
}

pub fn a_rollout_is_promoted(world: &mut World) {
    let ns = world.namespace();
    let (_old, _new) = (pod(1, "v1"), pod(2, "v2"));
    for service in ["stable", "canary"] {
        world.put(&objects::service(&ns, service));
    }
    let ingress = objects::ingress(&ns, "demo", "rollout.test", "stable");
    world.put(&ingress);
    let rollout = Rollout {
        world,
        namespace: ns.clone(),
        name: "demo",
        stable: "stable",
        canary: "canary",
        ingress,
    };
    // At rest both Services select the same pods, and a canary of no weight stays for ever.
    rollout.select("stable", Some(1));
    rollout.select("canary", Some(1));
    rollout.set_weight(0);
    let splitter = world.splitter();
    let load = Load::start(&splitter, "rollout.test");
    share(&splitter, "v1", 100);

    rollout.select("canary", Some(2));
    for weight in [20, 60] {
        rollout.set_weight(weight);
        share(&splitter, "v2", weight as usize);
        load.await_more(50);
    }
    // Promotion: all for the canary, the stable Service moves on, nothing for the canary.
    rollout.set_weight(100);
    share(&splitter, "v2", 100);
    // With dynamicStableScale the stable Service has no endpoint at this point (argo #1820).
    rollout.select("stable", None);
    share(&splitter, "v2", 100);
    rollout.select("stable", Some(2));
    // Slices and Ingresses are told apart: who has the news of the weight first would ask nobody.
    eventually("the stable Service has a pod again", || {
        !splitter.endpoints(&ns, "stable").is_empty()
    });
    rollout.set_weight(0);
    share(&splitter, "v2", 100);
    load.assert_none_failed();
    assert_eq!(splitter.problems("demo-demo-canary"), [""; 0]);
}

pub fn a_rollout_is_aborted(world: &mut World) {
    const HOST: &str = "aborted.test";
    let ns = world.namespace();
    let (_old, _new) = (pod(1, "v1"), pod(2, "v2"));
    for service in ["stable", "canary"] {
        world.put(&objects::service(&ns, service));
    }
    let ingress = objects::ingress(&ns, "demo", HOST, "stable");
    world.put(&ingress);
    let rollout = Rollout {
        world,
        namespace: ns,
        name: "demo",
        stable: "stable",
        canary: "canary",
        ingress,
    };
    rollout.select("stable", Some(1));
    rollout.select("canary", Some(2));
    rollout.set_weight(40);
    let splitter = world.splitter();
    let load = Load::start(&splitter, HOST);
    await_about(&splitter, HOST, "v2", 40);
    rollout.set_weight(0);
    await_about(&splitter, HOST, "v1", 100);
    rollout.select("canary", Some(1));
    load.await_more(50);
    load.assert_none_failed();
}

/// Two Rollouts under one Ingress: each copies the whole rule, so each canary Ingress holds the other
/// one's stable path too, which must not stand in the way of the other's canary (argo #3541).
pub fn two_rollouts_share_an_ingress(world: &mut World) {
    let ns = world.namespace();
    let pods = ["a1", "a2", "b1", "b2"];
    let _pods: Vec<_> = (1..).zip(pods).map(|(n, name)| pod(n, name)).collect();
    let services = ["a-stable", "a-canary", "b-stable", "b-canary"];
    for (number, service) in (1..).zip(services) {
        world.put_service(&ns, service, number);
    }
    let mut ingress = objects::ingress(&ns, "both", "both.test", "a-stable");
    let path = |path: &str, service: &str| {
        let service = json!({"name": service, "port": {"number": 80}});
        json!({"path": path, "pathType": "Prefix", "backend": {"service": service}})
    };
    let paths = [path("/a", "a-stable"), path("/b", "b-stable")];
    ingress["spec"]["rules"][0]["http"]["paths"] = paths.to_vec().into();
    world.put(&ingress);
    let rollouts = [
        ("a", "a-stable", "a-canary"),
        ("bee", "b-stable", "b-canary"),
    ];
    let [a, b] = rollouts.map(|(name, stable, canary)| Rollout {
        world,
        namespace: ns.clone(),
        name,
        stable,
        canary,
        ingress: ingress.clone(),
    });
    a.set_weight(0);
    b.set_weight(0);
    let splitter = world.splitter();
    let expect = |share_a: usize, share_b: usize| {
        await_share_at(&splitter, "both.test", "/a", "a2", share_a);
        await_share_at(&splitter, "both.test", "/b", "b2", share_b);
    };
    expect(0, 0);
    b.set_weight(30);
    expect(0, 30);
    a.set_weight(70);
    expect(70, 30);
    b.set_weight(0);
    expect(70, 0);
    a.set_weight(100);
    b.set_weight(100);
    expect(100, 100);
}
