//! EndpointSlices to Endpoints.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use k8s_openapi::api::discovery::v1::{Endpoint as SliceEndpoint, EndpointSlice};

use super::report::{Problems, Subject};
use crate::k8s::Sourced;
use crate::model::{Endpoint, EndpointState, Kind, L4Endpoint, L4State, Transport};

/// Names the Service that a slice belongs to.
pub(super) const SERVICE_LABEL: &str = "kubernetes.io/service-name";

/// The EndpointSlices by namespace and Service.
#[derive(Default)]
pub(super) struct SliceIndex(HashMap<Box<str>, OfNamespace>);

/// By Service.
type OfNamespace = HashMap<Box<str>, Vec<Sourced<EndpointSlice>>>;

/// One slice with its usable addresses.
struct Slice<'a> {
    ports: Vec<Port<'a>>,
    /// None: it takes nothing new.
    addresses: Vec<(IpAddr, Option<EndpointState>)>,
}

struct Port<'a> {
    name: &'a str,
    number: u16,
}

/// What the slices of a Service say about one of its ports.
pub(super) struct Found {
    /// Sorted by address, each once.
    pub endpoints: Vec<Endpoint>,
    /// The Service has a slice.
    pub any_slice: bool,
    /// Slices have addresses that take requests, but none of those slices has the port.
    pub port_missing: bool,
}

/// Namespace and name of the Service that a slice says it belongs to.
pub(super) fn service_of(slice: &Sourced<EndpointSlice>) -> Option<(&str, &str)> {
    let labels = slice.object.metadata.labels.as_ref();
    let service = labels.and_then(|it| it.get(SERVICE_LABEL))?;
    Some((slice.namespace(), service))
}

impl SliceIndex {
    pub(super) fn insert(&mut self, slice: &Sourced<EndpointSlice>) {
        if let Some((namespace, service)) = service_of(slice) {
            let services = self.0.entry(namespace.into()).or_default();
            services
                .entry(service.into())
                .or_default()
                .push(slice.clone());
        }
    }

    pub(super) fn remove(&mut self, slice: &Sourced<EndpointSlice>) {
        let Some((namespace, service)) = service_of(slice) else {
            return;
        };
        let Some(services) = self.0.get_mut(namespace) else {
            return;
        };
        if let Some(slices) = services.get_mut(service) {
            slices.retain(|it| !it.is_same(slice));
            if slices.is_empty() {
                services.remove(service);
            }
        }
        if services.is_empty() {
            self.0.remove(namespace);
        }
    }

    /// The slices of a Service, in no order.
    pub(super) fn get(&self, namespace: &str, service: &str) -> &[Sourced<EndpointSlice>] {
        let found = self.0.get(namespace).and_then(|it| it.get(service));
        found.map_or(&[], Vec::as_slice)
    }
}

/// The Endpoints that slices have for a Service's port, whose name in them is `port_name`.
pub(super) fn endpoints(
    slices: &[Sourced<EndpointSlice>],
    port_name: &str,
    problems: &mut Problems,
) -> Found {
    let mut endpoints = Vec::new();
    let mut addresses = 0;
    for slice in slices {
        let slice = Slice::read(slice, Transport::Tcp, problems);
        let taking = || {
            slice
                .addresses
                .iter()
                .filter_map(|(ip, state)| Some((*ip, (*state)?)))
        };
        addresses += taking().count();
        for port in slice.ports.iter().filter(|port| port.name == port_name) {
            endpoints.extend(taking().map(|(ip, state)| Endpoint {
                addr: SocketAddr::new(ip, port.number),
                state,
            }));
        }
    }
    // Ready sorts before draining: an address that one slice calls ready is ready.
    endpoints.sort_unstable();
    endpoints.dedup_by_key(|it| it.addr);
    Found {
        port_missing: endpoints.is_empty() && addresses > 0,
        endpoints,
        any_slice: !slices.is_empty(),
    }
}

