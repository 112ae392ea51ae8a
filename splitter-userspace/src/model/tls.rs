use serde::Serialize;

use super::{HostPattern, ObjectRef};

/// A host that an Ingress wants served over TLS, and where its certificate may be. Unique by host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TlsHost {
    /// The host of a rule.
    pub host: HostPattern,
    /// The oldest Ingress that has a rule for the host and a `spec.tls`: it alone decides.
    pub ingress: ObjectRef,
    /// Whether `spec.tls` lists this very host. Then the certificate is in the only Secret named, or
    /// is the default one when none is named. Else it is in the first Secret whose certificate
    /// covers the host.
    pub listed: bool,
    /// The Secrets that exist, in the order in which they are asked.
    pub secrets: Vec<TlsSecret>,
    /// Where the Ingress was read from, for Problems.
    #[serde(skip)]
    pub source: String,
}

/// A Secret that an Ingress names in `spec.tls`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TlsSecret {
    /// The Secret.
    pub secret: ObjectRef,
    /// The field that names it, for Problems.
    #[serde(skip)]
    pub field: String,
}
