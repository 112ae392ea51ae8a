use std::cmp::Ordering;

use crate::model::{Host, HostPattern};
use crate::telemetry::Record;
use crate::telemetry::side::host_label;

use super::labels::method_index;

/// What the labels of a request hang on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// A Location, by id.
    Location(u32),
    /// A Host that has no Location for the request, by index.
    Host(u32),
    /// No rule names the host.
    Nowhere,
}

impl Scope {
    pub(super) fn of(record: &Record<'_>) -> Self {
        if let Some((id, _)) = record.location {
            return Scope::Location(id.0);
        }
        let host = host_index(&record.live.snapshot.hosts, record.host);
        match host.and_then(|index| u32::try_from(index).ok()) {
            Some(index) => Scope::Host(index),
            None => Scope::Nowhere,
        }
    }

    /// The label of a host that is all that is known of a request; empty for anything else.
    pub(super) fn host(self, record: &Record<'_>) -> String {
        let Scope::Host(index) = self else {
            return String::new();
        };
        let host = record.live.snapshot.hosts.get(index as usize);
        host.map_or_else(String::new, |host| host_label(&host.pattern).into_owned())
    }

    /// 34 bits.
    fn bits(self) -> u64 {
        match self {
            Scope::Location(id) => u64::from(id),
            Scope::Host(index) => 1 << 32 | u64::from(index),
            Scope::Nowhere => 2 << 32,
        }
    }

    /// A number for everything that the labels of ingress-nginx's families depend on: scope 34,
    /// variant 4, method 4, status 16 bits.
    pub(super) fn request_key(self, record: &Record<'_>) -> u64 {
        let mut key = self.bits() << 4 | variant_bits(record);
        key = key << 4 | method_index(record.method) as u64;
        key << 16 | u64::from(record.status)
    }

    /// The same for our own family: scope 34, variant 4, reason 4, status class 4, fault 16 bits.
    pub(super) fn truth_key(self, record: &Record<'_>, fault: u16) -> u64 {
        let reason = record.reason().map_or(15, |reason| reason as u64);
        let mut key = self.bits() << 4 | variant_bits(record);
        key = key << 4 | reason;
        key = key << 4 | u64::from((record.status / 100).min(15));
        key << 16 | u64::from(fault)
    }
}

/// 15 is no variant; a Split has at most 8.
fn variant_bits(record: &Record<'_>) -> u64 {
    record.decision.map_or(15, |d| d.variant.min(14) as u64)
}

/// The Host that covers a name, in hosts sorted by pattern: by exact name, then by wildcard, then
/// any.
fn host_index(hosts: &[Host], name: &str) -> Option<usize> {
    let exact = hosts.binary_search_by(|host| match &host.pattern {
        HostPattern::Exact(text) => text.as_ref().cmp(name),
        HostPattern::Wildcard(_) | HostPattern::Any => Ordering::Greater,
    });
    if let Ok(index) = exact {
        return Some(index);
    }
    if let Some((_, suffix)) = name.split_once('.') {
        let wildcard = hosts.binary_search_by(|host| match &host.pattern {
            HostPattern::Exact(_) => Ordering::Less,
            HostPattern::Wildcard(text) => text.as_ref().cmp(suffix),
            HostPattern::Any => Ordering::Greater,
        });
        if let Ok(index) = wildcard {
            return Some(index);
        }
    }
    let any = hosts.last()?.pattern == HostPattern::Any;
    any.then(|| hosts.len() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(patterns: &[HostPattern]) -> Vec<Host> {
        let mut hosts: Vec<Host> = patterns
            .iter()
            .map(|pattern| Host {
                pattern: pattern.clone(),
                locations: Vec::new(),
            })
            .collect();
        hosts.sort_by(|a, b| a.pattern.cmp(&b.pattern));
        hosts
    }

    fn found(patterns: &[HostPattern], name: &str) -> Option<String> {
        let hosts = hosts(patterns);
        host_index(&hosts, name).map(|index| format!("{:?}", hosts[index].pattern))
    }

    #[test]
    fn exact_then_wildcard_then_any() {
        let exact = |name: &str| HostPattern::Exact(name.into());
        let wildcard = |name: &str| HostPattern::Wildcard(name.into());
        let mut all = vec![
            wildcard("example"),
            exact("a.example"),
            wildcard("b.example"),
            exact("z.example"),
        ];
        let text = |pattern: HostPattern| Some(format!("{pattern:?}"));
        assert_eq!(found(&all, "a.example"), text(exact("a.example")));
        assert_eq!(found(&all, "c.example"), text(wildcard("example")));
        assert_eq!(found(&all, "c.b.example"), text(wildcard("b.example")));
        assert_eq!(found(&all, "d.c.b.example"), None);
        assert_eq!(found(&all, "example"), None);
        assert_eq!(found(&all, ""), None);
        assert_eq!(found(&[], "a"), None);
        all.push(HostPattern::Any);
        assert_eq!(found(&all, ""), text(HostPattern::Any));
        assert_eq!(found(&all, "z.example"), text(exact("z.example")));
    }
}
