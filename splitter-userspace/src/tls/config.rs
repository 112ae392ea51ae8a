use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::{NoServerSessionStorage, ProducesTickets, ResolvesServerCert};

use super::asking::Witness;
use super::{Certificate, CertificateError, terms};
use crate::model::TlsTerms;

/// How long the certificate that is made at start holds.
const OWN_LASTS: Duration = Duration::from_secs(365 * 24 * 3600);

/// Clocks of clients differ; the certificate made at start holds from this long before.
const OWN_EARLY: Duration = Duration::from_secs(24 * 3600);

/// The name that the certificate made at start is for, as in ingress-nginx.
const OWN_HOST: &str = "ingress.local";

/// Why there can be no TLS at all.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// No randomness for the keys of tickets, or a provider without TLS 1.2 and 1.3.
    #[error("TLS cannot be set up: {0}")]
    Setup(#[from] rustls::Error),
    /// The certificate for hosts without one.
    #[error("cannot make a certificate for hosts without one: {0}")]
    Make(#[from] rcgen::Error),
    /// The same.
    #[error("cannot use the certificate made for hosts without one: {0}")]
    Own(#[from] CertificateError),
}

/// What all handshakes of the process have in common.
#[derive(Debug)]
pub struct TlsBase {
    provider: Arc<CryptoProvider>,
}

impl Default for TlsBase {
    /// TLS 1.2 and 1.3 by aws-lc-rs, X25519MLKEM768 first.
    fn default() -> Self {
        TlsBase {
            provider: Arc::new(aws_lc_rs::default_provider()),
        }
    }
}

impl TlsBase {
    /// The cryptography.
    pub fn provider(&self) -> &Arc<CryptoProvider> {
        &self.provider
    }

    /// A configuration for handshakes that shows `certificates`. Sessions are resumed by tickets
    /// alone, so that every worker resumes those of every other, and none is remembered. There is no
    /// early data: it could be sent again by anybody.
    ///
    /// Where clients are `asked` for a certificate, what they show goes with the ticket, and is judged
    /// anew on every connection.
    ///
    /// # Errors
    /// When the terms leave nothing that could be agreed on, which those of `translate` do not.
    pub(super) fn server(
        &self,
        certificates: Arc<dyn ResolvesServerCert>,
        terms: &TlsTerms,
        asked: bool,
        tickets: Arc<dyn ProducesTickets>,
    ) -> Result<ServerConfig, rustls::Error> {
        let builder = ServerConfig::builder_with_provider(terms::provider(terms, &self.provider))
            .with_protocol_versions(terms::versions(terms))?;
        let builder = match asked {
            false => builder.with_no_client_auth(),
            true => {
                let witness = Arc::new(Witness(self.provider.clone()));
                builder.with_client_cert_verifier(witness)
            }
        };
        let mut config = builder.with_cert_resolver(certificates);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.ignore_client_order = terms.server_order;
        config.ticketer = tickets;
        Ok(config)
    }

    /// Makes a certificate that nobody trusts, for hosts without one.
    pub(super) fn own_certificate(&self, now: SystemTime) -> Result<Certificate, TlsError> {
        let mut params = CertificateParams::new([OWN_HOST.to_owned()])?;
        params.not_before = (now - OWN_EARLY).into();
        params.not_after = (now + OWN_LASTS).into();
        params.distinguished_name = DistinguishedName::new();
        let name = "splitter default certificate";
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?;
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let chain = vec![certificate.der().clone()];
        Ok(Certificate::new(chain, key)?)
    }
}
