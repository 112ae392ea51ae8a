//! Services and their EndpointSlices to Backends.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Service, ServicePort};
use k8s_openapi::api::networking::v1::{IngressBackend, IngressServiceBackend, ServiceBackendPort};

use super::external::{self, Externals};
use super::report::{Problems, Subject};
use super::slices::{Found, SERVICE_LABEL, Slices};
use crate::k8s::{Objects, Sourced};
use crate::model::{Backend, BackendFault, BackendKey, Endpoint, EndpointState, Kind};

/// A Backend as one Location uses it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Target {
    pub key: BackendKey,
    /// A fault of the Location that must not reach the Backend.
    pub closed: Option<BackendFault>,
    /// The Service's own address is asked instead of its pods' (`service-upstream`).
    pub by_service: bool,
}

/// Finds and makes the Backends that Ingresses refer to, each once.
pub(super) struct Backends<'a> {
    services: HashMap<(&'a str, &'a str), &'a Sourced<Service>>,
    slices: Slices<'a>,
    externals: Externals<'a>,
    resolved: HashMap<BackendKey, Resolved>,
}

/// What a reference leads to.
#[derive(Clone, Debug, Default)]
struct Resolved {
    fault: Option<Fault>,
    /// The Service port's number: equal for two spellings of one port.
    number: Option<i32>,
    /// The Service's own address and port, if it has one.
    address: Option<SocketAddr>,
    endpoints: Vec<Endpoint>,
}

#[derive(Clone, Debug)]
struct Fault {
    kind: BackendFault,
    code: &'static str,
    message: String,
}

impl Fault {
    fn new(kind: BackendFault, code: &'static str, message: String) -> Self {
        Fault {
            kind,
            code,
            message,
        }
    }
}

impl<'a> Backends<'a> {
    pub(super) fn index(objects: &'a Objects) -> Self {
        let services = objects.services.iter();
        Backends {
            services: services
                .map(|it| ((it.namespace(), it.name()), it))
                .collect(),
            slices: Slices::index(objects),
            externals: Externals::new(&objects.names),
            resolved: HashMap::new(),
        }
    }

    /// The names that Services lead to.
    pub(super) fn into_names(self) -> BTreeSet<Arc<str>> {
        self.externals.wanted
    }

    /// The Backend that an Ingress names at `field`. A reference that leads nowhere is a Problem
    /// with this `effect`, and a Backend with a fault.
    pub(super) fn find(
        &mut self,
        subject: &Subject<'_>,
        backend: &IngressBackend,
        field: &str,
        effect: &str,
        problems: &mut Problems,
    ) -> BackendKey {
        let (key, written) = key(&subject.object.namespace, backend);
        if !self.resolved.contains_key(&key) {
            let resolved = match written {
                Ok(()) => self.resolve(&key, backend, problems),
                Err(fault) => Resolved {
                    fault: Some(fault),
                    ..Resolved::default()
                },
            };
            self.resolved.insert(key.clone(), resolved);
        }
        if let Some(fault) = self.resolved.get(&key).and_then(|it| it.fault.as_ref()) {
            problems.error(subject, field, fault.code, fault.message.clone(), effect);
        }
        key
    }

    /// The number of the first TCP port of a Service, if there is one.
    pub(super) fn first_port(&self, namespace: &str, service: &str) -> Option<i32> {
        let service = self.services.get(&(namespace, service))?;
        let ports = service.object.spec.as_ref()?.ports.as_deref()?;
        let is_tcp = |it: &&ServicePort| it.protocol.as_deref().is_none_or(|it| it == "TCP");
        ports.iter().find(is_tcp).map(|it| it.port)
    }

    /// Whether both are the same port of the same Service, by whatever spelling.
    pub(super) fn is_same(&self, a: &BackendKey, b: &BackendKey) -> bool {
        let number = |key: &BackendKey| self.resolved.get(key).and_then(|it| it.number);
        (&a.namespace, &a.service) == (&b.namespace, &b.service)
            && (a.port == b.port || (number(a).is_some() && number(a) == number(b)))
    }

