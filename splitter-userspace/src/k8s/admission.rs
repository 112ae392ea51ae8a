//! What is to be said of an Ingress that somebody is about to write: pure.
//!
//! Refused is only what the object itself does wrong. What may still come (a Service, a Secret, the
//! main Ingress of a canary) and what was wrong before is no reason, as objects come in any order and
//! a fault must not keep somebody from changing something else; it is told as a warning.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::networking::v1::Ingress;
use serde::{Deserialize, Serialize};

use super::objects::{Objects, Sourced};
use super::translate::translate;
use crate::config::ClassSettings;
use crate::model::{Kind, Problem, Severity};

/// Faults that another object can still cure.
const MAY_COME: [&str; 7] = [
    "canary-stray",
    "endpoint-port-missing",
    "external-name-unresolved",
    "no-endpoint-slice",
    "port-not-found",
    "secret-not-found",
    "service-not-found",
];

/// The longest warning in bytes: Kubernetes asks for no more.
const MAX_WARNING: usize = 256;

/// The most warnings of one answer.
const MAX_WARNINGS: usize = 16;

/// The longest reason for a refusal, in bytes.
const MAX_REASON: usize = 4096;

const API_VERSION: &str = "admission.k8s.io/v1";

/// A question of the API server, as far as it is read.
#[derive(Clone, Debug, Deserialize)]
pub struct Question {
    #[serde(rename = "apiVersion")]
    api_version: String,
    request: Request,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    uid: String,
    kind: GroupVersionKind,
    operation: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    object: serde_json::Value,
    #[serde(default)]
    old_object: serde_json::Value,
}

#[derive(Clone, Debug, Deserialize)]
struct GroupVersionKind {
    group: String,
    version: String,
    kind: String,
}

/// An answer for the API server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    api_version: &'static str,
    kind: &'static str,
    response: Response,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Response {
    uid: String,
    allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Status>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Status {
    code: u16,
    reason: &'static str,
    message: String,
}

/// What is thought of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Opinion {
    /// What it does wrong; empty: it may be written.
    pub faults: Vec<Problem>,
    /// What else there is to say.
    pub warnings: Vec<Problem>,
}

impl Question {
    /// Reads the body of a request.
    ///
    /// # Errors
    /// When it is no `AdmissionReview` of version v1.
    pub fn read(body: &[u8]) -> Result<Self, String> {
        let question: Question =
            serde_json::from_slice(body).map_err(|error| format!("no AdmissionReview: {error}"))?;
        match question.api_version == API_VERSION {
            true => Ok(question),
            false => Err(format!(
                "apiVersion is {:?}, and only {API_VERSION} is understood",
                question.api_version
            )),
        }
    }

    /// The Ingress that is to be written, and the one that it replaces; none when it is about
    /// something else, on which there is no opinion.
    pub fn ingress(&self) -> Option<(Ingress, Option<Ingress>)> {
        let Request {
            kind, operation, ..
        } = &self.request;
        let is_ingress =
            kind.group == "networking.k8s.io" && kind.version == "v1" && kind.kind == "Ingress";
        if !is_ingress || !matches!(operation.as_str(), "CREATE" | "UPDATE") {
            return None;
        }
        let new = self.typed(&self.request.object)?;
        Some((new, self.typed(&self.request.old_object)))
    }

    fn typed(&self, value: &serde_json::Value) -> Option<Ingress> {
        // Validated by the API server already: what cannot be read is its business.
        let mut ingress: Ingress = serde_json::from_value(value.clone()).ok()?;
        let namespace = &mut ingress.metadata.namespace;
        namespace.get_or_insert_with(|| self.request.namespace.clone());
        ingress.metadata.name.is_some().then_some(ingress)
    }

    /// The answer that says it.
    pub fn answer(&self, opinion: &Opinion) -> Answer {
        let reasons: Vec<_> = opinion.faults.iter().map(said).collect();
        let allowed = reasons.is_empty();
        let warnings = opinion.warnings.iter().take(MAX_WARNINGS);
        Answer {
            api_version: API_VERSION,
            kind: "AdmissionReview",
            response: Response {
                uid: self.request.uid.clone(),
                allowed,
                status: (!allowed).then(|| Status {
                    code: 422,
                    reason: "Invalid",
                    message: cut(&reasons.join("; "), MAX_REASON),
                }),
                warnings: warnings.map(|it| cut(&said(it), MAX_WARNING)).collect(),
            },
        }
    }
}

