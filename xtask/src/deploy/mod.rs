//! `deploy/splitter.yaml` from the chart, without Helm.

mod template;

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::process::root;

const CHART: &str = "deploy/chart";
const PLAIN: &str = "deploy/splitter.yaml";

/// What the plain file is installed as.
const NAME: &str = "splitter";

/// Renders the chart into the plain file.
pub(crate) fn run() -> Result<()> {
    let text = render(&root().join(CHART))?;
    fs::write(root().join(PLAIN), text).with_context(|| format!("cannot write {PLAIN}"))?;
    println!("wrote {PLAIN}");
    Ok(())
}

/// Everything that the chart makes with the values of the plain file.
fn render(chart: &Path) -> Result<String> {
    let about = yaml(&chart.join("Chart.yaml"))?;
    let mut values = yaml(&chart.join("values.yaml"))?;
    merge(&mut values, yaml(&chart.join("plain-values.yaml"))?);
    with_values(chart, &about, &values)
}

/// Everything that the chart makes with these values.
fn with_values(chart: &Path, about: &Value, values: &Value) -> Result<String> {
    let data = json!({
        "Values": values,
        "Release": {"Name": NAME, "Namespace": NAME},
        "Chart": {"Name": about["name"], "AppVersion": about["appVersion"]},
        "Files": files(chart)?,
    });
    let mut text = String::from(
        "# Made by `cargo xtask deploy` from deploy/chart: change that, not this file.\n",
    );
    for file in templates(chart)? {
        let source = read(&file)?;
        let made =
            template::render(&source, &data).with_context(|| format!("in {}", file.display()))?;
        for document in made.split("\n---\n").map(|it| it.trim_matches('\n')) {
            if !matches!(document, "" | "---") {
                text.push_str("---\n");
                text.push_str(document.trim_start_matches("---\n"));
                text.push('\n');
            }
        }
    }
    Ok(text)
}

/// In the order in which they are best applied: the namespace, who may do what, the rest.
fn templates(chart: &Path) -> Result<Vec<std::path::PathBuf>> {
    let directory = chart.join("templates");
    let entries = fs::read_dir(&directory);
    let entries = entries.with_context(|| format!("cannot read {}", directory.display()))?;
    let mut files = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<std::io::Result<Vec<_>>>()?;
    files.retain(|file| file.extension().is_some_and(|it| it == "yaml"));
    let rank = |file: &Path| {
        let first = ["namespace.yaml", "rbac.yaml"];
        first
            .iter()
            .position(|it| file.ends_with(it))
            .unwrap_or(first.len())
    };
    files.sort_by_key(|file| (rank(file), file.clone()));
    Ok(files)
}

/// The files that templates may take in, by their paths in the chart.
fn files(chart: &Path) -> Result<Value> {
    let name = "dashboards/splitter.json";
    Ok(json!({name: read(&chart.join(name))?}))
}

fn yaml(file: &Path) -> Result<Value> {
    let value = serde_norway::from_str(&read(file)?);
    value.with_context(|| format!("{} is no YAML", file.display()))
}

fn read(file: &Path) -> Result<String> {
    fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
}

/// As Helm lays one file of values over another.
fn merge(below: &mut Value, above: Value) {
    match (below, above) {
        (Value::Object(below), Value::Object(above)) => {
            for (key, value) in above {
                merge(below.entry(key).or_insert(Value::Null), value);
            }
        }
        (below, above) => *below = above,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn the_plain_file_is_what_the_chart_makes() {
        let expected = render(&root().join(CHART)).unwrap();
        let found = read(&root().join(PLAIN)).unwrap();
        assert!(found == expected, "run `cargo xtask deploy`");
    }

    #[test]
    fn every_document_is_an_object_in_the_namespace() {
        let text = render(&root().join(CHART)).unwrap();
        let mut kinds = Vec::new();
        for document in text.split("---\n").skip(1) {
            let object: Value = serde_norway::from_str(document).unwrap();
            let kind = object["kind"].as_str().unwrap().to_owned();
            let cluster = kind.starts_with("Cluster") || kind == "IngressClass";
            if !cluster && kind != "Namespace" {
                assert_eq!(object["metadata"]["namespace"], NAME, "{kind}");
            }
            kinds.push(kind);
        }
        assert_eq!(kinds.first().unwrap(), "Namespace");
        for kind in [
            "ClusterRole",
            "DaemonSet",
            "IngressClass",
            "PodDisruptionBudget",
            "Role",
        ] {
            assert!(kinds.iter().any(|it| it == kind), "{kind} in {kinds:?}");
        }
    }

    #[test]
    fn values_are_laid_over_others() {
        let mut below = json!({"a": {"b": 1, "c": [1]}, "d": 1});
        merge(&mut below, json!({"a": {"c": [2], "e": 3}}));
        assert_eq!(below, json!({"a": {"b": 1, "c": [2], "e": 3}, "d": 1}));
    }
}
