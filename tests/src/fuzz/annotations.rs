//! Values of annotations: an Ingress with any value of any annotation that is known is translated,
//! the same each time, and nothing that is written wrong opens anything.

use std::sync::LazyLock;

use serde_json::{Value, json};
use splitter::config::ClassSettings;
use splitter::k8s::{Manifests, annotations_page, compare, translate};
use splitter::model::{AddressSet, Location, Policy, Snapshot};

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

/// Where an annotation that is meant to keep somebody out has to be found in the policy of a Location
/// that is served, with the values that mean nobody.
type Guard = (&'static str, fn(&Policy) -> bool, fn(&str) -> bool);

const NGINX: &str = "nginx.ingress.kubernetes.io";

/// No value of theirs lets everybody in.
fn never(_: &str) -> bool {
    false
}

/// What lets everybody in who has an address.
fn everybody(value: &str) -> bool {
    value.parse::<AddressSet>().is_ok_and(|set| set.is_all())
}

fn off(value: &str) -> bool {
    ["0", "f", "F", "false", "FALSE", "False"].contains(&value)
}

const GUARDS: [Guard; 8] = [
    (
        "denylist-source-range",
        |it| it.addresses.as_ref().is_some_and(|it| it.deny.is_some()),
        never,
    ),
    (
        "auth-type",
        |it| it.guards.as_ref().is_some_and(|it| it.basic.is_some()),
        never,
    ),
    (
        "auth-secret",
        |it| it.guards.as_ref().is_some_and(|it| it.basic.is_some()),
        never,
    ),
    (
        "auth-url",
        |it| it.guards.as_ref().is_some_and(|it| it.external.is_some()),
        never,
    ),
    (
        "auth-signin",
        |it| it.guards.as_ref().is_some_and(|it| it.external.is_some()),
        never,
    ),
    (
        "traffic-class",
        |it| it.traffic_class.is_some(),
        |value| value == "all",
    ),
    ("enable-modsecurity", |_| false, off),
    ("enable-owasp-core-rules", |_| false, off),
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
        service("web"), service("next"), secret(),
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "all"}, "data": {"jwks": "{}"}},
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
    for location in served(&translation.snapshot) {
        let nothing = Policy::default();
        guarded(notes, location.policy.as_deref().unwrap_or(&nothing));
    }
    // What is dumped can be read.
    let dump = serde_json::to_string(&translation.snapshot).expect("a dump");
    serde_json::from_str::<Value>(&dump).expect("JSON");
}

/// The Locations of the Ingress that are answered by somebody.
fn served(snapshot: &Snapshot) -> impl Iterator<Item = &Location> {
    let locations = snapshot.locations.iter().map(|it| &**it);
    locations.filter(|it| {
        let stable = it.split.variants.first();
        let backend = stable.and_then(|it| snapshot.backend(it.backend));
        &*it.ingress.name == "main" && backend.is_some_and(|it| it.fault.is_none())
    })
}

/// Whatever an annotation says that keeps somebody out, a Location that is served keeps him out.
fn guarded(notes: &serde_json::Map<String, Value>, policy: &Policy) {
    let value = |name: &str| {
        let own = notes.get(&format!("splitter.io/{name}"));
        let value = own.or_else(|| notes.get(&format!("{NGINX}/{name}")));
        value.and_then(Value::as_str).map(str::trim)
    };
    for (name, is_kept, is_open) in GUARDS {
        let kept = value(name).is_none_or(|value| is_kept(policy) || is_open(value));
        assert!(
            kept,
            "{name} is {:?} and served under {policy:?}",
            value(name)
        );
    }
    // One annotation under two names, of which the newer one counts.
    let names = ["allowlist-source-range", "whitelist-source-range"];
    if let Some(list) = names.into_iter().find_map(value) {
        let allow = policy.addresses.as_ref().and_then(|it| it.allow.as_ref());
        assert!(
            allow.is_some() || everybody(list),
            "{list:?} and {policy:?}"
        );
    }
    let given = |prefix: &str| {
        let mut names = notes.keys().filter_map(|it| it.split_once('/'));
        names.any(|(_, name)| name.starts_with(prefix))
    };
    if given("jwt-") {
        let token = policy.guards.as_ref().and_then(|it| it.jwt.as_ref());
        assert!(token.is_some(), "jwt-* and {policy:?}");
    }
    if given("auth-tls-") && value("auth-tls-verify-client") != Some("off") {
        assert!(policy.client_cert.is_some(), "auth-tls-* and {policy:?}");
    }
    // Who must pass all of it is not let in by a part of it.
    let any = policy.guards.as_ref().is_some_and(|it| it.any);
    assert!(!any || value("satisfy") == Some("any"), "{policy:?}");
}

fn service(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
        "spec": {"ports": [{"port": 80}]},
    })
}

/// With every entry that some annotation asks for: what is in it is read later.
fn secret() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "all"},
        "stringData": {"ca.crt": "a", "auth": "a", "jwks": "a", "tls.crt": "a", "tls.key": "a"},
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
