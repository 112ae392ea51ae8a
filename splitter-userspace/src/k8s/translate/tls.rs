//! Which hosts are served over TLS, and which Secrets may hold their certificates. What is in a
//! Secret is looked at where it is used: parsing needs a memory of what was good before.

use std::cell::RefCell;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::networking::v1::IngressTLS;

use super::View;
use super::host;
use super::index::ByName;
use super::report::Problems;
use crate::k8s::{Objects, Sourced};
use crate::model::{HostPattern, Kind, ObjectRef, SecretData, TlsHost, TlsSecret};

/// The Secrets and ConfigMaps by namespace and name.
#[derive(Default)]
pub(super) struct SecretIndex {
    pub secrets: ByName<Secret>,
    pub maps: ByName<ConfigMap>,
}

impl SecretIndex {
    pub(super) fn of(objects: &Objects) -> Self {
        SecretIndex {
            secrets: objects.secrets.iter().collect(),
            maps: objects.config_maps.iter().collect(),
        }
    }

    pub(super) fn get(&self, namespace: &str, name: &str) -> Option<&Sourced<Secret>> {
        self.secrets.get(namespace, name)
    }

    pub(super) fn map(&self, namespace: &str, name: &str) -> Option<&Sourced<ConfigMap>> {
        self.maps.get(namespace, name)
    }
}

/// The Secrets and ConfigMaps, and which of them are used.
pub(super) struct Secrets<'a> {
    all: &'a SecretIndex,
    used: RefCell<BTreeMap<ObjectRef, SecretData>>,
    /// What was looked for, and what was there.
    asked: RefCell<BTreeMap<ObjectRef, Option<Arc<Secret>>>>,
    asked_maps: RefCell<BTreeMap<ObjectRef, Option<Arc<ConfigMap>>>>,
}

impl<'a> Secrets<'a> {
    pub(super) fn new(all: &'a SecretIndex) -> Self {
        Secrets {
            all,
            used: RefCell::default(),
            asked: RefCell::default(),
            asked_maps: RefCell::default(),
        }
    }

    /// Notes that a ConfigMap is used; none if there is none of that name.
    pub(super) fn take_config_map(&self, namespace: &str, name: &str) -> Option<ObjectRef> {
        let map = self.look_for_map(namespace, name)?;
        let object = ObjectRef::new(Kind::ConfigMap, namespace, name);
        let mut used = self.used.borrow_mut();
        used.entry(object.clone()).or_insert_with(|| map.data());
        Some(object)
    }

    fn look_for_map(&self, namespace: &str, name: &str) -> Option<&'a Sourced<ConfigMap>> {
        let found = self.all.map(namespace, name);
        let object = ObjectRef::new(Kind::ConfigMap, namespace, name);
        let seen = || found.map(|it| Arc::clone(&it.object));
        self.asked_maps
            .borrow_mut()
            .entry(object)
            .or_insert_with(seen);
        found
    }

    /// The values of a ConfigMap that are text, by key.
    pub(super) fn config_map(
        &self,
        namespace: &str,
        name: &str,
    ) -> Option<&'a BTreeMap<String, String>> {
        const NONE: &BTreeMap<String, String> = &BTreeMap::new();
        Some(
            self.look_for_map(namespace, name)?
                .object
                .data
                .as_ref()
                .unwrap_or(NONE),
        )
    }

    /// Notes that a Secret is used; none if there is none of that name.
    pub(super) fn take(&self, namespace: &str, name: &str) -> Option<ObjectRef> {
        let found = self.all.get(namespace, name);
        let object = ObjectRef::new(Kind::Secret, namespace, name);
        let seen = || found.map(|it| Arc::clone(&it.object));
        let mut asked = self.asked.borrow_mut();
        asked.entry(object.clone()).or_insert_with(seen);
        let secret = found?;
        let mut used = self.used.borrow_mut();
        used.entry(object.clone()).or_insert_with(|| secret.data());
        Some(object)
    }

    /// Whether a Secret that is used has an entry.
    pub(super) fn holds(&self, secret: &ObjectRef, key: &str) -> bool {
        let used = self.used.borrow();
        used.get(secret).is_some_and(|data| data.get(key).is_some())
    }

    /// The content of those that are used.
    pub(super) fn used(&self) -> BTreeMap<ObjectRef, SecretData> {
        self.used.take()
    }

    /// The ConfigMaps that were looked for, and what was there.
    pub(super) fn asked_maps(&self) -> BTreeMap<ObjectRef, Option<Arc<ConfigMap>>> {
        self.asked_maps.take()
    }

    /// Those that were looked for, and what was there.
    pub(super) fn asked(&self) -> BTreeMap<ObjectRef, Option<Arc<Secret>>> {
        self.asked.take()
    }
}

