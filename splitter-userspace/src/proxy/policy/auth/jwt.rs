//! Signed tokens.

use std::rc::Rc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::header::{AUTHORIZATION, COOKIE, HeaderMap, HeaderValue};
use http::uri::PathAndQuery;
use http::{StatusCode, Uri, request};

use super::{Asking, challenge, quote};
use crate::auth::{KeyRing, TokenError, Verified, cookie_pairs, find_token, is_cookie, scheme};
use crate::model::{Jwt, TokenPlace};
use crate::proxy::fault::Fault;
use crate::proxy::policy::{Refusal, Reply};
use crate::proxy::worker::Worker;

/// How long a request waits for newer keys: its token may be signed with one that is just new.
const PATIENCE: Duration = Duration::from_secs(2);

/// How many requests of one worker wait for keys at once. Those beyond are answered at once.
pub(super) const WAITING_MAX: u32 = 64;

/// Whether the client has a token that lets it in.
///
/// # Errors
/// When it has not: the answer.
pub(super) async fn admit(asking: &Asking<'_>, jwt: &Jwt) -> Result<Rc<Verified>, Refusal> {
    let token = find_token(asking.parts, jwt).map_err(|error| refuse(jwt, error))?;
    let Some(token) = token else {
        let how = format!("Bearer realm={}", quote(&jwt.realm));
        return Err(challenge("token-missing", &how, "a token is needed"));
    };
    let verified = verify(asking.worker, jwt, &token).await?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.map_or(0, |now| i64::try_from(now.as_secs()).unwrap_or(i64::MAX));
    let admitted = verified.admit(jwt, now);
    admitted.map_err(|error| refuse(jwt, error))?;
    Ok(verified)
}

/// 401 with what is wrong with the token, 403 for one that is good and not enough (RFC 6750 3).
fn refuse(jwt: &Jwt, error: TokenError) -> Refusal {
    let (status, code) = match error {
        TokenError::Denied => (StatusCode::FORBIDDEN, "insufficient_scope"),
        _ => (StatusCode::UNAUTHORIZED, "invalid_token"),
    };
    let text = error.to_string();
    let how = format!(
        "Bearer realm={}, error=\"{code}\", error_description={}",
        quote(&jwt.realm),
        quote(&text)
    );
    let mut refusal = challenge(error.name(), &how, &text);
    if let Refusal::Reply(reply) = &mut refusal
        && status != reply.status
    {
        let headers = std::mem::take(&mut reply.headers);
        **reply = Reply::text(error.name(), status, &text);
        reply.headers.extend(headers);
    }
    refusal
}

/// The token with its signature checked; once for each token and set of keys.
async fn verify(worker: &Rc<Worker>, jwt: &Jwt, token: &str) -> Result<Rc<Verified>, Refusal> {
    let mut waited = None;
    loop {
        let guards = worker.guards();
        let ring = guards.keys(jwt).ok_or(Fault::GuardBroken)?;
        let checked = match &ring.set {
            Some(set) => worker.gatekeeper().verify(token, set, jwt),
            None => Err(TokenError::UnknownKey),
        };
        let error = match checked {
            Ok(verified) => return Ok(verified),
            Err(error) => error,
        };
        let refusal = || match ring.set {
            Some(_) => refuse(jwt, error),
            None => later(),
        };
        if error != TokenError::UnknownKey || !may_wait(ring) {
            return Err(refusal());
        }
        let waiting = match waited.take() {
            Some(waiting) => waiting,
            None => {
                let place = worker.gatekeeper().wait().ok_or_else(refusal)?;
                let until = tokio::time::Instant::now() + PATIENCE;
                (place, until)
            }
        };
        let newer = worker.newer_guards(&guards);
        if tokio::time::timeout_at(waiting.1, newer).await.is_err() {
            return Err(refusal());
        }
        waited = Some(waiting);
    }
}

fn may_wait(ring: &KeyRing) -> bool {
    ring.wish
        .as_ref()
        .is_some_and(|wish| wish.newer(ring.fetch))
}

fn later() -> Refusal {
    let text = "the keys that tokens are signed with are not known yet";
    Reply::text("token-keys-missing", StatusCode::SERVICE_UNAVAILABLE, text).into()
}

/// Takes out what only we may say of a token.
pub(super) fn cleanse(jwt: &Jwt, headers: &mut HeaderMap) {
    for claim in jwt.headers.iter() {
        headers.remove(&claim.header);
    }
}