    /// Whether the Service of a Backend that was found before has an address of its own. One that
    /// has none is a Problem, unless nothing can be found of it anyway.
    pub(super) fn has_address(
        &self,
        subject: &Subject<'_>,
        key: &BackendKey,
        field: &str,
        problems: &mut Problems,
    ) -> bool {
        let resolved = self.resolved.get(key);
        if resolved.is_none_or(|it| it.address.is_none() && it.fault.is_none()) {
            problems.warn(
                subject,
                field,
                "service-upstream-without-address",
                format!(
                    "Service {}/{} has no cluster IP",
                    key.namespace, key.service
                ),
                "its pods are asked, in spite of service-upstream",
            );
        }
        resolved.is_some_and(|it| it.address.is_some())
    }

    /// The Backend of a target that was found before.
    pub(super) fn backend(&self, target: &Target) -> Backend {
        let resolved = self.resolved.get(&target.key);
        let own = resolved.and_then(|it| it.fault.as_ref()).map(|it| it.kind);
        let endpoints = match (target.closed, resolved) {
            (None, Some(resolved)) if target.by_service => {
                let ready = |addr| Endpoint {
                    addr,
                    state: EndpointState::Ready,
                };
                resolved.address.map(ready).into_iter().collect()
            }
            (None, Some(resolved)) => resolved.endpoints.clone(),
            _ => Vec::new(),
        };
        Backend {
            key: target.key.clone(),
            fault: target.closed.or(own),
            endpoints,
        }
    }

    fn resolve(
        &mut self,
        key: &BackendKey,
        backend: &IngressBackend,
        problems: &mut Problems,
    ) -> Resolved {
        let failed = |fault| Resolved {
            fault: Some(fault),
            ..Resolved::default()
        };
        let wanted = (&*key.namespace, &*key.service);
        let Some(service) = self.services.get(&wanted).copied() else {
            let message = format!("there is no Service {}/{}", key.namespace, key.service);
            return failed(Fault::new(
                BackendFault::ServiceNotFound,
                "service-not-found",
                message,
            ));
        };
        let port = match service_port(service, backend.service.as_ref()) {
            Ok(port) => port,
            Err(fault) => return failed(fault),
        };
        let port = &*port;
        if external::name(&service.object).is_some() {
            let target = external::port(port).unwrap_or(0);
            return Resolved {
                fault: None,
                number: Some(port.port),
                address: None,
                endpoints: self.externals.endpoints(service, target, problems),
            };
        }
        let name = port.name.as_deref().unwrap_or("");
        let id = (service.namespace(), service.name());
        let found = self.slices.endpoints(id, name, problems);
        report_missing(service, port, &found, problems);
        Resolved {
            fault: None,
            number: Some(port.port),
            address: address(service, port),
            endpoints: found.endpoints,
        }
    }
}

