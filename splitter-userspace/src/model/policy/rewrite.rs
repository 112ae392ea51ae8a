use serde::Serialize;

use super::Template;

/// What the pods are asked for in place of the client's path (`rewrite-target`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rewrite {
    /// The path.
    pub path: Template,
    /// A query that is put before the client's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<Template>,
    /// Whether the client's query is dropped: the target ends with `?`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub drop_query: bool,
    /// X-Forwarded-Prefix for the pods (`x-forwarded-prefix`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<Template>,
}