impl Answer {
    /// Whether the object may be written.
    pub fn is_allowed(&self) -> bool {
        self.response.allowed
    }
}

/// What is thought of `new` among the present `objects`, in the place of the one of its name.
pub fn review(
    mut objects: Objects,
    new: Ingress,
    old: Option<&Ingress>,
    class: &ClassSettings,
) -> Opinion {
    let sourced = Sourced {
        object: Arc::new(new),
        source: "".into(),
    };
    let name = sourced.object_ref(Kind::Ingress);
    let hosts = hosts(&sourced.object);
    objects.ingresses.retain(|it| {
        it.object_ref(Kind::Ingress) != name && !hosts.is_disjoint(&self::hosts(&it.object))
    });
    let of = |ingress: Sourced<Ingress>| {
        let mut all = objects.clone();
        all.ingresses.push(ingress);
        let problems = translate(&all, class).problems;
        let of_it = problems.iter().filter(|it| it.object == name);
        of_it.cloned().collect::<Vec<_>>()
    };
    let before = old.map(|old| {
        of(Sourced {
            object: Arc::new(old.clone()),
            source: "".into(),
        })
    });
    let mut before: Vec<_> = before.iter().flatten().map(wherever).collect();
    // Each old fault excuses one: two of a kind where there was one are one too many.
    let mut was_before = |it: &Problem| {
        let it = wherever(it);
        let place = before.iter().position(|old| *old == it);
        place.map(|place| before.swap_remove(place)).is_some()
    };
    let is_fault = |it: &Problem| {
        it.severity == Severity::Error && !MAY_COME.contains(&it.code) && !was_before(it)
    };
    let (faults, warnings) = of(sourced).into_iter().partition(is_fault);
    Opinion { faults, warnings }
}

/// What a fault is, wherever in its lists: a rule that is put before others moves them all.
fn wherever(problem: &Problem) -> (&'static str, String, String) {
    let [field, message] = [&problem.field, &problem.message].map(|it| without_indices(it));
    (problem.code, field, message)
}

/// A text with `[]` for `[3]`.
fn without_indices(text: &str) -> String {
    let mut parts = text.split('[');
    let mut bare = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        bare.push('[');
        let rest = part.trim_start_matches(|it: char| it.is_ascii_digit());
        bare.push_str(if rest.starts_with(']') { rest } else { part });
    }
    bare
}

/// The hosts that an Ingress has to do with; the empty one stands for all. Only those that share one
/// can be in each other's way.
fn hosts(ingress: &Ingress) -> BTreeSet<String> {
    let spec = ingress.spec.as_ref();
    let rules = spec.and_then(|spec| spec.rules.as_ref());
    let rules = rules.into_iter().flatten();
    let named = rules.map(|rule| rule.host.clone().unwrap_or_default());
    let annotations = ingress.metadata.annotations.iter().flatten();
    let aliases = annotations.filter(|(key, _)| key.ends_with("/server-alias"));
    let aliases = aliases.flat_map(|(_, value)| value.split(',').map(|it| it.trim().to_owned()));
    let mut hosts: BTreeSet<_> = named
        .chain(aliases)
        .map(|it| it.to_ascii_lowercase())
        .collect();
    // from-to-www-redirect takes the other one of the two.
    let others: Vec<_> = hosts
        .iter()
        .filter(|host| !host.is_empty())
        .map(|host| match host.strip_prefix("www.") {
            Some(bare) => bare.to_owned(),
            None => format!("www.{host}"),
        })
        .collect();
    hosts.extend(others);
    if spec.is_some_and(|spec| spec.default_backend.is_some()) {
        hosts.insert(String::new());
    }
    hosts
}

fn said(problem: &Problem) -> String {
    let Problem {
        field,
        message,
        effect,
        ..
    } = problem;
    match field.is_empty() {
        true => format!("{message}: {effect}"),
        false => format!("{field}: {message}: {effect}"),
    }
}

fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(most.saturating_sub(4));
    format!("{} ...", &text[..end])
}

#[cfg(test)]
#[path = "admission_tests.rs"]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests;
