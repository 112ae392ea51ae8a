use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Serialize;

use super::{
    Backend, BackendKey, Handshake, Host, HostPattern, L4, Location, ObjectRef, Rows, TlsHost,
    TlsTerms, UpstreamTls,
};

/// Index of a Location in [`Snapshot::locations`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct LocationId(pub u32);

/// Index of a Backend in [`Snapshot::backends`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct BackendId(pub u32);

/// All routing state at one moment: immutable, comparable, in a stable order.
///
/// Equal objects give an equal Snapshot, whatever the order in which they came. What did not change
/// between two Snapshots is shared, behind the inner `Arc`s and in [`Rows`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Snapshot {
    /// Sorted by pattern: exact names, wildcards, any.
    pub hosts: Rows<Host>,
    /// Sorted by key.
    pub locations: Rows<Arc<Location>>,
    /// Sorted by key, then fault.
    pub backends: Rows<Arc<Backend>>,
    /// The hosts that are served over TLS on purpose, sorted by host.
    #[serde(skip_serializing_if = "Rows::is_empty")]
    pub tls: Rows<TlsHost>,
    /// How TLS is spoken with the clients of hosts, where an Ingress says so.
    #[serde(skip_serializing_if = "none_of")]
    pub tls_terms: Arc<BTreeMap<HostPattern, TlsTerms>>,
    /// The same for everybody else.
    #[serde(skip_serializing_if = "TlsTerms::is_default")]
    pub tls_default: TlsTerms,
    /// The hosts whose TLS is left to the pods (`ssl-passthrough`), and the Location that says which.
    #[serde(skip_serializing_if = "none_of")]
    pub passthrough: Arc<BTreeMap<HostPattern, LocationId>>,
    /// What is split without a look at HTTP.
    #[serde(skip_serializing_if = "no_l4")]
    pub l4: Arc<L4>,
}

impl Snapshot {
    /// The Location of an id that this Snapshot gave out.
    pub fn location(&self, id: LocationId) -> Option<&Arc<Location>> {
        self.locations.get(id.0 as usize)
    }

    /// The Backend of an id that this Snapshot gave out.
    pub fn backend(&self, id: BackendId) -> Option<&Arc<Backend>> {
        self.backends.get(id.0 as usize)
    }

    /// Whether this Snapshot and another one have as many Locations, and `same` is true of all that have
    /// the same number. Those that both share are not looked at.
    pub fn same_locations(
        &self,
        other: &Self,
        same: impl Fn(&Location, &Location) -> bool,
    ) -> bool {
        same_all(&self.locations, &other.locations, same)
    }

    /// The same for Backends.
    pub fn same_backends(&self, other: &Self, same: impl Fn(&Backend, &Backend) -> bool) -> bool {
        same_all(&self.backends, &other.backends, same)
    }

    /// The Backend with this key; the one without a fault of its Location's, if there are two.
    pub fn backend_by_key(&self, key: &BackendKey) -> Option<&Arc<Backend>> {
        let index = self.backends.partition_point(|it| it.key < *key);
        self.backends.get(index).filter(|it| it.key == *key)
    }

    /// The Secrets with authorities of clients that Locations refer to.
    pub fn authorities(&self) -> BTreeSet<ObjectRef> {
        let policies = self.locations.iter().filter_map(|it| it.policy.as_deref());
        let certs = policies.filter_map(|policy| policy.client_cert.as_ref());
        certs.map(|cert| cert.authorities.clone()).collect()
    }

    /// The ways in which Locations speak TLS with their pods, and with services that they ask.
    pub fn upstream_tls(&self) -> BTreeSet<UpstreamTls> {
        let policies = self.locations.iter().filter_map(|it| it.policy.as_deref());
        let wanted = policies.flat_map(|policy| {
            let external = policy.guards.as_ref().and_then(|it| it.external.as_ref());
            let external = external.and_then(|it| it.tls.as_ref());
            policy.upstream_tls.iter().chain(external).cloned()
        });
        wanted.collect()
    }

    /// The hosts, and how handshakes with their clients are made.
    pub fn handshakes(&self) -> impl Iterator<Item = (HostPattern, Handshake)> + '_ {
        self.hosts.iter().flat_map(|host| {
            let locations = host.locations.iter().filter_map(|id| self.location(*id));
            let policies = locations.filter_map(|it| it.policy.as_deref());
            let certs = policies.filter_map(|policy| policy.client_cert.as_ref());
            let terms = self.tls_terms.get(&host.pattern);
            let handshake = Handshake {
                terms: terms.unwrap_or(&self.tls_default).clone(),
                authorities: certs.map(|it| it.authorities.clone()).collect(),
            };
            let names = std::iter::once(&host.pattern).chain(&host.aliases);
            names.map(move |name| (name.clone(), handshake.clone()))
        })
    }

    /// The hosts that are served over TLS, their further names among them: each has the Secrets of
    /// the host that it stands for, unless it has its own.
    pub fn tls_hosts(&self) -> Vec<TlsHost> {
        let own = |host: &HostPattern| {
            let found = self.tls.find_by(|it| it.host.cmp(host))?;
            self.tls.get(found)
        };
        let mut all: Vec<TlsHost> = self.tls.iter().cloned().collect();
        for host in self.hosts.iter().filter(|host| !host.aliases.is_empty()) {
            let Some(tls) = own(&host.pattern) else {
                continue;
            };
            let names = host.aliases.iter().filter(|name| own(name).is_none());
            all.extend(names.map(|name| TlsHost {
                host: name.clone(),
                ..tls.clone()
            }));
        }
        all
    }

    /// What says how the host of a rule is served over TLS, if anything does. A wildcard of another
    /// rule counts too: its certificate is the one that clients of the host are shown.
    pub fn tls_of(&self, host: &HostPattern) -> Option<&TlsHost> {
        let find = |host: &HostPattern| {
            let found = self.tls.find_by(|it| it.host.cmp(host))?;
            self.tls.get(found)
        };
        find(host).or_else(|| match host {
            HostPattern::Exact(name) => {
                let (_, suffix) = name.split_once('.')?;
                find(&HostPattern::Wildcard(suffix.into()))
            }
            _ => None,
        })
    }
}

fn same_all<T>(one: &Rows<Arc<T>>, other: &Rows<Arc<T>>, same: impl Fn(&T, &T) -> bool) -> bool {
    one.len() == other.len()
        && one
            .differences(other)
            .all(|(_, one, other)| match (one, other) {
                (Some(one), Some(other)) => Arc::ptr_eq(one, other) || same(one, other),
                _ => false,
            })
}

fn none_of<K, V>(map: &Arc<BTreeMap<K, V>>) -> bool {
    map.is_empty()
}

fn no_l4(l4: &Arc<L4>) -> bool {
    l4.is_empty()
}
