//! Names and passwords.

use std::sync::Arc;

use http::StatusCode;
use http::header::{AUTHORIZATION, HeaderValue, RETRY_AFTER};

use super::gatekeeper::Unchecked;
use super::{Asking, challenge, quote};
use crate::auth::{Credentials, Users};
use crate::model::Basic;
use crate::proxy::fault::Fault;
use crate::proxy::policy::{Refusal, Reply};

/// Whether the client has a name and its password.
///
/// # Errors
/// When it has not: the answer.
pub(super) async fn admit(asking: &Asking<'_>, basic: &Basic) -> Result<(), Refusal> {
    let users = asking.worker.guards().users(basic).cloned();
    let users = users.ok_or(Fault::GuardBroken)?;
    let mut values = asking.parts.headers.get_all(AUTHORIZATION).iter();
    let value = values.next();
    let credentials = value.and_then(|value| Credentials::read(value.as_bytes()));
    // Pods and proxies disagree about which of two counts.
    let Some(credentials) = credentials.filter(|_| values.next().is_none()) else {
        return Err(again("basic-credentials-missing", basic));
    };
    match check(asking, &users, credentials).await {
        Ok(true) => Ok(()),
        Ok(false) => Err(again("basic-credentials-wrong", basic)),
        Err(Unchecked::Flood) => Err(later(
            "basic-too-many-tries",
            StatusCode::TOO_MANY_REQUESTS,
            "too many passwords at once",
        )),
        Err(Unchecked::Busy) => Err(later(
            "basic-busy",
            StatusCode::SERVICE_UNAVAILABLE,
            "too many passwords are being checked",
        )),
    }
}

async fn check(
    asking: &Asking<'_>,
    users: &Arc<Users>,
    credentials: Credentials,
) -> Result<bool, Unchecked> {
    if users.is_slow(&credentials.user) {
        let gatekeeper = asking.worker.gatekeeper();
        return gatekeeper.check(users, credentials, asking.caller).await;
    }
    Ok(users.admit(&credentials.user, &credentials.password))
}

fn again(name: &'static str, basic: &Basic) -> Refusal {
    let how = format!("Basic realm={}", quote(&basic.realm));
    challenge(name, &how, "a name and its password are needed")
}

fn later(name: &'static str, status: StatusCode, text: &str) -> Refusal {
    let mut reply = Reply::text(name, status, text);
    let second = HeaderValue::from_static("1");
    reply.headers.insert(RETRY_AFTER, second);
    reply.into()
}
