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
        match record.live.router.find_host(record.host) {
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
