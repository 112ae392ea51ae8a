use serde::Serialize;

use super::Template;

/// Sends every client elsewhere (`permanent-redirect`, `temporal-redirect`, `app-root`,
/// `from-to-www-redirect`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Redirect {
    /// The Location header.
    pub target: Template,
    /// The status, 300 to 308.
    pub status: u16,
    /// Whether a slash at the very end of the filled-in target is left out.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cut_slash: bool,
}

/// Sends clients that came by cleartext HTTP to the same place by https, with 308 (`ssl-redirect`,
/// `force-ssl-redirect`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct HttpsRedirect {
    /// Whether or not https is known to be answered for the host.
    pub forced: bool,
    /// Whether a slash at the end of the target stays (`preserve-trailing-slash`).
    pub keep_slash: bool,
}
