//! What Ingresses refer to: Services and their ports. Where those lead is found in `endpoints`.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Service, ServicePort};
use k8s_openapi::api::networking::v1::{IngressBackend, IngressServiceBackend, ServiceBackendPort};

use super::external;
use super::index::ByName;
use super::report::{Problems, Subject};
use crate::k8s::Sourced;
use crate::model::{BackendFault, BackendKey, Kind, ObjectRef};

/// A Backend as one Location uses it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Target {
    pub key: BackendKey,
    /// A fault of the Location that must not reach the Backend.
    pub closed: Option<BackendFault>,
    /// The Service's own address is asked instead of its pods' (`service-upstream`).
    pub by_service: bool,
}

/// The Services by namespace and name.
pub(super) type ServiceIndex = ByName<Service>;

/// Names the Services that Ingresses refer to, and says which of them are usable.
pub(super) struct Backends<'a> {
    services: &'a ServiceIndex,
    /// What was looked for, and what was there.
    asked: RefCell<BTreeMap<ObjectRef, Option<Arc<Service>>>>,
    resolved: HashMap<BackendKey, Resolved>,
}

/// What a reference leads to.
#[derive(Clone, Debug, Default)]
struct Resolved {
    fault: Option<Fault>,
    /// The Service port's number: equal for two spellings of one port.
    number: Option<i32>,
    /// The Service has an address of its own.
    has_address: bool,
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

/// What was found out about Backends, without what was looked at to do so.
pub(super) struct Looked {
    /// The Services that were looked for.
    pub services: BTreeMap<ObjectRef, Option<Arc<Service>>>,
    /// The Service ports that are there.
    pub ports: Vec<BackendKey>,
}

impl<'a> Backends<'a> {
    pub(super) fn new(services: &'a ServiceIndex) -> Self {
        Backends {
            services,
            asked: RefCell::default(),
            resolved: HashMap::new(),
        }
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
        let known = self.resolved.get_key_value(&key).map(|it| it.0.clone());
        let key = known.unwrap_or_else(|| {
            let resolved = written.and_then(|()| self.resolve(&key, backend));
            let resolved = resolved.unwrap_or_else(|fault| Resolved {
                fault: Some(fault),
                ..Resolved::default()
            });
            self.resolved.insert(key.clone(), resolved);
            key
        });
        if let Some(fault) = self.resolved.get(&key).and_then(|it| it.fault.as_ref()) {
            problems.error(subject, field, fault.code, fault.message.clone(), effect);
        }
        key
    }

    /// What a URL leads to that an annotation names at `field`: a Service of the cluster by its name in
    /// DNS, or else a host that is nobody's, which has no namespace.
    ///
    /// # Errors
    /// When the host is neither a name nor an address.
    pub(super) fn outside(
        &mut self,
        subject: &Subject<'_>,
        host: &str,
        port: u16,
        field: &str,
        problems: &mut Problems,
    ) -> Result<BackendKey, String> {
        let inner = host.strip_suffix(".cluster.local").unwrap_or(host);
        let inner = inner.strip_suffix(".svc").and_then(|it| it.split_once('.'));
        let inner = inner.filter(|(service, namespace)| self.service(namespace, service).is_some());
        if let Some((service, namespace)) = inner {
            let of = Subject {
                object: ObjectRef::new(Kind::Ingress, namespace, ""),
                source: "",
            };
            let backend = IngressBackend {
                resource: None,
                service: Some(IngressServiceBackend {
                    name: service.to_owned(),
                    port: Some(ServiceBackendPort {
                        name: None,
                        number: Some(port.into()),
                    }),
                }),
            };
            // It is looked for in another namespace, and told of this object.
            let key = self.find(&of, &backend, field, "", &mut Problems::default());
            if let Some(fault) = self.resolved.get(&key).and_then(|it| it.fault.as_ref()) {
                let effect = "the paths that it guards answer 500";
                problems.error(subject, field, fault.code, fault.message.clone(), effect);
            }
            return Ok(key);
        }
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        if bare.parse::<IpAddr>().is_err() && crate::k8s::names::canonical_name(bare).is_none() {
            return Err(format!("{host:?} is neither a DNS name nor an address"));
        }
        let key = BackendKey {
            namespace: "".into(),
            service: bare.into(),
            port: port.to_string().into(),
        };
        self.resolved.entry(key.clone()).or_default();
        Ok(key)
    }

