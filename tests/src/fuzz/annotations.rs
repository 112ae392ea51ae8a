//! Values of annotations: an Ingress with any value of any annotation that is known is translated,
//! the same each time, and nothing that is written wrong opens anything.

use std::sync::LazyLock;

use serde_json::{Value, json};
use splitter::config::ClassSettings;
use splitter::k8s::{Manifests, annotations_page, compare, translate};
use splitter::model::Severity;

use super::texts;

/// Every annotation of the documentation, with its prefix.
static NAMES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let mut names = Vec::new();
    let mut prefix = "nginx.ingress.kubernetes.io";
    for line in annotations_page().lines() {
        if line.starts_with("## ") && line.contains("splitter.io/") {
            prefix = "splitter.io";
        }
        let name = line.strip_prefix("| `").and_then(|it| it.split('`').next());
        names.extend(name.map(|name| format!("{prefix}/{name}")));
    }
    assert!(names.len() > 130, "{names:?}");
    names
});

/// Those that keep somebody out: a value that cannot be read closes the Ingress.
const GUARDS: [&str; 3] = [
    "nginx.ingress.kubernetes.io/allowlist-source-range",
    "nginx.ingress.kubernetes.io/whitelist-source-range",
    "nginx.ingress.kubernetes.io/denylist-source-range",
];

/// Annotations of one Ingress, a line each: `name value`. A line that begins with no known name is
/// given one by its first byte.
pub fn target(data: &[u8]) {
    let [text] = texts(data);
    let mut notes = serde_json::Map::new();
    for line in text.split('\n').take(8) {
        let (name, value) = line.split_once(' ').unwrap_or((line, ""));
        let known = NAMES
            .iter()
            .find(|known| known.ends_with(&format!("/{name}")));
        let other = || NAMES.get(usize::from(*line.as_bytes().first()?));
        if let Some(name) = known.or_else(other) {
            notes.insert(name.clone(), value.into());
        }
    }
    check(&notes);
}

fn check(notes: &serde_json::Map<String, Value>) {
    let mut canary = notes.clone();
    canary.insert("nginx.ingress.kubernetes.io/canary".into(), "true".into());
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [
        service("web"), service("next"),
        ingress("main", "web", notes), ingress("other", "web", &serde_json::Map::new()),
        ingress("canary", "next", &canary),
    ]});
    let (objects, problems) = Manifests::from_text("fuzz", &list.to_string());
    assert!(problems.is_empty(), "{problems:?}");
    let settings = ClassSettings::default();
    let translation = translate(&objects, &settings);
    assert!(
        translation == translate(&objects, &settings),
        "not the same twice"
    );
    let fates = compare(&objects, &settings, &translation);
    assert_eq!(fates.len(), translation.served);
    for name in GUARDS {
        let field = format!("metadata.annotations.{name}");
        let bad = translation.problems.iter().any(|it| {
            it.field == field && it.severity == Severity::Error && &*it.object.name == "main"
        });
        let snapshot = &translation.snapshot;
        let mut open = snapshot.locations.iter().filter(|it| {
            let stable = it.split.variants.first();
            let backend = stable.and_then(|it| snapshot.backend(it.backend));
            &*it.ingress.name == "main" && backend.is_some_and(|it| it.fault.is_none())
        });
        assert!(
            !bad || open.next().is_none(),
            "{name} is bad and {:?} open",
            open.next()
        );
    }
    // What is dumped can be read.
    let dump = serde_json::to_string(&translation.snapshot).expect("a dump");
    serde_json::from_str::<Value>(&dump).expect("JSON");
}

fn service(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
        "spec": {"ports": [{"port": 80}]},
    })
}

fn ingress(name: &str, service: &str, notes: &serde_json::Map<String, Value>) -> Value {
    let host = match name {
        "canary" => "main",
        name => name,
    };
    let backend = json!({"service": {"name": service, "port": {"number": 80}}});
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": {"name": name, "annotations": notes},
        "spec": {"ingressClassName": "nginx", "rules": [{"host": format!("{host}.test"), "http": {"paths": [
            {"path": "/a", "pathType": "Prefix", "backend": backend},
            {"path": "/b(/|$)(.*)", "pathType": "ImplementationSpecific", "backend": backend},
        ]}}]},
    })
}
