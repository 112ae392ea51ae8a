//! One token: a JWS in its compact form with claims in it (RFC 7515, 7519), judged by RFC 8725.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

use super::json::{self, Object};
use super::jwks::KeySet;
use crate::model::{Algorithm, Jwt};

/// The longest token that is looked at, in bytes.
pub const TOKEN_MAX: usize = 8 * 1024;

/// Why a token does not let its bearer in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, thiserror::Error)]
pub enum TokenError {
    /// Longer than [`TOKEN_MAX`].
    #[error("the token is too long")]
    TooLong,
    /// It is no token, or one that can be read in two ways.
    #[error("the token is malformed")]
    Malformed,
    /// An algorithm that does not count here, or that is none.
    #[error("the token is signed in a way that does not count here")]
    Algorithm,
    /// It must be understood, and is not (`crit`, `b64`).
    #[error("the token asks for an extension")]
    Extension,
    /// It is a token for something else.
    #[error("the token is of another type")]
    Kind,
    /// Nobody knows the key that it names.
    #[error("the token is signed with an unknown key")]
    UnknownKey,
    /// The signature is not one of the issuer's.
    #[error("the token's signature is not valid")]
    Signature,
    /// A claim is not of its type, or a needed one is not there.
    #[error("the token lacks a claim, or has it in another type")]
    Claims,
    /// `exp` has passed.
    #[error("the token has expired")]
    Expired,
    /// `nbf` is still to come.
    #[error("the token is not valid yet")]
    NotYet,
    /// Somebody else's.
    #[error("the token is of another issuer")]
    Issuer,
    /// For somebody else.
    #[error("the token is for another audience")]
    Audience,
    /// Good, but it does not say what it must.
    #[error("the token's claims do not let its bearer in")]
    Denied,
}

impl TokenError {
    /// The name that refusals are counted under.
    pub fn name(self) -> &'static str {
        match self {
            TokenError::TooLong => "token-too-long",
            TokenError::Malformed => "token-malformed",
            TokenError::Algorithm => "token-algorithm",
            TokenError::Extension => "token-extension",
            TokenError::Kind => "token-type",
            TokenError::UnknownKey => "token-key-unknown",
            TokenError::Signature => "token-signature",
            TokenError::Claims => "token-claims",
            TokenError::Expired => "token-expired",
            TokenError::NotYet => "token-not-yet",
            TokenError::Issuer => "token-issuer",
            TokenError::Audience => "token-audience",
            TokenError::Denied => "token-denied",
        }
    }
}

/// A token whose signature is one of the issuer's. What it says is for [`Verified::admit`].
pub struct Verified {
    algorithm: Algorithm,
    kind: Option<Box<str>>,
    pub(super) claims: Object,
    expires: i64,
    begins: Option<i64>,
}

