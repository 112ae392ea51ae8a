//! The certificates of all Secrets in use.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use super::authorities::AuthorityStore;
use super::certificates::Clients;
use super::ticket_store::TicketStore;
use super::upstreams::UpstreamStore;
use super::{Bound, Certificate, CertificateError, Certificates, Handshakes, TlsBase, TlsError};
use crate::model::{
    HostPattern, ObjectRef, Problem, SecretData, Severity, TlsHost, TlsSecret, UpstreamTls,
};

/// How long before its end an expiring certificate is reported, in seconds: 10 days, as
/// ingress-nginx.
const EXPIRY_WARNING: i64 = 10 * 24 * 3600;

/// What is asked of the store.
#[derive(Clone, Copy, Debug)]
pub struct Demand<'a> {
    /// The hosts that want a certificate.
    pub hosts: &'a [TlsHost],
    /// How handshakes are made.
    pub handshakes: &'a Handshakes,
    /// The Secret that the keys of tickets follow from, if one is named (`--tls-ticket-secret`), and
    /// its content, if it exists.
    pub tickets: Option<(&'a ObjectRef, Option<&'a SecretData>)>,
    /// The Secrets with authorities of such clients.
    pub authorities: &'a BTreeSet<ObjectRef>,
    /// The ways in which pods are spoken to.
    pub upstreams: &'a BTreeSet<UpstreamTls>,
    /// The Secrets in use.
    pub secrets: &'a BTreeMap<ObjectRef, SecretData>,
    /// The Secret of the default certificate, if one is named (`--default-ssl-certificate`), and its
    /// content, if it exists.
    pub default: Option<(&'a ObjectRef, Option<&'a SecretData>)>,
    /// For expiry.
    pub now: SystemTime,
}

/// See the module's text. Each Secret is parsed once for each content that it has; one that turns
/// bad keeps the last good certificate until it is good again or gone.
#[derive(Debug)]
pub struct CertStore {
    base: TlsBase,
    known: HashMap<ObjectRef, Known>,
    authorities: AuthorityStore,
    upstreams: UpstreamStore,
    own: Arc<Certificate>,
    tickets: TicketStore,
    current: Arc<Certificates>,
    parsed: u64,
}

#[derive(Debug)]
struct Known {
    data: SecretData,
    newest: Result<(), CertificateError>,
    good: Option<Arc<Certificate>>,
}

impl CertStore {
    /// A store that has only the default certificate, made now.
    ///
    /// # Errors
    /// When there is no randomness to be had.
    pub fn new(now: SystemTime) -> Result<Self, TlsError> {
        let base = TlsBase::default();
        let own = Arc::new(base.own_certificate(now)?);
        let tickets = TicketStore::new()?;
        let clients = Clients {
            handshakes: Handshakes::default(),
            authorities: HashMap::new(),
            upstreams: HashMap::new(),
            tickets: tickets.current(),
        };
        let current = Certificates::new(&base, Vec::new(), own.clone(), None, clients)?;
        Ok(CertStore {
            base,
            known: HashMap::new(),
            authorities: AuthorityStore::default(),
            upstreams: UpstreamStore::default(),
            own,
            tickets,
            current: Arc::new(current),
            parsed: 0,
        })
    }

    /// What is shown now.
    pub fn current(&self) -> &Arc<Certificates> {
        &self.current
    }

    /// How many times a Secret was parsed so far.
    pub fn parsed(&self) -> u64 {
        self.parsed
    }

