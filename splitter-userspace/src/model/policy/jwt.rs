use std::sync::Arc;
use std::time::Duration;

use http::HeaderName;
use serde::{Serialize, Serializer};

use crate::model::ObjectRef;

/// Who may call, by a token that somebody has signed (`splitter.io/jwt-*`; RFC 7519, RFC 8725).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Jwt {
    /// What `iss` must be, byte for byte.
    pub issuer: Arc<str>,
    /// One of these must be in `aud`.
    pub audiences: Arc<[Arc<str>]>,
    /// Which signatures count.
    pub algorithms: Algorithms,
    /// Where the keys are.
    pub keys: KeySource,
    /// What `typ` must be; none: nothing, or any that means an access token or a token at large.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<Arc<str>>,
    /// How far our clock and the issuer's may be apart.
    pub leeway: Duration,
    /// Where the token is, in the order in which it is looked for.
    pub places: Arc<[TokenPlace]>,
    /// What else the token must say.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub claims: Arc<[ClaimTest]>,
    /// What pods are told of it.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub headers: Arc<[ClaimHeader]>,
    /// Whether pods get the token itself.
    pub forward: bool,
    /// What clients are told that they are asked for.
    pub realm: Arc<str>,
}

/// Where the keys of an issuer are.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeySource {
    /// In the entry `jwks` of a Secret or a ConfigMap.
    Object(ObjectRef),
    /// At a URL of https.
    Url(KeyUrl),
}

impl KeySource {
    /// The entry of a Secret or ConfigMap that holds keys.
    pub const ENTRY: &str = "jwks";
}

/// A URL that keys are fetched from.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct KeyUrl {
    /// The URL.
    pub url: Arc<str>,
    /// The Secret with the authorities (`ca.crt`) that vouch for it; none: those of the system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authorities: Option<ObjectRef>,
}

/// Where a token may be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TokenPlace {
    /// In a header, behind `Bearer` if it is Authorization, with or without it in any other.
    Header(#[serde(serialize_with = "super::split::name")] HeaderName),
    /// In a cookie.
    Cookie(Arc<str>),
    /// In a parameter of the query.
    Query(Arc<str>),
}

/// A claim by the way to it: names of objects in each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimPath {
    /// As it was written.
    pub text: Arc<str>,
    /// Its parts.
    pub names: Arc<[Arc<str>]>,
}

impl Serialize for ClaimPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

/// What a claim must be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClaimTest {
    /// The claim.
    pub claim: ClaimPath,
    /// It is one of these, or a list in which one of these is.
    pub values: Arc<[Arc<str>]>,
}

/// A header that says what a claim is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClaimHeader {
    /// The claim.
    pub claim: ClaimPath,
    /// The header.
    #[serde(serialize_with = "super::split::name")]
    pub header: HeaderName,
}

/// An algorithm of signatures (RFC 7518 3.1, RFC 8037). `none` is not one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub enum Algorithm {
    /// HMAC with SHA-256.
    HS256,
    /// HMAC with SHA-384.
    HS384,
    /// HMAC with SHA-512.
    HS512,
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    RS256,
    /// RSASSA-PKCS1-v1_5 with SHA-384.
    RS384,
    /// RSASSA-PKCS1-v1_5 with SHA-512.
    RS512,
    /// RSASSA-PSS with SHA-256.
    PS256,
    /// RSASSA-PSS with SHA-384.
    PS384,
    /// RSASSA-PSS with SHA-512.
    PS512,
    /// ECDSA on P-256 with SHA-256.
    ES256,
    /// ECDSA on P-384 with SHA-384.
    ES384,
    /// Ed25519.
    EdDSA,
}

impl Algorithm {
    /// All of them.
    pub const ALL: [Algorithm; 12] = [
        Algorithm::HS256,
        Algorithm::HS384,
        Algorithm::HS512,
        Algorithm::RS256,
        Algorithm::RS384,
        Algorithm::RS512,
        Algorithm::PS256,
        Algorithm::PS384,
        Algorithm::PS512,
        Algorithm::ES256,
        Algorithm::ES384,
        Algorithm::EdDSA,
    ];

    /// As tokens and keys name it.
    pub fn as_str(self) -> &'static str {
        match self {
            Algorithm::HS256 => "HS256",
            Algorithm::HS384 => "HS384",
            Algorithm::HS512 => "HS512",
            Algorithm::RS256 => "RS256",
            Algorithm::RS384 => "RS384",
            Algorithm::RS512 => "RS512",
            Algorithm::PS256 => "PS256",
            Algorithm::PS384 => "PS384",
            Algorithm::PS512 => "PS512",
            Algorithm::ES256 => "ES256",
            Algorithm::ES384 => "ES384",
            Algorithm::EdDSA => "EdDSA",
        }
    }

    /// Of exactly this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == name)
    }

    /// Whether whoever can check a signature can make one.
    pub fn is_symmetric(self) -> bool {
        matches!(self, Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512)
    }
}

/// A set of algorithms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Algorithms(u16);

impl Algorithms {
    /// All that are signed with a key that only the issuer has.
    pub fn asymmetric() -> Self {
        let all = Algorithm::ALL.into_iter();
        all.filter(|it| !it.is_symmetric()).collect()
    }

    /// Whether an algorithm is one of them.
    pub fn has(self, algorithm: Algorithm) -> bool {
        self.0 & 1 << algorithm as u16 != 0
    }

    /// Each of them.
    pub fn iter(self) -> impl Iterator<Item = Algorithm> {
        Algorithm::ALL.into_iter().filter(move |it| self.has(*it))
    }
}

impl FromIterator<Algorithm> for Algorithms {
    fn from_iter<I: IntoIterator<Item = Algorithm>>(all: I) -> Self {
        let add = |set: u16, one: Algorithm| set | 1 << one as u16;
        Algorithms(all.into_iter().fold(0, add))
    }
}

impl Serialize for Algorithms {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_what_it_was_made_of() {
        let set = Algorithms::from_iter([Algorithm::EdDSA, Algorithm::HS256]);
        let has: Vec<_> = set.iter().collect();
        assert_eq!(has, [Algorithm::HS256, Algorithm::EdDSA]);
        assert!(!Algorithms::asymmetric().iter().any(Algorithm::is_symmetric));
        assert_eq!(Algorithms::asymmetric().iter().count(), 9);
    }

    #[test]
    fn names_are_compared_byte_for_byte() {
        for algorithm in Algorithm::ALL {
            assert_eq!(Algorithm::named(algorithm.as_str()), Some(algorithm));
        }
        for name in ["none", "None", "NONE", "", "rs256", "ES512", "RS1"] {
            assert_eq!(Algorithm::named(name), None, "{name}");
        }
    }
}
