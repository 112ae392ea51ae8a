//! What the configured load needs of limits, queues, ports and CPUs.

use super::facts::Facts;
use super::line::{Line, Raise, State};
use crate::config::{Settings, Steering};
use crate::proxy::BACKLOG;

/// Open files beside connections: listeners, maps, logs, connections to the API.
const OTHER_FILES: u64 = 512;

/// Ports that are enough for most: the kernel's default has 28,232.
const PORTS: u64 = 28_000;

/// The range that collides neither with node ports (30000 to 32767) nor with those that XDP uses
/// (`--l4-nat-ports`); the kernel's default.
const PORT_RANGE: &str = "32768 60999";

/// The least that the largest TCP buffers should be, in bytes: the kernel's defaults.
const BUFFERS: [(&str, u64); 2] = [
    ("net.ipv4.tcp_rmem", 6 * 1024 * 1024),
    ("net.ipv4.tcp_wmem", 4 * 1024 * 1024),
];

/// The least that the queue of packets before the stack should have.
const PACKETS: u64 = 1_000;

pub(super) fn judge(facts: &Facts, settings: &Settings) -> Vec<Line> {
    let mut lines = vec![files(facts, settings)];
    lines.extend(queues(facts));
    lines.extend(ports(facts, settings));
    lines.extend(tw_reuse(facts));
    lines.extend(cookies(facts));
    lines.extend(buffers(facts));
    lines.extend(followed(facts));
    lines.push(cryptography(&facts.cpu));
    lines
}

/// Threads of all pools.
fn workers(settings: &Settings) -> u64 {
    let all = match settings.steering {
        Steering::None => settings.workers,
        _ => settings
            .dataplane
            .pools
            .iter()
            .map(|pool| pool.workers)
            .sum(),
    };
    all as u64
}

/// Each client connection may have one to a pod.
fn files(facts: &Facts, settings: &Settings) -> Line {
    let check = "open files";
    let pools = match settings.steering {
        Steering::None => vec![(settings.workers, settings.limits.max_connections)],
        _ => {
            let pools = settings.dataplane.pools.iter();
            pools
                .map(|it| (it.workers, it.limits.max_connections))
                .collect()
        }
    };
    let connections = pools
        .iter()
        .map(|(workers, max)| *workers as u64 * *max as u64);
    let needed = connections.sum::<u64>().saturating_mul(2) + OTHER_FILES;
    let Some((soft, _)) = facts.files else {
        return Line::ok(check, "not known");
    };
    let line = Line::ok(
        check,
        format!("{soft} of {needed} that --max-connections may take"),
    );
    match soft < needed {
        true => line.but(
            State::Warn,
            format!(
                "raise the limit (LimitNOFILE of the container runtime, ulimit -n {needed}), or lower \
                 --max-connections to {}",
                (soft.saturating_sub(OTHER_FILES) / 2 / workers(settings).max(1)).max(1)
            ),
        ),
        false => line,
    }
}

fn number(facts: &Facts, name: &str) -> Option<u64> {
    facts.sysctls.get(name)?.parse().ok()
}

/// A sysctl that should be at least so much.
fn at_least(facts: &Facts, name: &'static str, least: u64, why: &str) -> Option<Line> {
    let found = number(facts, name)?;
    let line = Line::ok(name, found.to_string());
    if found >= least {
        return Some(line);
    }
    let line = line.but(State::Warn, format!("sysctl -w {name}={least}: {why}"));
    Some(Line {
        raise: Some(Raise {
            sysctl: name,
            from: found.to_string(),
            to: least.to_string(),
        }),
        ..line
    })
}

