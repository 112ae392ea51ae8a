//! The keys of an issuer (RFC 7517).

use std::sync::atomic::{AtomicU64, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::DecodingKey;
use serde_json::Value;

use super::json::{self, Object};
use crate::model::{Algorithm, Algorithms};

/// The largest set of keys, in bytes. Those of large issuers have a tenth of it.
pub const JWKS_MAX: usize = 256 * 1024;

/// The most keys of a set; those beyond are left out.
pub const KEYS_MAX: usize = 64;

/// How many keys a token that names none is tried with.
const TRIED_MAX: usize = 8;

/// A set of keys, those left out that cannot be used. `Debug` says nothing of them.
pub struct KeySet {
    id: u64,
    keys: Vec<Key>,
    skipped: usize,
}

struct Key {
    name: Option<Box<str>>,
    /// What may be signed with it: its type decides, and `alg`, never the token.
    algorithms: Algorithms,
    key: DecodingKey,
}

/// Why there is no set of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JwksError {
    /// More than [`JWKS_MAX`] bytes.
    #[error("the set of keys has more than {JWKS_MAX} bytes")]
    TooLarge,
    /// It is no such set.
    #[error("it is no JSON object with a list of keys")]
    Malformed,
    /// Nothing in it can be used.
    #[error("it holds no key that signatures can be checked with")]
    Empty,
}

impl KeySet {
    /// Reads a set. Shared secrets (`oct`) are left out unless `symmetric`: in a public place they
    /// are no secrets.
    ///
    /// # Errors
    /// When there is no key to check signatures with.
    pub fn read(bytes: &[u8], symmetric: bool) -> Result<Self, JwksError> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        if bytes.len() > JWKS_MAX {
            return Err(JwksError::TooLarge);
        }
        let set = json::object(bytes).ok_or(JwksError::Malformed)?;
        let Some(Value::Array(all)) = set.get("keys") else {
            return Err(JwksError::Malformed);
        };
        let keys = all.iter().take(KEYS_MAX).filter_map(Value::as_object);
        let keys: Vec<_> = keys.filter_map(|key| Key::read(key, symmetric)).collect();
        if keys.is_empty() {
            return Err(JwksError::Empty);
        }
        Ok(KeySet {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            skipped: all.len() - keys.len(),
            keys,
        })
    }

    /// Tells sets apart, for as long as the process runs.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// How many keys were left out.
    pub fn skipped(&self) -> usize {
        self.skipped
    }

    /// Whether a key may be the one that a token names. Keys without a name may be any.
    pub(super) fn knows(&self, name: Option<&str>) -> bool {
        self.keys.iter().any(|key| key.may_be(name))
    }

    /// Whether one of the keys has signed `message`. `signature` is in base64.
    pub(super) fn has_signed(
        &self,
        message: &[u8],
        signature: &str,
        name: Option<&str>,
        algorithm: Algorithm,
    ) -> bool {
        let fit = |key: &&Key| key.may_be(name) && key.algorithms.has(algorithm);
        let mut keys = self.keys.iter().filter(fit).take(TRIED_MAX);
        let algorithm = library(algorithm);
        keys.any(|key| {
            let good = jsonwebtoken::crypto::verify(signature, message, &key.key, algorithm);
            good.unwrap_or(false)
        })
    }
}

impl std::fmt::Debug for KeySet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KeySet({} keys)", self.keys.len())
    }
}

impl Key {
    fn read(key: &Object, symmetric: bool) -> Option<Key> {
        let text = |name: &str| key.get(name).and_then(Value::as_str);
        if key.contains_key("use") && text("use") != Some("sig") {
            return None;
        }
        if let Some(uses) = key.get("key_ops") {
            let mut uses = uses.as_array()?.iter();
            uses.find(|it| it.as_str() == Some("verify"))?;
        }
        let bytes = |name: &str| URL_SAFE_NO_PAD.decode(text(name)?).ok();
        let (mut algorithms, decoding) = match text("kty")? {
            "RSA" => rsa(&bytes("n")?, &bytes("e")?)?,
            "EC" => ec(text("crv")?, &bytes("x")?, &bytes("y")?)?,
            "OKP" if text("crv") == Some("Ed25519") => ed25519(&bytes("x")?)?,
            "oct" if symmetric => secret(&bytes("k")?)?,
            _ => return None,
        };
        if key.contains_key("alg") {
            let only = Algorithm::named(text("alg")?).filter(|it| algorithms.has(*it))?;
            algorithms = Algorithms::from_iter([only]);
        }
        if key.contains_key("kid") {
            text("kid")?;
        }
        Some(Key {
            name: text("kid").map(Into::into),
            algorithms,
            key: decoding,
        })
    }

