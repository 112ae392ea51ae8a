//! Whose addresses are whose: flags, the node's interfaces and the cluster's Nodes put together.

use std::net::IpAddr;

use crate::dataplane::{Cidr, Ranges};
use crate::k8s::NodeFacts;

/// What holds, from what the flags say (`given`), what Nodes say and what addresses the node's
/// interfaces have.
///
/// - Addresses of this node and of others are all that anybody names.
/// - Ranges of pods that a flag names hold instead of the Nodes' ones of that kind.
/// - A Node's own range counts as that of this node's pods only if an interface has an address in
///   it, as bridges of a CNI have: some CNIs give addresses without regard to the Nodes' ranges, and
///   then a pod elsewhere can have one of ours. Else it is one of all pods' ranges.
pub fn combine(given: &Ranges, nodes: &NodeFacts, interfaces: &[IpAddr]) -> Ranges {
    let mut ranges = given.clone();
    ranges.own.extend(interfaces);
    ranges.own.extend(&nodes.own);
    ranges.nodes.extend(&nodes.others);
    let own_pods: Vec<Cidr> = cidrs(&nodes.own_pods).collect();
    let is_here = |range: &Cidr| interfaces.iter().any(|addr| range.contains(*addr));
    let (here, elsewhere): (Vec<Cidr>, Vec<Cidr>) = own_pods.into_iter().partition(is_here);
    if given.pods.is_empty() {
        ranges.pods.extend(here);
    }
    if given.cluster.is_empty() {
        ranges.cluster.extend(elsewhere);
        ranges.cluster.extend(cidrs(&nodes.other_pods));
    }
    ranges.own.sort_unstable();
    ranges.own.dedup();
    // A Node's address that is also ours is ours.
    let own = &ranges.own;
    ranges.nodes.retain(|addr| !own.contains(addr));
    for all in [&mut ranges.pods, &mut ranges.cluster] {
        all.sort_unstable();
        all.dedup();
    }
    ranges.nodes.sort_unstable();
    ranges.nodes.dedup();
    ranges
}

/// The API server takes only ranges; one that it took and that is none here is left out.
fn cidrs(texts: &[String]) -> impl Iterator<Item = Cidr> + '_ {
    texts.iter().filter_map(|text| text.parse().ok())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn ips(texts: &[&str]) -> Vec<IpAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn ranges(texts: &[&str]) -> Vec<Cidr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn nodes() -> NodeFacts {
        NodeFacts {
            own: ips(&["10.0.0.1"]),
            own_pods: vec!["10.244.1.0/24".to_owned()],
            other_pods: vec!["10.244.2.0/24".to_owned(), "no range".to_owned()],
            others: ips(&["10.0.0.2", "10.0.0.1"]),
        }
    }

    #[test]
    fn nodes_say_who_is_who() {
        let interfaces = ips(&["10.0.0.1", "10.244.1.1"]);
        let found = combine(&Ranges::default(), &nodes(), &interfaces);
        let expected = Ranges {
            own: ips(&["10.0.0.1", "10.244.1.1"]),
            pods: ranges(&["10.244.1.0/24"]),
            cluster: ranges(&["10.244.2.0/24"]),
            nodes: ips(&["10.0.0.2"]),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn an_own_range_that_no_interface_is_in_is_not_known_to_be_here() {
        let found = combine(&Ranges::default(), &nodes(), &ips(&["10.0.0.1"]));
        assert!(found.pods.is_empty());
        assert_eq!(found.cluster, ranges(&["10.244.1.0/24", "10.244.2.0/24"]));
    }

    #[test]
    fn flags_count_before_nodes() {
        let given = Ranges {
            own: ips(&["192.0.2.9"]),
            pods: ranges(&["172.16.1.0/24"]),
            cluster: ranges(&["172.16.0.0/16"]),
            nodes: ips(&["192.0.2.8"]),
        };
        let found = combine(&given, &nodes(), &[]);
        assert_eq!(found.pods, given.pods);
        assert_eq!(found.cluster, given.cluster);
        assert_eq!(found.own, ips(&["10.0.0.1", "192.0.2.9"]));
        assert_eq!(found.nodes, ips(&["10.0.0.2", "192.0.2.8"]));
    }
}
