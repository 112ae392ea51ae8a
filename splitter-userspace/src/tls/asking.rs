//! Asking clients for a certificate: whatever they show is taken down, and judged by the Location
//! that they ask for.

use std::collections::HashMap;
use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};

use crate::model::HostPattern;

/// Of which hosts clients are asked for a certificate: by the most specific pattern that covers the
/// name, as a request's host is found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asking {
    hosts: HashMap<HostPattern, bool>,
    any: bool,
}

impl Asking {
    /// Of all hosts that there are, and whether each of them asks.
    pub fn new(hosts: impl IntoIterator<Item = (HostPattern, bool)>) -> Self {
        let hosts: HashMap<_, _> = hosts.into_iter().collect();
        // Nobody is asked for nothing: then there is no need for the table either.
        if !hosts.values().any(|asks| *asks) {
            return Asking::default();
        }
        Asking {
            any: hosts.get(&HostPattern::Any).copied().unwrap_or(false),
            hosts,
        }
    }

    /// Whether the clients of a name are asked.
    pub(super) fn asks(&self, name: &str) -> bool {
        if self.hosts.is_empty() {
            return false;
        }
        let name = name.strip_suffix('.').unwrap_or(name);
        let exact = self.hosts.get(&HostPattern::Exact(name.into()));
        let wildcard = || {
            let suffix = name.split_once('.')?.1;
            self.hosts.get(&HostPattern::Wildcard(suffix.into()))
        };
        exact.or_else(wildcard).copied().unwrap_or(self.any)
    }
}

/// Takes every certificate whose key the client proves to have.
#[derive(Debug)]
pub(super) struct Witness(pub(super) Arc<CryptoProvider>);

impl ClientCertVerifier for Witness {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_specific_host_says_whether_it_asks() {
        let exact = |name: &str| HostPattern::Exact(name.into());
        let wildcard = |name: &str| HostPattern::Wildcard(name.into());
        let asking = Asking::new([
            (exact("open.a.test"), false),
            (wildcard("a.test"), true),
            (exact("b.test"), true),
            (HostPattern::Any, false),
        ]);
        for (name, asks) in [
            ("open.a.test", false),
            ("x.a.test", true),
            ("x.a.test.", true),
            ("y.x.a.test", false),
            ("a.test", false),
            ("b.test", true),
            ("c.test", false),
            ("", false),
        ] {
            assert_eq!(asking.asks(name), asks, "{name}");
        }
        let everybody = Asking::new([(HostPattern::Any, true), (exact("a.test"), false)]);
        assert!(everybody.asks("") && everybody.asks("b.test"));
        assert!(!everybody.asks("a.test"));
    }
}
