//! Asking clients for a certificate: whatever they show is taken down, and judged by the Location
//! that they ask for.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};

use crate::model::{Handshake, HostPattern};

/// How handshakes are made with the clients of each host: by the most specific pattern that covers
/// the name, as a request's host is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handshakes {
    /// By host, a place in `kinds`. Empty where all are made alike.
    hosts: HashMap<HostPattern, usize>,
    /// Those that differ; the first is for names that no pattern covers.
    kinds: Vec<Handshake>,
}

impl Default for Handshakes {
    fn default() -> Self {
        Self::new([], Handshake::default())
    }
}

impl Handshakes {
    /// Of all hosts that there are, and of `other` names.
    pub fn new(
        hosts: impl IntoIterator<Item = (HostPattern, Handshake)>,
        other: Handshake,
    ) -> Self {
        let all: BTreeMap<_, _> = hosts.into_iter().collect();
        let other = all.get(&HostPattern::Any).unwrap_or(&other).clone();
        let mut kinds = vec![other];
        let mut places: HashMap<Handshake, usize> = HashMap::from([(kinds[0].clone(), 0)]);
        let mut hosts = HashMap::new();
        for (host, handshake) in all {
            let next = kinds.len();
            let place = *places.entry(handshake.clone()).or_insert(next);
            if place == next {
                kinds.push(handshake);
            }
            hosts.insert(host, place);
        }
        // All alike: then there is no need for the table.
        if kinds.len() == 1 {
            hosts = HashMap::new();
        }
        Handshakes { hosts, kinds }
    }

    /// Those that differ.
    pub(super) fn kinds(&self) -> &[Handshake] {
        &self.kinds
    }

    /// The place of a name's among them.
    pub(super) fn find(&self, name: &str) -> usize {
        if self.hosts.is_empty() {
            return 0;
        }
        let name = name.strip_suffix('.').unwrap_or(name);
        let exact = self.hosts.get(&HostPattern::Exact(name.into()));
        let wildcard = || {
            let suffix = name.split_once('.')?.1;
            self.hosts.get(&HostPattern::Wildcard(suffix.into()))
        };
        exact.or_else(wildcard).copied().unwrap_or(0)
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
    use crate::model::{Kind, ObjectRef};

    #[test]
    fn the_most_specific_host_says_whether_it_asks() {
        let exact = |name: &str| HostPattern::Exact(name.into());
        let wildcard = |name: &str| HostPattern::Wildcard(name.into());
        let (quiet, mut asking) = (Handshake::default(), Handshake::default());
        asking.authorities = [ObjectRef::new(Kind::Secret, "ns", "ca")].into();
        let all = Handshakes::new(
            [
                (exact("open.a.test"), quiet.clone()),
                (wildcard("a.test"), asking.clone()),
                (exact("b.test"), asking.clone()),
                (HostPattern::Any, quiet.clone()),
            ],
            asking.clone(),
        );
        assert_eq!(all.kinds(), [quiet.clone(), asking.clone()]);
        for (name, asks) in [
            ("open.a.test", 0),
            ("x.a.test", 1),
            ("x.a.test.", 1),
            ("y.x.a.test", 0),
            ("a.test", 0),
            ("b.test", 1),
            ("c.test", 0),
            ("", 0),
        ] {
            assert_eq!(all.find(name), asks, "{name}");
        }
        let everybody = [
            (HostPattern::Any, asking.clone()),
            (exact("a.test"), quiet.clone()),
        ];
        let everybody = Handshakes::new(everybody, Handshake::default());
        assert_eq!((everybody.find(""), everybody.find("b.test")), (0, 0));
        assert_eq!(everybody.kinds()[0], asking);
        assert_eq!(everybody.kinds()[everybody.find("a.test")], quiet);
    }

    #[test]
    fn where_all_are_alike_there_is_no_table() {
        let hosts = (0..3).map(|it| {
            let name = format!("{it}.test");
            (HostPattern::Exact(name.into()), Handshake::default())
        });
        let all = Handshakes::new(hosts, Handshake::default());
        assert!(all.hosts.is_empty() && all.kinds().len() == 1);
    }
}