    fn may_be(&self, name: Option<&str>) -> bool {
        match (&self.name, name) {
            (Some(own), Some(name)) => **own == *name,
            _ => true,
        }
    }
}

fn rsa(n: &[u8], e: &[u8]) -> Option<(Algorithms, DecodingKey)> {
    /// What the library checks signatures with (RFC 7518 3.3 demands the lower end).
    const BITS: std::ops::RangeInclusive<usize> = 2048..=8192;
    let zeros = n.iter().take_while(|byte| **byte == 0).count();
    let n = n.get(zeros..)?;
    let bits = n.len() * 8 - n.first()?.leading_zeros() as usize;
    let odd = e.last().is_some_and(|byte| byte & 1 == 1);
    let exponent_fits = odd && e.len() <= 4 && e != [1];
    if !BITS.contains(&bits) || !exponent_fits {
        return None;
    }
    let all = [
        Algorithm::RS256,
        Algorithm::RS384,
        Algorithm::RS512,
        Algorithm::PS256,
        Algorithm::PS384,
        Algorithm::PS512,
    ];
    let key = DecodingKey::from_rsa_raw_components(n, e);
    Some((all.into_iter().collect(), key))
}

fn ec(curve: &str, x: &[u8], y: &[u8]) -> Option<(Algorithms, DecodingKey)> {
    let (algorithm, size) = match curve {
        "P-256" => (Algorithm::ES256, 32),
        "P-384" => (Algorithm::ES384, 48),
        _ => return None,
    };
    if x.len() != size || y.len() != size {
        return None;
    }
    const UNCOMPRESSED: &[u8] = &[4];
    let key = DecodingKey::from_ec_der(&[UNCOMPRESSED, x, y].concat());
    Some((Algorithms::from_iter([algorithm]), key))
}

fn ed25519(x: &[u8]) -> Option<(Algorithms, DecodingKey)> {
    (x.len() == 32).then(|| {
        let algorithms = Algorithms::from_iter([Algorithm::EdDSA]);
        (algorithms, DecodingKey::from_ed_der(x))
    })
}

/// A secret must be as long as the hash (RFC 7518 3.2).
fn secret(k: &[u8]) -> Option<(Algorithms, DecodingKey)> {
    let all = [
        (Algorithm::HS256, 32),
        (Algorithm::HS384, 48),
        (Algorithm::HS512, 64),
    ];
    let fit = all.into_iter().filter(|(_, size)| k.len() >= *size);
    let algorithms: Algorithms = fit.map(|(algorithm, _)| algorithm).collect();
    if algorithms == Algorithms::default() {
        return None;
    }
    Some((algorithms, DecodingKey::from_secret(k).ok()?))
}

