#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::k8s::cluster::scribe::addresses::of_flags;

/// Ingresses as the API server has them.
#[derive(Default)]
struct Cluster(HashMap<Key, Arc<Ingress>>);

impl Cluster {
    fn put(&mut self, name: &str, addresses: &[&str]) {
        let entries: Vec<_> = addresses.iter().map(|ip| json!({"ip": ip})).collect();
        let status = json!({"loadBalancer": {"ingress": entries}});
        let ingress = serde_json::from_value(json!({"status": status})).unwrap();
        self.0.insert(key(name), Arc::new(ingress));
    }

    fn plan(&self, statuses: &mut Statuses, wanted: &[&str], now: Instant) -> Plan {
        let wanted = wanted.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        let wanted = of_flags(&wanted);
        statuses.plan(Some(&wanted), |key| self.0.get(key).cloned(), now)
    }
}

fn key(name: &str) -> Key {
    ("shop".into(), name.into())
}

fn serve(statuses: &mut Statuses, names: &[&str]) {
    statuses.serve(names.iter().map(|name| key(name)).collect());
}

fn names(writes: &[Write]) -> Vec<&str> {
    writes.iter().map(|write| &*write.key.1).collect()
}

const US: &str = "192.0.2.1";
const OTHER: &str = "192.0.2.9";

#[test]
fn only_differences_are_written() {
    let mut cluster = Cluster::default();
    cluster.put("a", &[US]);
    cluster.put("b", &[]);
    cluster.put("c", &[OTHER]);
    cluster.put("foreign", &[OTHER]);
    let mut statuses = Statuses::default();
    serve(&mut statuses, &["a", "b", "c", "deleted"]);
    let plan = cluster.plan(&mut statuses, &[US], Instant::now());
    assert_eq!(names(&plan.writes), ["b", "c"]);
    assert_eq!(plan.writes[0].entries[0].ip.as_deref(), Some(US));
    assert_eq!(plan.again, None);
}

#[test]
fn what_was_written_is_waited_for() {
    let mut cluster = Cluster::default();
    cluster.put("a", &[]);
    let mut statuses = Statuses::default();
    serve(&mut statuses, &["a"]);
    let now = Instant::now();
    let plan = cluster.plan(&mut statuses, &[US], now);
    statuses.wrote(plan.writes[0].clone(), true, now);
    let plan = cluster.plan(&mut statuses, &[US], now);
    assert!(plan.writes.is_empty(), "the watch will say so soon");
    // Another list is another matter.
    let plan = cluster.plan(&mut statuses, &[US, OTHER], now);
    assert_eq!(names(&plan.writes), ["a"]);
}

#[test]
fn a_failed_write_is_tried_again_soon() {
    let mut cluster = Cluster::default();
    cluster.put("a", &[]);
    let mut statuses = Statuses::default();
    serve(&mut statuses, &["a"]);
    let now = Instant::now();
    let plan = cluster.plan(&mut statuses, &[US], now);
    statuses.wrote(plan.writes[0].clone(), false, now);
    let plan = cluster.plan(&mut statuses, &[US], now);
    assert_eq!((plan.writes.len(), plan.again), (0, Some(now + AGAIN)));
    let plan = cluster.plan(&mut statuses, &[US], now + AGAIN);
    assert_eq!(names(&plan.writes), ["a"]);
}

#[test]
fn a_dispute_gets_slower_and_slower() {
    let mut cluster = Cluster::default();
    let mut statuses = Statuses::default();
    serve(&mut statuses, &["a"]);
    let mut now = Instant::now();
    let mut pauses = Vec::new();
    for _ in 0..9 {
        // Somebody else insists.
        cluster.put("a", &[OTHER]);
        let plan = cluster.plan(&mut statuses, &[US], now);
        if let Some(again) = plan.again {
            pauses.push(again.duration_since(now).as_secs());
            now = again;
        }
        let plan = cluster.plan(&mut statuses, &[US], now);
        statuses.wrote(plan.writes[0].clone(), true, now);
    }
    assert_eq!(pauses, [10, 20, 40, 80, 160, 320, 600, 600]);
}

#[test]
fn an_ingress_that_leaves_us_loses_our_addresses_and_no_others() {
    let mut cluster = Cluster::default();
    cluster.put("a", &[US]);
    cluster.put("b", &[US]);
    let mut statuses = Statuses::default();
    serve(&mut statuses, &["a", "b"]);
    let now = Instant::now();
    assert!(cluster.plan(&mut statuses, &[US], now).writes.is_empty());
    serve(&mut statuses, &[]);
    // b's new controller was faster.
    cluster.put("b", &[OTHER]);
    let plan = cluster.plan(&mut statuses, &[US], now);
    assert_eq!(names(&plan.writes), ["a"]);
    assert!(plan.writes[0].entries.is_empty());
    statuses.wrote(plan.writes[0].clone(), true, now);
    assert!(cluster.plan(&mut statuses, &[US], now).writes.is_empty());
}

#[test]
fn an_ingress_that_comes_back_keeps_its_addresses() {
    let mut cluster = Cluster::default();
    cluster.put("a", &[US]);
    let mut statuses = Statuses::default();
    serve(&mut statuses, &["a"]);
    let now = Instant::now();
    cluster.plan(&mut statuses, &[US], now);
    serve(&mut statuses, &[]);
    serve(&mut statuses, &["a"]);
    assert!(cluster.plan(&mut statuses, &[US], now).writes.is_empty());
}

#[test]
fn without_a_word_about_where_we_are_nothing_is_written() {
    let mut cluster = Cluster::default();
    cluster.put("a", &[US]);
    let mut statuses = Statuses::default();
    serve(&mut statuses, &["a"]);
    let object = |key: &Key| cluster.0.get(key).cloned();
    let plan = statuses.plan(None, object, Instant::now());
    assert_eq!(plan, Plan::default());
}

#[test]
fn clearing_takes_out_what_is_ours() {
    let mut cluster = Cluster::default();
    cluster.put("a", &[US]);
    cluster.put("b", &[OTHER]);
    let mut statuses = Statuses::default();
    serve(&mut statuses, &["a", "b"]);
    cluster.plan(&mut statuses, &[US], Instant::now());
    let writes = statuses.clear(|key| cluster.0.get(key).cloned());
    assert_eq!(names(&writes), ["a"]);
}
