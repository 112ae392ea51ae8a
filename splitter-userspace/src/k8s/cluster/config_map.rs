//! The ConfigMap that says what holds where an Ingress says nothing.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;

use super::store::Store;
use crate::config::{Defaults, NamespacedName};
use crate::model::{Kind, ObjectRef, Problem, Severity};

/// The ConfigMap with its name, as it is followed.
#[derive(Clone)]
pub(super) struct Followed {
    pub name: NamespacedName,
    pub store: Store<ConfigMap>,
}

impl Followed {
    /// Whether the API server has said whether it is there.
    pub(super) fn is_read(&self) -> bool {
        self.store.is_filled()
    }

    /// The ConfigMap itself, if it is there.
    pub(super) fn object(&self) -> Option<Arc<ConfigMap>> {
        let NamespacedName { namespace, name } = &self.name;
        let key = (namespace.as_str().into(), name.as_str().into());
        self.store.get(&key)
    }

    /// What it says now. One that is not there says nothing, and that is a Problem.
    pub(super) fn defaults(&self) -> (Arc<Defaults>, Option<Problem>) {
        let NamespacedName { namespace, name } = &self.name;
        let found = self.object();
        let problem = found.is_none().then(|| self.missing());
        let values = found.and_then(|it| it.data.clone()).unwrap_or_default();
        let defaults = Defaults {
            namespace: namespace.clone(),
            name: name.clone(),
            source: String::new(),
            values,
        };
        (Arc::new(defaults), problem)
    }

    fn missing(&self) -> Problem {
        Problem {
            severity: Severity::Warning,
            object: ObjectRef::new(Kind::ConfigMap, &self.name.namespace, &self.name.name),
            source: String::new(),
            field: String::new(),
            code: "configmap-not-found",
            message: "--configmap names it, but it is not there".to_owned(),
            effect: "nothing is set for all Ingresses".to_owned(),
        }
    }
}
