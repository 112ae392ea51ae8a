use std::sync::Arc;

use serde::Serialize;

/// Keeps a client with the Variant, and with the Endpoint, that answered it first (`affinity:
/// cookie`). Belongs to one Location.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Affinity {
    /// How an Endpoint is kept.
    pub mode: AffinityMode,
    /// The cookie that remembers it.
    pub cookie: Arc<SessionCookie>,
    /// The cookie's Path: `session-cookie-path`, or the Location's own path.
    pub path: Arc<str>,
    /// By Variant, as many as the Split has.
    pub sides: Vec<Side>,
}

impl Affinity {
    /// Whether clients of this Variant are kept with it.
    pub fn is_sticky(&self, variant: usize) -> bool {
        self.sides.get(variant).is_some_and(|side| side.sticky)
    }

    /// The Variant that a tag names, if clients are kept with it.
    pub fn variant(&self, tag: u64) -> Option<usize> {
        self.sides
            .iter()
            .position(|side| side.sticky && side.tag == tag)
    }

    /// Whether every Variant keeps its clients: then the cookie alone decides.
    pub fn is_sticky_throughout(&self) -> bool {
        self.sides.iter().all(|side| side.sticky)
    }
}

/// How an Endpoint is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AffinityMode {
    /// The cookie is a key that is hashed over the Endpoints: when some are added, a part of the
    /// clients moves to them.
    #[default]
    Balanced,
    /// The cookie names the Endpoint: a client moves only when its Endpoint is gone.
    Persistent,
}

/// What affinity means for one Variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Side {
    /// Names the Variant in the cookie: the same on every node, and unlike any other of the Split.
    pub tag: u64,
    /// Whether its clients are kept. False only for a canary with `affinity-canary-behavior:
    /// legacy`: the rules and weights decide for it, and it gives no cookie.
    pub sticky: bool,
}

/// The session cookie, as the `session-cookie-*` annotations say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SessionCookie {
    /// Its name, `INGRESSCOOKIE` by default.
    pub name: Arc<str>,
    /// Its Path, if it is not the Location's.
    pub path: Option<Arc<str>>,
    /// Its Domain.
    pub domain: Option<Arc<str>>,
    /// Seconds from the answer to its Expires date.
    pub expires: Option<i64>,
    /// Its Max-Age, in seconds.
    pub max_age: Option<i64>,
    /// Its SameSite.
    pub same_site: Option<SameSite>,
    /// Whether `SameSite=None` is left out for browsers that take it for `Strict`.
    pub conditional_none: bool,
    /// Whether it is Secure on plain connections too. It always is on encrypted ones.
    pub secure: bool,
    /// Whether a client is given a new cookie when its Endpoint fails.
    pub change_on_failure: bool,
}

/// The SameSite attribute of a cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum SameSite {
    /// Sent by other sites' pages too.
    None,
    /// Sent when somebody follows a link.
    Lax,
    /// Sent within the site only.
    Strict,
}

impl SameSite {
    /// As written in a cookie.
    pub fn as_str(self) -> &'static str {
        match self {
            SameSite::None => "None",
            SameSite::Lax => "Lax",
            SameSite::Strict => "Strict",
        }
    }
}
