//! The annotations of an Ingress that are meant for us.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::report::{Problems, Subject};

/// The prefix that is always read, and wins.
pub(super) const OWN_PREFIX: &str = "splitter.io";

/// Our annotations by their name without the prefix, on top of the defaults.
#[derive(Default)]
pub(super) struct Annotations<'a> {
    own: BTreeMap<&'a str, Annotation<'a>>,
    defaults: BTreeMap<&'a str, &'a str>,
}

/// One annotation.
#[derive(Clone, Copy)]
pub(super) struct Annotation<'a> {
    /// With the prefix.
    pub key: &'a str,
    /// As written.
    pub value: &'a str,
}

impl Annotation<'_> {
    /// Whether it is written with our own prefix.
    pub(super) fn is_own(&self) -> bool {
        self.key
            .strip_prefix(OWN_PREFIX)
            .is_some_and(|rest| rest.starts_with('/'))
    }

    /// Without the prefix.
    pub(super) fn name(&self) -> &'_ str {
        self.key.rsplit_once('/').map_or(self.key, |(_, name)| name)
    }

    /// The field name for Problems.
    pub(super) fn field(&self) -> String {
        format!("metadata.annotations.{}", self.key)
    }
}

impl<'a> Annotations<'a> {
    pub(super) fn read(
        metadata: &'a ObjectMeta,
        prefix: &str,
        subject: &Subject<'_>,
        problems: &mut Problems,
    ) -> Self {
        let mut found = Annotations::default();
        let Some(all) = &metadata.annotations else {
            return found;
        };
        found.add(all, prefix);
        if prefix == OWN_PREFIX {
            return found;
        }
        let mut own = Annotations::default();
        own.add(all, OWN_PREFIX);
        for (name, annotation) in own.own {
            let Some(other) = found.own.insert(name, annotation) else {
                continue;
            };
            if other.value != annotation.value {
                problems.warn(
                    subject,
                    other.field(),
                    "annotation-contradiction",
                    format!(
                        "{:?} here, but {:?} in {}",
                        other.value, annotation.value, annotation.key
                    ),
                    format!("{} counts", annotation.key),
                );
            }
        }
        found
    }

    fn add(&mut self, all: &'a BTreeMap<String, String>, prefix: &str) {
        // Keys are sorted, so those of one prefix stand together.
        let start = format!("{prefix}/");
        for (key, value) in all.range(start.clone()..) {
            let Some(name) = key.strip_prefix(start.as_str()) else {
                break;
            };
            self.own.insert(name, Annotation { key, value });
        }
    }

    /// The same with these values for annotations that are not there.
    pub(super) fn on_top_of(self, defaults: &BTreeMap<&'a str, &'a str>) -> Self {
        let defaults = defaults.clone();
        Annotations { defaults, ..self }
    }

    /// The annotation, or its default for all Ingresses.
    pub(super) fn get(&self, name: &str) -> Option<Annotation<'a>> {
        let default = || self.defaults.get_key_value(name);
        self.own(name)
            .or_else(|| default().map(|(key, value)| Annotation { key, value }))
    }

    /// The annotation as the Ingress itself has it.
    pub(super) fn own(&self, name: &str) -> Option<Annotation<'a>> {
        self.own.get(name).copied()
    }

    /// What is said for all Ingresses.
    pub(super) fn preset(&self, name: &str) -> Option<&'a str> {
        self.defaults.get(name).copied()
    }

    /// Those that the Ingress itself has.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&'a str, Annotation<'a>)> + '_ {
        self.own
            .iter()
            .map(|(name, annotation)| (*name, *annotation))
    }
}
