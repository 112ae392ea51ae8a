use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::{Certificate, TlsBase};
use crate::model::{HostPattern, ObjectRef};

/// A host and the certificate that its clients are shown.
#[derive(Clone, Debug)]
pub struct Bound {
    /// The host.
    pub host: HostPattern,
    /// The Secret that it comes from; none for the default certificate.
    pub secret: Option<ObjectRef>,
    /// The certificate.
    pub certificate: Arc<Certificate>,
}

/// Which certificate each host has, at one moment. The cost of a look-up does not depend on how many
/// there are.
#[derive(Debug)]
pub struct Certificates {
    /// By host, in the order of the hosts.
    pub bound: Vec<Bound>,
    /// For everybody else.
    pub default: Arc<Certificate>,
    /// The Secret of the default certificate; none for the one made at start.
    pub default_secret: Option<ObjectRef>,
    config: Arc<ServerConfig>,
}

impl Certificates {
    /// Makes the tables.
    pub(super) fn new(
        base: &TlsBase,
        bound: Vec<Bound>,
        default: Arc<Certificate>,
        default_secret: Option<ObjectRef>,
    ) -> Self {
        let table = Table::new(&bound, &default);
        Certificates {
            config: Arc::new(base.server(Arc::new(table))),
            bound,
            default,
            default_secret,
        }
    }

    /// What a handshake is made with.
    pub fn config(&self) -> Arc<ServerConfig> {
        self.config.clone()
    }

    /// Whether clients would notice no difference.
    pub(super) fn is(
        &self,
        bound: &[Bound],
        default: &Arc<Certificate>,
        default_secret: Option<&ObjectRef>,
    ) -> bool {
        let same = |(one, other): (&Bound, &Bound)| {
            one.host == other.host
                && one.secret == other.secret
                && Arc::ptr_eq(&one.certificate, &other.certificate)
        };
        self.bound.len() == bound.len()
            && self.bound.iter().zip(bound).all(same)
            && self.default_secret.as_ref() == default_secret
            && Arc::ptr_eq(&self.default, default)
    }
}

/// Certificates by name: the exact one, then the wildcard of one label, then the default.
struct Table {
    exact: HashMap<Arc<str>, Arc<CertifiedKey>>,
    wildcard: HashMap<Arc<str>, Arc<CertifiedKey>>,
    default: Arc<CertifiedKey>,
}

impl Table {
    fn new(bound: &[Bound], default: &Certificate) -> Self {
        let (mut exact, mut wildcard) = (HashMap::new(), HashMap::new());
        for bound in bound {
            let key = bound.certificate.key.clone();
            match &bound.host {
                HostPattern::Exact(name) => exact.insert(name.clone(), key),
                HostPattern::Wildcard(suffix) => wildcard.insert(suffix.clone(), key),
                HostPattern::Any => None,
            };
        }
        Table {
            exact,
            wildcard,
            default: default.key.clone(),
        }
    }

    fn find(&self, name: &str) -> &Arc<CertifiedKey> {
        // rustls gives names in lower case.
        let name = name.strip_suffix('.').unwrap_or(name);
        let wildcard = || self.wildcard.get(name.split_once('.')?.1);
        let found = self.exact.get(name).or_else(wildcard);
        found.unwrap_or(&self.default)
    }
}

impl ResolvesServerCert for Table {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name().unwrap_or_default();
        Some(self.find(name).clone())
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (exact, wildcard) = (self.exact.len(), self.wildcard.len());
        write!(f, "Table({exact} exact, {wildcard} wildcard)")
    }
}
