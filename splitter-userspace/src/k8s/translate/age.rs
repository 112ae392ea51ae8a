//! Which of two Ingresses comes first.

use k8s_openapi::api::networking::v1::Ingress;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::k8s::Sourced;
use crate::model::Rows;

/// Orders Ingresses by precedence: older first; equally old ones by namespace, then by name.
///
/// Kubernetes counts age in whole seconds, so one `apply` makes equally old objects. One without a
/// creation time (a manifest file) comes after those that have one. (ingress-nginx has the names
/// in descending order; as a policy belongs to a Location here, the order only decides who owns a
/// path written twice and which canary is the older.)
pub(super) fn by_age(ingresses: &Rows<Sourced<Ingress>>) -> Vec<&Sourced<Ingress>> {
    let mut sorted: Vec<_> = ingresses.iter().collect();
    sorted.sort_by(|a, b| key(a).cmp(&key(b)));
    sorted
}

/// Its place in that order.
pub(super) type Key<'a> = (bool, Option<&'a Time>, &'a str, &'a str);

/// The place of an Ingress.
pub(super) fn key(it: &Sourced<Ingress>) -> Key<'_> {
    let created = it.object.metadata.creation_timestamp.as_ref();
    (created.is_none(), created, it.namespace(), it.name())
}
