//! Who may call, by what a client knows or was given. Asked after all that goes by address and
//! certificate, and before a Variant is chosen: whoever answers, it holds.

mod basic;
mod external;
mod gatekeeper;
mod jwt;

use std::net::IpAddr;
use std::rc::Rc;

use http::header::{AUTHORIZATION, HeaderValue, LOCATION, WWW_AUTHENTICATE};
use http::{HeaderMap, StatusCode, request};

pub use external::Cookies;
pub use gatekeeper::Gatekeeper;

use self::external::Verdict;
use super::{Passage, Refusal, Reply};
use crate::auth::{Verified, scheme};
use crate::model::{Guarded, Policy, TokenPlace};
use crate::proxy::client::Client;
use crate::proxy::fault::Fault;
use crate::proxy::journal::Journal;
use crate::proxy::worker::Worker;
use crate::routing::Wanted;

/// A request that nobody has asked yet who it is from.
pub struct Guest<'a> {
    /// Who serves it.
    pub worker: &'a Rc<Worker>,
    /// The connection that it came on.
    pub client: &'a Client,
    /// The request as it came.
    pub parts: &'a request::Parts,
    /// What is known of it.
    pub journal: &'a Journal,
    /// What it asks for.
    pub wanted: Wanted<'a>,
    /// Its id.
    pub request_id: &'a HeaderValue,
}

/// What the guards look at.
struct Asking<'a> {
    worker: &'a Rc<Worker>,
    client: &'a Client,
    parts: &'a request::Parts,
    journal: &'a Journal,
    wanted: Wanted<'a>,
    request_id: &'a HeaderValue,
    caller: IpAddr,
}

/// Asks the guards of a Location. What they say is for pods too: see [`Passed::tell`].
///
/// # Errors
/// When the client may not call: the answer.
pub async fn authorise(
    guest: Guest<'_>,
    policy: &Policy,
    guarded: &Guarded,
) -> Result<Passed, Refusal> {
    let asking = Asking {
        caller: guest.journal.caller(),
        worker: guest.worker,
        client: guest.client,
        parts: guest.parts,
        journal: guest.journal,
        wanted: guest.wanted,
        request_id: guest.request_id,
    };
    let passed = match guarded.any {
        true => asking.any(policy, guarded).await,
        false => asking.all(guarded).await,
    };
    let page = guarded.external.as_ref().and_then(|it| it.sign_in.as_ref());
    let intercepts = policy.error_pages.as_ref().is_some_and(|it| it.intercept);
    let passed = passed.map(|passed| match page.filter(|_| intercepts) {
        // nginx hands the pod's own 401 to it as well, where it looks at the pod's errors at all.
        Some(page) => Passed {
            sign_in: external::sign_in_at(&asking, page),
            ..passed
        },
        None => passed,
    });
    passed.map_err(|refusal| match page {
        // Whoever refuses, as in ingress-nginx.
        Some(page) if refusal.status() == StatusCode::UNAUTHORIZED => {
            external::sign_in(&asking, page)
        }
        _ => refusal,
    })
}

/// The answer in place of a pod's 401.
pub fn to_sign_in(page: HeaderValue) -> Reply {
    let mut reply = Reply::new("auth-signin", StatusCode::FOUND);
    reply.headers.insert(LOCATION, page);
    reply
}

/// Keeps a token in the query out of the log, and of what error pages are told.
pub fn hide_token(guarded: &Guarded, parts: &request::Parts, journal: &mut Journal) {
    let places = guarded.jwt.iter().flat_map(|jwt| jwt.places.iter());
    for place in places {
        if let TokenPlace::Query(name) = place
            && let Some(target) = jwt::without_parameter(name, &parts.uri)
        {
            journal.hide(target);
        }
    }
}

/// What is known of a client that may call.
#[derive(Default)]
pub struct Passed {
    token: Option<Rc<Verified>>,
    verdict: Option<Verdict>,
    sign_in: Option<HeaderValue>,
}

impl Passed {
    /// Takes out of the request what only a guard may say, and what was for a guard alone. Cookies for
    /// the client are put into `passage`.
    pub fn cleanse(&self, guarded: &Guarded, parts: &mut request::Parts, passage: &mut Passage) {
        if let Some(jwt) = &guarded.jwt {
            jwt::cleanse(jwt, &mut parts.headers);
            if !jwt.forward {
                jwt::take_out(jwt, parts);
            }
        }
        if let Some(external) = &guarded.external {
            external::cleanse(external, &mut parts.headers);
        }
        let basic = |it: &HeaderValue| scheme(it.as_bytes(), b"bearer").is_none();
        let mut credentials = parts.headers.get_all(AUTHORIZATION).iter();
        // A token that goes on is no password.
        if guarded.basic.is_some() && (guarded.jwt.is_none() || credentials.any(basic)) {
            parts.headers.remove(AUTHORIZATION);
        }
        passage.sign_in = self.sign_in.clone();
        if let (Some(external), Some(verdict)) = (&guarded.external, &self.verdict) {
            passage.cookies = verdict.cookies(external);
        }
    }

