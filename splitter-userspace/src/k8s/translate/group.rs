//! Ingresses that share hosts, and the Locations that they come to.
//!
//! What an Ingress says can change Locations of the hosts that it names and no others, so Ingresses
//! that have no host in common are translated apart. A [`Part`] is the whole result for such a group
//! but for where its Services lead, which belongs to the Services.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use k8s_openapi::api::networking::v1::Ingress;

use super::annotations::Annotations;
use super::backends::{Backends, ServiceIndex};
use super::defaults::Values;
use super::outline::Outline;
use super::pattern::Patterns;
use super::report::Problems;
use super::tls::{self, SecretIndex, Secrets};
use super::{View, asked, assemble, attach, canary, mains};
use crate::config::ClassSettings;
use crate::k8s::Sourced;
use crate::model::{BackendId, BackendKey, HostPattern, ObjectRef, Problem, SecretData, TlsHost};

pub(super) use super::assemble::Assembled;

/// What holds for all groups.
pub(super) struct Inputs<'a> {
    pub settings: &'a ClassSettings,
    pub values: &'a Values<'a>,
    pub services: &'a ServiceIndex,
    pub secrets: &'a SecretIndex,
}

/// What one group comes to.
pub(super) struct Part {
    /// Hosts and Locations, whose Backends are numbered by [`Self::ids`].
    pub assembled: Assembled,
    /// The number of each of its targets, ascending.
    pub ids: Vec<BackendId>,
    /// By host.
    pub tls: BTreeMap<HostPattern, TlsHost>,
    /// The Secrets that it refers to.
    pub secrets: BTreeMap<ObjectRef, SecretData>,
    /// The Service ports whose Endpoints are to be found.
    pub ports: Vec<BackendKey>,
    /// Sorted.
    pub problems: Vec<Problem>,
    read: Read,
}

/// What a Part was made of. As long as it stays the same, so does the Part.
struct Read {
    /// Oldest first.
    members: Vec<Sourced<Ingress>>,
    covering: Vec<HostPattern>,
    services: BTreeMap<ObjectRef, Option<Arc<Service>>>,
    secrets: BTreeMap<ObjectRef, Option<Arc<Secret>>>,
    maps: BTreeMap<ObjectRef, Option<Arc<ConfigMap>>>,
}

impl Part {
    /// Translates a group, whose members are given oldest first. `covering` are the wildcards of
    /// other groups that have TLS and cover hosts of this one.
    pub(super) fn translate(
        members: &[&Outline],
        covering: Vec<HostPattern>,
        inputs: &Inputs<'_>,
        patterns: &mut Patterns,
    ) -> Self {
        let mut problems = Problems::default();
        let secrets = Secrets::new(inputs.secrets);
        let prefix = inputs.settings.annotations_prefix.trim_end_matches('/');
        let views = members.iter().map(|member| {
            let subject = member.subject();
            let metadata = &member.ingress.object.metadata;
            let annotations = Annotations::read(metadata, prefix, &subject, &mut problems);
            View {
                ingress: &member.ingress.object,
                annotations: annotations.on_top_of(inputs.values),
                subject,
                secrets: &secrets,
                strict_pods: inputs.settings.upstream_tls_verify,
                passthrough: inputs.settings.ssl_passthrough,
            }
        });
        let views: Vec<View<'_>> = views.collect();
        let (mut mains, mut canaries) = (Vec::new(), Vec::new());
        for view in &views {
            match canary::read(view, patterns, &mut problems) {
                Some(canary) => canaries.push((view, canary)),
                None => mains.push(view),
            }
        }
        asked::check(&mains, &mut problems);
        let tls = tls::hosts(&mains, &secrets, &mut problems);
        let mut backends = Backends::new(inputs.services);
        let strict = inputs.settings.strict_nginx;
        let mut drafts = mains::locations(&mains, strict, &covering, &mut backends, &mut problems);
        attach::attach(&canaries, &mut drafts, &mut backends, &mut problems);
        let assembled = assemble::assemble(drafts, &backends, &mut problems);
        let looked = backends.into_looked();
        Part {
            ids: (0..).map(BackendId).take(assembled.targets.len()).collect(),
            assembled,
            tls: tls.into_iter().map(|it| (it.host.clone(), it)).collect(),
            ports: looked.ports,
            problems: problems.into_sorted(),
            read: Read {
                members: members.iter().map(|it| it.ingress.clone()).collect(),
                covering,
                services: looked.services,
                secrets: secrets.asked(),
                maps: secrets.asked_maps(),
            },
            secrets: secrets.used(),
        }
    }

    /// Whether it would be the same if it were translated again.
    pub(super) fn is_current(
        &self,
        members: &[&Outline],
        covering: &[HostPattern],
        inputs: &Inputs<'_>,
    ) -> bool {
        let read = &self.read;
        let mut pairs = read.members.iter().zip(members);
        let mut services = read.services.iter();
        let mut secrets = read.secrets.iter();
        let mut maps = read.maps.iter();
        read.members.len() == members.len()
            && pairs.all(|(read, now)| read.is_same(&now.ingress))
            && read.covering == covering
            && services
                .all(|(it, read)| is_as_read(read, inputs.services.get(&it.namespace, &it.name)))
            && secrets
                .all(|(it, read)| is_as_read(read, inputs.secrets.get(&it.namespace, &it.name)))
            && maps.all(|(it, read)| is_as_read(read, inputs.secrets.map(&it.namespace, &it.name)))
    }

    /// The objects that it was made of besides its Ingresses, those among them that were not there.
    pub(super) fn read(&self) -> impl Iterator<Item = &ObjectRef> + '_ {
        let read = &self.read;
        let services = read.services.keys();
        services.chain(read.secrets.keys()).chain(read.maps.keys())
    }

    /// Numbers its Backends anew.
    pub(super) fn renumber(&mut self, ids: Vec<BackendId>) {
        if self.ids == ids {
            return;
        }
        let before = std::mem::replace(&mut self.ids, ids);
        let new = |id: BackendId| {
            let index = before.binary_search(&id).unwrap_or(usize::MAX);
            self.ids.get(index).copied().unwrap_or(id)
        };
        for location in &mut self.assembled.locations {
            for variant in &mut Arc::make_mut(location).split.variants {
                variant.backend = new(variant.backend);
            }
        }
    }
}

fn is_as_read<T>(read: &Option<Arc<T>>, now: Option<&Sourced<T>>) -> bool {
    match (read, now) {
        (Some(read), Some(now)) => Arc::ptr_eq(read, &now.object),
        (read, now) => read.is_none() && now.is_none(),
    }
}
