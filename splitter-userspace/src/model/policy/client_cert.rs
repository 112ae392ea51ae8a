use std::sync::Arc;

use serde::Serialize;

use crate::model::{Identities, ObjectRef, Pattern};

/// Who may call, by the certificate of the client (`auth-tls-*`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClientCert {
    /// The Secret with the authorities (`ca.crt`) and what they have revoked (`ca.crl`).
    pub authorities: ObjectRef,
    /// What a client without a good certificate meets.
    pub verify: ClientVerify,
    /// The most certificates between the client's own and an authority's.
    pub depth: u8,
    /// What the whole common name must be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub common_name: Option<Pattern>,
    /// One of which must be among the alternative names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identities: Option<Identities>,
    /// Where clients without a good certificate are sent, instead of a 400.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_page: Option<Arc<str>>,
    /// Whether the pods get the certificate itself.
    pub pass: bool,
}

/// What a client without a good certificate meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClientVerify {
    /// It is refused.
    On,
    /// It is served without one, and refused with a bad one.
    Optional,
    /// As before, but one of an unknown authority is not bad.
    OptionalNoCa,
}
