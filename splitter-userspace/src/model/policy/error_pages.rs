use std::sync::Arc;

use serde::Serialize;

/// Answers that are replaced by a page of the default backend (`custom-http-errors`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ErrorPages {
    /// The statuses, 300 to 599, sorted.
    pub codes: Arc<[u16]>,
    /// Whether answers of pods are replaced too, and not the proxy's own alone.
    pub intercept: bool,
}
