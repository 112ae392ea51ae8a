use http::uri::PathAndQuery;
use http::{HeaderName, HeaderValue, Uri, request};

use crate::model::Rewrite;
use crate::proxy::fault::Fault;
use crate::routing::{self, Unsendable, Wanted};

const X_FORWARDED_PREFIX: HeaderName = HeaderName::from_static("x-forwarded-prefix");

/// What the pods see in place of the client's path.
pub struct Rewritten {
    target: PathAndQuery,
    prefix: Option<HeaderValue>,
}

impl Rewritten {
    /// # Errors
    /// When the path that comes out must not be sent.
    pub fn of(rewrite: &Rewrite, wanted: &Wanted<'_>) -> Result<Self, Fault> {
        let target =
            routing::rewrite(rewrite, wanted).map_err(|Unsendable| Fault::UnsendablePath)?;
        let prefix = rewrite.prefix.as_ref().map(|prefix| wanted.fill(prefix));
        Ok(Rewritten {
            target,
            prefix: prefix.and_then(|prefix| HeaderValue::try_from(prefix).ok()),
        })
    }

    /// Puts it into the request.
    pub fn apply(self, parts: &mut request::Parts) {
        parts.uri = Uri::from(self.target);
        if let Some(prefix) = self.prefix {
            parts.headers.insert(X_FORWARDED_PREFIX, prefix);
        }
    }
}
