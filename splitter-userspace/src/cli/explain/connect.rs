//! `splitter explain --connect`: who would answer a connection, where no HTTP is looked at.

use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};

use serde::Serialize;
use splitter_common::POINTS;

use crate::model::{L4Scope, L4Service, L4SplitBy, L4State, Problem, Snapshot, Transport};
use crate::routing::{L4Live, L4Reason, L4Taken, SlotId, l4_flow, l4_live};

/// What is connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    transport: Transport,
    addr: SocketAddr,
}

/// Who connects; without a port any connection of that address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct From {
    ip: IpAddr,
    port: Option<u16>,
}

/// `192.0.2.1:5432`, or `192.0.2.1:53/udp`.
pub fn target(text: &str) -> Result<Target, String> {
    let (addr, transport) = match text.rsplit_once('/') {
        None => (text, Transport::Tcp),
        Some((addr, it)) if it.eq_ignore_ascii_case("tcp") => (addr, Transport::Tcp),
        Some((addr, it)) if it.eq_ignore_ascii_case("udp") => (addr, Transport::Udp),
        Some(_) => return Err("allowed behind the port are /tcp and /udp".to_owned()),
    };
    let addr = addr.parse::<SocketAddr>().map_err(|_| {
        "allowed is an IP address and a port such as 192.0.2.1:5432 or [2001:db8::1]:53/udp"
            .to_owned()
    })?;
    Ok(Target { transport, addr })
}

/// `192.0.2.1`, or `192.0.2.1:40000`.
pub fn from(text: &str) -> Result<From, String> {
    if let Ok(ip) = text.parse() {
        return Ok(From { ip, port: None });
    }
    let addr = text
        .parse::<SocketAddr>()
        .map_err(|_| "allowed is an IP address, with its port or without".to_owned())?;
    Ok(From {
        ip: addr.ip(),
        port: Some(addr.port()),
    })
}

/// What is printed.
#[derive(Serialize)]
pub struct Explanation {
    connect: SocketAddr,
    protocol: &'static str,
    /// None when nothing here answers.
    service: Option<Explained>,
    /// Problems of the objects that have to do with it; all of them when nothing here answers.
    problems: Vec<Problem>,
}

#[derive(Serialize)]
struct Explained {
    name: String,
    /// The ConfigMap whose port it is; none for the Service's own address.
    config_map: Option<String>,
    accept_proxy: bool,
    send_proxy: bool,
    /// Whether it is a connection that its Split is for, if there is one.
    splits: bool,
    /// Whether it is decided where a process of a node connects (`--connect-hooks`).
    at_connect: bool,
    split_by: L4SplitBy,
    scope: L4Scope,
    variants: Vec<Variant>,
    chosen: Option<Chosen>,
}

#[derive(Serialize)]
struct Variant {
    name: String,
    weight: u32,
    share: f64,
    ready: usize,
    endpoints: usize,
}

#[derive(Serialize)]
struct Chosen {
    /// None: it is refused.
    variant: Option<String>,
    reason: Option<L4Reason>,
    /// By the client's port; none where that is not known and matters.
    endpoints: Vec<SocketAddr>,
}

impl Explanation {
    /// Prints it as text or JSON.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub fn print(&self, json: bool, out: &mut impl Write) -> io::Result<()> {
        if json {
            serde_json::to_writer_pretty(&mut *out, self)?;
            return writeln!(out);
        }
        write(self, out)
    }
}

/// Explains a connection by a Snapshot.
pub fn explain(
    snapshot: &Snapshot,
    problems: &[Problem],
    target: Target,
    client: Option<From>,
) -> Explanation {
    let slots = vec![SlotId::NONE; snapshot.l4.services.len()];
    let all = l4_live(&[], &snapshot.l4, &slots);
    let ip = target.addr.ip().to_canonical();
    let own = all.iter().find(|it| {
        let key = &it.service.key;
        let same = key.transport == target.transport && key.port == target.addr.port();
        same && it.service.cluster_addresses.contains(&ip)
    });
    let mut listeners = snapshot.l4.listeners.iter();
    let listener =
        listeners.find(|it| it.transport == target.transport && it.port == target.addr.port());
    let found = match (own, listener) {
        (Some(live), _) => Some((live, L4Taken::EastWest, None)),
        (None, Some(listener)) => {
            let live = all.get(listener.service.0 as usize);
            live.map(|live| (live, L4Taken::NorthSouth, Some(listener)))
        }
        (None, None) => None,
    };
    let service = found.map(|(live, taken, listener)| {
        let service = &live.service;
        Explained {
            name: service.key.to_string(),
            config_map: listener.map(|it| format!("{}/{}", it.object.namespace, it.object.name)),
            accept_proxy: listener.is_some_and(|it| it.accept_proxy),
            send_proxy: listener.is_some_and(|it| it.send_proxy),
            splits: match taken {
                L4Taken::NorthSouth => service.scope.is_north_south(),
                L4Taken::EastWest => service.scope.is_east_west(),
            },
            at_connect: taken == L4Taken::EastWest,
            split_by: service.split_by,
            scope: service.scope,
            variants: variants(service),
            // There the turn decides, or the client's network namespace, which only its node knows.
            chosen: match taken {
                L4Taken::NorthSouth => client.and_then(|it| chosen(live, target, it)),
                L4Taken::EastWest => None,
            },
        }
    });
    let concerned = |problem: &&Problem| {
        let Some((live, _, listener)) = found else {
            return true;
        };
        let key = &live.service.key;
        let object = &problem.object;
        let of_service = object.namespace == key.namespace && {
            let mut variants = live.service.variants.iter();
            variants.any(|it| it.key.service == object.name)
        };
        of_service || listener.is_some_and(|it| it.object == *object)
    };
    Explanation {
        connect: target.addr,
        protocol: target.transport.name(),
        service,
        problems: problems.iter().filter(concerned).cloned().collect(),
    }
}

