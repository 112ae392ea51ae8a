//! The ConfigMaps of ingress-nginx that open ports of the node (`tcp-services`, `udp-services`): port to
//! `namespace/service:port[:PROXY[:PROXY]]`.

use k8s_openapi::api::core::v1::{Service, ServicePort};

use super::super::external;
use super::super::report::{Problems, Subject};
use super::{Sources, ports};
use crate::config::{L4Settings, NamespacedName};
use crate::k8s::Sourced;
use crate::model::{Kind, L4Id, L4Key, L4Listener, ObjectRef, Transport};

/// One entry that can be served.
pub(super) struct Entry<'a> {
    pub key: L4Key,
    pub service: &'a Sourced<Service>,
    pub port: ServicePort,
    node_port: u16,
    accept_proxy: bool,
    send_proxy: bool,
    subject: Subject<'a>,
}

impl Entry<'_> {
    pub(super) fn listener(&self, service: L4Id) -> Option<L4Listener> {
        Some(L4Listener {
            transport: self.key.transport,
            port: self.node_port,
            service,
            accept_proxy: self.accept_proxy,
            send_proxy: self.send_proxy,
            object: self.subject.object.clone(),
            source: self.subject.source.into(),
        })
    }
}

/// The entries of both ConfigMaps that can be served.
pub(super) fn read<'a>(
    settings: &L4Settings,
    sources: &Sources<'a>,
    problems: &mut Problems,
) -> Vec<Entry<'a>> {
    let both = [
        (&settings.tcp_services, Transport::Tcp),
        (&settings.udp_services, Transport::Udp),
    ];
    let mut found = Vec::new();
    for (name, transport) in both {
        let Some(name) = name else { continue };
        let reading = Reading {
            settings,
            sources,
            transport,
        };
        reading.map(name, &mut found, problems);
    }
    found
}

struct Reading<'s, 'a> {
    settings: &'s L4Settings,
    sources: &'s Sources<'a>,
    transport: Transport,
}

/// What is wrong with an entry: a code and why.
type Wrong = (&'static str, String);

impl<'a> Reading<'_, 'a> {
    fn map(&self, name: &NamespacedName, found: &mut Vec<Entry<'a>>, problems: &mut Problems) {
        let NamespacedName { namespace, name } = name;
        let Some(map) = self.sources.maps.get(namespace, name) else {
            let flag = self.transport.name().to_lowercase();
            let subject = Subject {
                object: ObjectRef::new(Kind::ConfigMap, namespace, name),
                source: "",
            };
            let what = format!("--{flag}-services-configmap names it, but it is not there");
            let effect = "no port is opened by it";
            problems.warn(&subject, "", "configmap-not-found", what, effect);
            return;
        };
        let subject = Subject {
            object: map.object_ref(Kind::ConfigMap),
            source: &map.source,
        };
        for (key, value) in map.object.data.iter().flatten() {
            let field = format!("data.{key}");
            match self.entry(key, value, &subject, problems) {
                Ok(entry) => {
                    let taken = |it: &&Entry<'_>| {
                        it.node_port == entry.node_port && it.key.transport == self.transport
                    };
                    if found.iter().any(|it| taken(&it)) {
                        // 053 and 53 are two keys.
                        let what = format!("port {} is there twice", entry.node_port);
                        let effect = "this entry is left out";
                        problems.error(&subject, field, "l4-port-twice", what, effect);
                    } else {
                        found.push(entry);
                    }
                }
                Err((code, what)) => {
                    problems.error(&subject, field, code, what, "the port is not opened");
                }
            }
        }
    }

    fn entry(
        &self,
        key: &str,
        value: &str,
        subject: &Subject<'a>,
        problems: &mut Problems,
    ) -> Result<Entry<'a>, Wrong> {
        let node_port = self.node_port(key)?;
        let mut parts = value.trim().split(':');
        let (Some(name), Some(port)) = (parts.next(), parts.next()) else {
            let what = format!("{value:?} is not namespace/service:port");
            return Err(("l4-entry-invalid", what));
        };
        let name: NamespacedName = name.parse().map_err(|_| {
            (
                "l4-entry-invalid",
                format!("{name:?} is not namespace/service"),
            )
        })?;
        let [accept, send] = [parts.next(), parts.next()];
        let (accept_proxy, send_proxy) = self.proxy([accept, send], key, subject, problems);
        if parts.next().is_some() {
            let what = format!("{value:?} has more than four parts");
            return Err(("l4-entry-invalid", what));
        }
        let (service, port) = self.service(&name, port)?;
        let of = ports::key(service, port, self.transport);
        Ok(Entry {
            key: of.ok_or(("l4-entry-invalid", format!("port {} is no port", port.port)))?,
            service,
            port: port.clone(),
            node_port,
            accept_proxy,
            send_proxy,
            subject: subject.clone(),
        })
    }

    fn node_port(&self, key: &str) -> Result<u16, Wrong> {
        let number = key.parse().ok().filter(|it| *it != 0);
        let invalid = || {
            (
                "l4-port-invalid",
                format!("{key:?} is no port from 1 to 65535"),
            )
        };
        let number: u16 = number.ok_or_else(invalid)?;
        let mut taken = self.settings.taken.iter();
        let taken = taken.find(|(_, addr)| addr.port() == number);
        match taken {
            Some((flag, addr)) if self.transport == Transport::Tcp => {
                Err(("l4-port-taken", format!("{flag} has {addr}")))
            }
            _ => Ok(number),
        }
    }

    /// What the third and the fourth part ask for: PROXY headers from clients, and to Endpoints.
    fn proxy(
        &self,
        parts: [Option<&str>; 2],
        key: &str,
        subject: &Subject<'_>,
        problems: &mut Problems,
    ) -> (bool, bool) {
        let mut read = |part: Option<&str>| {
            let part = part.unwrap_or_default();
            let asked = part.eq_ignore_ascii_case("PROXY");
            let wrong = match (asked, self.transport) {
                (true, Transport::Udp) => "PROXY is for TCP only".to_owned(),
                (true, Transport::Tcp) => return true,
                (false, _) if part.is_empty() => return false,
                (false, _) => format!("{part:?} is neither PROXY nor empty"),
            };
            let field = format!("data.{key}");
            problems.warn(
                subject,
                field,
                "l4-proxy-invalid",
                wrong,
                "no PROXY header there",
            );
            false
        };
        let [accept, send] = parts;
        (read(accept), read(send))
    }

    fn service(
        &self,
        name: &NamespacedName,
        port: &str,
    ) -> Result<(&'a Sourced<Service>, &'a ServicePort), Wrong> {
        let service = self.sources.services.get(&name.namespace, &name.name);
        let service =
            service.ok_or_else(|| ("service-not-found", format!("there is no Service {name}")))?;
        if external::name(&service.object).is_some() {
            let what = format!("Service {name} is of type ExternalName, which has no ports here");
            return Err(("l4-external-name", what));
        }
        let found = ports::named(&service.object, port, self.transport);
        found.map(|found| (service, found)).ok_or_else(|| {
            let has = ports::shown(&service.object, self.transport);
            let transport = self.transport;
            let what = format!("Service {name} has no {transport} port {port}; it has {has}");
            ("port-not-found", what)
        })
    }
}
