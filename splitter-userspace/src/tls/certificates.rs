use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::tickets::Tickets;
use super::{Authorities, Certificate, Handshakes, TicketSecret, TlsBase, UpstreamClient, kind};
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
    handshakes: Handshakes,
    authorities: HashMap<ObjectRef, Arc<Authorities>>,
    upstreams: HashMap<UpstreamTls, Arc<UpstreamClient>>,
    /// Which of the secrets for tickets that there were is in use.
    tickets: u64,
    /// One for each kind of handshake, in their order.
    configs: Vec<Arc<ServerConfig>>,
}

/// How handshakes are made and resumed, whose certificates clients may show; and what pods are spoken
/// to with.
#[derive(Debug)]
pub(super) struct Clients {
    pub(super) handshakes: Handshakes,
    pub(super) authorities: HashMap<ObjectRef, Arc<Authorities>>,
    pub(super) upstreams: HashMap<UpstreamTls, Arc<UpstreamClient>>,
    /// What the keys of tickets follow from, and which one it is of those that there were.
    pub(super) tickets: (u64, TicketSecret),
}

impl Certificates {
    /// Makes the tables.
    ///
    /// # Errors
    /// When a host's terms leave nothing to agree on, which those of `translate` do not.
    pub(super) fn new(
        base: &TlsBase,
        bound: Vec<Bound>,
        default: Arc<Certificate>,
        default_secret: Option<ObjectRef>,
        clients: Clients,
    ) -> Result<Self, rustls::Error> {
        let table = Arc::new(Table::new(&bound, &default));
        let (tickets, secret) = clients.tickets;
        let configs = clients.handshakes.kinds().iter().map(|handshake| {
            let kind = kind::digest(handshake, &clients.authorities);
            let tickets = Arc::new(Tickets::new(secret.clone(), kind));
            let asked = !handshake.authorities.is_empty();
            let config = base.server(table.clone(), &handshake.terms, asked, tickets);
            config.map(Arc::new)
        });
        Ok(Certificates {
            configs: configs.collect::<Result<_, _>>()?,
            handshakes: clients.handshakes,
            authorities: clients.authorities,
            upstreams: clients.upstreams,
            tickets,
            bound,
            default,
            default_secret,
        })
    }

    /// What a handshake with a client of `name` is made with; no name is empty.
    pub fn config(&self, name: &str) -> Option<&Arc<ServerConfig>> {
        self.configs.get(self.handshakes.find(name))
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
            && self.handshakes == clients.handshakes
            && self.tickets == clients.tickets.0
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
