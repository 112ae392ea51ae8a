//! An issuer with one elliptic key, for tests of this module.

use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::KeySet;
use crate::model::{Algorithms, Jwt, KeySource, KeyUrl, TokenPlace};

/// When the tests happen, in seconds since 1970.
pub(super) const NOW: i64 = 1_800_000_000;

/// See the module's text.
pub(super) struct Issuer {
    pub(super) key: EcdsaKeyPair,
    pub(super) keys: KeySet,
}

impl Issuer {
    pub(super) fn new() -> Self {
        let key = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
        let keys = KeySet::read(jwks(&[jwk(&key, "one")]).as_bytes(), false).unwrap();
        Issuer { key, keys }
    }

    /// A token with these parts, signed.
    pub(super) fn sign(&self, head: &str, claims: &str) -> String {
        let message = format!("{}.{}", encode(head), encode(claims));
        let signature = self.key.sign(&SystemRandom::new(), message.as_bytes());
        let signature = URL_SAFE_NO_PAD.encode(signature.unwrap().as_ref());
        format!("{message}.{signature}")
    }

    /// A good token.
    pub(super) fn token(&self) -> String {
        self.sign(HEAD, &good().to_string())
    }
}

pub(super) const HEAD: &str = r#"{"alg":"ES256","kid":"one","typ":"at+jwt"}"#;

pub(super) fn encode(text: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(text)
}

/// Claims that let somebody in.
pub(super) fn good() -> Value {
    json!({
        "iss": "https://id.test", "aud": ["other", "shop"], "exp": NOW + 60, "sub": "ann",
        "roles": ["reader", "admin"], "scope": "read write", "level": 3, "mail_verified": true,
        "realm": {"access": {"roles": ["ops"]}},
    })
}

/// The public part of a key.
pub(super) fn jwk(key: &EcdsaKeyPair, name: &str) -> Value {
    let point = key.public_key().as_ref();
    let (x, y) = (encode(&point[1..33]), encode(&point[33..]));
    json!({"kty": "EC", "crv": "P-256", "x": x, "y": y, "kid": name, "use": "sig", "alg": "ES256"})
}

pub(super) fn jwks(keys: &[Value]) -> String {
    json!({ "keys": keys }).to_string()
}

/// What the good claims pass.
pub(super) fn policy() -> Jwt {
    Jwt {
        issuer: "https://id.test".into(),
        audiences: ["shop".into()].into(),
        algorithms: Algorithms::asymmetric(),
        keys: KeySource::Url(KeyUrl {
            url: "https://id.test/keys".into(),
            authorities: None,
        }),
        kind: None,
        leeway: Duration::from_secs(10),
        places: [TokenPlace::Header(http::header::AUTHORIZATION)].into(),
        claims: Arc::new([]),
        headers: Arc::new([]),
        forward: false,
        realm: "".into(),
    }
}