fn queues(facts: &Facts) -> Vec<Line> {
    let backlog = u64::from(BACKLOG.unsigned_abs());
    let accept = "it caps how many connections may wait to be accepted on one socket";
    let half_open = "with fewer half-open connections the kernel goes over to SYN cookies";
    let packets = "packets are dropped before the stack sees them";
    [
        at_least(facts, "net.core.somaxconn", backlog, accept),
        at_least(facts, "net.ipv4.tcp_max_syn_backlog", backlog, half_open),
        at_least(facts, "net.core.netdev_max_backlog", PACKETS, packets),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A connection to one endpoint takes a port of its own.
fn ports(facts: &Facts, settings: &Settings) -> Option<Line> {
    let name = "net.ipv4.ip_local_port_range";
    let found = facts.sysctls.get(name)?;
    let (first, last) = found.split_once(' ')?;
    let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
    let there = (last + 1).saturating_sub(first);
    let kept = workers(settings) * settings.limits.upstream_idle_per_endpoint as u64;
    let line = Line::ok(
        name,
        format!("{found}: {there} connections to one endpoint"),
    );
    let listening = settings
        .http
        .iter()
        .chain(&settings.https)
        .chain([&settings.admin]);
    let mut within = listening.filter(|addr| (first..=last).contains(&u64::from(addr.port())));
    if let Some(addr) = within.next() {
        let reserve = "outgoing connections may take it before we do: sysctl -w \
                       net.ipv4.ip_local_reserved_ports=";
        return Some(line.but(
            State::Warn,
            format!("{addr} lies within; {reserve}{}", addr.port()),
        ));
    }
    if there >= PORTS.max(kept * 2) {
        return Some(line);
    }
    if kept * 2 > PORTS {
        let remedy = "lower --upstream-idle-per-endpoint or --workers: that many connections may be \
                      kept to one endpoint, twice over in an update";
        return Some(line.but(State::Warn, format!("{kept}: {remedy}")));
    }
    let line = line.but(State::Warn, format!("sysctl -w {name}=\"{PORT_RANGE}\""));
    Some(Line {
        raise: Some(Raise {
            sysctl: name,
            from: found.clone(),
            to: PORT_RANGE.to_owned(),
        }),
        ..line
    })
}

fn tw_reuse(facts: &Facts) -> Option<Line> {
    let name = "net.ipv4.tcp_tw_reuse";
    let found = facts.sysctls.get(name)?;
    let line = Line::ok(name, found.as_str());
    if found == "1" {
        return Some(line);
    }
    let why = "ports of ended connections to pods rest for a minute";
    let line = line.but(State::Warn, format!("sysctl -w {name}=1: {why}"));
    Some(Line {
        raise: Some(Raise {
            sysctl: name,
            from: found.clone(),
            to: "1".to_owned(),
        }),
        ..line
    })
}

fn cookies(facts: &Facts) -> Option<Line> {
    at_least(
        facts,
        "net.ipv4.tcp_syncookies",
        1,
        "a flood of SYNs would keep everybody out",
    )
}

fn buffers(facts: &Facts) -> Vec<Line> {
    let line = |(name, least): (&'static str, u64)| {
        let found = facts.sysctls.get(name)?;
        let most: u64 = found.split(' ').nth(2)?.parse().ok()?;
        let line = Line::ok(name, found.as_str());
        if most >= least {
            return Some(line);
        }
        let [low, usual] = [0, 1].map(|place| found.split(' ').nth(place).unwrap_or_default());
        let to = format!("{low} {usual} {least}");
        let why = "long bodies over far connections are slow";
        let line = line.but(State::Warn, format!("sysctl -w {name}=\"{to}\": {why}"));
        Some(Line {
            raise: Some(Raise {
                sysctl: name,
                from: found.clone(),
                to,
            }),
            ..line
        })
    };
    BUFFERS.into_iter().filter_map(line).collect()
}

fn followed(facts: &Facts) -> Option<Line> {
    let name = "net.netfilter.nf_conntrack_max";
    let (most, now) = (number(facts, name)?, facts.followed?);
    let line = Line::ok(name, format!("{most}, {now} in use"));
    Some(match now.saturating_mul(5) > most.saturating_mul(4) {
        true => line.but(
            State::Warn,
            format!(
                "sysctl -w {name}={}: a full table drops connections",
                most * 2
            ),
        ),
        false => line,
    })
}

/// What makes TLS fast, if the library finds it.
fn cryptography(cpu: &[String]) -> Line {
    let has = |name: &str| cpu.iter().any(|it| it == name);
    let used = [
        "aes",
        "pclmulqdq",
        "pmull",
        "vaes",
        "vpclmulqdq",
        "avx2",
        "sha_ni",
        "sha2",
    ];
    let found: Vec<_> = used.into_iter().filter(|name| has(name)).collect();
    let line = Line::ok("CPU cryptography", found.join(" "));
    match has("aes") && (has("pclmulqdq") || has("pmull")) {
        true => line,
        false => {
            let found = match found.is_empty() {
                true => "none".to_owned(),
                false => line.found.clone(),
            };
            Line { found, ..line }.but(
                State::Warn,
                "TLS takes several times as much CPU without AES instructions; a virtual machine \
                 may hide them (CPU model host)",
            )
        }
    }
}

#[cfg(test)]
#[path = "limits_tests.rs"]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
pub(super) mod tests;
