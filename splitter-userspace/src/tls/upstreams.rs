//! TLS towards pods: who they must prove to be, and who we are to them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{ResolvesClientCert, Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, Error, SignatureScheme};

use super::authorities::{revoked, roots, unfit};
use super::outside::system_roots;
use super::{AuthoritiesError, Certificate, CertificateError, terms};
use crate::model::{Kind, ObjectRef, Problem, SecretData, Severity, UpstreamTls};

/// The name where none is needed: pods are not told it, and it is not looked for.
const NOBODY: &str = "upstream.invalid";

/// What connections to pods are secured with: of one identity, which is made anew when its Secret
/// changes.
#[derive(Debug)]
pub struct UpstreamClient {
    id: u64,
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

/// Why there is no such thing. Says nothing of what the Secret holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UpstreamTlsError {
    /// Nobody to vouch for pods.
    #[error(transparent)]
    Authorities(#[from] AuthoritiesError),
    /// No certificate to show them.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// Nothing that a certificate can be for.
    #[error("the pods' name is neither a DNS name nor an IP address")]
    Name,
    /// No cryptography that they could share with us.
    #[error("no version of TLS is available")]
    Versions,
}

impl UpstreamClient {
    fn read(
        wanted: &UpstreamTls,
        data: Option<&SecretData>,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Self, UpstreamTlsError> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let name = wanted.name.as_deref();
        if name.is_none() && wanted.verify {
            return Err(UpstreamTlsError::Name);
        }
        let name = ServerName::try_from(name.unwrap_or(NOBODY).to_owned());
        let spoken = terms::provider(&wanted.terms, provider);
        let builder = ClientConfig::builder_with_provider(spoken)
            .with_protocol_versions(terms::versions(&wanted.terms))
            .map_err(|_| UpstreamTlsError::Versions)?
            .dangerous()
            .with_custom_certificate_verifier(verifier(wanted, data, provider)?);
        let own = data.filter(|data| {
            let mut own = ["tls.crt", "tls.key"].into_iter();
            own.any(|key| data.get(key).is_some())
        });
        let mut config = match own {
            None => builder.with_no_client_auth(),
            Some(data) => {
                let own = Certificate::read(data)?;
                builder.with_client_cert_resolver(Arc::new(Own(own.key)))
            }
        };
        config.enable_sni = wanted.server_name && wanted.name.is_some();
        if wanted.http2 {
            // A pod that chooses nothing may speak it all the same: its first frame tells.
            config.alpn_protocols = vec![b"h2".to_vec()];
        }
        // Pods share the name but no keys for tickets, and each connection is proven by itself.
        config.resumption = Resumption::disabled();
        Ok(UpstreamClient {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            config: Arc::new(config),
            name: name.map_err(|_| UpstreamTlsError::Name)?,
        })
    }

    /// Tells identities apart, for as long as the process runs; never 0.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The client's side of a new connection.
    ///
    /// # Errors
    /// When no handshake can be begun.
    pub fn connection(&self) -> Result<ClientConnection, Error> {
        ClientConnection::new(self.config.clone(), self.name.clone())
    }
}

fn verifier(
    wanted: &UpstreamTls,
    data: Option<&SecretData>,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, UpstreamTlsError> {
    if !wanted.verify {
        return Ok(Arc::new(Anybody(provider.clone())));
    }
    let trusted = match data {
        Some(data) => roots(data)?,
        // Of a service outside that anybody may vouch for whom the system trusts.
        None => system_roots().ok_or(AuthoritiesError::Authorities)?,
    };
    let builder = WebPkiServerVerifier::builder_with_provider(trusted, provider.clone());
    let builder = match data.map(revoked).transpose()?.flatten() {
        None => builder,
        Some(lists) => builder.with_crls(lists).enforce_revocation_expiration(),
    };
    let verifier = builder.build().map_err(|error| unfit(&error))?;
    Ok(Arc::new(Near {
        verifier,
        depth: usize::from(wanted.depth),
    }))
}

/// Goes over at most so many certificates between a pod's own and an authority's.
#[derive(Debug)]
struct Near {
    verifier: Arc<WebPkiServerVerifier>,
    depth: usize,
}

impl ServerCertVerifier for Near {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        // What is not given cannot be gone over.
        let near = intermediates.get(..self.depth).unwrap_or(intermediates);
        let verifier = &self.verifier;
        verifier.verify_server_cert(end_entity, near, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}

/// Our certificate, whoever the pods trust.
#[derive(Debug)]
struct Own(Arc<CertifiedKey>);

impl ResolvesClientCert for Own {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(self.0.clone())
    }

    fn has_certs(&self) -> bool {
        true
    }
}

/// Takes every certificate whose key the pod proves to have.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
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

/// All that are in use, each made once for each content of its Secret. One whose Secret turns bad
/// stays as it was: it asks for no less.
#[derive(Debug, Default)]
pub(super) struct UpstreamStore(HashMap<UpstreamTls, Known>);

#[derive(Debug)]
struct Known {
    data: Option<SecretData>,
    newest: Result<(), UpstreamTlsError>,
    good: Option<Arc<UpstreamClient>>,
}

impl UpstreamStore {
    /// Those that are `wanted`, as far as they can be made.
    pub(super) fn update(
        &mut self,
        wanted: &BTreeSet<UpstreamTls>,
        secrets: &BTreeMap<ObjectRef, SecretData>,
        provider: &Arc<CryptoProvider>,
        problems: &mut Vec<Problem>,
    ) -> HashMap<UpstreamTls, Arc<UpstreamClient>> {
        self.0.retain(|tls, _| wanted.contains(tls));
        for tls in wanted {
            let data = tls.secret.as_ref().map(|secret| secrets.get(secret));
            if data == Some(None) {
                // Gone: what it held is not to be used any more.
                self.0.remove(tls);
                continue;
            }
            let data = data.flatten();
            let known = self.0.get(tls);
            if known.is_some_and(|known| known.data.as_ref() == data) {
                continue;
            }
            let good = known.and_then(|known| known.good.clone());
            let (newest, good) = match UpstreamClient::read(tls, data, provider) {
                Ok(client) => (Ok(()), Some(Arc::new(client))),
                Err(error) => (Err(error), good),
            };
            let data = data.cloned();
            self.0.insert(tls.clone(), Known { data, newest, good });
        }
        problems.extend(self.0.iter().filter_map(|(tls, known)| problem(tls, known)));
        let good = self.0.iter();
        good.filter_map(|(tls, known)| Some((tls.clone(), known.good.clone()?)))
            .collect()
    }
}

/// Whom a fault is told of: without a Secret, the service that nobody vouches for.
fn object(tls: &UpstreamTls) -> Option<ObjectRef> {
    let outside = || Some(ObjectRef::new(Kind::Service, "", tls.name.as_deref()?));
    tls.secret.clone().or_else(outside)
}

fn problem(tls: &UpstreamTls, known: &Known) -> Option<Problem> {
    let error = known.newest.err()?;
    let effect = match known.good {
        Some(_) => "what it held before stays in use",
        None => "locations whose pods it is for answer 503",
    };
    Some(Problem {
        severity: Severity::Error,
        object: object(tls)?,
        source: String::new(),
        field: String::new(),
        code: "upstream-tls-invalid",
        message: error.to_string(),
        effect: effect.to_owned(),
    })
}
