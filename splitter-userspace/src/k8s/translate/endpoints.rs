//! Where Service ports lead: the Endpoints of EndpointSlices, or of a name outside the cluster.

use std::net::SocketAddr;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Service, ServicePort};
use k8s_openapi::api::discovery::v1::EndpointSlice;

use super::backends::{self, ServiceIndex};
use super::external::{self, Externals};
use super::report::{Problems, Subject};
use super::slices::{self, Found, SERVICE_LABEL, SliceIndex};
use crate::k8s::names::Names;
use crate::k8s::{Resolution, Sourced};
use crate::model::{BackendKey, Endpoint, Kind, ObjectRef, Problem};

/// What says where Service ports lead.
pub(super) struct Sources<'a> {
    pub services: &'a ServiceIndex,
    pub slices: &'a SliceIndex,
    pub names: &'a Names,
}

/// Where one Service port leads.
#[derive(Default)]
pub(super) struct Led {
    /// The Service's own address and port, if it has one.
    pub address: Option<SocketAddr>,
    /// Sorted by address, each once.
    pub endpoints: Vec<Endpoint>,
    /// Of the Service and its slices.
    pub problems: Vec<Problem>,
    /// The name that is to be looked up.
    pub name: Option<Arc<str>>,
    read: Read,
}

/// What it was made of: as long as it stays the same, so does what it leads to.
#[derive(Default)]
struct Read {
    service: Option<Sourced<Service>>,
    slices: Vec<Sourced<EndpointSlice>>,
    resolution: Option<Resolution>,
}

impl Led {
    /// Finds out where `key` leads.
    pub(super) fn read(key: &BackendKey, sources: &Sources<'_>) -> Self {
        if key.namespace.is_empty() {
            return elsewhere(key, sources.names);
        }
        let Some(service) = sources.services.get(&key.namespace, &key.service) else {
            return Led::default();
        };
        let slices = sources.slices.get(&key.namespace, &key.service);
        let mut problems = Problems::default();
        let mut led = match backends::service_port(service, &key.port) {
            Some(port) if external::name(&service.object).is_some() => {
                outside(service, &port, sources.names, &mut problems)
            }
            Some(port) => inside(service, &port, slices, &mut problems),
            None => Led::default(),
        };
        led.problems = problems.into_sorted();
        led.read = Read {
            service: Some(service.clone()),
            slices: slices.to_vec(),
            resolution: resolution(&led, sources.names).cloned(),
        };
        led
    }

    /// Whether it would be the same if it were read again.
    pub(super) fn is_current(&self, key: &BackendKey, sources: &Sources<'_>) -> bool {
        let service = sources.services.get(&key.namespace, &key.service);
        let slices = sources.slices.get(&key.namespace, &key.service);
        let same_service = match (&self.read.service, service) {
            (Some(read), Some(now)) => read.is_same(now),
            (read, now) => read.is_none() && now.is_none(),
        };
        let mut pairs = self.read.slices.iter().zip(slices);
        same_service
            && self.read.slices.len() == slices.len()
            && pairs.all(|(read, now)| read.is_same(now))
            && self.read.resolution.as_ref() == resolution(self, sources.names)
    }
}

/// What is known of the name that a port leads to.
fn resolution<'n>(led: &Led, names: &'n Names) -> Option<&'n Resolution> {
    names.known.get(led.name.as_ref()?)
}

fn outside(
    service: &Sourced<Service>,
    port: &ServicePort,
    names: &Names,
    problems: &mut Problems,
) -> Led {
    let mut externals = Externals::new(names);
    let target = external::port(port).unwrap_or(0);
    let endpoints = externals.endpoints(service, target, problems);
    Led {
        endpoints,
        name: externals.wanted,
        ..Led::default()
    }
}

/// Where a host leads that is no Service of the cluster.
fn elsewhere(key: &BackendKey, names: &Names) -> Led {
    let mut problems = Problems::default();
    let subject = Subject {
        object: ObjectRef::new(Kind::Service, "", &key.service),
        source: "",
    };
    let mut externals = Externals::new(names);
    let port = key.port.parse().unwrap_or(0);
    let endpoints = externals.elsewhere(&key.service, port, &subject, &mut problems);
    let mut led = Led {
        endpoints,
        name: externals.wanted,
        problems: problems.into_sorted(),
        ..Led::default()
    };
    led.read.resolution = resolution(&led, names).cloned();
    led
}

fn inside(
    service: &Sourced<Service>,
    port: &ServicePort,
    slices: &[Sourced<EndpointSlice>],
    problems: &mut Problems,
) -> Led {
    let name = port.name.as_deref().unwrap_or("");
    let found = slices::endpoints(slices, name, problems);
    report_missing(service, port, &found, problems);
    Led {
        address: backends::address(service, port),
        endpoints: found.endpoints,
        ..Led::default()
    }
}

/// Points out what is most likely a mistake: a Service that no slice is for, and slices that do not
/// name their ports as the Service does.
fn report_missing(
    service: &Sourced<Service>,
    port: &ServicePort,
    found: &Found,
    problems: &mut Problems,
) {
    let subject = Subject {
        object: service.object_ref(Kind::Service),
        source: &service.source,
    };
    if !found.any_slice {
        problems.warn(
            &subject,
            "",
            "no-endpoint-slice",
            format!(
                "no EndpointSlice has the label {SERVICE_LABEL}: {}",
                service.name()
            ),
            "the Service has no endpoints",
        );
    } else if found.port_missing {
        let name = port.name.as_deref().unwrap_or("");
        problems.warn(
            &subject,
            "spec.ports",
            "endpoint-port-missing",
            format!("no EndpointSlice of the Service has a TCP port named {name:?}"),
            format!("port {} of the Service has no endpoints", port.port),
        );
    }
}
