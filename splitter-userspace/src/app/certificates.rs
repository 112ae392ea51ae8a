//! From the Secrets of a state to what handshakes are made with.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::watch;

use crate::config::NamespacedName;
use crate::model::{
    Handshake, HostPattern, Kind, ObjectRef, Problem, SecretData, Snapshot, TlsHost, UpstreamTls,
};
use crate::telemetry::{Labels, Registry, SSL_CERTIFICATE_INFO, SSL_EXPIRE_TIME, Text};
use crate::tls::{Bound, CertStore, Certificates, Demand, Handshakes, TlsError};

/// How often it is looked whether a certificate expires.
const EXPIRY_EVERY: Duration = Duration::from_secs(60);

/// Publishes certificates, and says what is wrong with them.
pub struct CertPublisher {
    store: CertStore,
    sender: watch::Sender<Arc<Certificates>>,
    default: Option<ObjectRef>,
    tickets: Option<ObjectRef>,
    hosts: Vec<TlsHost>,
    handshakes: Handshakes,
    authorities: BTreeSet<ObjectRef>,
    upstreams: BTreeSet<UpstreamTls>,
    secrets: Arc<BTreeMap<ObjectRef, SecretData>>,
    /// What was wrong when it was looked at last; none before that.
    faulty: Option<Vec<Problem>>,
    looked: Instant,
}

impl CertPublisher {
    /// Publishes the default certificate made now, so that there is one.
    ///
    /// # Errors
    /// When there is no randomness to be had.
    pub fn new(
        default: Option<&NamespacedName>,
        tickets: Option<&NamespacedName>,
        class: &str,
        registry: &Registry,
    ) -> Result<(Self, watch::Receiver<Arc<Certificates>>), TlsError> {
        let store = CertStore::new(SystemTime::now())?;
        let (sender, receiver) = watch::channel(store.current().clone());
        collect(registry, class.to_owned(), receiver.clone());
        let publisher = CertPublisher {
            store,
            sender,
            default: default.map(secret_ref),
            tickets: tickets.map(secret_ref),
            hosts: Vec::new(),
            handshakes: Handshakes::default(),
            authorities: BTreeSet::new(),
            upstreams: BTreeSet::new(),
            secrets: Arc::default(),
            faulty: None,
            looked: Instant::now(),
        };
        Ok((publisher, receiver))
    }

    /// Has the next handshakes be made with what a state and its Secrets say; `before` is the state
    /// that was given the last time.
    pub fn publish(
        &mut self,
        before: &Snapshot,
        snapshot: &Snapshot,
        secrets: Arc<BTreeMap<ObjectRef, SecretData>>,
    ) -> Vec<Problem> {
        if let Some(faulty) = &self.faulty
            && self.secrets == secrets
            && same_handshakes(before, snapshot)
        {
            return faulty.clone();
        }
        self.hosts = snapshot.tls_hosts();
        let other = Handshake {
            terms: snapshot.tls_default.clone(),
            ..Handshake::default()
        };
        self.handshakes = Handshakes::new(snapshot.handshakes(), other);
        self.authorities = snapshot.authorities();
        self.upstreams = snapshot.upstream_tls();
        self.secrets = secrets;
        self.update()
    }

    /// The Problems once more when it is time for that: certificates expire without an event.
    pub fn look(&mut self) -> Option<Vec<Problem>> {
        (self.looked.elapsed() >= EXPIRY_EVERY).then(|| self.update())
    }

    fn update(&mut self) -> Vec<Problem> {
        self.looked = Instant::now();
        let (default, tickets) = (self.default.as_ref(), self.tickets.as_ref());
        let (certificates, problems) = self.store.update(Demand {
            hosts: &self.hosts,
            handshakes: &self.handshakes,
            tickets: tickets.map(|secret| (secret, self.secrets.get(secret))),
            authorities: &self.authorities,
            upstreams: &self.upstreams,
            secrets: &self.secrets,
            default: default.map(|secret| (secret, self.secrets.get(secret))),
            now: SystemTime::now(),
        });
        self.sender.send_if_modified(|present| {
            let changed = !Arc::ptr_eq(present, &certificates);
            *present = certificates;
            changed
        });
        self.faulty = Some(problems.clone());
        problems
    }
}

/// Whether two states ask for the same handshakes, with clients and with pods. Most changes leave
/// them alone, which is seen at once where the parts are the same allocations.
fn same_handshakes(one: &Snapshot, other: &Snapshot) -> bool {
    one.tls == other.tls
        && one.tls_terms == other.tls_terms
        && one.tls_default == other.tls_default
        && one.hosts == other.hosts
        && one.same_locations(other, |one, other| one.policy == other.policy)
}

/// Names a Secret.
pub fn secret_ref(name: &NamespacedName) -> ObjectRef {
    ObjectRef::new(Kind::Secret, &name.namespace, &name.name)
}

/// Has ingress-nginx's families about certificates be written whenever a page is made.
fn collect(registry: &Registry, class: String, certificates: watch::Receiver<Arc<Certificates>>) {
    registry.collect(move |text| write(&certificates.borrow().clone(), &class, text));
}

fn write(certificates: &Certificates, class: &str, text: &mut Text) {
    let bound = certificates.bound.iter();
    let bound: Vec<_> = bound.filter(|it| it.host != HostPattern::Any).collect();
    if bound.is_empty() {
        return;
    }
    text.family(&SSL_EXPIRE_TIME);
    for bound in &bound {
        let expires = u64::try_from(bound.certificate.facts.not_after).unwrap_or(0);
        text.sample(&SSL_EXPIRE_TIME, &labels(bound, class), expires);
    }
    text.family(&SSL_CERTIFICATE_INFO);
    for bound in &bound {
        let facts = &bound.certificate.facts;
        let mut labels = labels(bound, class);
        labels.push("issuer_organization", &facts.issuer_organization);
        labels.push("issuer_common_name", &facts.issuer_common_name);
        labels.push("serial_number", &facts.serial);
        labels.push("public_key_algorithm", facts.algorithm);
        text.sample(&SSL_CERTIFICATE_INFO, &labels, 1);
    }
}

fn labels(bound: &Bound, class: &str) -> Labels {
    let secret = bound.secret.as_ref();
    let mut labels = Labels::default();
    labels.push("namespace", secret.map_or("", |it| &it.namespace));
    labels.push("class", class);
    labels.push("host", &bound.host.to_string());
    labels.push("secret_name", secret.map_or("", |it| &it.name));
    labels.push("identifier", &bound.certificate.facts.serial);
    labels
}
