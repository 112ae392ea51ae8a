use std::sync::Arc;

use serde::Serialize;

use super::AddressSet;

/// How much one client may ask for (`limit-rps`, `limit-rpm`, `limit-connections`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RateLimits {
    /// What is counted together: the Locations of one Ingress, by its namespace and name.
    pub zone: Arc<str>,
    /// Requests a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_second: Option<Rate>,
    /// Requests a minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_minute: Option<Rate>,
    /// Requests in hand at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connections: Option<u32>,
    /// Clients that are not limited.
    #[serde(skip_serializing_if = "AddressSet::is_empty")]
    pub exempt: AddressSet,
    /// The status of a refusal by rate.
    pub rate_status: u16,
    /// The status of a refusal by requests in hand.
    pub connections_status: u16,
}

/// So many in each period, and `burst` more at any moment on account of the future.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Rate {
    /// In each period, at least 1.
    pub limit: u32,
    /// How many more may come at once.
    pub burst: u32,
}
