use std::sync::Arc;

use serde::Serialize;

/// Sends every client elsewhere (`permanent-redirect`, `temporal-redirect`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Redirect {
    /// The Location header, as written.
    pub target: Arc<str>,
    /// The status, 300 to 308.
    pub status: u16,
}