    /// Tells pods what guards say of the client. To be called when the fields that the client's
    /// Connection names are gone: it could name these.
    pub fn tell(&self, guarded: &Guarded, headers: &mut HeaderMap) {
        if let (Some(jwt), Some(token)) = (&guarded.jwt, &self.token) {
            jwt::tell(jwt, token, headers);
        }
        if let Some(verdict) = &self.verdict {
            verdict.tell(headers);
        }
    }
}

impl Asking<'_> {
    /// The first refusal answers.
    async fn all(&self, guarded: &Guarded) -> Result<Passed, Refusal> {
        let mut passed = Passed::default();
        if let Some(basic) = &guarded.basic {
            basic::admit(self, basic).await?;
        }
        if let Some(jwt) = &guarded.jwt {
            passed.token = Some(jwt::admit(self, jwt).await?);
        }
        if let Some(external) = &guarded.external {
            passed.verdict = Some(external::admit(self, external).await?);
        }
        Ok(passed)
    }

    /// Who passes one may call; else 401 comes before 403, and any other answer ends it: as nginx.
    async fn any(&self, policy: &Policy, guarded: &Guarded) -> Result<Passed, Refusal> {
        let mut refused = Refused::default();
        if let Some(addresses) = &policy.addresses {
            if addresses.vouch(self.caller) {
                return Ok(Passed::default());
            }
            if !addresses.admit(self.caller) {
                refused.add(Fault::AddressDenied.into())?;
            }
        }
        if let Some(basic) = &guarded.basic {
            match basic::admit(self, basic).await {
                Ok(()) => return Ok(Passed::default()),
                Err(refusal) => refused.add(refusal)?,
            }
        }
        if let Some(jwt) = &guarded.jwt {
            match jwt::admit(self, jwt).await {
                Ok(token) => {
                    return Ok(Passed {
                        token: Some(token),
                        ..Passed::default()
                    });
                }
                Err(refusal) => refused.add(refusal)?,
            }
        }
        if let Some(external) = &guarded.external {
            match external::admit(self, external).await {
                Ok(verdict) => {
                    return Ok(Passed {
                        verdict: Some(verdict),
                        ..Passed::default()
                    });
                }
                Err(refusal) => refused.add(refusal)?,
            }
        }
        Err(refused.0.unwrap_or(Fault::GuardBroken.into()))
    }
}

/// What is answered if nobody lets the client in.
#[derive(Default)]
struct Refused(Option<Refusal>);

impl Refused {
    /// # Errors
    /// When it ends the request whatever the others say.
    fn add(&mut self, next: Refusal) -> Result<(), Refusal> {
        match (next.status(), &mut self.0) {
            (StatusCode::UNAUTHORIZED, Some(Refusal::Reply(first)))
                if first.status == StatusCode::UNAUTHORIZED =>
            {
                // Each tells how it could be passed.
                if let Refusal::Reply(next) = next {
                    for how in next.headers.get_all(WWW_AUTHENTICATE) {
                        first.headers.append(WWW_AUTHENTICATE, how.clone());
                    }
                }
            }
            (StatusCode::UNAUTHORIZED, kept) => *kept = Some(next),
            (StatusCode::FORBIDDEN, kept) => *kept = kept.take().or(Some(next)),
            _ => return Err(next),
        }
        Ok(())
    }
}

/// The answer to a client that is to say who it is, and how.
fn challenge(name: &'static str, how: &str, text: &str) -> Refusal {
    let mut reply = Reply::text(name, StatusCode::UNAUTHORIZED, text);
    if let Ok(how) = how.parse() {
        reply.headers.insert(WWW_AUTHENTICATE, how);
    }
    reply.into()
}

/// A text between quotes (RFC 9110 5.6.4).
fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        if matches!(c, '"' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_quoted_cannot_end_the_quotes() {
        assert_eq!(quote("Shop"), "\"Shop\"");
        assert_eq!(quote(r#"a", x="\"#), r#""a\", x=\"\\""#);
    }

    #[test]
    fn of_several_refusals_401_is_told_and_an_error_ends_it() {
        let reply = |name, status| Refusal::from(Reply::new(name, status));
        let mut refused = Refused::default();
        assert!(refused.add(Fault::AddressDenied.into()).is_ok());
        assert!(refused.add(challenge("one", "Basic", "")).is_ok());
        assert!(refused.add(reply("denied", StatusCode::FORBIDDEN)).is_ok());
        assert!(refused.add(challenge("two", "Bearer", "")).is_ok());
        match &refused.0 {
            Some(Refusal::Reply(reply)) => {
                assert_eq!(reply.name, "one");
                assert_eq!(reply.headers.get_all(WWW_AUTHENTICATE).iter().count(), 2);
            }
            other => panic!("{other:?}"),
        }
        let broken = reply("broken", StatusCode::INTERNAL_SERVER_ERROR);
        assert!(refused.add(broken).is_err());
    }
}
