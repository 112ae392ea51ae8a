//! Splits of connections: the annotations of Services, and the ConfigMaps that open ports of the node.
//!
//! They are few, so all of them are read each time; what says the same as before stays the same
//! allocation.

mod listeners;
mod ports;
mod shares;
mod split;

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Service, ServicePort};

use super::annotations::OWN_PREFIX;
use super::backends::ServiceIndex;
use super::index::{ByName, Index};
use super::report::{Problems, Subject};
use super::slices::{self, SliceIndex};
use crate::config::L4Settings;
use crate::k8s::Sourced;
use crate::model::{
    Kind, L4, L4Endpoint, L4Id, L4Key, L4Service, L4Variant, MAX_VARIANTS, Transport,
};
use split::Wanted;

/// The name of the Variant that is the Service itself.
const STABLE_NAME: &str = "stable";

/// What everything is made of.
struct Sources<'a> {
    services: &'a ServiceIndex,
    slices: &'a SliceIndex,
    maps: &'a ByName<ConfigMap>,
}

/// Endpoints by Service port, each read once.
type Read = HashMap<L4Key, Arc<[L4Endpoint]>>;

/// Whether a Service may ask for anything: the others need not be read.
pub(super) fn asks(service: &Sourced<Service>) -> bool {
    let annotations = service.object.metadata.annotations.iter().flatten();
    annotations
        .into_iter()
        .any(|(key, _)| key.starts_with(OWN_PREFIX))
}

/// Makes all of it. `before` is what was made the last time.
pub(super) fn l4(index: &Index, settings: &L4Settings, before: &L4, problems: &mut Problems) -> L4 {
    let sources = Sources {
        services: &index.services,
        slices: &index.slices,
        maps: &index.secrets.maps,
    };
    let mut splits: BTreeMap<L4Key, L4Service> = BTreeMap::new();
    let mut read = Read::new();
    for service in index.asking.values() {
        let subject = subject(service);
        let Some(wanted) = split::read(service, &sources, &subject, problems) else {
            continue;
        };
        for (port, transport) in ports::of(&service.object, &subject, problems) {
            let made = made(
                service,
                &port,
                transport,
                Some(&wanted),
                &sources,
                &mut read,
                problems,
            );
            splits.extend(made.map(|it| (it.key.clone(), it)));
        }
    }
    let asked = listeners::read(settings, &sources, problems);
    report_unused(&splits, &asked, sources.services, problems);
    for entry in &asked {
        if !splits.contains_key(&entry.key) {
            let (service, port) = (entry.service, &entry.port);
            let transport = entry.key.transport;
            let made = made(
                service, port, transport, None, &sources, &mut read, problems,
            );
            splits.extend(made.map(|it| (it.key.clone(), it)));
        }
    }
    let services: Vec<Arc<L4Service>> = splits.into_values().map(|it| kept(it, before)).collect();
    let id = |key: &L4Key| {
        let found = services.binary_search_by(|it| it.key.cmp(key)).ok()?;
        Some(L4Id(u32::try_from(found).ok()?))
    };
    let listeners = asked.iter().filter_map(|it| it.listener(id(&it.key)?));
    let mut listeners: Vec<_> = listeners.collect();
    listeners.sort_by_key(|it| (it.transport, it.port));
    L4 {
        services,
        listeners,
    }
}

