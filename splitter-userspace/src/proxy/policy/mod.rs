//! The policies of a Location at work, in the three places where they stand on a request's way:
//! before a Variant is chosen ([`enter`]), on what the pod is to see ([`toward`]), and on the answer
//! (`answered`, with the first policy that needs it). A Location without a policy passes by.

mod body;
mod redirect;
mod reply;

use http::header::{CONNECTION, HOST};
use http::{HeaderValue, Version, request};

pub use body::admit;
pub use reply::{Refusal, Reply};

use crate::model::{Policy, Protocol};

/// Asks the gates of a Location in their order; the first that answers ends the request, which then
/// counts for no Variant.
///
/// # Errors
/// The answer, if a gate gives one.
pub fn enter(policy: &Policy) -> Result<(), Refusal> {
    if let Some(redirect) = &policy.redirect {
        return Err(redirect::reply(redirect).into());
    }
    Ok(())
}

/// Makes the request what the pods of the Location are to see.
pub fn toward(policy: &Policy, parts: &mut request::Parts) {
    if let Some(host) = &policy.upstream_host
        && let Ok(host) = HeaderValue::from_str(host)
    {
        parts.headers.insert(HOST, host);
    }
    if policy.exchange.protocol == Protocol::Http10 {
        parts.version = Version::HTTP_10;
        parts
            .headers
            .insert(CONNECTION, HeaderValue::from_static("close"));
    }
}