impl Verified {
    /// Reads a token and checks its signature. Nothing that it says is believed before that but which
    /// key and algorithm to try; these must be `jwt`'s and `keys`'.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(token: &str, keys: &KeySet, jwt: &Jwt) -> Result<Self, TokenError> {
        if token.len() > TOKEN_MAX {
            return Err(TokenError::TooLong);
        }
        let (message, signature) = token.rsplit_once('.').ok_or(TokenError::Malformed)?;
        let (head, claims) = message.split_once('.').ok_or(TokenError::Malformed)?;
        if claims.contains('.') || signature.is_empty() && claims.is_empty() {
            return Err(TokenError::Malformed);
        }
        let head = part(head)?;
        let text = |name: &str| match head.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.as_str())),
            Some(_) => Err(TokenError::Malformed),
        };
        let algorithm = text("alg")?.ok_or(TokenError::Malformed)?;
        let algorithm = Algorithm::named(algorithm).filter(|it| jwt.algorithms.has(*it));
        let algorithm = algorithm.ok_or(TokenError::Algorithm)?;
        if ["crit", "b64"].iter().any(|name| head.contains_key(*name)) {
            return Err(TokenError::Extension);
        }
        let kind = text("typ")?.map(Into::into);
        let name = text("kid")?;
        if !keys.knows(name) {
            return Err(TokenError::UnknownKey);
        }
        if !keys.has_signed(message.as_bytes(), signature, name, algorithm) {
            return Err(TokenError::Signature);
        }
        let claims = part(claims)?;
        Ok(Verified {
            expires: time(&claims, "exp")?.ok_or(TokenError::Claims)?,
            begins: time(&claims, "nbf")?,
            algorithm,
            kind,
            claims,
        })
    }

    /// Until when it holds at most, in seconds since 1970, without any leeway.
    pub fn expires(&self) -> i64 {
        self.expires
    }

    /// Whether its bearer may call, at `now` in seconds since 1970.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn admit(&self, jwt: &Jwt, now: i64) -> Result<(), TokenError> {
        if !jwt.algorithms.has(self.algorithm) {
            return Err(TokenError::Algorithm);
        }
        if !is_kind(self.kind.as_deref(), jwt.kind.as_deref()) {
            return Err(TokenError::Kind);
        }
        let leeway = i64::try_from(jwt.leeway.as_secs()).unwrap_or(i64::MAX);
        if now.saturating_sub(leeway) >= self.expires {
            return Err(TokenError::Expired);
        }
        if self
            .begins
            .is_some_and(|begins| now.saturating_add(leeway) < begins)
        {
            return Err(TokenError::NotYet);
        }
        match self.claims.get("iss") {
            Some(Value::String(issuer)) if **issuer == *jwt.issuer => {}
            Some(Value::String(_)) => return Err(TokenError::Issuer),
            _ => return Err(TokenError::Claims),
        }
        self.is_for(jwt)?;
        if self.claims.get("sub").is_some_and(|it| !it.is_string()) {
            return Err(TokenError::Claims);
        }
        match jwt.claims.iter().all(|test| self.passes(test)) {
            true => Ok(()),
            false => Err(TokenError::Denied),
        }
    }

    fn is_for(&self, jwt: &Jwt) -> Result<(), TokenError> {
        let wanted = |name: &str| jwt.audiences.iter().any(|it| **it == *name);
        let found = match self.claims.get("aud") {
            Some(Value::String(name)) => wanted(name),
            Some(Value::Array(names)) => {
                let names = names.iter().map(Value::as_str);
                let names: Option<Vec<_>> = names.collect();
                names.ok_or(TokenError::Claims)?.into_iter().any(wanted)
            }
            _ => return Err(TokenError::Claims),
        };
        found.then_some(()).ok_or(TokenError::Audience)
    }
}

fn part(text: &str) -> Result<Object, TokenError> {
    let bytes = URL_SAFE_NO_PAD.decode(text);
    let bytes = bytes.map_err(|_| TokenError::Malformed)?;
    json::object(&bytes).ok_or(TokenError::Malformed)
}

/// A time (RFC 7519 2) in whole seconds: a number, never a text.
fn time(claims: &Object, name: &str) -> Result<Option<i64>, TokenError> {
    /// The end of the year 9999.
    const LAST: f64 = 253_402_300_799.0;
    let Some(value) = claims.get(name) else {
        return Ok(None);
    };
    let seconds = value.as_f64().filter(|it| (0.0..=LAST).contains(it));
    // In that range the whole part is exact.
    seconds.map(|it| Some(it as i64)).ok_or(TokenError::Claims)
}

/// Whether `typ` is the one that is wanted; else one that does not say that the token is for something
/// else (RFC 8725 3.11, RFC 9068 4).
fn is_kind(kind: Option<&str>, wanted: Option<&str>) -> bool {
    let same = |one: &str, other: &str| short(one).eq_ignore_ascii_case(short(other));
    match (kind, wanted) {
        (kind, Some(wanted)) => kind.is_some_and(|kind| same(kind, wanted)),
        (Some(kind), None) => same(kind, "JWT") || same(kind, "at+jwt"),
        (None, None) => true,
    }
}

fn short(kind: &str) -> &str {
    const TREE: &str = "application/";
    match kind.split_at_checked(TREE.len()) {
        Some((tree, rest)) if tree.eq_ignore_ascii_case(TREE) => rest,
        _ => kind,
    }
}

#[cfg(test)]
#[path = "token_tests.rs"]
mod tests;
