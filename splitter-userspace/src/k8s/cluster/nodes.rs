//! What Nodes say about addresses.

use std::net::IpAddr;

use k8s_openapi::api::core::v1::Node;

/// What the cluster's Nodes say about addresses, in a stable order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeFacts {
    /// The addresses of the Node that this runs on.
    pub own: Vec<IpAddr>,
    /// The range of its pods, as written.
    pub own_pods: Vec<String>,
    /// The ranges of all other Nodes' pods.
    pub other_pods: Vec<String>,
    /// The addresses of all other Nodes.
    pub others: Vec<IpAddr>,
}

impl NodeFacts {
    /// Collects what `nodes` say, seen from the Node called `own`.
    pub(super) fn of<'a>(nodes: impl IntoIterator<Item = &'a Node>, own: Option<&str>) -> Self {
        let mut facts = NodeFacts::default();
        for node in nodes {
            let is_own = own.is_some() && node.metadata.name.as_deref() == own;
            let (addresses, pods) = if is_own {
                (&mut facts.own, &mut facts.own_pods)
            } else {
                (&mut facts.others, &mut facts.other_pods)
            };
            addresses.extend(ip_addresses(node));
            pods.extend(pod_ranges(node));
        }
        for addresses in [&mut facts.own, &mut facts.others] {
            addresses.sort_unstable();
            addresses.dedup();
        }
        for ranges in [&mut facts.own_pods, &mut facts.other_pods] {
            ranges.sort_unstable();
            ranges.dedup();
        }
        facts
    }
}

/// Internal and external addresses; a Node can have host names there too.
fn ip_addresses(node: &Node) -> impl Iterator<Item = IpAddr> {
    let status = node.status.as_ref();
    let addresses = status.and_then(|status| status.addresses.as_ref());
    let addresses = addresses.into_iter().flatten();
    let ips = addresses.filter(|it| matches!(it.type_.as_str(), "InternalIP" | "ExternalIP"));
    ips.filter_map(|it| it.address.parse().ok())
}

/// One range of each family; the older field repeats the first.
fn pod_ranges(node: &Node) -> impl Iterator<Item = String> {
    let spec = node.spec.as_ref();
    let all = spec.and_then(|spec| spec.pod_cidrs.clone());
    let first = spec.and_then(|spec| spec.pod_cidr.clone());
    all.into_iter()
        .flatten()
        .chain(first)
        .filter(|it| !it.is_empty())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use serde_json::json;

    use super::*;

    fn node(name: &str, last: u8, ranges: &[&str]) -> Node {
        serde_json::from_value(json!({
            "metadata": {"name": name},
            "spec": {"podCIDR": ranges.first(), "podCIDRs": ranges},
            "status": {"addresses": [
                {"type": "Hostname", "address": name},
                {"type": "InternalIP", "address": format!("10.0.0.{last}")},
                {"type": "ExternalIP", "address": format!("192.0.2.{last}")},
                {"type": "InternalIP", "address": format!("fd00::{last}")},
            ]},
        }))
        .unwrap()
    }

    fn ips(texts: &[&str]) -> Vec<IpAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn the_own_node_is_told_from_the_others() {
        let nodes = [
            node("b", 2, &["10.244.2.0/24", "fd01:2::/64"]),
            node("a", 1, &["10.244.1.0/24"]),
        ];
        let facts = NodeFacts::of(&nodes, Some("a"));
        assert_eq!(facts.own, ips(&["10.0.0.1", "192.0.2.1", "fd00::1"]));
        assert_eq!(facts.own_pods, ["10.244.1.0/24"]);
        assert_eq!(facts.others, ips(&["10.0.0.2", "192.0.2.2", "fd00::2"]));
        assert_eq!(facts.other_pods, ["10.244.2.0/24", "fd01:2::/64"]);
    }

    #[test]
    fn without_a_name_every_node_is_another_one() {
        let facts = NodeFacts::of(&[node("a", 1, &["10.244.1.0/24"])], None);
        assert!(facts.own.is_empty() && facts.own_pods.is_empty());
        assert_eq!(facts.others.len(), 3);
    }

    #[test]
    fn a_node_that_says_nothing_says_nothing() {
        let facts = NodeFacts::of(&[Node::default()], Some("a"));
        assert_eq!(facts, NodeFacts::default());
    }
}
