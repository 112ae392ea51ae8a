//! The annotations of one Service.

use k8s_openapi::api::core::v1::{Service, ServicePort};

use super::super::annotations::OWN_PREFIX;
use super::super::external;
use super::super::report::{Problems, Subject};
use super::{Sources, ports, shares};
use crate::k8s::Sourced;
use crate::model::{L4Scope, L4SplitBy, MAX_VARIANTS, Transport};

/// What a Service asks for.
pub(super) struct Wanted<'a> {
    pub scope: L4Scope,
    pub split_by: L4SplitBy,
    /// What all weights add up to.
    total: u32,
    canaries: Vec<(&'a Sourced<Service>, u32)>,
}

/// A canary of one port.
pub(super) struct Canary<'a> {
    pub service: &'a Sourced<Service>,
    pub port: &'a ServicePort,
    pub weight: u32,
}

const SPLIT: &str = "split";
const SPLIT_BY: &str = "split-by";
const SCOPE: &str = "split-scope";

const STABLE_ANSWERS: &str = "the Service itself answers";

/// Reads what a Service asks for; none for one that asks for nothing, or for what cannot be read.
pub(super) fn read<'a>(
    service: &Sourced<Service>,
    sources: &Sources<'a>,
    subject: &Subject<'_>,
    problems: &mut Problems,
) -> Option<Wanted<'a>> {
    let annotations = service.object.metadata.annotations.as_ref()?;
    let own = annotations.iter().filter_map(|(key, value)| {
        let name = key.strip_prefix(OWN_PREFIX)?.strip_prefix('/')?;
        Some((name, value.trim()))
    });
    let own: Vec<(&str, &str)> = own.collect();
    for (name, _) in &own {
        if ![SPLIT, SPLIT_BY, SCOPE].contains(name) {
            let what = format!("no such annotation of a Service is known: {name}");
            problems.warn(subject, field(name), "annotation-unknown", what, "ignored");
        }
    }
    let value = |wanted: &str| own.iter().find(|(name, _)| *name == wanted).map(|it| it.1);
    let Some(text) = value(SPLIT) else {
        for name in [SPLIT_BY, SCOPE] {
            if value(name).is_some() {
                let what = format!("there is no {OWN_PREFIX}/{SPLIT} that it could be for");
                problems.warn(subject, field(name), "split-missing", what, "ignored");
            }
        }
        return None;
    };
    let scope = scope(value(SCOPE), service, subject, problems);
    let split_by = split_by(value(SPLIT_BY), service, subject, problems);
    report_local(scope, service, subject, problems);
    if external::name(&service.object).is_some() {
        let what = "an ExternalName Service has no connections of its own to split";
        problems.error(
            subject,
            field(SPLIT),
            "split-external-name",
            what,
            "ignored",
        );
        return None;
    }
    let parsed = shares::parse(text);
    let parsed = parsed.and_then(|it| match it.of.len() < MAX_VARIANTS {
        true => Ok(it),
        false => Err(format!("more than {} Services", MAX_VARIANTS - 1)),
    });
    match parsed {
        Ok(shares) => Some(Wanted {
            scope,
            split_by,
            total: shares.total,
            canaries: canaries(&shares.of, service, sources, subject, problems),
        }),
        Err(why) => {
            problems.error(subject, field(SPLIT), "split-invalid", why, STABLE_ANSWERS);
            None
        }
    }
}

fn field(name: &str) -> String {
    format!("metadata.annotations.{OWN_PREFIX}/{name}")
}

fn scope(
    text: Option<&str>,
    service: &Sourced<Service>,
    subject: &Subject<'_>,
    problems: &mut Problems,
) -> L4Scope {
    let scope = match text {
        None | Some("all") => L4Scope::All,
        Some("north-south") => L4Scope::NorthSouth,
        Some("east-west") => L4Scope::EastWest,
        Some(other) => {
            let what = format!("{other:?} is none of north-south, east-west, all");
            problems.error(subject, field(SCOPE), "split-scope-invalid", what, "all");
            L4Scope::All
        }
    };
    let spec = service.object.spec.as_ref();
    let headless = spec.is_some_and(|it| it.cluster_ip.as_deref() == Some("None"));
    if headless && scope == L4Scope::EastWest {
        problems.warn(
            subject,
            field(SCOPE),
            "split-headless",
            "a headless Service has no address that pods could connect to",
            "its connections are not split",
        );
    }
    scope
}