/// Tells of Splits that nothing follows: connections come in at a port of the node, or are made to the
/// Service's own address.
fn report_unused(
    splits: &BTreeMap<L4Key, L4Service>,
    asked: &[listeners::Entry<'_>],
    services: &ServiceIndex,
    problems: &mut Problems,
) {
    for split in splits.values() {
        let (key, scope) = (&split.key, split.scope);
        let opened = asked.iter().any(|it| it.key == *key);
        let own = !split.cluster_addresses.is_empty();
        if opened && scope.is_north_south() || own && scope.is_east_west() {
            continue;
        }
        let mut missing = Vec::new();
        if scope.is_north_south() {
            missing.push(format!(
                "no port of the node leads to port {} ({}) by --tcp-services-configmap or \
                 --udp-services-configmap",
                key.port, key.transport
            ));
        }
        let service = services.get(&key.namespace, &key.service);
        if scope.is_east_west() {
            let is_local = service.is_some_and(|it| split::is_local_inside(&it.object));
            let what = match is_local {
                true => "the Service's own address leads to each node's own endpoints only",
                false => "the Service has no address of its own",
            };
            missing.push(what.to_owned());
        }
        if let Some(service) = service {
            let what = missing.join(", and ");
            let effect = "the Service itself answers";
            let field = "metadata.annotations.splitter.io/split";
            problems.warn(&subject(service), field, "split-unused", what, effect);
        }
    }
}

/// One Service port, with its Split if it has one.
fn made(
    service: &Sourced<Service>,
    port: &ServicePort,
    transport: Transport,
    wanted: Option<&Wanted<'_>>,
    sources: &Sources<'_>,
    read: &mut Read,
    problems: &mut Problems,
) -> Option<L4Service> {
    let key = ports::key(service, port, transport)?;
    let shares = wanted.map(|it| it.shares(service, port, transport, problems));
    let (stable, canaries) = shares.unwrap_or((1, Vec::new()));
    let mut variants = vec![L4Variant {
        name: STABLE_NAME.into(),
        weight: stable,
        endpoints: endpoints(service, port, &key, sources, read, problems),
        key: key.clone(),
    }];
    for canary in canaries {
        let key = ports::key(canary.service, canary.port, transport)?;
        variants.push(L4Variant {
            name: key.service.clone(),
            weight: canary.weight,
            endpoints: endpoints(canary.service, canary.port, &key, sources, read, problems),
            key,
        });
    }
    debug_assert!(variants.len() <= MAX_VARIANTS);
    let of = |is_local: bool, addresses: fn(&Service) -> Vec<IpAddr>| match is_local {
        true => Vec::new(),
        false => addresses(&service.object),
    };
    Some(L4Service {
        key,
        scope: wanted.map_or_else(Default::default, |it| it.scope),
        split_by: wanted.map_or_else(Default::default, |it| it.split_by),
        cluster_addresses: of(split::is_local_inside(&service.object), own_addresses),
        external_addresses: of(split::is_local_outside(&service.object), external_addresses),
        variants,
    })
}

/// The addresses of a Service in the cluster.
fn own_addresses(service: &Service) -> Vec<IpAddr> {
    let spec = service.spec.as_ref();
    addresses(spec.into_iter().flat_map(|it| {
        let one = it.cluster_ip.iter();
        one.chain(it.cluster_ips.iter().flatten())
    }))
}

/// Further ones, of which nodes or a balancer know.
fn external_addresses(service: &Service) -> Vec<IpAddr> {
    let spec = service.spec.as_ref();
    let external = spec
        .into_iter()
        .flat_map(|it| it.external_ips.iter().flatten());
    let status = service.status.as_ref();
    let balancer = status.and_then(|it| it.load_balancer.as_ref());
    let points = balancer
        .into_iter()
        .flat_map(|it| it.ingress.iter().flatten());
    addresses(external.chain(points.filter_map(|it| it.ip.as_ref())))
}

/// Sorted, each once. `None` of a headless Service is none.
fn addresses<'a>(texts: impl Iterator<Item = &'a String>) -> Vec<IpAddr> {
    let parsed = texts.filter_map(|it| it.parse::<IpAddr>().ok());
    let mut found: Vec<IpAddr> = parsed.map(|it| it.to_canonical()).collect();
    found.sort_unstable();
    found.dedup();
    found
}

fn endpoints(
    service: &Sourced<Service>,
    port: &ServicePort,
    key: &L4Key,
    sources: &Sources<'_>,
    read: &mut Read,
    problems: &mut Problems,
) -> Arc<[L4Endpoint]> {
    if let Some(known) = read.get(key) {
        return Arc::clone(known);
    }
    let slices = sources.slices.get(service.namespace(), service.name());
    let name = port.name.as_deref().unwrap_or("");
    let found = slices::l4_endpoints(slices, name, key.transport, problems);
    if found.is_empty() {
        let message = match slices.is_empty() {
            true => format!(
                "no EndpointSlice has the label {}: {}",
                slices::SERVICE_LABEL,
                key.service
            ),
            false => format!(
                "no EndpointSlice of the Service has an address for the {} port {name:?}",
                key.transport
            ),
        };
        let effect = format!("port {} of the Service has no endpoints", key.port);
        problems.warn(&subject(service), "", "l4-no-endpoints", message, effect);
    }
    let found: Arc<[L4Endpoint]> = found.into();
    read.insert(key.clone(), Arc::clone(&found));
    found
}

/// What says the same as before is the same allocation, which is compared at once.
fn kept(mut new: L4Service, before: &L4) -> Arc<L4Service> {
    let found = before.services.binary_search_by(|it| it.key.cmp(&new.key));
    let Some(old) = found.ok().and_then(|index| before.services.get(index)) else {
        return Arc::new(new);
    };
    if **old == new {
        return Arc::clone(old);
    }
    for variant in &mut new.variants {
        let same = old
            .variants
            .iter()
            .find(|it| it.key == variant.key && it.endpoints == variant.endpoints);
        if let Some(same) = same {
            variant.endpoints = Arc::clone(&same.endpoints);
        }
    }
    Arc::new(new)
}

fn subject(service: &Sourced<Service>) -> Subject<'_> {
    Subject {
        object: service.object_ref(Kind::Service),
        source: &service.source,
    }
}
