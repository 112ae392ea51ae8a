//! Hosts whose clients are asked for a certificate by one Ingress and not by another.

use std::collections::BTreeMap;

use super::View;
use super::policy;
use super::report::Problems;
use super::tls::rule_hosts;
use crate::model::{HostPattern, ObjectRef};

/// Reports the Ingresses that share a host with one that asks and do not ask themselves. A policy
/// belongs to its Locations here; ingress-nginx asks on all paths of the host.
pub(super) fn check(mains: &[&View<'_>], problems: &mut Problems) {
    let mut asking: BTreeMap<HostPattern, &ObjectRef> = BTreeMap::new();
    for view in mains
        .iter()
        .filter(|view| policy::asks_for_certificate(view))
    {
        for host in rule_hosts(view) {
            asking.entry(host).or_insert(&view.subject.object);
        }
    }
    if asking.is_empty() {
        return;
    }
    for view in mains
        .iter()
        .filter(|view| !policy::asks_for_certificate(view))
    {
        for host in rule_hosts(view) {
            if let Some(other) = asking.get(&host) {
                problems.warn(
                    &view.subject,
                    "metadata.annotations",
                    "client-cert-not-shared",
                    format!("{other} asks clients of {host} for a certificate, this one does not"),
                    "its paths are served without one, where ingress-nginx would ask",
                );
            }
        }
    }
}
