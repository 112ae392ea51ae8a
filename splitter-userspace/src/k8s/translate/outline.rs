//! What of an Ingress is known before it is translated: whether it is ours, and which hosts it may
//! have a say in.

use std::collections::BTreeSet;

use k8s_openapi::api::networking::v1::Ingress;

use super::View;
use super::annotations::Annotations;
use super::canary;
use super::class::Classes;
use super::defaults::Values;
use super::policy;
use super::report::{Problems, Subject};
use super::site;
use super::tls::{SecretIndex, Secrets, rule_hosts};
use crate::k8s::Sourced;
use crate::model::{HostPattern, Kind, ObjectRef, Problem};

/// One Ingress in outline.
pub(super) struct Outline {
    pub ingress: Sourced<Ingress>,
    pub object: ObjectRef,
    /// Whether it is of our class.
    pub served: bool,
    /// The hosts that it may have a say in: those of its rules and further names of them. Too many
    /// would do no harm, one too few would.
    pub hosts: BTreeSet<HostPattern>,
    /// The wildcards that have TLS by it, which matters to the hosts below them.
    pub covers: Vec<HostPattern>,
    /// What is wrong with how it names its class.
    pub problems: Vec<Problem>,
}

impl Outline {
    pub(super) fn of(
        ingress: &Sourced<Ingress>,
        classes: &Classes<'_>,
        prefix: &str,
        values: &Values<'_>,
    ) -> Self {
        let mut problems = Problems::default();
        let mut outline = Outline {
            ingress: ingress.clone(),
            object: ingress.object_ref(Kind::Ingress),
            served: false,
            hosts: BTreeSet::new(),
            covers: Vec::new(),
            problems: Vec::new(),
        };
        let subject = Subject {
            object: outline.object.clone(),
            source: &ingress.source,
        };
        outline.served = classes.serves(&ingress.object, &subject, &mut problems);
        outline.problems = problems.into_sorted();
        if outline.served {
            (outline.hosts, outline.covers) = hosts(ingress, prefix, values);
        }
        outline
    }

    pub(super) fn subject(&self) -> Subject<'_> {
        Subject {
            object: self.object.clone(),
            source: &self.ingress.source,
        }
    }
}

/// The hosts that an Ingress may have a say in, and which of those are wildcards with TLS by it.
fn hosts(
    ingress: &Sourced<Ingress>,
    prefix: &str,
    values: &Values<'_>,
) -> (BTreeSet<HostPattern>, Vec<HostPattern>) {
    let subject = Subject {
        object: ingress.object_ref(Kind::Ingress),
        source: &ingress.source,
    };
    let none = SecretIndex::default();
    let secrets = Secrets::new(&none);
    // What is wrong is told by those who translate it.
    let mut untold = Problems::default();
    let annotations = Annotations::read(&ingress.object.metadata, prefix, &subject, &mut untold);
    let view = View {
        ingress: &ingress.object,
        annotations: annotations.on_top_of(values),
        subject,
        secrets: &secrets,
        strict_pods: false,
        passthrough: false,
    };
    let mut hosts = rule_hosts(&view);
    let covers = match canary::is_canary(&view, &mut untold) {
        true => Vec::new(),
        false => site::covering(&view, &hosts),
    };
    let spec = view.spec();
    if spec.is_some_and(|it| it.rules.as_ref().is_none_or(Vec::is_empty)) {
        hosts.insert(HostPattern::Any);
    }
    let terms = policy::site_terms(&view, &mut untold);
    if terms.www {
        let others: Vec<_> = hosts.iter().filter_map(site::www_name).collect();
        hosts.extend(others);
    }
    hosts.extend(terms.aliases);
    (hosts, covers)
}
