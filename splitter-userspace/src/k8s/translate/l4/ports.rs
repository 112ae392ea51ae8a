//! The ports of Services, of TCP and UDP.

use std::borrow::Cow;

use k8s_openapi::api::core::v1::{Service, ServicePort};

use super::super::report::{Problems, Subject};
use crate::k8s::Sourced;
use crate::model::{L4Key, Transport};

/// Names a Service port; none for a number that there is not, which the API server lets nobody write.
pub(super) fn key(
    service: &Sourced<Service>,
    port: &ServicePort,
    transport: Transport,
) -> Option<L4Key> {
    let number = u16::try_from(port.port).ok().filter(|it| *it != 0)?;
    Some(L4Key {
        namespace: service.namespace().into(),
        service: service.name().into(),
        port: number,
        transport,
    })
}

/// All ports of a Service that can be split.
pub(super) fn of(
    service: &Service,
    subject: &Subject<'_>,
    problems: &mut Problems,
) -> Vec<(ServicePort, Transport)> {
    let mut found = Vec::new();
    for (index, port) in all(service).enumerate() {
        match transport(port) {
            Some(transport) => found.push((port.clone(), transport)),
            None => problems.warn(
                subject,
                format!("spec.ports[{index}].protocol"),
                "split-protocol-unsupported",
                format!(
                    "only TCP and UDP are split, not {}",
                    port.protocol.as_deref().unwrap_or_default()
                ),
                format!("port {} is not split", port.port),
            ),
        }
    }
    found
}

/// The port of one transport that a reference names, by number or by name.
pub(super) fn named<'a>(
    service: &'a Service,
    text: &str,
    wanted: Transport,
) -> Option<&'a ServicePort> {
    let number = text.parse::<i32>().ok();
    let mut ports = all(service).filter(|it| transport(it) == Some(wanted));
    ports.find(|it| match number {
        Some(number) => it.port == number,
        None => it.name.as_deref() == Some(text),
    })
}

/// The port of the same name and transport as `port` of another Service.
pub(super) fn alike<'a>(
    service: &'a Service,
    port: &ServicePort,
    wanted: Transport,
) -> Option<&'a ServicePort> {
    let name = |it: &ServicePort| it.name.clone().unwrap_or_default();
    let mut ports = all(service).filter(|it| transport(it) == Some(wanted));
    ports.find(|it| name(it) == name(port))
}

/// The ports of one transport, for people.
pub(super) fn shown(service: &Service, wanted: Transport) -> String {
    let ports = all(service).filter(|it| transport(it) == Some(wanted));
    let ports = ports.map(|port| match port.name.as_deref() {
        Some(name) if !name.is_empty() => format!("{} ({name})", port.port),
        _ => port.port.to_string(),
    });
    match ports.collect::<Vec<_>>() {
        none if none.is_empty() => "none".to_owned(),
        ports => ports.join(", "),
    }
}

/// A port's name for people.
pub(super) fn name(port: &ServicePort) -> Cow<'_, str> {
    match port.name.as_deref() {
        Some(name) if !name.is_empty() => Cow::Owned(format!("the name {name:?}")),
        _ => Cow::Borrowed("no name"),
    }
}

fn all(service: &Service) -> impl Iterator<Item = &ServicePort> {
    let ports = service.spec.as_ref().and_then(|it| it.ports.as_deref());
    ports.into_iter().flatten()
}

fn transport(port: &ServicePort) -> Option<Transport> {
    match port.protocol.as_deref().unwrap_or("TCP") {
        "TCP" => Some(Transport::Tcp),
        "UDP" => Some(Transport::Udp),
        _ => None,
    }
}