/// The hosts of all main Ingresses with a `spec.tls`, which are sorted by age: the oldest one decides
/// for a host, even when it names no Secret.
pub(super) fn hosts(
    mains: &[&View<'_>],
    secrets: &Secrets<'_>,
    problems: &mut Problems,
) -> Vec<TlsHost> {
    let mut taken = BTreeMap::new();
    for view in mains {
        let entries = view.spec().and_then(|it| it.tls.as_deref());
        let entries = entries.unwrap_or_default();
        if entries.is_empty() {
            continue;
        }
        let hosts = rule_hosts(view);
        report_unused(view, entries, &hosts, problems);
        let named = named(view, entries, secrets, problems);
        for host in hosts {
            let wish = wish(view, &host, entries, &named);
            match taken.entry(host) {
                Entry::Vacant(free) => {
                    free.insert(wish);
                }
                Entry::Occupied(older) => report_conflict(view, older.get(), &wish, problems),
            }
        }
    }
    taken.into_values().collect()
}

/// The hosts of the rules; what is wrong with them is reported elsewhere.
pub(super) fn rule_hosts(view: &View<'_>) -> BTreeSet<HostPattern> {
    let rules = view.spec().and_then(|it| it.rules.as_ref());
    let hosts = rules.into_iter().flatten();
    hosts
        .filter_map(|rule| host::parse(rule.host.as_deref().unwrap_or("")).ok())
        .collect()
}

/// The Secret of each entry, none where it names none or it does not exist.
fn named(
    view: &View<'_>,
    entries: &[IngressTLS],
    secrets: &Secrets<'_>,
    problems: &mut Problems,
) -> Vec<Option<TlsSecret>> {
    let namespace = &*view.subject.object.namespace;
    let mut named = Vec::with_capacity(entries.len());
    for (index, entry) in entries.iter().enumerate() {
        let name = entry.secret_name.as_deref().unwrap_or("");
        let field = format!("spec.tls[{index}].secretName");
        let secret = secrets.take(namespace, name);
        if secret.is_none() && !name.is_empty() {
            problems.error(
                &view.subject,
                field.clone(),
                "secret-not-found",
                format!("there is no Secret {namespace}/{name}"),
                "its hosts are served with the default certificate",
            );
        }
        named.push(secret.map(|secret| TlsSecret { secret, field }));
    }
    named
}

fn wish(
    view: &View<'_>,
    host: &HostPattern,
    entries: &[IngressTLS],
    named: &[Option<TlsSecret>],
) -> TlsHost {
    let listing = entries
        .iter()
        .position(|entry| listed(entry).any(|it| it == *host));
    let secrets = match (host, listing) {
        // No certificate covers every host: clients are shown the default one.
        (HostPattern::Any, _) => Vec::new(),
        (_, Some(index)) => named.get(index).cloned().flatten().into_iter().collect(),
        (_, None) => named.iter().flatten().cloned().collect(),
    };
    TlsHost {
        host: host.clone(),
        ingress: view.subject.object.clone(),
        listed: listing.is_some() || *host == HostPattern::Any,
        secrets,
        source: view.subject.source.to_owned(),
    }
}

fn listed(entry: &IngressTLS) -> impl Iterator<Item = HostPattern> + '_ {
    let hosts = entry.hosts.iter().flatten();
    hosts.filter_map(|host| host::parse(host).ok())
}

/// Reports hosts in `spec.tls` for which the Ingress has no rule.
fn report_unused(
    view: &View<'_>,
    entries: &[IngressTLS],
    hosts: &BTreeSet<HostPattern>,
    problems: &mut Problems,
) {
    // A wildcard may be listed for the sake of hosts below it.
    let used = |pattern: &HostPattern| match pattern {
        HostPattern::Wildcard(suffix) => hosts.iter().any(|host| match host {
            HostPattern::Exact(name) => name.split_once('.').is_some_and(|it| it.1 == &**suffix),
            host => host == pattern,
        }),
        pattern => hosts.contains(pattern),
    };
    for (index, entry) in entries.iter().enumerate() {
        for (at, text) in entry.hosts.iter().flatten().enumerate() {
            let field = format!("spec.tls[{index}].hosts[{at}]");
            match host::parse(text) {
                Ok(host) if used(&host) => {}
                Ok(_) => problems.warn(
                    &view.subject,
                    field,
                    "tls-host-unused",
                    format!("{text:?}: the Ingress has no rule for this host"),
                    "the entry has no effect for it",
                ),
                Err(why) => problems.warn(
                    &view.subject,
                    field,
                    "host-invalid",
                    format!("{text:?}: {why}"),
                    "the entry has no effect for it",
                ),
            }
        }
    }
}

/// Reports a Secret that is not used because an older Ingress has said which one is.
fn report_conflict(view: &View<'_>, older: &TlsHost, wish: &TlsHost, problems: &mut Problems) {
    let [own] = wish.secrets.as_slice() else {
        return;
    };
    if older.secrets.iter().any(|it| it.secret == own.secret) {
        return;
    }
    problems.warn(
        &view.subject,
        own.field.clone(),
        "tls-host-taken",
        format!(
            "the older {} says which certificate {} has",
            older.ingress, older.host
        ),
        format!("{} is not used for it", own.secret),
    );
}
