use std::sync::Arc;

use http::Method;

use crate::telemetry::Record;
use crate::telemetry::side::{host_label, path_type};

use super::scope::Scope;
use super::text::Labels;

/// The labels of ingress-nginx's families. The order of the fields is the order of the samples.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct RequestLabels {
    /// Namespace and name of the main Ingress, never of a canary's.
    pub(super) namespace: Arc<str>,
    pub(super) ingress: Arc<str>,
    /// The main Service.
    service: Arc<str>,
    host: String,
    path: Arc<str>,
    /// `<namespace>-<service>-<port>` of the canary that was chosen; empty for everything else.
    canary: String,
    method: &'static str,
    status: u16,
}

impl RequestLabels {
    /// Without a Location only the host is known: the main Ingress and Service stay empty, as for
    /// ingress-nginx's own default backend.
    pub(super) fn of(record: &Record<'_>, scope: Scope) -> Self {
        let mut labels = RequestLabels {
            method: method_label(method_index(record.method)),
            status: record.status,
            ..Default::default()
        };
        if let Some((_, location)) = record.location {
            labels.namespace = location.ingress.namespace.clone();
            labels.ingress = location.ingress.name.clone();
            labels.host = host_label(&location.key.host).into_owned();
            labels.path = location.key.path.clone();
        } else {
            labels.host = scope.host(record);
        }
        if let Some(key) = record.main().and_then(|side| side.backend) {
            labels.service = key.service.clone();
        }
        if let Some(key) = record.canary().and_then(|side| side.backend) {
            labels.canary = key.to_string();
        }
        labels
    }

    pub(super) fn write(&self, labels: &mut Labels) {
        labels.push("namespace", &self.namespace);
        labels.push("ingress", &self.ingress);
        labels.push("service", &self.service);
        labels.push("host", &self.host);
        labels.push("path", &self.path);
        labels.push("canary", &self.canary);
        labels.push("method", self.method);
        labels.push("status", &self.status.to_string());
    }
}

/// The labels of our own family of requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct TruthLabels {
    pub(super) namespace: Arc<str>,
    /// The main Ingress, which owns the Location.
    pub(super) ingress: Arc<str>,
    host: String,
    path: Arc<str>,
    path_type: &'static str,
    /// `stable` or the canary's name; empty when no side was chosen.
    variant: Arc<str>,
    chosen_ingress: Arc<str>,
    chosen_service: Arc<str>,
    chosen_port: Arc<str>,
    reason: &'static str,
    fault: &'static str,
    status: &'static str,
    pool: &'static str,
}

impl TruthLabels {
    pub(super) fn of(record: &Record<'_>, scope: Scope, pool: &'static str) -> Self {
        let mut labels = TruthLabels {
            reason: record.reason().map_or("", |reason| reason.as_str()),
            fault: record.fault.unwrap_or(""),
            status: status_class(record.status),
            pool,
            ..Default::default()
        };
        if let Some((_, location)) = record.location {
            labels.namespace = location.ingress.namespace.clone();
            labels.ingress = location.ingress.name.clone();
            labels.host = host_label(&location.key.host).into_owned();
            labels.path = location.key.path.clone();
            labels.path_type = path_type(location.key.kind);
        } else {
            labels.host = scope.host(record);
        }
        if let Some(side) = record.chosen() {
            labels.variant = side.variant.name.clone();
            labels.chosen_ingress = side.variant.ingress.name.clone();
            if let Some(key) = side.backend {
                labels.chosen_service = key.service.clone();
                labels.chosen_port = key.port.clone();
            }
        }
        labels
    }

    pub(super) fn write(&self, labels: &mut Labels) {
        labels.push("namespace", &self.namespace);
        labels.push("ingress", &self.ingress);
        labels.push("host", &self.host);
        labels.push("path", &self.path);
        labels.push("path_type", self.path_type);
        labels.push("variant", &self.variant);
        labels.push("chosen_ingress", &self.chosen_ingress);
        labels.push("chosen_service", &self.chosen_service);
        labels.push("chosen_port", &self.chosen_port);
        labels.push("reason", self.reason);
        labels.push("fault", self.fault);
        labels.push("status", self.status);
        labels.push("pool", self.pool);
    }
}

/// The methods that get a label of their own. Any other is the last one, since a client may send
/// any word.
const METHODS: [&str; 10] = [
    "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "OTHER",
];

/// A small number for a method, for [`method_label`].
pub(super) fn method_index(method: &Method) -> usize {
    let other = METHODS.len() - 1;
    let found = METHODS[..other]
        .iter()
        .position(|name| *name == method.as_str());
    found.unwrap_or(other)
}

fn method_label(index: usize) -> &'static str {
    METHODS.get(index).copied().unwrap_or("OTHER")
}

/// `2xx` and so on: our own family has so many labels already.
fn status_class(status: u16) -> &'static str {
    match status / 100 {
        1 => "1xx",
        2 => "2xx",
        3 => "3xx",
        4 => "4xx",
        5 => "5xx",
        _ => "other",
    }
}
