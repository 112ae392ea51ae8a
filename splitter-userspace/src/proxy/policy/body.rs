use http::HeaderMap;
use http::header::CONTENT_LENGTH;

use crate::config::Limits;
use crate::model::{Policy, Protocol};
use crate::proxy::body::RequestBody;
use crate::proxy::fault::Fault;

/// Refuses a body that says that it is too large, and limits one that does not say how large it is.
///
/// # Errors
/// The fault to answer with, before anything of the body is taken.
pub fn admit(
    policy: Option<&Policy>,
    limits: &Limits,
    headers: &HeaderMap,
    body: &RequestBody,
) -> Result<(), Fault> {
    if body.is_empty() {
        return Ok(());
    }
    let most = policy.and_then(|policy| policy.body_max);
    let most = match most.unwrap_or(limits.max_body_bytes) {
        0 => u64::MAX,
        most => most,
    };
    if body.size_hint().lower() > most {
        return Err(Fault::BodyTooLarge);
    }
    body.limit(most);
    let http10 = policy.is_some_and(|policy| policy.exchange.protocol == Protocol::Http10);
    // HTTP/1.0 knows no chunks, and we do not collect the body to count it.
    if http10 && !headers.contains_key(CONTENT_LENGTH) {
        return Err(Fault::LengthRequired);
    }
    Ok(())
}