/// Tells pods what a token says.
pub(super) fn tell(jwt: &Jwt, verified: &Verified, headers: &mut HeaderMap) {
    for claim in jwt.headers.iter() {
        if let Some(value) = verified.header(&claim.claim) {
            headers.insert(&claim.header, value);
        }
    }
}

/// Takes the token itself out of every place where it could be, whether or not it was looked at.
pub(super) fn take_out(jwt: &Jwt, parts: &mut request::Parts) {
    for place in jwt.places.iter() {
        match place {
            TokenPlace::Header(name) => {
                let values = parts.headers.get_all(name).iter();
                let ours = |value: &HeaderValue| {
                    *name != AUTHORIZATION || scheme(value.as_bytes(), b"bearer").is_some()
                };
                if values.into_iter().any(ours) {
                    parts.headers.remove(name);
                }
            }
            TokenPlace::Cookie(name) => take_cookie(name, &mut parts.headers),
            TokenPlace::Query(name) => take_parameter(name, &mut parts.uri),
        }
    }
}

fn take_cookie(name: &str, headers: &mut HeaderMap) {
    if !cookie_pairs(headers).any(|pair| is_cookie(pair, name)) {
        return;
    }
    let rest: Vec<_> = cookie_pairs(headers)
        .filter(|it| !is_cookie(it, name))
        .collect();
    let rest = HeaderValue::from_bytes(&rest.join(&b"; "[..]));
    headers.remove(COOKIE);
    if let Ok(rest) = rest
        && !rest.is_empty()
    {
        headers.insert(COOKIE, rest);
    }
}

/// Path and query without a parameter; none if it is not there.
pub(super) fn without_parameter(name: &str, uri: &Uri) -> Option<PathAndQuery> {
    let is_ours = |pair: &&str| pair.split_once('=').is_some_and(|(key, _)| key == name);
    let query = uri.query()?;
    query.split('&').find(is_ours)?;
    let rest: Vec<_> = query.split('&').filter(|pair| !is_ours(pair)).collect();
    let (path, mark) = (uri.path(), if rest.is_empty() { "" } else { "?" });
    // The path and what is left of the query were good before.
    format!("{path}{mark}{}", rest.join("&")).parse().ok()
}

fn take_parameter(name: &str, uri: &mut Uri) {
    let Some(target) = without_parameter(name, uri) else {
        return;
    };
    let mut parts = std::mem::take(uri).into_parts();
    parts.path_and_query = Some(target);
    *uri = Uri::from_parts(parts).unwrap_or_default();
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::sync::Arc;

    use http::Request;

    use super::*;

    fn parts(uri: &str, fields: &[(&str, &str)]) -> request::Parts {
        let mut request = Request::builder().uri(uri);
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    fn jwt(places: &[TokenPlace]) -> Jwt {
        Jwt {
            issuer: "".into(),
            audiences: Arc::new([]),
            algorithms: Default::default(),
            keys: crate::model::KeySource::Url(crate::model::KeyUrl {
                url: "".into(),
                authorities: None,
            }),
            kind: None,
            leeway: Duration::ZERO,
            places: places.into(),
            claims: Arc::new([]),
            headers: Arc::new([]),
            forward: false,
            realm: "".into(),
        }
    }

    fn everywhere() -> Jwt {
        jwt(&[
            TokenPlace::Header(AUTHORIZATION),
            TokenPlace::Header("x-token".parse().unwrap()),
            TokenPlace::Cookie("t".into()),
            TokenPlace::Query("t".into()),
        ])
    }

    #[test]
    fn the_token_is_taken_out_and_the_rest_stays() {
        let fields = [
            ("authorization", "Bearer a"),
            ("x-token", "b"),
            ("cookie", "s=1; t=c"),
            ("cookie", "u=2"),
        ];
        let mut request = parts("/p%20x?a=1&t=q&b", &fields);
        take_out(&everywhere(), &mut request);
        assert_eq!(request.uri, "/p%20x?a=1&b");
        assert_eq!(request.headers.len(), 1);
        assert_eq!(request.headers[COOKIE], "s=1; u=2");
        let mut request = parts("/?t=q", &[("authorization", "Basic a"), ("cookie", "t=1")]);
        take_out(&everywhere(), &mut request);
        assert_eq!(request.uri, "/");
        assert_eq!(
            request.headers.len(),
            1,
            "another scheme is another guard's"
        );
        let mut request = parts("http://a.test/x?t=q", &[]);
        take_out(&everywhere(), &mut request);
        assert_eq!(request.uri, "http://a.test/x");
    }
}
