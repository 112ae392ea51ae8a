//! Which addresses the status of Ingresses says: pure.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{Node, Pod, Service};
use k8s_openapi::api::networking::v1::IngressLoadBalancerIngress;

use super::pods::is_ready;

/// For how long the address of a node whose instance is not ready is still said: an update of the
/// DaemonSet does not show in the status of every Ingress.
pub(super) const KEPT: Duration = Duration::from_secs(30);

/// An address of ours, as a status says it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Address {
    /// An IP address.
    Ip(IpAddr),
    /// A host name.
    Name(String),
}

impl Address {
    fn read(text: &str) -> Address {
        match text.parse() {
            Ok(ip) => Address::Ip(ip),
            Err(_) => Address::Name(text.to_owned()),
        }
    }

    /// The entry of a status.
    pub(super) fn entry(&self) -> IngressLoadBalancerIngress {
        let (ip, hostname) = match self {
            Address::Ip(ip) => (Some(ip.to_string()), None),
            Address::Name(name) => (None, Some(name.clone())),
        };
        IngressLoadBalancerIngress {
            ip,
            hostname,
            ports: None,
        }
    }
}

/// What `--publish-status-address` says.
pub(super) fn of_flags(texts: &[String]) -> BTreeSet<Address> {
    texts.iter().map(|text| Address::read(text)).collect()
}

/// Where a Service is reached, by its type; for one that is reached from inside only, its cluster
/// address.
pub(super) fn of_service(service: &Service) -> BTreeSet<Address> {
    let Some(spec) = &service.spec else {
        return BTreeSet::new();
    };
    let external = spec.external_ips.iter().flatten();
    let mut found: BTreeSet<Address> = external.map(|ip| Address::read(ip)).collect();
    match spec.type_.as_deref() {
        Some("ExternalName") => found.extend(spec.external_name.as_deref().map(Address::read)),
        Some("LoadBalancer") => {
            let status = service.status.as_ref();
            let status = status.and_then(|status| status.load_balancer.as_ref());
            for entry in status
                .and_then(|it| it.ingress.as_ref())
                .into_iter()
                .flatten()
            {
                let texts = [&entry.ip, &entry.hostname];
                let texts = texts.into_iter().flatten().filter(|it| !it.is_empty());
                found.extend(texts.map(|text| Address::read(text)));
            }
        }
        _ if found.is_empty() => {
            let ip = spec.cluster_ip.as_deref();
            let ip = ip.filter(|ip| !matches!(*ip, "" | "None"));
            found.extend(ip.map(Address::read));
        }
        _ => {}
    }
    found
}

/// The addresses of one node: all of the wished kind, else all of the other.
pub(super) fn of_node(node: &Node, internal: bool) -> BTreeSet<Address> {
    let status = node.status.as_ref();
    let all = status.and_then(|status| status.addresses.as_ref());
    let of = |kind: &str| -> BTreeSet<Address> {
        let all = all.into_iter().flatten();
        let texts = all.filter(|it| it.type_ == kind);
        let ips = texts.filter_map(|it| it.address.parse().ok());
        ips.map(Address::Ip).collect()
    };
    let (first, second) = if internal {
        ("InternalIP", "ExternalIP")
    } else {
        ("ExternalIP", "InternalIP")
    };
    let found = of(first);
    if found.is_empty() { of(second) } else { found }
}

/// The nodes on which an instance was lately ready.
#[derive(Default)]
pub(super) struct ReadyNodes(BTreeMap<String, Instant>);

impl ReadyNodes {
    /// Takes in how the instances' pods are `now`. Says when one is to be forgotten next.
    pub(super) fn update<'a>(
        &mut self,
        pods: impl IntoIterator<Item = &'a Pod>,
        now: Instant,
    ) -> Option<Instant> {
        let ready: BTreeSet<&str> = pods.into_iter().filter_map(ready_on).collect();
        for node in &ready {
            self.0.insert((*node).to_owned(), now);
        }
        self.0.retain(|_, seen| now.duration_since(*seen) < KEPT);
        let leaving = self
            .0
            .iter()
            .filter(|(node, _)| !ready.contains(node.as_str()));
        leaving.map(|(_, seen)| *seen + KEPT).min()
    }

    /// Their names.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

/// The node of a pod that takes requests.
fn ready_on(pod: &Pod) -> Option<&str> {
    let node = pod.spec.as_ref()?.node_name.as_deref()?;
    is_ready(pod).then_some(node)
}

#[cfg(test)]
#[path = "addresses_tests.rs"]
mod tests;