/// The same without a look at HTTP: those that take nothing new keep what they have.
pub(super) fn l4_endpoints(
    slices: &[Sourced<EndpointSlice>],
    port_name: &str,
    transport: Transport,
    problems: &mut Problems,
) -> Vec<L4Endpoint> {
    let mut endpoints = Vec::new();
    for slice in slices {
        let slice = Slice::read(slice, transport, problems);
        for port in slice.ports.iter().filter(|port| port.name == port_name) {
            endpoints.extend(slice.addresses.iter().map(|(ip, state)| L4Endpoint {
                addr: SocketAddr::new(*ip, port.number),
                state: match state {
                    Some(EndpointState::Ready) => L4State::Ready,
                    Some(EndpointState::Draining) => L4State::Draining,
                    None => L4State::Unready,
                },
            }));
        }
    }
    // The best that any slice says of an address sorts first.
    endpoints.sort_unstable();
    endpoints.dedup_by_key(|it| it.addr);
    endpoints
}

impl<'a> Slice<'a> {
    fn read(
        slice: &'a Sourced<EndpointSlice>,
        transport: Transport,
        problems: &mut Problems,
    ) -> Self {
        let subject = Subject {
            object: slice.object_ref(Kind::EndpointSlice),
            source: &slice.source,
        };
        let mut read = Slice {
            ports: Vec::new(),
            addresses: Vec::new(),
        };
        if !matches!(slice.object.address_type.as_str(), "IPv4" | "IPv6") {
            problems.error(
                &subject,
                "addressType",
                "address-type-unsupported",
                format!(
                    "addresses of type {:?} are not supported",
                    slice.object.address_type
                ),
                "the slice is left out",
            );
            return read;
        }
        read.ports = ports(&slice.object, transport, &subject, problems);
        for (index, endpoint) in slice.object.endpoints.iter().flatten().enumerate() {
            read.add(
                endpoint,
                index,
                &slice.object.address_type,
                &subject,
                problems,
            );
        }
        read
    }

    fn add(
        &mut self,
        endpoint: &SliceEndpoint,
        index: usize,
        address_type: &str,
        subject: &Subject<'_>,
        problems: &mut Problems,
    ) {
        let state = state(endpoint);
        for (place, text) in endpoint.addresses.iter().enumerate() {
            match address(text, address_type) {
                Ok(address) => self.addresses.push((address, state)),
                Err(why) => problems.error(
                    subject,
                    format!("endpoints[{index}].addresses[{place}]"),
                    "address-invalid",
                    format!("{text:?} {why}"),
                    "the address is left out",
                ),
            }
        }
    }
}

/// The ports of a slice for one transport.
fn ports<'a>(
    slice: &'a EndpointSlice,
    transport: Transport,
    subject: &Subject<'_>,
    problems: &mut Problems,
) -> Vec<Port<'a>> {
    let mut ports = Vec::new();
    for (index, port) in slice.ports.iter().flatten().enumerate() {
        if port.protocol.as_deref().unwrap_or("TCP") != transport.name() {
            continue;
        }
        let name = port.name.as_deref().unwrap_or("");
        match port.port.map(u16::try_from) {
            Some(Ok(number)) if number != 0 => ports.push(Port { name, number }),
            _ => problems.error(
                subject,
                format!("ports[{index}].port"),
                "port-invalid",
                "the port is not a number from 1 to 65535",
                "it is left out",
            ),
        }
    }
    ports
}

/// Whether an endpoint takes requests, and which. Not known counts as ready.
fn state(endpoint: &SliceEndpoint) -> Option<EndpointState> {
    let Some(conditions) = &endpoint.conditions else {
        return Some(EndpointState::Ready);
    };
    if conditions.ready.unwrap_or(true) {
        return Some(EndpointState::Ready);
    }
    let draining = conditions.serving == Some(true) && conditions.terminating == Some(true);
    draining.then_some(EndpointState::Draining)
}

fn address(text: &str, address_type: &str) -> Result<IpAddr, &'static str> {
    let address: IpAddr = text.parse().map_err(|_| "is not an IP address")?;
    if address.is_ipv4() != (address_type == "IPv4") {
        return Err("is not of the slice's addressType");
    }
    // An IPv4 address in IPv6 clothes is the same endpoint.
    let address = address.to_canonical();
    if address.is_unspecified() || address.is_multicast() {
        return Err("is not the address of one host");
    }
    Ok(address)
}
