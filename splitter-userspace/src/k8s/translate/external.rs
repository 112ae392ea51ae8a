//! ExternalName Services: a name outside the cluster in place of pods.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Service, ServicePort};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::report::{Problems, Subject};
use crate::k8s::names::{self, Names};
use crate::k8s::{Resolution, Sourced};
use crate::model::{Endpoint, EndpointState, Kind};

/// The name of an ExternalName Service; none for others.
pub(super) fn name(service: &Service) -> Option<&str> {
    let spec = service.spec.as_ref()?;
    let external = spec.type_.as_deref() == Some("ExternalName");
    external.then(|| spec.external_name.as_deref().unwrap_or(""))
}

/// The port to connect to: the target of the Service's port, which is that port itself if it names
/// none or one by name, as there is no pod that knows the name.
pub(super) fn port(port: &ServicePort) -> Option<u16> {
    let target = match port.target_port.as_ref() {
        Some(IntOrString::Int(target)) => *target,
        _ => port.port,
    };
    u16::try_from(target).ok().filter(|port| *port != 0)
}

/// Where names lead, and which name was asked for.
pub(super) struct Externals<'a> {
    names: &'a Names,
    /// The name that is to be looked up.
    pub wanted: Option<Arc<str>>,
}

impl<'a> Externals<'a> {
    pub(super) fn new(names: &'a Names) -> Self {
        Externals {
            names,
            wanted: None,
        }
    }

    /// The Endpoints of an ExternalName Service, with what is wrong with its name.
    pub(super) fn endpoints(
        &mut self,
        service: &Sourced<Service>,
        port: u16,
        problems: &mut Problems,
    ) -> Vec<Endpoint> {
        let subject = Subject {
            object: service.object_ref(Kind::Service),
            source: &service.source,
        };
        let text = name(&service.object).unwrap_or("");
        let addresses = match text.parse::<IpAddr>() {
            Ok(address) => vec![address],
            Err(_) => self.addresses(text, &subject, problems),
        };
        let mut endpoints = Vec::new();
        for address in addresses {
            if names::is_local(address) && !self.names.allow_local {
                refuse(&subject, &format!("{text} is {address}"), problems);
                continue;
            }
            endpoints.push(Endpoint {
                addr: SocketAddr::new(address.to_canonical(), port),
                state: EndpointState::Ready,
            });
        }
        endpoints.sort_unstable();
        endpoints.dedup();
        endpoints
    }

    /// Where a host leads that an annotation names, with what is wrong with it.
    pub(super) fn elsewhere(
        &mut self,
        host: &str,
        port: u16,
        subject: &Subject<'_>,
        problems: &mut Problems,
    ) -> Vec<Endpoint> {
        const EFFECT: &str = "the paths that ask it who may call answer 500";
        let mut add = |code, message: String| problems.error(subject, "", code, message, EFFECT);
        let mut addresses = match (host.parse::<IpAddr>(), names::canonical_name(host)) {
            (Ok(address), _) => vec![address],
            (Err(_), Some(name)) if names::is_local_name(&name) => {
                vec![IpAddr::from([127, 0, 0, 1])]
            }
            (Err(_), None) => Vec::new(),
            (Err(_), Some(name)) => {
                self.wanted = Some(name.clone());
                let known = self.names.known.get(&name);
                if let Some(Resolution {
                    error: Some(error),
                    addresses,
                }) = known
                    && addresses.is_empty()
                {
                    add(
                        "auth-host-unresolved",
                        format!("{host} does not resolve: {error}"),
                    );
                }
                known.map_or_else(Vec::new, |it| it.addresses.clone())
            }
        };
        if !self.names.allow_local && addresses.iter().any(|it| names::is_local(*it)) {
            addresses.retain(|it| !names::is_local(*it));
            let message = "it leads to this node itself; --allow-local-external-names allows that";
            add("auth-host-local", message.to_owned());
        }
        let endpoint = |address: IpAddr| Endpoint {
            addr: SocketAddr::new(address.to_canonical(), port),
            state: EndpointState::Ready,
        };
        let mut endpoints: Vec<_> = addresses.into_iter().map(endpoint).collect();
        endpoints.sort_unstable();
        endpoints.dedup();
        endpoints
    }

    fn addresses(
        &mut self,
        text: &str,
        subject: &Subject<'_>,
        problems: &mut Problems,
    ) -> Vec<IpAddr> {
        let Some(name) = names::canonical_name(text) else {
            problems.error(
                subject,
                "spec.externalName",
                "external-name-invalid",
                format!("{text:?} is neither a DNS name nor an address"),
                "the Service has no endpoints",
            );
            return Vec::new();
        };
        if names::is_local_name(&name) && !self.names.allow_local {
            refuse(subject, &format!("{text} is this node itself"), problems);
            return Vec::new();
        }
        self.wanted = Some(name.clone());
        let Some(Resolution { addresses, error }) = self.names.known.get(&name) else {
            return Vec::new();
        };
        if let Some(error) = error {
            let (severity, effect): (fn(&mut Problems, _, _, _, _, _), _) =
                match addresses.is_empty() {
                    true => (Problems::error, "the Service has no endpoints"),
                    false => (Problems::warn, "the last addresses that it had are used"),
                };
            let message = format!("{text} does not resolve: {error}");
            let field = "spec.externalName";
            severity(
                problems,
                subject,
                field,
                "external-name-unresolved",
                message,
                effect,
            );
        }
        addresses.clone()
    }
}

/// What must not be reached through the proxy.
fn refuse(subject: &Subject<'_>, what: &str, problems: &mut Problems) {
    problems.error(
        subject,
        "spec.externalName",
        "external-name-local",
        format!("{what}, which would open the node's own services to whoever may write a Service"),
        "the address is left out; --allow-local-external-names allows it",
    );
}
