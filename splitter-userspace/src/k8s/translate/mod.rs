//! Objects to a Snapshot: pure, without I/O, clock or chance.
//!
//! In steps, each in its own file: which Ingresses are ours (`class`, `outline`), in which order
//! (`age`), and which have hosts in common (`groups`, `partition`). For each such group (`group`): main
//! Ingresses to Locations (`mains`, on `rules`, `host`, `path`, `policy`, `regex`, `site`) of Services
//! (`backends`); canaries (`canary…`, `pattern`) onto the Locations (`attach`, `weights`, `split`); all
//! sorted (`assemble`). Then all groups to one Snapshot (`merge`), with the Endpoints of Services
//! (`endpoints`, `slices`, `external`), and what is split without HTTP (`l4`). What did not change since the last time is not done again
//! (`incremental`, `index`). A fault in one object is a Problem and touches nothing else.

mod age;
mod annotations;
mod asked;
mod assemble;
mod attach;
mod backends;
mod canary;
mod canary_header;
mod canary_own;
mod canary_weight;
mod catalogue;
mod ciphers;
mod class;
mod compare;
mod compare_notes;
mod defaults;
mod demands;
mod endpoints;
mod external;
mod fallback;
mod golang;
mod group;
mod groups;
mod host;
mod incremental;
mod index;
mod l4;
mod mains;
mod merge;
mod outline;
mod partition;
mod passthrough;
mod path;
mod pattern;
mod policy;
mod reference;
mod regex;
mod report;
mod rules;
mod site;
mod slices;
mod split;
mod split_policy;
mod tls;
mod weights;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::networking::v1::IngressSpec;

use super::objects::{Objects, Sourced};
use crate::config::ClassSettings;
use crate::model::{Kind, ObjectRef, Problem, SecretData, Snapshot, TlsTerms};
pub use compare::{Difference, Fared, Fate, compare};
pub use incremental::Translator;
pub use reference::annotations_page;

use annotations::Annotations;
use class::Classes;
use k8s_openapi::api::networking::v1::Ingress;
use report::{Problems, Subject};
use tls::Secrets;

/// What the objects come to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Translation {
    /// The routing state.
    pub snapshot: Snapshot,
    /// The content of the Secrets that the Snapshot refers to, and of no other.
    pub secrets: Arc<BTreeMap<ObjectRef, SecretData>>,
    /// What is wrong with the objects, sorted by object and field.
    pub problems: Arc<[Problem]>,
    /// The names of ExternalName Services that Ingresses of ours lead to: to be looked up, so that
    /// the next translation knows where they lead.
    pub names: BTreeSet<Arc<str>>,
    /// How many Ingresses are ours; those of other classes are passed over without a word.
    pub served: usize,
    /// Those that are ours, in the order of precedence.
    pub ingresses: Arc<[ObjectRef]>,
}

/// One Ingress of ours, with what everything needs of it.
struct View<'a> {
    ingress: &'a Ingress,
    subject: Subject<'a>,
    annotations: Annotations<'a>,
    secrets: &'a Secrets<'a>,
    /// Whether pods must always prove who they are (`--upstream-tls-verify`).
    strict_pods: bool,
    /// Whether TLS may be left to pods (`--enable-ssl-passthrough`).
    passthrough: bool,
}

impl<'a> View<'a> {
    fn spec(&self) -> Option<&'a IngressSpec> {
        self.ingress.spec.as_ref()
    }
}

/// Turns the objects into the routing state. The same objects in any order give the same result.
///
/// Whoever does so again and again keeps a [`Translator`].
pub fn translate(objects: &Objects, settings: &ClassSettings) -> Translation {
    Translator::undivided().translate(objects, settings)
}

/// How TLS is spoken with the clients of hosts of which no Ingress says anything else. What is wrong
/// with it has been told.
fn tls_default(inputs: &group::Inputs<'_>) -> TlsTerms {
    let view = View {
        ingress: &Ingress::default(),
        subject: Subject {
            object: ObjectRef::new(Kind::File, "", ""),
            source: "",
        },
        annotations: Annotations::default().on_top_of(inputs.values),
        secrets: &Secrets::new(inputs.secrets),
        strict_pods: false,
        passthrough: false,
    };
    policy::tls_terms(&view, &mut Problems::default())
}

/// The Ingresses of our classes in the order of precedence.
fn ours<'a>(
    objects: &'a Objects,
    secrets: &'a Secrets<'a>,
    settings: &'a ClassSettings,
    problems: &mut Problems,
) -> Vec<View<'a>> {
    let classes = Classes::read(objects, settings, problems);
    let prefix = settings.annotations_prefix.trim_end_matches('/');
    let values = defaults::read(&settings.defaults, problems);
    let mut views = Vec::new();
    for sourced in age::by_age(&objects.ingresses) {
        let subject = subject(sourced);
        let ingress = &*sourced.object;
        if classes.serves(ingress, &subject, problems) {
            let metadata = &ingress.metadata;
            let annotations = Annotations::read(metadata, prefix, &subject, problems);
            let annotations = annotations.on_top_of(&values);
            views.push(View {
                ingress,
                subject,
                annotations,
                secrets,
                strict_pods: settings.upstream_tls_verify,
                passthrough: settings.ssl_passthrough,
            });
        }
    }
    views
}

fn subject(ingress: &Sourced<Ingress>) -> Subject<'_> {
    Subject {
        object: ingress.object_ref(Kind::Ingress),
        source: &ingress.source,
    }
}

#[cfg(test)]
mod tests;
