//! Splits of connections and datagrams, where no HTTP is looked at.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use serde::Serialize;

use super::{BackendKey, ObjectRef, Weights};
use crate::model::MAX_VARIANTS;

/// What carries a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

impl Transport {
    /// As Kubernetes writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Transport::Tcp => "TCP",
            Transport::Udp => "UDP",
        }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A port of a Service: what has a Split of its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct L4Key {
    /// The Service's namespace.
    pub namespace: Arc<str>,
    /// The Service's name.
    pub service: Arc<str>,
    /// The port's number in the Service.
    pub port: u16,
    /// TCP and UDP can have the same number.
    pub transport: Transport,
}

impl L4Key {
    /// What stands for it where Locations are listed: in place of a host, of a path, and of its type.
    pub fn place(&self) -> (String, String, &'static str) {
        let host = format!("service/{}/{}", self.namespace, self.service);
        (host, format!(":{}", self.port), self.transport.name())
    }

    /// The same as a Backend, whose keys are TCP ports where nothing else is said.
    pub fn backend(&self) -> BackendKey {
        let L4Key { port, .. } = self;
        let port = match self.transport {
            Transport::Tcp => port.to_string(),
            Transport::Udp => format!("{port}/UDP"),
        };
        BackendKey {
            namespace: self.namespace.clone(),
            service: self.service.clone(),
            port: port.into(),
        }
    }
}

impl fmt::Display for L4Key {
    /// As commands take it: `service/shop/db:5432`, and `service/shop/dns:53/UDP`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "service/{}/{}:{}",
            self.namespace, self.service, self.port
        )?;
        match self.transport {
            Transport::Tcp => Ok(()),
            Transport::Udp => f.write_str("/UDP"),
        }
    }
}

/// Which connections a Split is for (`splitter.io/split-scope`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum L4Scope {
    /// Those that come in at the node.
    NorthSouth,
    /// Those that pods and nodes make to the Service's own address.
    EastWest,
    /// Both.
    #[default]
    All,
}

impl L4Scope {
    /// Whether connections that come in at the node are split.
    pub fn is_north_south(self) -> bool {
        matches!(self, L4Scope::NorthSouth | L4Scope::All)
    }

    /// Whether connections to the Service's own address are split.
    pub fn is_east_west(self) -> bool {
        matches!(self, L4Scope::EastWest | L4Scope::All)
    }
}

/// What has one Variant (`splitter.io/split-by`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum L4SplitBy {
    /// Each connection, or all datagrams between two sockets.
    #[default]
    Connection,
    /// All connections of one client's address.
    SourceAddress,
}

/// A Service port with what answers connections to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct L4Service {
    /// Which one.
    pub key: L4Key,
    /// Which connections the Split is for; the others go to stable.
    pub scope: L4Scope,
    /// What has one Variant.
    pub split_by: L4SplitBy,
    /// The Service's own addresses in the cluster; none for a headless one.
    pub cluster_addresses: Vec<IpAddr>,
    /// Further addresses that are the Service's at the node: external ones, and those of a balancer.
    pub external_addresses: Vec<IpAddr>,
    /// Stable, the Service itself, first; 1 to [`MAX_VARIANTS`].
    pub variants: Vec<L4Variant>,
}

impl L4Service {
    /// The weights as the annotation gives them.
    pub fn weights(&self) -> Weights {
        let mut weights = Weights::default();
        for (variant, weight) in self.variants.iter().zip(&mut weights.values) {
            *weight = variant.weight;
        }
        weights.len = self.variants.len().min(MAX_VARIANTS) as u8;
        weights
    }

    /// The Service as an object.
    pub fn object(&self) -> ObjectRef {
        ObjectRef::new(super::Kind::Service, &self.key.namespace, &self.key.service)
    }
}

/// One side of a Service's Split.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct L4Variant {
    /// `stable`, or the name of the canary's Service.
    pub name: Arc<str>,
    /// The Service port that answers.
    pub key: L4Key,
    /// Its part of the sum of all weights.
    pub weight: u32,
    /// Sorted by address, each once.
    pub endpoints: Arc<[L4Endpoint]>,
}

/// One address and port, with what it may be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct L4Endpoint {
    /// Where it listens.
    pub addr: SocketAddr,
    /// What it may be given.
    pub state: L4State,
}

/// What an Endpoint may be given. One that is in no EndpointSlice any more is gone: what it has is
/// reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum L4State {
    /// New connections.
    Ready,
    /// Terminating but still serving: new connections only when no Endpoint is ready.
    Draining,
    /// Nothing new; it keeps the connections that it has.
    Unready,
}

/// Index of a Service port in [`L4::services`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct L4Id(pub u32);

/// A port of the node that leads to a Service port (`--tcp-services-configmap`,
/// `--udp-services-configmap`). It is listened on at every address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct L4Listener {
    /// TCP or UDP.
    pub transport: Transport,
    /// The port of the node.
    pub port: u16,
    /// Where it leads.
    pub service: L4Id,
    /// Connections begin with a PROXY header, version 1 or 2.
    pub accept_proxy: bool,
    /// Endpoints get a PROXY header, version 1.
    pub send_proxy: bool,
    /// The ConfigMap that asks for it.
    #[serde(skip)]
    pub object: ObjectRef,
    /// Where that was read from; empty when it came from the API server.
    #[serde(skip)]
    pub source: Arc<str>,
}

/// All of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct L4 {
    /// Service ports with a Split or a listener, sorted by key.
    pub services: Vec<Arc<L4Service>>,
    /// Sorted by transport and port.
    pub listeners: Vec<L4Listener>,
}

impl L4 {
    /// Whether nothing is asked for.
    pub fn is_empty(&self) -> bool {
        self.services.is_empty() && self.listeners.is_empty()
    }

    /// The Service port of an id that this gave out.
    pub fn service(&self, id: L4Id) -> Option<&Arc<L4Service>> {
        self.services.get(id.0 as usize)
    }
}
