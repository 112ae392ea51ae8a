//! Who may call, by what a client knows or was given. Asked after all that goes by address and
//! certificate, and before a Variant is chosen: whoever answers, it holds.

mod basic;
mod gatekeeper;
mod jwt;

use std::net::IpAddr;
use std::rc::Rc;

use http::header::{AUTHORIZATION, HeaderValue, WWW_AUTHENTICATE};
use http::{StatusCode, request};

pub use gatekeeper::Gatekeeper;

use super::{Refusal, Reply};
use crate::auth::{Verified, scheme};
use crate::model::{Guarded, Policy};
use crate::proxy::fault::Fault;
use crate::proxy::journal::Journal;
use crate::proxy::worker::Worker;

/// What the guards look at.
struct Asking<'a> {
    worker: &'a Rc<Worker>,
    parts: &'a request::Parts,
    caller: IpAddr,
}

/// Asks the guards of a Location, and makes the request what pods are to see of it: without what only
/// a guard may say, and without what was for a guard alone.
///
/// # Errors
/// When the client may not call: the answer.
pub async fn authorise(
    worker: &Rc<Worker>,
    policy: &Policy,
    guarded: &Guarded,
    parts: &mut request::Parts,
    journal: &mut Journal,
) -> Result<(), Refusal> {
    let asking = Asking {
        worker,
        parts,
        caller: journal.caller(),
    };
    let passed = match guarded.any {
        true => asking.any(policy, guarded).await?,
        false => asking.all(guarded).await?,
    };
    passed.tell(guarded, parts);
    Ok(())
}

/// What is known of a client that may call.
#[derive(Default)]
struct Passed {
    token: Option<Rc<Verified>>,
}

impl Passed {
    fn tell(&self, guarded: &Guarded, parts: &mut request::Parts) {
        if let Some(jwt) = &guarded.jwt {
            jwt::cleanse(jwt, &mut parts.headers);
            if !jwt.forward {
                jwt::take_out(jwt, parts);
            }
            if let Some(token) = &self.token {
                jwt::tell(jwt, token, &mut parts.headers);
            }
        }
        let basic = |it: &HeaderValue| scheme(it.as_bytes(), b"bearer").is_none();
        let mut credentials = parts.headers.get_all(AUTHORIZATION).iter();
        // A token that goes on is no password.
        if guarded.basic.is_some() && (guarded.jwt.is_none() || credentials.any(basic)) {
            parts.headers.remove(AUTHORIZATION);
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
                Ok(token) => return Ok(Passed { token: Some(token) }),
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
