use std::sync::Arc;

use serde::Serialize;

use super::{External, Jwt};
use crate::model::ObjectRef;

/// Who may call, by what a client knows or was given. Asked in this order, after everything that goes
/// by address and certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Guarded {
    /// By name and password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub basic: Option<Basic>,
    /// By a signed token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jwt: Option<Jwt>,
    /// By what another service says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external: Option<External>,
    /// Whether one of these, or an address that is let in, is enough (`satisfy: any`). A client's
    /// certificate is needed all the same.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub any: bool,
}

impl Guarded {
    /// Whether anybody is asked for anything.
    pub fn asks(&self) -> bool {
        self.basic.is_some() || self.jwt.is_some() || self.external.is_some()
    }
}

/// Names and passwords (`auth-type: basic`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Basic {
    /// The Secret that holds them.
    pub users: ObjectRef,
    /// How it holds them.
    pub layout: UserLayout,
    /// What clients are told that they are asked for.
    pub realm: Arc<str>,
}

/// How a Secret holds names and passwords (`auth-secret-type`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum UserLayout {
    /// `auth-file`: an htpasswd file in the entry `auth`.
    #[default]
    File,
    /// `auth-map`: each entry is a name and a hash.
    Map,
}

impl UserLayout {
    /// The entry that is the file.
    pub const FILE_KEY: &str = "auth";
}
