use std::sync::Arc;

use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use zeroize::Zeroize as _;

use super::Facts;
use crate::model::{HostPattern, SecretData};

/// The most certificates that a chain may have; browsers follow fewer.
const MAX_CHAIN: usize = 16;

/// Why a Secret is no certificate with its key. Says nothing of what the Secret holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    /// No such entry, or no certificate in it.
    #[error("tls.crt is no certificate in PEM")]
    NoCertificate,
    /// A chain longer than anybody follows.
    #[error("tls.crt has more than 16 certificates")]
    LongChain,
    /// The first certificate is no X.509.
    #[error("the first certificate in tls.crt cannot be read")]
    BadCertificate,
    /// No such entry, or no key in it.
    #[error("tls.key is no private key in PEM without a password")]
    NoKey,
    /// A kind of key that no handshake is made with.
    #[error(
        "the key in tls.key is none of RSA (2048 to 8192 bits), ECDSA (P-256, P-384, P-521), Ed25519"
    )]
    KeyKind,
    /// They do not belong together.
    #[error("the key in tls.key does not belong to the certificate in tls.crt")]
    Mismatch,
}

/// A certificate with its key, ready for handshakes.
#[derive(Debug)]
pub struct Certificate {
    /// What rustls makes handshakes with. Its `Debug` shows no key.
    pub key: Arc<CertifiedKey>,
    /// What the certificate says of itself.
    pub facts: Facts,
}

impl Certificate {
    /// Reads `tls.crt` and `tls.key` of a Secret.
    ///
    /// # Errors
    /// When they are not there, cannot be read, or do not belong together. A certificate that has
    /// expired is none.
    pub fn read(data: &SecretData) -> Result<Self, CertificateError> {
        let chain = data.get("tls.crt").ok_or(CertificateError::NoCertificate)?;
        let chain = CertificateDer::pem_slice_iter(chain)
            .take(MAX_CHAIN + 1)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|_| CertificateError::NoCertificate)?;
        let key = data.get("tls.key").ok_or(CertificateError::NoKey)?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| CertificateError::NoKey)?;
        Self::new(chain, key)
    }

    /// Puts a chain and its key together. The key is then only in the library's memory, which clears
    /// it at its end.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn new(
        chain: Vec<CertificateDer<'static>>,
        mut key: PrivateKeyDer<'static>,
    ) -> Result<Self, CertificateError> {
        let read = any_supported_type(&key);
        key.zeroize();
        if chain.len() > MAX_CHAIN {
            return Err(CertificateError::LongChain);
        }
        let first = chain.first().ok_or(CertificateError::NoCertificate)?;
        let facts = Facts::read(first).ok_or(CertificateError::BadCertificate)?;
        let key = CertifiedKey::new(chain, read.map_err(|_| CertificateError::KeyKind)?);
        match key.keys_match() {
            Ok(()) | Err(rustls::Error::InconsistentKeys(rustls::InconsistentKeys::Unknown)) => {}
            Err(_) => return Err(CertificateError::Mismatch),
        }
        Ok(Certificate {
            key: Arc::new(key),
            facts,
        })
    }

    /// Whether it is for every host of a pattern. As ingress-nginx does, a certificate without any
    /// DNS name is taken to be for its common name.
    pub fn covers(&self, host: &HostPattern) -> bool {
        let mut names = self.facts.names.iter().map(|name| &**name);
        match host {
            HostPattern::Exact(host) => {
                let suffix = host.split_once('.').map(|it| it.1);
                names.any(|name| {
                    name == &**host || name.strip_prefix("*.").is_some_and(|it| Some(it) == suffix)
                })
            }
            HostPattern::Wildcard(suffix) => {
                names.any(|name| name.strip_prefix("*.") == Some(suffix))
            }
            HostPattern::Any => false,
        }
    }
}

/// The certificates in a PEM text, in their order; none when there are none, or one cannot be read.
pub fn read_chain(pem: &[u8]) -> Option<Vec<CertificateDer<'static>>> {
    let chain = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
    chain.ok().filter(|chain| !chain.is_empty())
}
