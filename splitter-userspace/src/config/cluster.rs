//! Settings of the Kubernetes side: which API server, what of it, and what is written back.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// Where the objects come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A directory of YAML files (`--manifests`).
    Manifests(PathBuf),
    /// The Kubernetes API.
    Cluster(Box<ClusterSettings>),
}

/// What is read from the Kubernetes API, and as whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterSettings {
    /// Its address and our identity (`--kubeconfig`); none: those that a pod is given.
    pub kubeconfig: Option<PathBuf>,
    /// Only Ingresses, Services, EndpointSlices and Secrets of this namespace
    /// (`--watch-namespace`); none: all.
    pub namespace: Option<String>,
    /// Only Ingresses with these labels (`--ingress-selector`); none: all.
    pub ingress_selector: Option<String>,
    /// The Node this runs on (`--node-name`). Without it no address of a Node counts as our own.
    pub node_name: Option<String>,
    /// Secrets that are read although no Ingress names them (`--default-ssl-certificate`).
    pub secrets: Vec<NamespacedName>,
    /// The ConfigMap that says what holds where an Ingress says nothing (`--configmap`).
    pub config_map: Option<NamespacedName>,
    /// ConfigMaps that are followed although no Ingress names them (`--tcp-services-configmap`,
    /// `--udp-services-configmap`), and what their watches are called in metrics.
    pub config_maps: Vec<(&'static str, NamespacedName)>,
    /// What is written back.
    pub status: StatusSettings,
}

/// What is written into the status of Ingresses, and who of several instances does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusSettings {
    /// Write at all (`--update-status`), default true.
    pub update: bool,
    /// Take our addresses out of the status when the last instance stops
    /// (`--update-status-on-shutdown`), default false: an update of a DaemonSet on one node stops
    /// the last instance too.
    pub clear_on_shutdown: bool,
    /// The Service whose addresses are written (`--publish-service`).
    pub publish_service: Option<NamespacedName>,
    /// Addresses and names to write (`--publish-status-address`), before any Service.
    pub addresses: Vec<String>,
    /// Write the internal addresses of nodes, not the external ones
    /// (`--report-node-internal-ip-address`), default false.
    pub internal_node_addresses: bool,
    /// Write Events about what is wrong with objects (`--events`), default true.
    pub events: bool,
    /// Name of the Lease (`--election-id`), default [`StatusSettings::ELECTION_ID`].
    pub election_id: String,
    /// For how long a Lease that its holder does not renew is left to it (`--election-ttl`),
    /// default 30 s.
    pub election_ttl: Duration,
}

impl StatusSettings {
    /// The default of `--election-id`.
    pub const ELECTION_ID: &str = "splitter-leader";

    /// The default of `--election-ttl`.
    pub const ELECTION_TTL: Duration = Duration::from_secs(30);
}

impl Default for StatusSettings {
    fn default() -> Self {
        StatusSettings {
            update: true,
            clear_on_shutdown: false,
            publish_service: None,
            addresses: Vec::new(),
            internal_node_addresses: false,
            events: true,
            election_id: Self::ELECTION_ID.to_owned(),
            election_ttl: Self::ELECTION_TTL,
        }
    }
}

/// An object's namespace and name, written `namespace/name`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NamespacedName {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// Why a text names no object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a namespace and a name, such as ingress/edge")]
pub struct NamespacedNameError(String);

impl FromStr for NamespacedName {
    type Err = NamespacedNameError;

    fn from_str(text: &str) -> Result<Self, NamespacedNameError> {
        let parts = text.split_once('/');
        let parts = parts.filter(|(namespace, name)| is_name(namespace) && is_name(name));
        let (namespace, name) = parts.ok_or_else(|| NamespacedNameError(text.to_owned()))?;
        Ok(NamespacedName {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        })
    }
}

impl fmt::Display for NamespacedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Close to what the API server takes as a name: nothing that means something else in a path or a
/// selector.
pub(crate) fn is_name(text: &str) -> bool {
    let fine = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'.';
    !text.is_empty() && text.len() <= 253 && text.bytes().all(fine)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn a_namespaced_name_is_read_as_written() {
        let name: NamespacedName = "ingress/edge.v2".parse().unwrap();
        assert_eq!(name.to_string(), "ingress/edge.v2");
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for text in [
            "edge", "/edge", "ingress/", "a/b/c", "A/b", "a/b,c", "a/b c",
        ] {
            assert!(text.parse::<NamespacedName>().is_err(), "{text}");
        }
    }
}
