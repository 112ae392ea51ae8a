//! Whose certificates clients may show.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use rustls::{CertificateError, Error, RootCertStore};

use super::kind;
use crate::model::{ObjectRef, Problem, SecretData, Severity};

/// The most authorities of one Secret.
const MAX_AUTHORITIES: usize = 256;

/// The authorities of one Secret, and what they have revoked.
#[derive(Debug)]
pub struct Authorities {
    verifier: Arc<dyn ClientCertVerifier>,
    digest: [u8; 32],
}

/// Why a client's certificate is not good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unverified {
    /// What is wrong with it, in a word.
    pub reason: &'static str,
    /// Whether all that is wrong is that its authority is unknown.
    pub untrusted: bool,
}

/// Why a Secret holds no authorities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthoritiesError {
    /// Nothing in `ca.crt`, or not what it should be.
    #[error("ca.crt has no certificates in PEM that can be read")]
    Authorities,
    /// More than anybody needs.
    #[error("ca.crt has more than 256 certificates")]
    Many,
    /// `ca.crl` is there and cannot be read.
    #[error("ca.crl is no revocation list in PEM that can be read")]
    Revoked,
}

/// The certificates in `ca.crt`.
pub(super) fn roots(data: &SecretData) -> Result<Arc<RootCertStore>, AuthoritiesError> {
    let pem = data.get("ca.crt").ok_or(AuthoritiesError::Authorities)?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|_| AuthoritiesError::Authorities)?;
        roots
            .add(certificate)
            .map_err(|_| AuthoritiesError::Authorities)?;
        if roots.len() > MAX_AUTHORITIES {
            return Err(AuthoritiesError::Many);
        }
    }
    Ok(Arc::new(roots))
}

/// The revocation lists in `ca.crl`, if it is there.
pub(super) fn revoked(
    data: &SecretData,
) -> Result<Option<Vec<CertificateRevocationListDer<'static>>>, AuthoritiesError> {
    let Some(pem) = data.get("ca.crl") else {
        return Ok(None);
    };
    let lists = CertificateRevocationListDer::pem_slice_iter(pem);
    let lists = lists.collect::<Result<Vec<_>, _>>();
    let lists = lists.map_err(|_| AuthoritiesError::Revoked)?;
    match lists.is_empty() {
        true => Err(AuthoritiesError::Revoked),
        false => Ok(Some(lists)),
    }
}

/// What a verifier that cannot be made says of the Secret.
pub(super) fn unfit(error: &VerifierBuilderError) -> AuthoritiesError {
    match error {
        VerifierBuilderError::InvalidCrl(_) => AuthoritiesError::Revoked,
        _ => AuthoritiesError::Authorities,
    }
}

impl Authorities {
    /// Those of a Secret: `ca.crt`, and `ca.crl` if it is there.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn of(data: &SecretData) -> Result<Self, AuthoritiesError> {
        Self::read(
            data,
            &Arc::new(rustls::crypto::aws_lc_rs::default_provider()),
        )
    }

    fn read(data: &SecretData, provider: &Arc<CryptoProvider>) -> Result<Self, AuthoritiesError> {
        let roots = roots(data)?;
        let mut verifier = WebPkiClientVerifier::builder_with_provider(roots, provider.clone());
        if let Some(lists) = revoked(data)? {
            // A list that is out of date says nothing of what was revoked since.
            verifier = verifier.with_crls(lists).enforce_revocation_expiration();
        }
        let verifier = verifier.build();
        Ok(Authorities {
            verifier: verifier.map_err(|error| unfit(&error))?,
            digest: kind::of_entries([data.get("ca.crt"), data.get("ca.crl")]),
        })
    }

    /// Tells this content from any other.
    pub(super) fn digest(&self) -> &[u8] {
        &self.digest
    }

    /// Whether a client's chain leads to one of them over at most `depth` others, now.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn verify(&self, chain: &[CertificateDer<'_>], depth: u8) -> Result<(), Unverified> {
        let Some((own, others)) = chain.split_first() else {
            return Err(unverified("none"));
        };
        // What is not given cannot be gone over.
        let others = others.get(..usize::from(depth)).unwrap_or(others);
        match self
            .verifier
            .verify_client_cert(own, others, UnixTime::now())
        {
            Ok(_) => Ok(()),
            Err(Error::InvalidCertificate(error)) => Err(reason(&error)),
            Err(_) => Err(unverified("invalid")),
        }
    }
}

fn unverified(reason: &'static str) -> Unverified {
    Unverified {
        reason,
        untrusted: false,
    }
}

fn reason(error: &CertificateError) -> Unverified {
    match error {
        CertificateError::UnknownIssuer => Unverified {
            reason: "unknown-issuer",
            untrusted: true,
        },
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            unverified("expired")
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            unverified("not-valid-yet")
        }
        CertificateError::Revoked => unverified("revoked"),
        CertificateError::UnknownRevocationStatus
        | CertificateError::ExpiredRevocationList
        | CertificateError::ExpiredRevocationListContext { .. } => unverified("revocation-unknown"),
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            unverified("purpose")
        }
        CertificateError::BadSignature => unverified("signature"),
        _ => unverified("invalid"),
    }
}

/// The authorities of all Secrets in use, each parsed once for each content. One that turns bad
/// keeps its last good state, so that neither everybody nor nobody is let in.
#[derive(Debug, Default)]
pub(super) struct AuthorityStore(HashMap<ObjectRef, Known>);

#[derive(Debug)]
struct Known {
    data: SecretData,
    newest: Result<(), AuthoritiesError>,
    good: Option<Arc<Authorities>>,
}

impl AuthorityStore {
    /// Those of the Secrets that are `wanted`.
    pub(super) fn update(
        &mut self,
        wanted: &BTreeSet<ObjectRef>,
        secrets: &BTreeMap<ObjectRef, SecretData>,
        provider: &Arc<CryptoProvider>,
        problems: &mut Vec<Problem>,
    ) -> HashMap<ObjectRef, Arc<Authorities>> {
        self.0
            .retain(|secret, _| wanted.contains(secret) && secrets.contains_key(secret));
        for secret in wanted {
            let Some(data) = secrets.get(secret) else {
                continue;
            };
            let known = self.0.get(secret);
            if known.is_none_or(|known| known.data != *data) {
                let good = known.and_then(|known| known.good.clone());
                let (newest, good) = match Authorities::read(data, provider) {
                    Ok(authorities) => (Ok(()), Some(Arc::new(authorities))),
                    Err(error) => (Err(error), good),
                };
                let data = data.clone();
                let known = Known { data, newest, good };
                self.0.insert(secret.clone(), known);
            }
        }
        problems.extend(
            self.0
                .iter()
                .filter_map(|(secret, known)| problem(secret, known)),
        );
        let good = self.0.iter();
        good.filter_map(|(secret, known)| Some((secret.clone(), known.good.clone()?)))
            .collect()
    }
}

fn problem(secret: &ObjectRef, known: &Known) -> Option<Problem> {
    let error = known.newest.err()?;
    let effect = match known.good {
        Some(_) => "the authorities that it held before stay in use",
        None => "locations that ask for its clients answer 503",
    };
    Some(Problem {
        severity: Severity::Error,
        object: secret.clone(),
        source: String::new(),
        field: String::new(),
        code: "authorities-invalid",
        message: error.to_string(),
        effect: effect.to_owned(),
    })
}
