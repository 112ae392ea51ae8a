use std::collections::BTreeSet;

use serde::Serialize;

use super::ObjectRef;

/// What TLS is spoken with: with the clients of a host, or with pods.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct TlsTerms {
    /// Which versions there are.
    #[serde(skip_serializing_if = "TlsVersions::is_default")]
    pub versions: TlsVersions,
    /// The suites that there are, in the order in which we would choose; empty: all, the strongest
    /// first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub suites: Vec<TlsSuite>,
    /// Whether our order counts, and not the client's.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub server_order: bool,
}

impl TlsTerms {
    /// Whether they are what holds where nothing is said.
    pub fn is_default(&self) -> bool {
        *self == TlsTerms::default()
    }
}

/// How handshakes with the clients of a host are made. Those of hosts that differ are resumed apart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Handshake {
    /// What is spoken.
    pub terms: TlsTerms,
    /// The Secrets with the authorities of clients' certificates, of all Locations of the host;
    /// empty: no certificate is asked for.
    pub authorities: BTreeSet<ObjectRef>,
}

/// Versions of TLS. Older ones are not to be had (RFC 8996).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub enum TlsVersions {
    /// Both, the newer one first.
    #[default]
    #[serde(rename = "1.2, 1.3")]
    Both,
    /// 1.2 only.
    #[serde(rename = "1.2")]
    Tls12,
    /// 1.3 only.
    #[serde(rename = "1.3")]
    Tls13,
}

impl TlsVersions {
    /// Whether it is what holds where nothing is said.
    pub fn is_default(&self) -> bool {
        *self == TlsVersions::Both
    }
}

/// A cipher suite, of all that the library has. All of them have forward secrecy and authenticated
/// encryption.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub enum TlsSuite {
    /// Of TLS 1.3.
    #[serde(rename = "TLS_AES_256_GCM_SHA384")]
    Aes256,
    /// Of TLS 1.3.
    #[serde(rename = "TLS_AES_128_GCM_SHA256")]
    Aes128,
    /// Of TLS 1.3.
    #[serde(rename = "TLS_CHACHA20_POLY1305_SHA256")]
    ChaCha20,
    /// Of TLS 1.2, as all that follow.
    #[serde(rename = "ECDHE-ECDSA-AES256-GCM-SHA384")]
    EcdsaAes256,
    /// With a certificate for ECDSA, or Ed25519.
    #[serde(rename = "ECDHE-ECDSA-AES128-GCM-SHA256")]
    EcdsaAes128,
    /// The same.
    #[serde(rename = "ECDHE-ECDSA-CHACHA20-POLY1305")]
    EcdsaChaCha20,
    /// With a certificate for RSA.
    #[serde(rename = "ECDHE-RSA-AES256-GCM-SHA384")]
    RsaAes256,
    /// The same.
    #[serde(rename = "ECDHE-RSA-AES128-GCM-SHA256")]
    RsaAes128,
    /// The same.
    #[serde(rename = "ECDHE-RSA-CHACHA20-POLY1305")]
    RsaChaCha20,
}

impl TlsSuite {
    /// All of them, in the order of those who are not told otherwise.
    pub const ALL: [TlsSuite; 9] = [
        TlsSuite::Aes256,
        TlsSuite::Aes128,
        TlsSuite::ChaCha20,
        TlsSuite::EcdsaAes256,
        TlsSuite::EcdsaAes128,
        TlsSuite::EcdsaChaCha20,
        TlsSuite::RsaAes256,
        TlsSuite::RsaAes128,
        TlsSuite::RsaChaCha20,
    ];

    /// The name that OpenSSL and nginx know it by.
    pub fn name(self) -> &'static str {
        match self {
            TlsSuite::Aes256 => "TLS_AES_256_GCM_SHA384",
            TlsSuite::Aes128 => "TLS_AES_128_GCM_SHA256",
            TlsSuite::ChaCha20 => "TLS_CHACHA20_POLY1305_SHA256",
            TlsSuite::EcdsaAes256 => "ECDHE-ECDSA-AES256-GCM-SHA384",
            TlsSuite::EcdsaAes128 => "ECDHE-ECDSA-AES128-GCM-SHA256",
            TlsSuite::EcdsaChaCha20 => "ECDHE-ECDSA-CHACHA20-POLY1305",
            TlsSuite::RsaAes256 => "ECDHE-RSA-AES256-GCM-SHA384",
            TlsSuite::RsaAes128 => "ECDHE-RSA-AES128-GCM-SHA256",
            TlsSuite::RsaChaCha20 => "ECDHE-RSA-CHACHA20-POLY1305",
        }
    }

    /// Whether it is one of TLS 1.3, which no cipher string of OpenSSL speaks of.
    pub fn is_tls13(self) -> bool {
        matches!(
            self,
            TlsSuite::Aes256 | TlsSuite::Aes128 | TlsSuite::ChaCha20
        )
    }
}
