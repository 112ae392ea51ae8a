use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use serde::Serialize;

/// A Service port as an Ingress names it. Two spellings of one port (by name and by number) are two
/// keys, as they are two labels in ingress-nginx's metrics.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct BackendKey {
    /// Namespace of the Ingress and so of the Service.
    pub namespace: Arc<str>,
    /// Name of the Service.
    pub service: Arc<str>,
    /// The port as written: a number or a name.
    pub port: Arc<str>,
}

impl fmt::Display for BackendKey {
    /// ingress-nginx's upstream name, which its `canary` metric label carries.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.namespace, self.service, self.port)
    }
}

/// A Service port: a named group of Endpoints.
///
/// A port that works for one Location and must not be reached through another (see
/// [`BackendFault::GuardUnsupported`]), or that one Location asks by the Service's own address
/// (`service-upstream`) and another by its pods', is several Backends of one key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Backend {
    /// Which Service port it is.
    pub key: BackendKey,
    /// Why it has no endpoints by its own fault, if so.
    pub fault: Option<BackendFault>,
    /// Sorted by address, without duplicates.
    pub endpoints: Vec<Endpoint>,
}

impl Backend {
    /// Whether any Endpoint may be given a request.
    pub fn is_available(&self) -> bool {
        !self.endpoints.is_empty()
    }
}

/// Why a reference leads nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BackendFault {
    /// No such Service.
    ServiceNotFound,
    /// The Service has no such port.
    PortNotFound,
    /// A kind of backend that is not supported (a `resource`).
    Unsupported,
    /// The Ingress asks for an access control that is not supported: answering without it would
    /// open what is to be closed.
    GuardUnsupported,
    /// The Ingress asks for an access control with a value that cannot be read: answering without
    /// it would open what is to be closed.
    GuardInvalid,
    /// The Ingress asks for a protocol towards the pods that is not supported, such as FCGI.
    ProtocolUnsupported,
    /// The Ingress asks for TLS towards the pods, and what they must prove cannot be read.
    UpstreamTlsInvalid,
    /// The Ingress asks for a `rewrite-target` that cannot be made: pods would see paths that they
    /// are not for.
    RewriteInvalid,
}

/// One address and port of a Backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Endpoint {
    /// Where it listens.
    pub addr: SocketAddr,
    /// Whether it takes new requests.
    pub state: EndpointState,
}

/// Whether an Endpoint takes requests. Endpoints that take none are not in the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EndpointState {
    /// Takes requests.
    Ready,
    /// Terminating but still serving: used only when no Endpoint is ready.
    Draining,
}