/// What keeps the clients of a Service where they are for kube-proxy keeps them for its Split, too.
fn split_by(
    text: Option<&str>,
    service: &Sourced<Service>,
    subject: &Subject<'_>,
    problems: &mut Problems,
) -> L4SplitBy {
    let spec = service.object.spec.as_ref();
    let is_sticky = spec.is_some_and(|it| it.session_affinity.as_deref() == Some("ClientIP"));
    match text {
        None if is_sticky => L4SplitBy::SourceAddress,
        None | Some("connection") => L4SplitBy::Connection,
        Some("source-address") => L4SplitBy::SourceAddress,
        Some(other) => {
            let what = format!("{other:?} is neither connection nor source-address");
            problems.error(
                subject,
                field(SPLIT_BY),
                "split-by-invalid",
                what,
                "connection",
            );
            L4SplitBy::Connection
        }
    }
}

/// Addresses that lead to each node's own Endpoints are left to the cluster, as a Split knows those of all
/// nodes.
fn report_local(
    scope: L4Scope,
    service: &Sourced<Service>,
    subject: &Subject<'_>,
    problems: &mut Problems,
) {
    let mut warn = |field: &str, what: &str| {
        let effect = "they are left to the cluster, without a split";
        let what = format!("{what} lead to each node's own endpoints only");
        problems.warn(subject, field, "split-local-only", what, effect);
    };
    if scope.is_east_west() && is_local_inside(&service.object) {
        warn("spec.internalTrafficPolicy", "the Service's own addresses");
    }
    let has_external = !super::external_addresses(&service.object).is_empty();
    if scope.is_north_south() && is_local_outside(&service.object) && has_external {
        warn(
            "spec.externalTrafficPolicy",
            "the Service's external addresses",
        );
    }
}

/// Whether the Service's own addresses lead to each node's own Endpoints only.
pub(super) fn is_local_inside(service: &Service) -> bool {
    let spec = service.spec.as_ref();
    spec.is_some_and(|it| it.internal_traffic_policy.as_deref() == Some("Local"))
}

/// The same of its external addresses.
pub(super) fn is_local_outside(service: &Service) -> bool {
    let spec = service.spec.as_ref();
    spec.is_some_and(|it| it.external_traffic_policy.as_deref() == Some("Local"))
}

/// The Services that there are. What another one would have had stays with the Service itself.
fn canaries<'a>(
    shares: &[(&str, u32)],
    stable: &Sourced<Service>,
    sources: &Sources<'a>,
    subject: &Subject<'_>,
    problems: &mut Problems,
) -> Vec<(&'a Sourced<Service>, u32)> {
    let mut found = Vec::new();
    for (name, weight) in shares {
        let namespace = stable.namespace();
        let wrong = match sources.services.get(namespace, name) {
            _ if *name == stable.name() => {
                Some(("split-self", format!("{name} is this Service itself")))
            }
            None => {
                let what = format!("there is no Service {namespace}/{name}");
                Some(("service-not-found", what))
            }
            Some(service) if external::name(&service.object).is_some() => {
                let what = format!("Service {namespace}/{name} is of type ExternalName");
                Some(("split-external-name", what))
            }
            Some(service) => {
                found.push((service, *weight));
                None
            }
        };
        if let Some((code, what)) = wrong {
            problems.error(subject, field(SPLIT), code, what, STABLE_ANSWERS);
        }
    }
    found
}

impl<'a> Wanted<'a> {
    /// The weight of the Service itself, and the canaries, for one of its ports.
    pub(super) fn shares(
        &self,
        service: &Sourced<Service>,
        port: &ServicePort,
        transport: Transport,
        problems: &mut Problems,
    ) -> (u32, Vec<Canary<'a>>) {
        let mut left = self.total;
        let mut found = Vec::new();
        for (canary, weight) in &self.canaries {
            let Some(alike) = ports::alike(&canary.object, port, transport) else {
                let what = format!(
                    "Service {}/{} has no {transport} port with {}, as port {} has; it has {}",
                    canary.namespace(),
                    canary.name(),
                    ports::name(port),
                    port.port,
                    ports::shown(&canary.object, transport),
                );
                let effect = format!("{STABLE_ANSWERS} on that port");
                let subject = super::subject(service);
                problems.error(&subject, field(SPLIT), "split-port-missing", what, effect);
                continue;
            };
            left = left.saturating_sub(*weight);
            found.push(Canary {
                service: canary,
                port: alike,
                weight: *weight,
            });
        }
        (left, found)
    }
}
