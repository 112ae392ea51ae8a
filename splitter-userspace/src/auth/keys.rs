//! The keys of all issuers in use, wherever they are.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use super::jwks::KeySet;
use crate::model::{KeySource, KeyUrl, Kind, ObjectRef, Problem, SecretData, Severity};

/// Asks for newer keys of one URL.
pub trait Wish: Send + Sync {
    /// Has keys be fetched if that was not done lately. Whether newer ones than those of a fetch
    /// (counted from 1; 0 for none) may come in a moment.
    fn newer(&self, than: u64) -> bool;
}

/// The keys of one source.
#[derive(Clone, Default)]
pub struct KeyRing {
    /// The last good ones; none when there never were any.
    pub set: Option<Arc<KeySet>>,
    /// Where newer ones are asked for; none where they come by themselves.
    pub wish: Option<Arc<dyn Wish>>,
    /// The last fetch that was told of, good or not.
    pub fetch: u64,
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.set.fmt(f)
    }
}

/// See the module's text. A source that turns bad keeps its last good keys.
#[derive(Debug, Default)]
pub(super) struct Keys {
    known: HashMap<KeySource, Known>,
}

#[derive(Debug, Default)]
struct Known {
    data: Option<SecretData>,
    ring: KeyRing,
    fault: Option<String>,
}

impl Keys {
    /// Takes over which sources are wanted, each with an Ingress that wants it, and reads those that
    /// are objects. Whether anything has changed.
    pub(super) fn update(
        &mut self,
        wanted: &BTreeMap<KeySource, ObjectRef>,
        secrets: &BTreeMap<ObjectRef, SecretData>,
    ) -> bool {
        let before = self.known.len();
        self.known.retain(|source, _| match source {
            KeySource::Object(object) => {
                wanted.contains_key(source) && secrets.contains_key(object)
            }
            KeySource::Url(_) => wanted.contains_key(source),
        });
        let mut changed = self.known.len() != before;
        for source in wanted.keys() {
            let KeySource::Object(object) = source else {
                continue;
            };
            let Some(data) = secrets.get(object) else {
                continue;
            };
            let known = self.known.entry(source.clone()).or_default();
            if known.data.as_ref() == Some(data) {
                continue;
            }
            known.data = Some(data.clone());
            changed = true;
            let bytes = data.get(KeySource::ENTRY).unwrap_or_default();
            match KeySet::read(bytes, object.kind == Kind::Secret) {
                Ok(set) => {
                    known.ring.set = Some(Arc::new(set));
                    known.fault = None;
                }
                Err(error) => known.fault = Some(error.to_string()),
            }
        }
        changed
    }

    /// Notes where newer keys of a URL are asked for.
    pub(super) fn follow(&mut self, url: &KeyUrl, wish: Arc<dyn Wish>) {
        let known = self.known.entry(KeySource::Url(url.clone())).or_default();
        known.ring.wish = Some(wish);
        known.ring.fetch = 0;
    }

    /// Takes over what was fetched.
    pub(super) fn fetched(&mut self, url: &KeyUrl, fetch: u64, fetched: Result<KeySet, String>) {
        // Nobody may want it any more.
        let Some(known) = self.known.get_mut(&KeySource::Url(url.clone())) else {
            return;
        };
        known.ring.fetch = fetch;
        match fetched {
            Ok(set) => {
                known.ring.set = Some(Arc::new(set));
                known.fault = None;
            }
            Err(fault) => known.fault = Some(fault),
        }
    }

    pub(super) fn rings(&self) -> HashMap<KeySource, KeyRing> {
        let rings = self.known.iter();
        rings
            .map(|(source, known)| (source.clone(), known.ring.clone()))
            .collect()
    }

    pub(super) fn problems(
        &self,
        wanted: &BTreeMap<KeySource, ObjectRef>,
    ) -> impl Iterator<Item = Problem> {
        self.known.iter().filter_map(|(source, known)| {
            let fault = known.fault.as_ref()?;
            let effect = match known.ring.set {
                Some(_) => "the last good keys stay in use",
                None => "locations that need them answer 503",
            };
            let (object, message) = match source {
                KeySource::Object(object) => (object, fault.clone()),
                KeySource::Url(url) => (wanted.get(source)?, format!("{}: {fault}", url.url)),
            };
            Some(Problem {
                severity: Severity::Error,
                object: object.clone(),
                source: String::new(),
                field: String::new(),
                code: "jwks-invalid",
                message,
                effect: effect.to_owned(),
            })
        })
    }
}
