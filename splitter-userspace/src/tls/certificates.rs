use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::{Asking, Authorities, Certificate, TlsBase, UpstreamClient};
use crate::model::{HostPattern, ObjectRef, UpstreamTls};

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
    asking: Asking,
    authorities: HashMap<ObjectRef, Arc<Authorities>>,
    upstreams: HashMap<UpstreamTls, Arc<UpstreamClient>>,
    config: Arc<ServerConfig>,
    asking_config: Arc<ServerConfig>,
}

/// What a host's clients are asked for, and by whom it may be signed; and what pods are spoken to
/// with.
#[derive(Debug, Default)]
pub(super) struct Clients {
    pub(super) asking: Asking,
    pub(super) authorities: HashMap<ObjectRef, Arc<Authorities>>,
    pub(super) upstreams: HashMap<UpstreamTls, Arc<UpstreamClient>>,
}

impl Certificates {
    /// Makes the tables.
    pub(super) fn new(
        base: &TlsBase,
        bound: Vec<Bound>,
        default: Arc<Certificate>,
        default_secret: Option<ObjectRef>,
        clients: Clients,
    ) -> Self {
        let table = Arc::new(Table::new(&bound, &default));
        Certificates {
            config: Arc::new(base.server(table.clone(), false)),
            asking_config: Arc::new(base.server(table, true)),
            asking: clients.asking,
            authorities: clients.authorities,
            upstreams: clients.upstreams,
            bound,
            default,
            default_secret,
        }
    }

    /// What a handshake with a client of `name` is made with; no name is empty.
    pub fn config(&self, name: &str) -> Arc<ServerConfig> {
        match self.asking.asks(name) {
            true => self.asking_config.clone(),
            false => self.config.clone(),
        }
    }

    /// The authorities in a Secret, if there are any.
    pub fn authorities(&self, secret: &ObjectRef) -> Option<&Arc<Authorities>> {
        self.authorities.get(secret)
    }

    /// What connections to pods are secured with, if it could be made.
    pub fn upstream(&self, tls: &UpstreamTls) -> Option<&Arc<UpstreamClient>> {
        self.upstreams.get(tls)
    }

    /// Whether neither clients nor pods would notice a difference.
    pub(super) fn is(
        &self,
        bound: &[Bound],
        default: &Arc<Certificate>,
        default_secret: Option<&ObjectRef>,
        clients: &Clients,
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
            && self.asking == clients.asking
            && self.authorities.len() == clients.authorities.len()
            && clients.authorities.iter().all(|(secret, it)| {
                let mine = self.authorities.get(secret);
                mine.is_some_and(|mine| Arc::ptr_eq(mine, it))
            })
            && self.upstreams.len() == clients.upstreams.len()
            && clients.upstreams.iter().all(|(tls, it)| {
                let mine = self.upstreams.get(tls);
                mine.is_some_and(|mine| Arc::ptr_eq(mine, it))
            })
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
