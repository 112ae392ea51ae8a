//! Flagger, by the objects that its nginx router writes and by what it asks Prometheus.

use std::time::Duration;

use serde_json::{Value, json};
use splitter_tests::cluster::api::path_of;
use splitter_tests::cluster::instance::ClusterSplitter;
use splitter_tests::cluster::{objects, pod, pod_ip};
use splitter_tests::{client, eventually, eventually_within};

use crate::prometheus::Prometheus;
use crate::world::{Load, World, await_about};

const PREFIX: &str = "nginx.ingress.kubernetes.io";
const HOST: &str = "app.example.com";
/// What Flagger looks at: by its end, what was before is forgotten.
const WINDOW: Duration = Duration::from_secs(90);
const ASKED: &str = "asked.test";

/// A Canary of Flagger's for the Service `app`, by the user's Ingress `app`.
struct Canary<'w> {
    world: &'w World,
    ingress: Value,
}

impl<'w> Canary<'w> {
    /// The Services that it makes, with `app` and `app-primary` on the pod 1.
    fn initialize(world: &'w World, ns: &str, host: &str) -> Self {
        for service in ["app", "app-primary", "app-canary"] {
            world.put(&objects::service(ns, service));
        }
        for service in ["app", "app-primary"] {
            world.put(&objects::slice(ns, service, &[pod_ip(1)], &[]));
        }
        let mut ingress = objects::ingress(ns, "app", host, "app");
        ingress["metadata"]["annotations"] = json!({format!("{PREFIX}/proxy-body-size"): "1m"});
        world.put(&ingress);
        let canary = Canary { world, ingress };
        // All annotations of the user's Ingress come along.
        let mut copy = canary.ingress.clone();
        copy["metadata"]["name"] = "app-canary".into();
        copy["metadata"]["annotations"][format!("{PREFIX}/canary")] = "true".into();
        copy["metadata"]["annotations"][format!("{PREFIX}/canary-weight")] = "0".into();
        copy["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"]["name"] =
            "app-canary".into();
        let (list, _) = canary.path().rsplit_once('/').map(own).unwrap();
        world.admin.post(&list, &copy).unwrap();
        canary
    }

    fn path(&self) -> String {
        let mut name = self.ingress.clone();
        name["metadata"]["name"] = "app-canary".into();
        path_of(&name)
    }

    /// Merges into the annotations; what is null is removed.
    fn annotate(&self, annotations: &Value) {
        let named = annotations.as_object().unwrap().iter();
        let named = named.map(|(name, value)| (format!("{PREFIX}/{name}"), value.clone()));
        let annotations = Value::Object(named.collect());
        let patch = json!({"metadata": {"annotations": annotations}});
        self.world.admin.merge(&self.path(), &patch).unwrap();
    }

    fn weigh(&self, weight: u32) {
        self.annotate(&json!({"canary": "true", "canary-weight": weight.to_string()}));
    }
}

fn own((a, b): (&str, &str)) -> (String, String) {
    (a.to_owned(), b.to_owned())
}

/// What it asks about a metric's template, re-typed on one line.
fn success_rate(ns: &str) -> String {
    let of = format!("namespace=\"{ns}\",ingress=\"app\",canary!=\"\"");
    format!(
        "sum(rate(nginx_ingress_controller_requests{{{of},status!~\"5.*\"}}[1m])) / \
         sum(rate(nginx_ingress_controller_requests{{{of}}}[1m])) * 100"
    )
}

fn duration(ns: &str) -> String {
    let of = format!("{{namespace=\"{ns}\",ingress=\"app\",canary!=\"\"}}[1m]");
    let family = "nginx_ingress_controller_response_duration_seconds";
    format!("sum(rate({family}_sum{of})) / sum(rate({family}_count{of})) * 1000")
}

fn by_header(splitter: &ClusterSplitter, value: &str) -> String {
    client::get_with(splitter.http(), HOST, "/", &format!("x-user: {value}\r\n")).text()
}

pub fn a_canary_is_promoted_and_tested_by_header(world: &mut World) {
    let ns = world.namespace();
    let (_primary, _canary) = (pod(1, "primary"), pod(2, "canary"));
    let flagger = Canary::initialize(world, &ns, HOST);
    let splitter = world.splitter();
    let load = Load::start(&splitter, HOST);
    await_about(&splitter, HOST, "primary", 100);

    world.put(&objects::slice(&ns, "app-canary", &[pod_ip(2)], &[]));
    for weight in [20, 40] {
        flagger.weigh(weight);
        await_about(&splitter, HOST, "canary", weight as usize);
        load.await_more(50);
    }
    // Promotion: the primary becomes the new version while the canary goes on, then all is back.
    flagger.weigh(0);
    await_about(&splitter, HOST, "primary", 100);
    world.put(&objects::slice(&ns, "app-canary", &[], &[]));
    load.await_more(50);

    // A/B: the weight stays where it was.
    world.put(&objects::slice(&ns, "app-canary", &[pod_ip(2)], &[]));
    flagger.annotate(&json!({"canary-by-header": "x-user", "canary-by-header-value": "insider"}));
    eventually("insiders get the canary", || {
        by_header(&splitter, "insider") == "canary"
    });
    assert_eq!(by_header(&splitter, "somebody"), "primary");
    await_about(&splitter, HOST, "primary", 100);
    flagger.annotate(&json!({
        "canary-by-header": null, "canary-by-header-value": null, "canary-weight": "0",
    }));
    eventually("nobody does any more", || {
        by_header(&splitter, "insider") == "primary"
    });
    load.assert_none_failed();
}

pub fn its_questions_are_answered_by_prometheus(world: &mut World) {
    let ns = world.namespace();
    let (_primary, _canary) = (pod(1, "primary"), pod(2, "canary"));
    let flagger = Canary::initialize(world, &ns, ASKED);
    world.put(&objects::slice(&ns, "app-canary", &[pod_ip(2)], &[]));
    let splitter = world.splitter();
    let prometheus = Prometheus::start(splitter.admin());
    let load = Load::start(&splitter, ASKED);
    load.await_more(100);
    // Nothing went to the canary, so there is nothing to divide.
    eventually("the target is scraped", || {
        prometheus
            .value("sum(nginx_ingress_controller_requests)")
            .is_some_and(|it| it > 0.0)
    });
    assert_eq!(prometheus.value(&success_rate(&ns)), None);
    assert_eq!(prometheus.value(&duration(&ns)), None);

    flagger.weigh(50);
    eventually("all of the canary's requests succeed", || {
        prometheus
            .value(&success_rate(&ns))
            .is_some_and(|it| it > 99.9)
    });
    eventually("the mean duration is told", || {
        prometheus
            .value(&duration(&ns))
            .is_some_and(|it| it > 0.0 && it < 60_000.0)
    });
    load.assert_none_failed();

    // Nobody listens where the canary is said to be: its requests fail, the primary's do not.
    world.put(&objects::slice(&ns, "app-canary", &[pod_ip(3)], &[]));
    let failing = Load::start(&splitter, ASKED);
    eventually_within("the rate of the canary falls", WINDOW, || {
        prometheus
            .value(&success_rate(&ns))
            .is_some_and(|it| it < 90.0)
    });
    let main = format!(
        "sum(rate(nginx_ingress_controller_requests{{namespace=\"{ns}\",ingress=\"app\",\
         canary=\"\",status=~\"5.*\"}}[1m]))"
    );
    assert_eq!(prometheus.value(&main).unwrap_or(0.0), 0.0);
    drop(failing);
}
