//! Settings of the process in a ConfigMap that is followed: they are read when the process starts.

use crate::config::{Defaults, ProcessDefaults};
use crate::model::{Kind, ObjectRef, Problem, Severity};

/// What is wrong with the settings of the process in `defaults`, and which of them are not those
/// that it was started with.
pub fn problems(defaults: &Defaults, at_start: &ProcessDefaults) -> Vec<Problem> {
    let problem = |severity, key: &str, code, message: String, effect: &str| Problem {
        severity,
        object: ObjectRef::new(Kind::ConfigMap, &defaults.namespace, &defaults.name),
        source: defaults.source.clone(),
        field: format!("data.{key}"),
        code,
        message,
        effect: effect.to_owned(),
    };
    let (now, bad) = ProcessDefaults::read(defaults);
    let bad = bad.into_iter().map(|it| {
        let (code, effect) = ("default-invalid", "it counts as not set");
        problem(Severity::Error, it.key, code, it.to_string(), effect)
    });
    let changed = now.differing(at_start).into_iter().map(|key| {
        let message = format!("{key} is not what it was when this instance started");
        let effect = "what it was holds until the instance is restarted";
        problem(
            Severity::Warning,
            key,
            "default-needs-restart",
            message,
            effect,
        )
    });
    bad.chain(changed).collect()
}
