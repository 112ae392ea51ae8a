//! Tokens: nothing gets in but what the issuer has signed, as he has signed it, and of that only what
//! says all that it must.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use serde_json::{Value, json};
use splitter::auth::{KeySet, Verified};
use splitter::model::{
    Algorithm, Algorithms, ClaimPath, ClaimTest, Jwt, KeySource, KeyUrl, TokenPlace,
};

use super::{edited, parts};
use crate::issuer::{Key, jwks};

/// When it is, in seconds since 1970, and how far clocks may be apart.
const NOW: i64 = 1_800_000_000;
const LEEWAY: u64 = 10;

/// The same issuer each time, or a finding could not be looked at twice.
static ISSUER: LazyLock<Key> = LazyLock::new(|| Key::ed_of(&[7; 32]));

static KEYS: LazyLock<KeySet> = LazyLock::new(|| {
    let set = jwks(&[ISSUER.jwk("one")]);
    KeySet::read(set.as_bytes(), false).expect("a set of keys")
});

/// The head and the claims of a token that the issuer signs as they are; bytes that nobody has
/// signed; and what is changed in the token on its way.
pub fn target(data: &[u8]) {
    let [head, claims, other, edits] = parts(data);
    let jwt = policy();
    let token = ISSUER.sign_bytes(head, claims);
    let verified = Verified::check(&token, &KEYS, &jwt);
    if let Ok(verified) = &verified
        && verified.admit(&jwt, NOW).is_ok()
    {
        says_enough(head, claims);
        // What has passed once does not pass later.
        let late = verified.expires() + LEEWAY as i64;
        assert!(verified.admit(&jwt, late).is_err());
    }
    assert_eq!(
        verified.err(),
        Verified::check(&token, &KEYS, &jwt).err(),
        "not the same twice"
    );
    let changed = edited(token.clone().into_bytes(), edits);
    for forged in [&changed[..], other] {
        let forged = String::from_utf8_lossy(forged);
        if forged != token {
            let checked = Verified::check(&forged, &KEYS, &jwt);
            assert!(checked.is_err(), "{forged:?} beside {token:?}");
        }
    }
}

/// Reads what was admitted once more, in another way.
fn says_enough(head: &[u8], claims: &[u8]) {
    let [head, claims] = [head, claims].map(|part| {
        let Names(names, twice) = serde_json::from_slice(part).expect("an object");
        assert!(!twice, "a name is there twice: {names:?}");
        serde_json::from_slice::<Value>(part).expect("JSON")
    });
    assert_eq!(head["alg"], "EdDSA");
    assert!(
        head.get("crit").is_none() && head.get("b64").is_none(),
        "{head}"
    );
    assert!(head.get("kid").is_none_or(|it| it == "one"), "{head}");
    if let Some(kind) = head.get("typ") {
        let kind = kind.as_str().expect("a text").to_ascii_lowercase();
        let kind = kind.strip_prefix("application/").unwrap_or(&kind);
        assert!(matches!(kind, "jwt" | "at+jwt"), "{head}");
    }
    let leeway = LEEWAY as f64;
    let expires = claims["exp"].as_f64().expect("a number");
    assert!(expires + leeway > NOW as f64, "{claims}");
    if let Some(begins) = claims.get("nbf") {
        let begins = begins.as_f64().expect("a number");
        // In whole seconds.
        assert!(begins.floor() <= NOW as f64 + leeway, "{claims}");
    }
    assert_eq!(claims["iss"], "https://id.test");
    let holds = |value: &Value, wanted: &str| match value {
        Value::Array(list) => list.iter().any(|it| it == wanted),
        value => value == wanted,
    };
    assert!(holds(&claims["aud"], "shop"), "{claims}");
    assert!(holds(&claims["roles"], "admin"), "{claims}");
    assert!(claims.get("sub").is_none_or(Value::is_string), "{claims}");
}

