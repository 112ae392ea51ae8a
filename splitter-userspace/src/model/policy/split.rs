use std::sync::Arc;

use http::HeaderName;
use serde::Serialize;

use super::{Affinity, Balance};

/// What a Split has beside Variants, weights and rules. Most have nothing of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SplitPolicy {
    /// Keeps clients where they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Affinity>,
    /// What decides in place of chance, by the weights.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<SplitKey>,
    /// How an Endpoint is chosen, by Variant; round robin for those past the end.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub balances: Vec<Balance>,
    /// The header in which answers name the Variant.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "super::split::header_name"
    )]
    pub response_header: Option<HeaderName>,
    /// Canaries that are sent copies of requests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mirrors: Vec<Mirror>,
}

impl SplitPolicy {
    /// Behind a pointer; none when it says nothing.
    pub fn into_shared(self) -> Option<Arc<SplitPolicy>> {
        (self != SplitPolicy::default()).then(|| Arc::new(self))
    }
}

/// What of a request decides its Variant (`splitter.io/canary-hash-by`): requests that have the same
/// there are answered by the same Variant while the weights stay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SplitKey {
    /// A header's value; lines of one name are joined.
    Header(#[serde(serialize_with = "super::split::name")] HeaderName),
    /// The first cookie of exactly this name.
    Cookie(Arc<str>),
    /// The first parameter of the query with exactly this name.
    Query(Arc<str>),
    /// The client's address.
    Client,
}

/// Copies of requests for a canary, whose answers are dropped (`splitter.io/mirror`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Mirror {
    /// Index of the canary.
    pub variant: u8,
    /// How many of a million requests that another Variant answers are copied.
    pub per_million: u32,
}

pub(super) fn name<S: serde::Serializer>(name: &HeaderName, s: S) -> Result<S::Ok, S::Error> {
    s.serialize_str(name.as_str())
}

pub(super) fn header_name<S: serde::Serializer>(
    name: &Option<HeaderName>,
    s: S,
) -> Result<S::Ok, S::Error> {
    name.as_ref().map(HeaderName::as_str).serialize(s)
}