    /// Finds the certificate of each host. What is shown changes only if a certificate did.
    pub fn update(&mut self, demand: Demand<'_>) -> (Arc<Certificates>, Vec<Problem>) {
        self.read(demand);
        let now = demand.now.duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |it| i64::try_from(it.as_secs()).unwrap_or(i64::MAX));
        let mut problems = Vec::new();
        let default_secret = demand
            .default
            .and_then(|it| self.default(it, now, &mut problems));
        let default = default_secret.as_ref().and_then(|it| self.good(it));
        let default = default.unwrap_or(&self.own).clone();
        let default_secret = default_secret.filter(|_| !Arc::ptr_eq(&default, &self.own));
        let hosts = demand.hosts.iter();
        let bound = hosts.map(|host| {
            let found = self.bind(host, now, &mut problems);
            let (secret, certificate) = match found {
                Some((secret, certificate)) => (Some(secret.clone()), certificate.clone()),
                None => (default_secret.clone(), default.clone()),
            };
            Bound {
                host: host.host.clone(),
                secret,
                certificate,
            }
        });
        let bound: Vec<_> = bound.collect();
        self.tickets.update(demand.tickets, &mut problems);
        let provider = self.base.provider();
        let clients = Clients {
            handshakes: demand.handshakes.clone(),
            tickets: self.tickets.current(),
            authorities: self.authorities.update(
                demand.authorities,
                demand.secrets,
                provider,
                &mut problems,
            ),
            upstreams: self.upstreams.update(
                demand.upstreams,
                demand.secrets,
                provider,
                &mut problems,
            ),
        };
        let secret = default_secret.as_ref();
        if !self.current.is(&bound, &default, secret, &clients) {
            match Certificates::new(&self.base, bound, default, default_secret, clients) {
                Ok(next) => self.current = Arc::new(next),
                Err(error) => tracing::error!(%error, "certificates stay as they were"),
            }
        }
        // Each host of an Ingress finds the same fault in its Secret.
        problems.sort();
        problems.dedup();
        (self.current.clone(), problems)
    }

    /// Parses what is new and forgets what nobody names any more.
    fn read(&mut self, demand: Demand<'_>) {
        let named = demand.hosts.iter().flat_map(|host| &host.secrets);
        let named = named.filter_map(|it| Some((&it.secret, demand.secrets.get(&it.secret)?)));
        let default = demand
            .default
            .and_then(|(secret, data)| Some((secret, data?)));
        let all: HashMap<_, _> = named.chain(default).collect();
        self.known.retain(|secret, _| all.contains_key(secret));
        for (secret, data) in all {
            let known = self.known.get(secret);
            if known.is_some_and(|known| known.data == *data) {
                continue;
            }
            self.parsed += 1;
            let good = known.and_then(|known| known.good.clone());
            let (newest, good) = match Certificate::read(data) {
                Ok(certificate) => (Ok(()), Some(Arc::new(certificate))),
                Err(error) => (Err(error), good),
            };
            let data = data.clone();
            let known = Known { data, newest, good };
            self.known.insert(secret.clone(), known);
        }
    }

    fn good(&self, secret: &ObjectRef) -> Option<&Arc<Certificate>> {
        self.known.get(secret)?.good.as_ref()
    }

    /// The certificate of a host, none for the default one.
    fn bind<'h>(
        &self,
        host: &'h TlsHost,
        now: i64,
        problems: &mut Vec<Problem>,
    ) -> Option<(&'h ObjectRef, &Arc<Certificate>)> {
        let mut report = Reporter {
            object: &host.ingress,
            source: &host.source,
            problems,
        };
        for named in &host.secrets {
            self.report_content(named, &mut report);
        }
        let covering = host.secrets.iter().find_map(|named| {
            let certificate = self.good(&named.secret)?;
            let fits = certificate.covers(&host.host);
            fits.then_some((named, certificate))
        });
        let Some((named, certificate)) = covering else {
            report_uncovered(host, &mut report, |secret| self.good(secret).is_some());
            return None;
        };
        report_time(named, certificate, now, &mut report);
        Some((&named.secret, certificate))
    }

    /// Reports what is wrong with the present content of a Secret.
    fn report_content(&self, named: &TlsSecret, report: &mut Reporter<'_>) {
        let Some(known) = self.known.get(&named.secret) else {
            return;
        };
        if let Err(error) = known.newest {
            let effect = match known.good {
                Some(_) => "the certificate that it held before stays in use",
                None => "its hosts are served with the default certificate",
            };
            let what = format!("{}: {error}", named.secret);
            report.add(
                Severity::Error,
                &named.field,
                "secret-invalid",
                what,
                effect,
            );
        }
    }

    /// The Secret of the default certificate, if it is of use.
    fn default(
        &self,
        (secret, data): (&ObjectRef, Option<&SecretData>),
        now: i64,
        problems: &mut Vec<Problem>,
    ) -> Option<ObjectRef> {
        let mut report = Reporter {
            object: secret,
            source: "",
            problems,
        };
        if data.is_none() {
            let what = "the Secret of --default-ssl-certificate does not exist".to_owned();
            let effect = "the certificate made at start is shown instead";
            report.add(Severity::Error, "", "secret-not-found", what, effect);
            return None;
        }
        let named = TlsSecret {
            secret: secret.clone(),
            field: String::new(),
        };
        self.report_content(&named, &mut report);
        let certificate = self.good(secret)?;
        report_time(&named, certificate, now, &mut report);
        Some(secret.clone())
    }
}

struct Reporter<'a> {
    object: &'a ObjectRef,
    source: &'a str,
    problems: &'a mut Vec<Problem>,
}

impl Reporter<'_> {
    fn add(
        &mut self,
        severity: Severity,
        field: &str,
        code: &'static str,
        message: String,
        effect: &str,
    ) {
        let problem = Problem {
            severity,
            object: self.object.clone(),
            source: self.source.to_owned(),
            field: field.to_owned(),
            code,
            message,
            effect: effect.to_owned(),
        };
        self.problems.push(problem);
    }
}

/// Reports that no certificate is for the host.
fn report_uncovered(
    host: &TlsHost,
    report: &mut Reporter<'_>,
    is_good: impl Fn(&ObjectRef) -> bool,
) {
    let good: Vec<_> = host
        .secrets
        .iter()
        .filter(|it| is_good(&it.secret))
        .collect();
    if host.host == HostPattern::Any || (good.is_empty() && !host.secrets.is_empty()) {
        // The fault of the Secret has been told.
        return;
    }
    let effect = "it is served with the default certificate";
    match good.first() {
        Some(named) if host.listed => {
            let what = format!(
                "the certificate in {} is not for {}",
                named.secret, host.host
            );
            report.add(
                Severity::Error,
                &named.field,
                "certificate-not-for-host",
                what,
                effect,
            );
        }
        _ if host.listed => {}
        _ => {
            let what = format!(
                "no certificate of the Ingress is for its host {}",
                host.host
            );
            report.add(
                Severity::Warning,
                "spec.tls",
                "certificate-not-for-host",
                what,
                effect,
            );
        }
    }
}

/// Reports a certificate that does not hold yet, or not any more, or not for long.
fn report_time(named: &TlsSecret, certificate: &Certificate, now: i64, report: &mut Reporter<'_>) {
    let facts = &certificate.facts;
    let (severity, code, what) = if facts.not_after <= now {
        (Severity::Error, "certificate-expired", "has expired")
    } else if facts.not_before > now {
        (
            Severity::Error,
            "certificate-not-valid-yet",
            "is not valid yet",
        )
    } else if facts.not_after - now < EXPIRY_WARNING {
        (
            Severity::Warning,
            "certificate-expires-soon",
            "expires in less than 10 days",
        )
    } else {
        return;
    };
    let what = format!("the certificate in {} {what}", named.secret);
    report.add(
        severity,
        &named.field,
        code,
        what,
        "it is served all the same",
    );
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