    /// The number of the first TCP port of a Service, if there is one.
    pub(super) fn first_port(&self, namespace: &str, service: &str) -> Option<i32> {
        let service = self.service(namespace, service)?;
        let ports = service.object.spec.as_ref()?.ports.as_deref()?;
        ports.iter().find(|it| is_tcp(it)).map(|it| it.port)
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
        if resolved.is_none_or(|it| !it.has_address && it.fault.is_none()) {
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
        resolved.is_some_and(|it| it.has_address)
    }

    /// Why a Backend that was found before leads nowhere, by its own fault.
    pub(super) fn fault(&self, key: &BackendKey) -> Option<BackendFault> {
        let resolved = self.resolved.get(key)?;
        resolved.fault.as_ref().map(|it| it.kind)
    }

    /// All that was looked at.
    pub(super) fn into_looked(self) -> Looked {
        let usable = self
            .resolved
            .into_iter()
            .filter(|(_, it)| it.fault.is_none());
        Looked {
            services: self.asked.into_inner(),
            ports: usable.map(|(key, _)| key).collect(),
        }
    }

    fn service(&self, namespace: &str, name: &str) -> Option<&'a Sourced<Service>> {
        let found = self.services.get(namespace, name);
        let object = ObjectRef::new(Kind::Service, namespace, name);
        let seen = || found.map(|it| Arc::clone(&it.object));
        self.asked.borrow_mut().entry(object).or_insert_with(seen);
        found
    }

    fn resolve(&self, key: &BackendKey, backend: &IngressBackend) -> Result<Resolved, Fault> {
        let Some(service) = self.service(&key.namespace, &key.service) else {
            let message = format!("there is no Service {}/{}", key.namespace, key.service);
            return Err(Fault::new(
                BackendFault::ServiceNotFound,
                "service-not-found",
                message,
            ));
        };
        let port = written_port(service, backend.service.as_ref())?;
        let external = external::name(&service.object).is_some();
        Ok(Resolved {
            fault: None,
            number: Some(port.port),
            has_address: !external && address(service, &port).is_some(),
        })
    }
}

/// The Service's own address, which leads to one of its pods in a way that Kubernetes chooses.
pub(super) fn address(service: &Sourced<Service>, port: &ServicePort) -> Option<SocketAddr> {
    let spec = service.object.spec.as_ref()?;
    // Headless Services have `None` or nothing.
    let ip: IpAddr = spec.cluster_ip.as_deref()?.parse().ok()?;
    let port = u16::try_from(port.port).ok().filter(|port| *port != 0)?;
    Some(SocketAddr::new(ip, port))
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
        // Kubernetes allows no such name; it must not be taken for a number.
        (Some(name), None) if name.parse::<i32>().is_ok() => (format!("{name:?}"), Ok(())),
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
fn written_port<'a>(
    service: &'a Sourced<Service>,
    backend: Option<&IngressServiceBackend>,
) -> Result<Cow<'a, ServicePort>, Fault> {
    let (port, _) = port_text(backend.and_then(|it| it.port.as_ref()));
    service_port(service, &port).ok_or_else(|| {
        let shown = format!("Service {}/{}", service.namespace(), service.name());
        let ports = tcp_ports(&service.object).map(port_shown);
        let has = listed(&ports.collect::<Vec<_>>());
        let message = format!("{shown} has no TCP port {port}; it has {has}");
        Fault::new(BackendFault::PortNotFound, "port-not-found", message)
    })
}

/// The Service's TCP port that a [`BackendKey`] names: by number or by name.
pub(super) fn service_port<'a>(
    service: &'a Sourced<Service>,
    port: &str,
) -> Option<Cow<'a, ServicePort>> {
    let number = port.parse::<i32>().ok();
    let wanted = |it: &&ServicePort| match number {
        Some(number) => it.port == number,
        None => it.name.as_deref() == Some(port),
    };
    if let Some(port) = tcp_ports(&service.object).find(wanted) {
        return Some(Cow::Borrowed(port));
    }
    let spec = service.object.spec.as_ref();
    let ports = spec.and_then(|it| it.ports.as_deref()).unwrap_or(&[]);
    let number = number.filter(|number| u16::try_from(*number).is_ok_and(|it| it != 0))?;
    // Such a Service needs no ports of its own.
    let any = ports.is_empty() && external::name(&service.object).is_some();
    any.then(|| {
        Cow::Owned(ServicePort {
            port: number,
            ..ServicePort::default()
        })
    })
}

fn tcp_ports(service: &Service) -> impl Iterator<Item = &ServicePort> {
    let ports = service.spec.as_ref().and_then(|it| it.ports.as_deref());
    ports.into_iter().flatten().filter(|it| is_tcp(it))
}

fn is_tcp(port: &ServicePort) -> bool {
    port.protocol.as_deref().is_none_or(|it| it == "TCP")
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
