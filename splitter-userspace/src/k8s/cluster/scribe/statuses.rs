//! Which status is to be written next: pure.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use k8s_openapi::api::networking::v1::{Ingress, IngressLoadBalancerIngress};

use super::addresses::Address;
use crate::k8s::cluster::store::Key;

/// Until a write that failed is tried again.
const AGAIN: Duration = Duration::from_secs(5);

/// Until a status that somebody else has overwritten is written again; doubled each time.
const FIRST_DISPUTE: Duration = Duration::from_secs(10);

/// The longest of these times: another controller serves the same Ingress, and both insist.
const LONGEST_DISPUTE: Duration = Duration::from_secs(600);

/// The entries of a status.
pub(super) type Entries = Vec<IngressLoadBalancerIngress>;

/// One status to be written.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Write {
    /// Of which Ingress.
    pub key: Key,
    /// What it is to say; nothing to take our addresses out.
    pub entries: Entries,
}

/// What was written, and whose status is ours to write.
#[derive(Default)]
pub(super) struct Statuses {
    served: BTreeSet<Key>,
    /// Ingresses that were ours and whose status may still say so.
    left: BTreeSet<Key>,
    /// The addresses that we last wanted to be said.
    said: BTreeSet<Address>,
    written: BTreeMap<Key, Written>,
}

struct Written {
    entries: Entries,
    at: Instant,
    /// How often the same was written; 0 when it failed.
    times: u32,
}

impl Written {
    fn due(&self) -> Instant {
        if self.times == 0 {
            return self.at + AGAIN;
        }
        let doublings = (self.times - 1).min(16);
        let pause = FIRST_DISPUTE.saturating_mul(1 << doublings);
        self.at + pause.min(LONGEST_DISPUTE)
    }
}

/// What is to be written now, and when to look again.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Plan {
    /// In the order of their names.
    pub writes: Vec<Write>,
    /// Without a change, at this time.
    pub again: Option<Instant>,
}

impl Statuses {
    /// Takes in which Ingresses are served.
    pub(super) fn serve(&mut self, served: BTreeSet<Key>) {
        self.left.extend(self.served.difference(&served).cloned());
        self.left.retain(|key| !served.contains(key));
        self.written.retain(|key, _| served.contains(key));
        self.served = served;
    }

    /// Compares what the objects say with what they are to say. Without `wanted` it is not known
    /// where we are reached, and what is there stays.
    pub(super) fn plan<'a, T: AsRef<Ingress>>(
        &mut self,
        wanted: Option<&BTreeSet<Address>>,
        object: impl Fn(&Key) -> Option<T> + 'a,
        now: Instant,
    ) -> Plan {
        let mut plan = Plan::default();
        let said = std::mem::take(&mut self.said);
        self.left.retain(|key| {
            // What somebody else has written since is not ours to remove.
            let ours = object(key).is_some_and(|it| says(it.as_ref()) == said && !said.is_empty());
            if ours {
                let key = key.clone();
                let entries = Entries::new();
                plan.writes.push(Write { key, entries });
            }
            ours
        });
        self.said = said;
        let Some(wanted) = wanted else {
            return plan;
        };
        self.said.clone_from(wanted);
        let entries: Entries = wanted.iter().map(Address::entry).collect();
        for key in &self.served {
            let Some(ingress) = object(key) else { continue };
            if says(ingress.as_ref()) == *wanted {
                continue;
            }
            let before = self.written.get(key).filter(|it| it.entries == entries);
            match before.map(Written::due) {
                Some(due) if due > now => plan.again = earliest(plan.again, due),
                _ => plan.writes.push(Write {
                    key: key.clone(),
                    entries: entries.clone(),
                }),
            }
        }
        plan
    }

    /// Every status that says where we are, to say nothing.
    pub(super) fn clear<T: AsRef<Ingress>>(
        &self,
        object: impl Fn(&Key) -> Option<T>,
    ) -> Vec<Write> {
        let ours = |key: &&Key| {
            let found = object(key).map(|it| says(it.as_ref()));
            !self.said.is_empty() && found.as_ref() == Some(&self.said)
        };
        let clear = |key: &Key| Write {
            key: key.clone(),
            entries: Entries::new(),
        };
        self.served.iter().filter(ours).map(clear).collect()
    }

    /// A write is over.
    pub(super) fn wrote(&mut self, write: Write, done: bool, now: Instant) {
        if !self.served.contains(&write.key) {
            if done {
                self.left.remove(&write.key);
            }
            return;
        }
        let before = self.written.get(&write.key);
        let before = before.filter(|it| it.entries == write.entries);
        let times = before.map_or(0, |it| it.times);
        let written = Written {
            entries: write.entries,
            at: now,
            times: if done { times.saturating_add(1) } else { 0 },
        };
        self.written.insert(write.key, written);
    }
}

fn earliest(a: Option<Instant>, b: Instant) -> Option<Instant> {
    Some(a.map_or(b, |a| a.min(b)))
}

/// What the status of an Ingress says.
fn says(ingress: &Ingress) -> BTreeSet<Address> {
    let status = ingress.status.as_ref();
    let status = status.and_then(|status| status.load_balancer.as_ref());
    let entries = status.and_then(|it| it.ingress.as_ref());
    let mut said = BTreeSet::new();
    for entry in entries.into_iter().flatten() {
        let ip = entry.ip.as_deref().filter(|it| !it.is_empty());
        said.extend(ip.and_then(|it| it.parse().ok()).map(Address::Ip));
        let name = entry.hostname.as_deref().filter(|it| !it.is_empty());
        said.extend(name.map(|it| Address::Name(it.to_owned())));
    }
    said
}

#[cfg(test)]
#[path = "statuses_tests.rs"]
mod tests;