fn policy() -> Jwt {
    let claim = ClaimPath {
        text: "roles".into(),
        names: ["roles".into()].into(),
    };
    Jwt {
        issuer: "https://id.test".into(),
        audiences: ["shop".into()].into(),
        algorithms: Algorithms::from_iter(Algorithm::ALL),
        keys: KeySource::Url(KeyUrl {
            url: "https://id.test/keys".into(),
            authorities: None,
        }),
        kind: None,
        leeway: Duration::from_secs(LEEWAY),
        places: [TokenPlace::Header(http::header::AUTHORIZATION)].into(),
        claims: Arc::new([ClaimTest {
            claim,
            values: ["admin".into()].into(),
        }]),
        headers: Arc::new([]),
        forward: false,
        realm: "".into(),
    }
}

/// The names of an object, and whether one is there twice.
struct Names(BTreeSet<String>, bool);

impl<'de> serde::Deserialize<'de> for Names {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Names;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                mut members: A,
            ) -> Result<Names, A::Error> {
                let mut names = Names(BTreeSet::new(), false);
                while let Some((name, _)) = members.next_entry::<String, Value>()? {
                    names.1 |= !names.0.insert(name);
                }
                Ok(names)
            }
        }
        deserializer.deserialize_map(Visitor)
    }
}

/// Sets of keys: who is not in a set has signed nothing, and a public key is no shared secret.
pub mod keys {
    use super::*;

    /// A shared secret in the corpus, in base64.
    static SECRET: LazyLock<String> = LazyLock::new(|| crate::issuer::encode([b'k'; 64]));

    /// Tokens, each with whether it is signed with [`SECRET`] or with the issuer's key.
    static TOKENS: LazyLock<Tokens> = LazyLock::new(|| {
        let claims = json!({"exp": NOW + 60});
        let own = ISSUER.jwk("one");
        let x = own["x"].as_str().expect("a key").to_owned();
        let public = base64_of(&x);
        let by = |key: Key, alg: &str| key.token(alg, "one", &claims);
        Tokens {
            own: ISSUER.token("EdDSA", "one", &claims),
            shared: by(Key::Secret(vec![b'k'; 64]), "HS256"),
            // Who knows a public key signs with it, as if it were a secret.
            confused: [
                by(Key::Secret(public), "HS256"),
                by(Key::Secret(x.clone().into_bytes()), "HS256"),
                by(Key::Secret(Vec::new()), "HS256"),
            ],
            stranger: by(Key::ed_of(&[8; 32]), "EdDSA"),
            x,
        }
    });

    struct Tokens {
        own: String,
        shared: String,
        confused: [String; 3],
        stranger: String,
        /// The issuer's public key.
        x: String,
    }

    fn base64_of(text: &str) -> Vec<u8> {
        use base64::Engine as _;
        let engine = base64::engine::general_purpose::URL_SAFE_NO_PAD;
        engine.decode(text).expect("base64")
    }

    /// A set of keys.
    pub fn target(data: &[u8]) {
        let jwt = policy();
        for symmetric in [false, true] {
            let Ok(set) = KeySet::read(data, symmetric) else {
                assert!(KeySet::read(data, symmetric).is_err(), "not the same twice");
                continue;
            };
            let list = serde_json::from_slice::<Value>(data).expect("JSON");
            let list = list["keys"].as_array().expect("a list");
            assert!((1..=splitter::auth::KEYS_MAX).contains(&set.len()));
            assert_eq!(set.len() + set.skipped(), list.len());
            let holds = |kind: &str, name: &str, value: &str| {
                let mut all = list.iter();
                all.any(|key| key["kty"] == kind && key[name] == value)
            };
            let passes = |token: &str| Verified::check(token, &set, &jwt).is_ok();
            let tokens = &*TOKENS;
            assert!(!passes(&tokens.stranger));
            assert!(!passes(&tokens.own) || holds("OKP", "x", &tokens.x));
            assert!(
                !passes(&tokens.shared) || symmetric && holds("oct", "k", &SECRET),
                "a secret in a public place"
            );
            let octets = symmetric && list.iter().any(|key| key["kty"] == "oct");
            let confused = tokens.confused.iter().any(|token| passes(token));
            assert!(!confused || octets, "a public key taken for a secret");
        }
    }
}