/// The Service's own address, which leads to one of its pods in a way that Kubernetes chooses.
fn address(service: &Sourced<Service>, port: &ServicePort) -> Option<SocketAddr> {
    let spec = service.object.spec.as_ref()?;
    // Headless Services have `None` or nothing.
    let ip: IpAddr = spec.cluster_ip.as_deref()?.parse().ok()?;
    let port = u16::try_from(port.port).ok().filter(|port| *port != 0)?;
    Some(SocketAddr::new(ip, port))
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

/// Names the Backend, and says whether the reference itself is well-formed.
fn key(namespace: &Arc<str>, backend: &IngressBackend) -> (BackendKey, Result<(), Fault>) {
    let named = |service: &str, port: String| BackendKey {
        namespace: Arc::clone(namespace),
        service: service.into(),
        port: port.into(),
    };
    let unsupported =
        |code, message: String| Err(Fault::new(BackendFault::Unsupported, code, message));
    match (&backend.service, &backend.resource) {
        (Some(service), None) if service.name.is_empty() => (
            named("", String::new()),
            unsupported("backend-missing", "the Service has no name".to_owned()),
        ),
        (Some(service), None) => {
            let (port, written) = port_text(service.port.as_ref());
            (named(&service.name, port), written)
        }
        (None, Some(resource)) => {
            // A slash is in no Service's name, so this one cannot be taken for a Service.
            let name = format!("{}/{}", resource.kind, resource.name);
            let message = format!("a resource ({name}) is not supported as a backend");
            (
                named(&name, String::new()),
                unsupported("backend-unsupported", message),
            )
        }
        (service, _) => {
            let what = if service.is_some() {
                "both a service and a resource"
            } else {
                "no service"
            };
            let message = format!("the backend names {what}");
            (
                named("", what.to_owned()),
                unsupported("backend-missing", message),
            )
        }
    }
}

fn port_text(port: Option<&ServiceBackendPort>) -> (String, Result<(), Fault>) {
    let fault = |message: &str| {
        let code = "port-missing";
        Err(Fault::new(
            BackendFault::PortNotFound,
            code,
            message.to_owned(),
        ))
    };
    let name = port
        .and_then(|it| it.name.as_deref())
        .filter(|it| !it.is_empty());
    let number = port.and_then(|it| it.number).filter(|it| *it != 0);
    match (name, number) {
        (Some(name), None) => (name.to_owned(), Ok(())),
        (None, Some(number)) => (number.to_string(), Ok(())),
        (None, None) => (
            String::new(),
            fault("the backend names no port of the Service"),
        ),
        (Some(name), Some(number)) => {
            let both = format!("{name}/{number}");
            (
                both,
                fault("the backend names its port by name and by number; only one is allowed"),
            )
        }
    }
}

/// The Service's TCP port that the reference names.
fn service_port<'a>(
    service: &'a Sourced<Service>,
    backend: Option<&IngressServiceBackend>,
) -> Result<Cow<'a, ServicePort>, Fault> {
    let spec = service.object.spec.as_ref();
    let shown = format!("Service {}/{}", service.namespace(), service.name());
    let port = backend.and_then(|it| it.port.as_ref());
    let name = port
        .and_then(|it| it.name.as_deref())
        .filter(|it| !it.is_empty());
    let wanted = |it: &&ServicePort| match name {
        Some(name) => it.name.as_deref() == Some(name),
        None => Some(it.port) == port.and_then(|it| it.number),
    };
    let ports = spec.and_then(|it| it.ports.as_deref()).unwrap_or(&[]);
    let is_tcp = |it: &&ServicePort| it.protocol.as_deref().is_none_or(|it| it == "TCP");
    if let Some(port) = ports.iter().filter(is_tcp).find(wanted) {
        return Ok(Cow::Borrowed(port));
    }
    let number = port.and_then(|it| it.number);
    let number = number.filter(|number| u16::try_from(*number).is_ok_and(|it| it != 0));
    if let (Some(port), None, true, Some(_)) = (
        number,
        name,
        ports.is_empty(),
        external::name(&service.object),
    ) {
        // Such a Service needs no ports of its own.
        return Ok(Cow::Owned(ServicePort {
            port,
            ..ServicePort::default()
        }));
    }
    Err({
        let (port, _) = port_text(port);
        let has: Vec<_> = ports.iter().filter(is_tcp).map(port_shown).collect();
        let message = format!("{shown} has no TCP port {port}; it has {}", listed(&has));
        Fault::new(BackendFault::PortNotFound, "port-not-found", message)
    })
}

fn port_shown(port: &ServicePort) -> String {
    match port.name.as_deref() {
        Some(name) if !name.is_empty() => format!("{} ({name})", port.port),
        _ => port.port.to_string(),
    }
}

fn listed(items: &[String]) -> String {
    if items.is_empty() {
        "none".to_owned()
    } else {
        items.join(", ")
    }
}