fn library(algorithm: Algorithm) -> jsonwebtoken::Algorithm {
    use jsonwebtoken::Algorithm as Library;
    match algorithm {
        Algorithm::HS256 => Library::HS256,
        Algorithm::HS384 => Library::HS384,
        Algorithm::HS512 => Library::HS512,
        Algorithm::RS256 => Library::RS256,
        Algorithm::RS384 => Library::RS384,
        Algorithm::RS512 => Library::RS512,
        Algorithm::PS256 => Library::PS256,
        Algorithm::PS384 => Library::PS384,
        Algorithm::PS512 => Library::PS512,
        Algorithm::ES256 => Library::ES256,
        Algorithm::ES384 => Library::ES384,
        Algorithm::EdDSA => Library::EdDSA,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::sync::LazyLock;

    use proptest::prelude::*;
    use serde_json::json;

    use super::super::testing::{Issuer, encode, jwk, jwks};
    use super::*;

    static ISSUER: LazyLock<Issuer> = LazyLock::new(Issuer::new);

    fn with(name: &str, value: Value) -> Result<usize, JwksError> {
        let mut key = jwk(&ISSUER.key, "one");
        key.as_object_mut().unwrap().insert(name.to_owned(), value);
        KeySet::read(jwks(&[key]).as_bytes(), true).map(|set| set.len())
    }

    #[test]
    fn a_key_for_something_else_is_left_out() {
        for (name, value) in [
            ("use", json!("enc")),
            ("use", json!(5)),
            ("key_ops", json!(["sign"])),
            ("key_ops", json!("verify")),
            ("alg", json!("RS256")),
            ("alg", json!("ES384")),
            ("alg", json!("none")),
            ("alg", json!(5)),
            ("kid", json!(5)),
            ("kty", json!("RSA")),
            ("kty", json!("oct")),
            ("crv", json!("P-521")),
            ("crv", json!("secp256k1")),
            ("x", json!("AAAA")),
            ("x", json!("not base64!")),
            ("y", json!(null)),
        ] {
            assert_eq!(
                with(name, value.clone()),
                Err(JwksError::Empty),
                "{name} {value}"
            );
        }
        for (name, value) in [
            ("key_ops", json!(["verify"])),
            ("x5c", json!(["?"])),
            ("d", json!("x")),
        ] {
            assert_eq!(with(name, value.clone()), Ok(1), "{name} {value}");
        }
    }

    #[test]
    fn rsa_keys_have_a_size_and_an_exponent() {
        let of = |n: Vec<u8>, e: &[u8]| {
            let key = json!({"kty": "RSA", "n": encode(n), "e": encode(e)});
            KeySet::read(jwks(&[key]).as_bytes(), false).is_ok()
        };
        let bits = |bytes: usize| vec![0xff; bytes];
        assert!(of(bits(256), &[1, 0, 1]) && of(bits(1024), &[3]));
        assert!(of([vec![0], bits(256)].concat(), &[1, 0, 1]));
        for (n, e) in [
            (bits(128), &[1, 0, 1][..]),
            (bits(255), &[1, 0, 1]),
            (bits(1025), &[1, 0, 1]),
            (bits(256), &[1]),
            (bits(256), &[2]),
            (bits(256), &[]),
            (bits(256), &[1; 5]),
            (Vec::new(), &[3]),
        ] {
            assert!(!of(n.clone(), e), "{} {e:?}", n.len());
        }
    }

    #[test]
    fn shared_secrets_count_where_they_can_be_secret_and_are_long_enough() {
        let read = |bytes: usize, symmetric| {
            let key = json!({"kty": "oct", "k": encode(vec![7; bytes])});
            KeySet::read(jwks(&[key]).as_bytes(), symmetric).map(|set| set.keys[0].algorithms)
        };
        assert_eq!(read(64, false), Err(JwksError::Empty));
        assert_eq!(read(31, true), Err(JwksError::Empty));
        assert_eq!(
            read(32, true),
            Ok(Algorithms::from_iter([Algorithm::HS256]))
        );
        assert_eq!(read(64, true).map(|it| it.iter().count()), Ok(3));
    }

    #[test]
    fn a_set_that_is_none_or_too_large_is_refused() {
        for text in [
            "",
            "[]",
            "{}",
            r#"{"keys":{}}"#,
            r#"{"keys":[],"keys":[]}"#,
            "<html>",
        ] {
            let read = KeySet::read(text.as_bytes(), true);
            assert_eq!(read.err(), Some(JwksError::Malformed), "{text}");
        }
        let empty = KeySet::read(br#"{"keys":[5,{},null]}"#, true);
        assert_eq!(empty.err(), Some(JwksError::Empty));
        let large = format!("{{\"x\":\"{}\"}}", "x".repeat(10 << 20));
        assert_eq!(
            KeySet::read(large.as_bytes(), true).err(),
            Some(JwksError::TooLarge)
        );
        let many = vec![jwk(&ISSUER.key, "one"); KEYS_MAX + 5];
        let set = KeySet::read(jwks(&many).as_bytes(), false).unwrap();
        assert_eq!((set.len(), set.skipped()), (KEYS_MAX, 5));
    }

    proptest! {
        #[test]
        fn a_mutated_set_does_not_panic(at: prop::sample::Index, byte: u8, cut: prop::sample::Index) {
            let mut text = jwks(&[jwk(&ISSUER.key, "one"), json!({"kty": "oct", "k": encode([7; 64])})]);
            let at = at.index(text.len());
            let cut = cut.index(text.len());
            // Bytes, as nobody says that they are text.
            let mut bytes = std::mem::take(&mut text).into_bytes();
            bytes[at] = byte;
            let signature = encode([1; 64]);
            for bytes in [&bytes[..], &bytes[..cut], &bytes[cut..]] {
                if let Ok(set) = KeySet::read(bytes, true) {
                    for algorithm in Algorithm::ALL {
                        prop_assert!(!set.has_signed(b"x", &signature, None, algorithm));
                    }
                }
            }
        }
    }
}
