//! What a document says it is: group, version and kind.

use serde_norway::Value;

use super::decode::Fault;
use crate::model::Kind;

/// What a document says it is.
pub(super) struct Header {
    pub group: String,
    pub version: String,
    pub kind: String,
}

impl Header {
    pub(super) fn read(value: &Value) -> Result<Header, Fault> {
        if !value.is_mapping() {
            let message = "the document is not a mapping of fields".to_owned();
            return Err(Fault::new("kind-missing", message));
        }
        let text = |key: &str| {
            value.get(key).and_then(Value::as_str).ok_or_else(|| {
                Fault::new("kind-missing", format!("the document has no {key}")).at(key)
            })
        };
        let kind = text("kind")?.to_owned();
        let api_version = text("apiVersion")?;
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Ok(Header {
            group: group.to_owned(),
            version: version.to_owned(),
            kind,
        })
    }

    pub(super) fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// The kind, if routing reads it, in whatever version. The groups keep Knative's Service and
    /// OpenShift's Ingress apart from Kubernetes' own.
    pub(super) fn known(&self) -> Option<Kind> {
        match (self.group.as_str(), self.kind.as_str()) {
            ("networking.k8s.io" | "extensions", "Ingress") => Some(Kind::Ingress),
            ("networking.k8s.io", "IngressClass") => Some(Kind::IngressClass),
            ("", "Service") => Some(Kind::Service),
            ("discovery.k8s.io", "EndpointSlice") => Some(Kind::EndpointSlice),
            ("", "Secret") => Some(Kind::Secret),
            ("", "ConfigMap") => Some(Kind::ConfigMap),
            _ => None,
        }
    }

    pub(super) fn is_list(&self) -> bool {
        self.item_kind().is_some_and(|kind| {
            let group = self.group.clone();
            let item = Header {
                group,
                version: String::new(),
                kind: kind.to_owned(),
            };
            (kind.is_empty() && self.group.is_empty()) || item.known().is_some()
        })
    }

    /// The kind of a list's items: empty for `List`, which holds any.
    fn item_kind(&self) -> Option<&str> {
        self.kind.strip_suffix("List")
    }

    /// The items of a typed list need not say what they are.
    pub(super) fn fill(&self, item: &mut Value) {
        let (Some(kind), Value::Mapping(fields)) = (self.item_kind(), item) else {
            return;
        };
        if !kind.is_empty() {
            fields.entry("kind".into()).or_insert_with(|| kind.into());
            fields
                .entry("apiVersion".into())
                .or_insert_with(|| self.api_version().into());
        }
    }
}

/// The apiVersion in which a kind is read.
pub(super) fn api_version(kind: Kind) -> &'static str {
    match kind {
        Kind::Ingress | Kind::IngressClass => "networking.k8s.io/v1",
        Kind::EndpointSlice => "discovery.k8s.io/v1",
        Kind::Service | Kind::Secret | Kind::ConfigMap | Kind::File => "v1",
    }
}
