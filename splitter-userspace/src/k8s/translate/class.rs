//! Which Ingresses are ours.

use std::cmp::Reverse;
use std::collections::HashMap;

use k8s_openapi::api::networking::v1::{Ingress, IngressClass};

use super::report::{Problems, Subject};
use crate::config::ClassSettings;
use crate::k8s::{Objects, Sourced};
use crate::model::Kind;

const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";
const DEFAULT_ANNOTATION: &str = "ingressclass.kubernetes.io/is-default-class";

/// The classes, and whether an Ingress that names none is ours.
pub(super) struct Classes<'a> {
    /// By name: whether the controller is ours.
    known: HashMap<&'a str, bool>,
    /// The class that is ours without an object of its own.
    own: &'a str,
    /// Whether an Ingress that names no class is ours.
    unnamed: bool,
}

impl<'a> Classes<'a> {
    pub(super) fn read(
        objects: &'a Objects,
        settings: &'a ClassSettings,
        problems: &mut Problems,
    ) -> Self {
        let ours = |class: &Sourced<IngressClass>| {
            let controller = class
                .object
                .spec
                .as_ref()
                .and_then(|it| it.controller.as_ref());
            controller.is_some_and(|it| settings.controllers.contains(it))
        };
        let known = objects.classes.iter().map(|it| (it.name(), ours(it)));
        let by_default = default_class(&objects.classes, problems).is_some_and(ours);
        Classes {
            known: known.collect(),
            own: &settings.ingress_class,
            // Manifests without any IngressClass mean nobody else: trying it out needs no class.
            unnamed: settings.without_class
                || by_default
                || (objects.classes.is_empty() && !objects.class_by_name_only),
        }
    }

    /// Whether the Ingress is ours. The field counts before the old annotation.
    pub(super) fn serves(
        &self,
        ingress: &Ingress,
        subject: &Subject<'_>,
        problems: &mut Problems,
    ) -> bool {
        let field = ingress
            .spec
            .as_ref()
            .and_then(|it| it.ingress_class_name.as_deref());
        let annotations = ingress.metadata.annotations.as_ref();
        let annotation = annotations
            .and_then(|it| it.get(CLASS_ANNOTATION))
            .map(String::as_str);
        let Some(name) = field.or(annotation) else {
            return self.unnamed;
        };
        if let (Some(field), Some(annotation)) = (field, annotation)
            && field != annotation
            && (self.is_ours(field) || self.is_ours(annotation))
        {
            let effect = if self.is_ours(field) {
                ""
            } else {
                ": the Ingress is not served"
            };
            problems.warn(
                subject,
                format!("metadata.annotations.{CLASS_ANNOTATION}"),
                "class-contradiction",
                format!(
                    "the annotation names the class {annotation}, spec.ingressClassName {field}"
                ),
                format!("spec.ingressClassName counts{effect}"),
            );
        }
        self.is_ours(name)
    }

    fn is_ours(&self, name: &str) -> bool {
        self.known.get(name).copied().unwrap_or(name == self.own)
    }
}

/// The class of Ingresses that name none: the newest of those marked so, then the first by name.
fn default_class<'a>(
    classes: &'a [Sourced<IngressClass>],
    problems: &mut Problems,
) -> Option<&'a Sourced<IngressClass>> {
    let is_default = |class: &&Sourced<IngressClass>| {
        let annotations = class.object.metadata.annotations.as_ref();
        annotations
            .and_then(|it| it.get(DEFAULT_ANNOTATION))
            .is_some_and(|it| it == "true")
    };
    let mut marked: Vec<_> = classes.iter().filter(is_default).collect();
    marked.sort_by_key(|it| {
        let created = it
            .object
            .metadata
            .creation_timestamp
            .as_ref()
            .map(|it| it.0);
        (Reverse(created), it.name())
    });
    let (first, others) = marked.split_first()?;
    for other in others {
        let subject = Subject {
            object: other.object_ref(Kind::IngressClass),
            source: &other.source,
        };
        problems.warn(
            &subject,
            format!("metadata.annotations.{DEFAULT_ANNOTATION}"),
            "default-class-again",
            format!("{} is the default class already", first.name()),
            "only the newest one is the default, on a tie the first by name",
        );
    }
    Some(first)
}