fn variants(service: &L4Service) -> Vec<Variant> {
    let weights = service.weights();
    let total = f64::from(weights.total()).max(1.0);
    let all = service.variants.iter().map(|it| Variant {
        name: it.name.to_string(),
        weight: it.weight,
        share: f64::from(it.weight) / total,
        ready: it
            .endpoints
            .iter()
            .filter(|it| it.state == L4State::Ready)
            .count(),
        endpoints: it.endpoints.len(),
    });
    all.collect()
}

/// None where the client's port matters and is not known.
fn chosen(live: &L4Live, target: Target, client: From) -> Option<Chosen> {
    let service = &live.service;
    let by_port = service.variants.len() > 1 && service.split_by == L4SplitBy::Connection;
    if by_port && client.port.is_none() {
        return None;
    }
    let from = SocketAddr::new(client.ip.to_canonical(), client.port.unwrap_or(0));
    let asked = SocketAddr::new(target.addr.ip().to_canonical(), target.addr.port());
    let flow = l4_flow(target.transport, from, asked);
    let choice = live.choose(&flow, &service.weights(), L4Taken::NorthSouth);
    let name = choice.and_then(|it| service.variants.get(it.variant));
    Some(Chosen {
        variant: name.map(|it| it.name.to_string()),
        reason: choice.map(|it| it.reason),
        endpoints: match (client.port, choice) {
            (Some(_), Some(choice)) => live.endpoints(choice.variant, &flow),
            _ => Vec::new(),
        },
    })
}

/// Writes it for people.
fn write(it: &Explanation, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{} {}", it.protocol, it.connect)?;
    match &it.service {
        None => writeln!(
            out,
            "  no port of the node and no Service with a split is there"
        )?,
        Some(service) => write_service(service, out)?,
    }
    for problem in &it.problems {
        writeln!(out, "{problem}")?;
    }
    Ok(())
}

fn write_service(it: &Explained, out: &mut impl Write) -> io::Result<()> {
    match &it.config_map {
        Some(map) => writeln!(out, "  {} by the ConfigMap {map}", it.name)?,
        None => writeln!(out, "  {} by its own address", it.name)?,
    }
    if it.accept_proxy {
        writeln!(out, "  clients begin with a PROXY header")?;
    }
    if it.send_proxy {
        writeln!(out, "  endpoints get a PROXY header")?;
    }
    for variant in &it.variants {
        let Variant {
            name,
            weight,
            share,
            ready,
            endpoints,
        } = variant;
        let share = share * 100.0;
        writeln!(
            out,
            "  {name}: {weight} ({share:.1} %), {ready} of {endpoints} endpoints ready"
        )?;
    }
    if it.variants.len() > 1 && !it.splits {
        writeln!(
            out,
            "  the split is not for such connections: the Service itself answers"
        )?;
        return Ok(());
    }
    if it.at_connect {
        let who = match it.split_by {
            L4SplitBy::Connection => "each connection gets one when it is made",
            L4SplitBy::SourceAddress => "each pod has one for all of its connections",
        };
        return writeln!(
            out,
            "  {who}, on nodes where `splitter status` says that connects are attached; on others the \
             Service itself answers"
        );
    }
    match &it.chosen {
        None if it.variants.len() > 1 => writeln!(
            out,
            "  each of a client's ports has one of {POINTS} places on the line of the weights: \
             name one with --from ADDR:PORT"
        ),
        None => Ok(()),
        Some(Chosen { variant: None, .. }) => writeln!(out, "=> refused: no endpoint"),
        Some(Chosen {
            variant: Some(name),
            reason,
            endpoints,
        }) => {
            let why = match reason {
                Some(L4Reason::Weight) => " by weight",
                Some(L4Reason::Fallback) => {
                    ", as the canary that the weights choose has no endpoint"
                }
                _ => "",
            };
            let endpoints: Vec<_> = endpoints.iter().map(ToString::to_string).collect();
            let tried = match endpoints.is_empty() {
                true => String::new(),
                false => format!("; endpoints in this order: {}", endpoints.join(", ")),
            };
            writeln!(out, "=> {name}{why}{tried}")
        }
    }
}

#[cfg(test)]
#[path = "connect_tests.rs"]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests;
