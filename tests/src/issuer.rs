//! Somebody who signs tokens.

use std::time::{SystemTime, UNIX_EPOCH};

use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256,
    RSA_PSS_SHA256, RsaKeyPair,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

/// One of his keys.
pub enum Key {
    /// Signs ES256.
    Ec(EcdsaKeyPair),
    /// Signs RS256 and PS256.
    Rsa(Box<RsaKeyPair>),
    /// Signs EdDSA.
    Ed(Ed25519KeyPair),
    /// Signs HS256.
    Secret(Vec<u8>),
}

impl Key {
    /// A new elliptic key.
    pub fn ec() -> Self {
        Key::Ec(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap())
    }

    /// A new RSA key.
    pub fn rsa() -> Self {
        Key::Rsa(Box::new(RsaKeyPair::generate(KeySize::Rsa2048).unwrap()))
    }

    /// A new Ed25519 key.
    pub fn ed() -> Self {
        Key::Ed(Ed25519KeyPair::generate().unwrap())
    }

    /// The Ed25519 key of this seed: the same each time.
    pub fn ed_of(seed: &[u8; 32]) -> Self {
        Key::Ed(Ed25519KeyPair::from_seed_unchecked(seed).unwrap())
    }

    /// Its public part, as a JWK of this name; for a shared secret, itself.
    pub fn jwk(&self, name: &str) -> Value {
        match self {
            Key::Ec(key) => {
                let point = key.public_key().as_ref();
                let (x, y) = (encode(&point[1..33]), encode(&point[33..]));
                json!({"kty": "EC", "crv": "P-256", "x": x, "y": y, "kid": name})
            }
            Key::Rsa(key) => {
                let public = key.public_key();
                let n = encode(public.modulus().big_endian_without_leading_zero());
                let e = encode(public.exponent().big_endian_without_leading_zero());
                json!({"kty": "RSA", "n": n, "e": e, "kid": name, "use": "sig"})
            }
            Key::Ed(key) => {
                let x = encode(key.public_key().as_ref());
                json!({"kty": "OKP", "crv": "Ed25519", "x": x, "kid": name})
            }
            Key::Secret(secret) => json!({"kty": "oct", "k": encode(secret), "kid": name}),
        }
    }

    /// A token with this head and these claims, signed as `alg` in the head says.
    pub fn sign(&self, head: &Value, claims: &Value) -> String {
        let pss = head["alg"] == "PS256";
        let (head, claims) = (head.to_string(), claims.to_string());
        self.signed(head.as_bytes(), claims.as_bytes(), pss)
    }

    /// The same with any bytes, whatever they say.
    pub fn sign_bytes(&self, head: &[u8], claims: &[u8]) -> String {
        self.signed(head, claims, false)
    }

    fn signed(&self, head: &[u8], claims: &[u8], pss: bool) -> String {
        let message = format!("{}.{}", encode(head), encode(claims));
        let bytes = message.as_bytes();
        let random = SystemRandom::new();
        let signature = match self {
            Key::Ec(key) => key.sign(&random, bytes).unwrap().as_ref().to_vec(),
            Key::Rsa(key) => {
                let mut signature = vec![0; key.public_modulus_len()];
                let how: &'static dyn aws_lc_rs::signature::RsaEncoding = match pss {
                    true => &RSA_PSS_SHA256,
                    false => &RSA_PKCS1_SHA256,
                };
                key.sign(how, &random, bytes, &mut signature).unwrap();
                signature
            }
            Key::Ed(key) => key.sign(bytes).as_ref().to_vec(),
            Key::Secret(secret) => {
                let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
                hmac::sign(&key, bytes).as_ref().to_vec()
            }
        };
        format!("{message}.{}", encode(signature))
    }

    /// A token of `alg` by the key of this name, with these claims.
    pub fn token(&self, alg: &str, name: &str, claims: &Value) -> String {
        self.sign(&json!({"alg": alg, "kid": name, "typ": "at+jwt"}), claims)
    }
}

/// A set of keys.
pub fn jwks(keys: &[Value]) -> String {
    json!({ "keys": keys }).to_string()
}

/// base64 as in URLs, without padding.
pub fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Now, in seconds since 1970, and this many more.
pub fn in_seconds(seconds: i64) -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    now.as_secs() as i64 + seconds
}

/// Claims of `https://id.test` for `shop` that hold for an hour.
pub fn claims() -> Value {
    json!({
        "iss": "https://id.test", "aud": "shop", "exp": in_seconds(3600), "sub": "ann",
        "roles": ["reader", "admin"],
    })
}

/// The same with this claim; without it, if it is null.
pub fn with(name: &str, value: Value) -> Value {
    let mut claims = claims();
    let all = claims.as_object_mut().unwrap();
    match value {
        Value::Null => all.remove(name),
        value => all.insert(name.to_owned(), value),
    };
    claims
}

/// An Authorization field.
pub fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}\r\n")
}
