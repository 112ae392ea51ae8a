use std::sync::Arc;

use serde::Serialize;

use crate::model::{ObjectRef, TlsTerms};

/// How TLS is spoken with pods (`backend-protocol: HTTPS` or `GRPCS`). Two that are equal are one identity:
/// their connections may be shared, and no others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct UpstreamTls {
    /// Where the authorities are, and our own certificate if pods want one (`proxy-ssl-secret`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<ObjectRef>,
    /// Whether a pod must prove to be `name` to these authorities (`proxy-ssl-verify`).
    pub verify: bool,
    /// The name that a pod's certificate must be for, or its address (`proxy-ssl-name`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Arc<str>>,
    /// The most certificates between a pod's own and an authority's (`proxy-ssl-verify-depth`).
    pub depth: u8,
    /// What is spoken (`proxy-ssl-protocols`, `proxy-ssl-ciphers`).
    #[serde(skip_serializing_if = "TlsTerms::is_default")]
    pub terms: TlsTerms,
    /// Whether pods are told the name (`proxy-ssl-server-name`).
    pub server_name: bool,
    /// Whether HTTP/2 is what is offered to them (`GRPCS`).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub http2: bool,
}
