//! The dashboard that is shipped asks for nothing that is not there.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use splitter_tests::backend::Backend;
use splitter_tests::instance::Splitter;
use splitter_tests::manifests::Manifests;

const DASHBOARD: &str = include_str!("../../deploy/chart/dashboards/splitter.json");

/// Every family that there is, those that only appear with the kernel or a cluster among them.
const FAMILIES: &str = include_str!("../../splitter-userspace/src/telemetry/metrics/families.rs");

fn panels() -> Vec<Value> {
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    dashboard["panels"].as_array().unwrap().clone()
}

/// Every query with the title of its panel.
fn queries() -> Vec<(String, String)> {
    let mut all = Vec::new();
    for panel in panels() {
        let title = panel["title"].as_str().unwrap().to_owned();
        for target in panel["targets"].as_array().into_iter().flatten() {
            all.push((title.clone(), target["expr"].as_str().unwrap().to_owned()));
        }
    }
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    for variable in dashboard["templating"]["list"].as_array().unwrap() {
        if let Some(query) = variable["definition"].as_str() {
            all.push((variable["name"].to_string(), query.to_owned()));
        }
    }
    all
}

fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut rest = 0;
    std::iter::from_fn(move || {
        let start = rest + text[rest..].find(is_word)?;
        let len = text[start..].find(|c| !is_word(c));
        let end = len.map_or(text.len(), |len| start + len);
        rest = end;
        Some((start, &text[start..end]))
    })
}

/// The metrics of a query, each with the labels that it is narrowed by.
fn metrics(query: &str) -> Vec<(String, BTreeSet<String>)> {
    let ours = |(_, word): &(usize, &str)| {
        word.starts_with("splitter_") || word.starts_with("nginx_ingress_controller_")
    };
    let found = words(query).filter(ours).map(|(at, word)| {
        let after = &query[at + word.len()..];
        let inner = after.strip_prefix('{').and_then(|it| it.split_once('}'));
        let inner = inner.map_or("", |(inner, _)| inner);
        let labels = inner.split(',').filter_map(|it| it.split_once(['=', '!']));
        let labels = labels.map(|(name, _)| name.trim().to_owned());
        (word.to_owned(), labels.collect())
    });
    found.collect()
}

/// The labels that a query groups by.
fn groups(query: &str) -> BTreeSet<String> {
    let pieces = query.split("by (").skip(1);
    let lists = pieces.filter_map(|it| it.split_once(')'));
    let names = lists.flat_map(|(list, _)| list.split(','));
    names.map(|it| it.trim().to_owned()).collect()
}

fn family(metric: &str) -> &str {
    let ends = ["_bucket", "_sum", "_count"];
    let cut = ends.iter().find_map(|end| metric.strip_suffix(end));
    cut.filter(|it| known(it)).unwrap_or(metric)
}

fn known(family: &str) -> bool {
    FAMILIES.contains(&format!("\"{family}\""))
}

#[test]
fn every_metric_is_one_of_ours() {
    let mut count = 0;
    for (title, query) in queries() {
        for (metric, _) in metrics(&query) {
            assert!(known(family(&metric)), "{title}: {metric}");
            count += 1;
        }
    }
    assert!(count > 30, "{count}");
}

/// Of the families that a plain instance shows, the labels are looked at too.
#[test]
fn every_label_is_there() {
    let [web, next] = ["web", "next"].map(Backend::named);
    let manifests = Manifests::new()
        .main("shop", "a.test", "/", "web")
        .canary("next", "a.test", "/", "next", &[("canary-weight", "50")])
        .service("web", &[web.addr()])
        .service("next", &[next.addr()]);
    let splitter = Splitter::start(&manifests);
    for _ in 0..4 {
        assert_eq!(splitter.get("a.test", "/").status, 200);
    }
    assert_eq!(splitter.get("b.test", "/").status, 404);
    let page = splitter.metrics();
    let mut seen = BTreeMap::new();
    for (title, query) in queries() {
        let all = metrics(&query);
        // Grouping over several metrics asks each of them for the labels.
        for (metric, narrowed) in &all {
            let Some(sample) = page.select(metric, &[]).into_iter().next() else {
                continue;
            };
            for label in narrowed.iter().chain(&groups(&query)) {
                // Prometheus adds the one; the other is a bucket's.
                if !matches!(label.as_str(), "instance" | "le") {
                    assert!(
                        sample.labels.contains_key(label),
                        "{title}: {metric} has no {label}"
                    );
                }
            }
            seen.insert(metric.clone(), title.clone());
        }
    }
    for metric in [
        "splitter_requests_total",
        "splitter_variant_weight",
        "splitter_faults_total",
    ] {
        assert!(seen.contains_key(metric), "{metric}: {seen:?}");
    }
}

#[test]
fn panels_do_not_overlap_and_have_numbers_of_their_own() {
    let place = |panel: &Value, of: &str| panel["gridPos"][of].as_u64().unwrap();
    let panels = panels();
    let ids: BTreeSet<_> = panels.iter().map(|it| it["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), panels.len());
    for (index, a) in panels.iter().enumerate() {
        assert!(place(a, "x") + place(a, "w") <= 24, "{}", a["title"]);
        for b in &panels[..index] {
            let apart = |at: &str, size: &str| {
                place(a, at) >= place(b, at) + place(b, size)
                    || place(b, at) >= place(a, at) + place(a, size)
            };
            assert!(
                apart("x", "w") || apart("y", "h"),
                "{} {}",
                a["title"],
                b["title"]
            );
        }
    }
}
