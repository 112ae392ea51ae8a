//! TLS towards what is neither a client nor a pod: services that say who may call.

use std::sync::{Arc, OnceLock};

use rustls::crypto::aws_lc_rs;
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, RootCertStore};

use super::AuthoritiesError;
use super::authorities::roots;
use crate::model::SecretData;

/// Why there is no TLS towards a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OutsideError {
    /// The Secret vouches for nobody.
    #[error(transparent)]
    Authorities(#[from] AuthoritiesError),
    /// Nobody is trusted at all.
    #[error("the system has no certificates of authorities; name a Secret with a ca.crt")]
    NoSystem,
    /// No cryptography to share.
    #[error("no version of TLS is available")]
    Versions,
}

/// The authorities that the system trusts, read once: SSL_CERT_FILE, SSL_CERT_DIR, or where they
/// usually are. None when there are none.
pub(super) fn system_roots() -> Option<Arc<RootCertStore>> {
    static ROOTS: OnceLock<Arc<RootCertStore>> = OnceLock::new();
    let roots = ROOTS.get_or_init(|| {
        let mut roots = RootCertStore::empty();
        let found = rustls_native_certs::load_native_certs();
        // Systems carry some that no library takes.
        roots.add_parsable_certificates(found.certs);
        Arc::new(roots)
    });
    (!roots.is_empty()).then(|| roots.clone())
}

/// What connections are secured with to a server that must prove its name, by the authorities of a
/// Secret (`ca.crt`), or else by those of the system.
///
/// # Errors
/// When nobody can vouch for it.
pub fn outside(authorities: Option<&SecretData>) -> Result<Arc<ClientConfig>, OutsideError> {
    let roots = match authorities {
        Some(data) => roots(data)?,
        None => system_roots().ok_or(OutsideError::NoSystem)?,
    };
    if roots.is_empty() {
        return Err(AuthoritiesError::Authorities.into());
    }
    let provider = Arc::new(aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13, &TLS12])
        .map_err(|_| OutsideError::Versions)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}
