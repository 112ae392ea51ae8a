//! What XDP needs of the node to forward TCP and UDP services.

use super::facts::Facts;
use super::line::{Line, State};
use crate::config::{Settings, Steering};

const RANGE: &str = "net.ipv4.ip_local_port_range";
const FORWARD: &str = "net.ipv4.ip_forward";

pub(super) fn judge(facts: &Facts, settings: &Settings) -> Vec<Line> {
    let xdp = matches!(settings.steering, Steering::Xdp | Steering::Auto);
    let wanted = xdp && settings.dataplane.balance.on;
    if !wanted || settings.class.l4.config_maps().is_empty() {
        return Vec::new();
    }
    [ports(facts, settings), forward(facts)]
        .into_iter()
        .flatten()
        .collect()
}

/// Ports that XDP uses must not be taken for connections of the node's own.
fn ports(facts: &Facts, settings: &Settings) -> Option<Line> {
    let found = facts.sysctls.get(RANGE)?;
    let (first, last) = found.split_once(' ')?;
    let (first, last): (u16, u16) = (first.parse().ok()?, last.parse().ok()?);
    let (own_first, own_last) = settings.dataplane.balance.ports;
    let line = Line::ok("--l4-nat-ports", format!("{own_first}-{own_last}"));
    if own_last < first || own_first > last {
        return Some(line);
    }
    let remedy = format!(
        "{RANGE} is {found}: connections of the node itself may take these ports; narrow one of the two, or \
         sysctl -w net.ipv4.ip_local_reserved_ports={own_first}-{own_last}"
    );
    Some(line.but(State::Warn, remedy))
}

fn forward(facts: &Facts) -> Option<Line> {
    let found = facts.sysctls.get(FORWARD)?;
    let line = Line::ok(FORWARD, found.clone());
    if found != "0" {
        return Some(line);
    }
    let remedy = format!(
        "sysctl -w {FORWARD}=1: a node that forwards nothing leads no packet to its pods or to other nodes, \
         and user space serves TCP and UDP services"
    );
    Some(line.but(State::Warn, remedy))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::super::limits::tests::{facts, settings};
    use super::*;

    const ASKED: &str = "--tcp-services-configmap=in/tcp";

    fn states(range: &str, forward: &str, flags: &[&str]) -> Vec<State> {
        let mut facts = facts();
        facts.sysctls.insert(RANGE, range.to_owned());
        facts.sysctls.insert(FORWARD, forward.to_owned());
        let lines = judge(&facts, &settings(flags));
        lines.iter().map(|line| line.state).collect()
    }

    #[test]
    fn ports_that_overlap_and_a_node_that_forwards_nothing_are_told() {
        let of = |range, forward| states(range, forward, &[ASKED]);
        assert_eq!(of("32768 60999", "1"), [State::Ok, State::Ok]);
        assert_eq!(of("32768 61000", "1"), [State::Warn, State::Ok]);
        assert_eq!(of("32768 60999", "0"), [State::Ok, State::Warn]);
    }

    #[test]
    fn nothing_is_asked_of_a_node_that_is_not_to_forward() {
        for flags in [
            &["--steering=xdp"][..],
            &[ASKED, "--steering=none"],
            &[ASKED, "--steering=sk-lookup"],
            &[ASKED, "--l4-xdp=false"],
        ] {
            assert!(states("1024 65535", "0", flags).is_empty());
        }
    }
}
