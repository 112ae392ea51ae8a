//! How each Ingress fares here beside ingress-nginx: pure, for `splitter check`.
//!
//! What Problems say of an Ingress, and where ingress-nginx's own faults are not repeated: there a
//! canary's policy belongs to the Service and not to the Location, and one regular expression makes
//! all paths of a host such.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::Serialize;

use super::report::Problems;
use super::tls::{SecretIndex, Secrets};
use super::{Translation, View, compare_notes, demands, golang, ours};
use crate::config::ClassSettings;
use crate::k8s::objects::Objects;
use crate::model::{
    Backend, BackendKey, HostPattern, Location, ObjectRef, Problem, Severity, Snapshot, Variant,
};

/// How an Ingress fares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fate {
    /// As in ingress-nginx.
    Unchanged,
    /// It works, in another way.
    Differs,
    /// A part of it does not work, or what it asks for is not there.
    NeedsWork,
}

/// One Ingress of our classes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fared {
    /// The Ingress.
    pub ingress: ObjectRef,
    /// The worst of what follows.
    pub fate: Fate,
    /// The codes of its Problems and differences that are not as in ingress-nginx, sorted.
    pub reasons: Vec<&'static str>,
    /// What ingress-nginx does otherwise without anybody having asked for it.
    pub differences: Vec<Difference>,
    /// What it demands of its callers, in the order in which it is asked, for all its paths together.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub demands: Vec<String>,
}

/// What one Ingress meets in ingress-nginx, and here.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Difference {
    /// A fixed name for its kind.
    pub code: &'static str,
    /// In ingress-nginx.
    pub there: String,
    /// Here.
    pub here: String,
}

/// Warnings about what ingress-nginx does no more with than we do.
const SAME: [&str; 21] = [
    "affinity-missing",
    "annotation-contradiction",
    "annotation-empty",
    "annotation-misplaced",
    "annotation-unknown",
    "buffering-unused",
    "canary-without-effect",
    "canary-without-rule",
    "cors-off",
    "default-class-again",
    "header-missing",
    "no-endpoint-slice",
    "guards-after-preflight",
    "guards-after-redirect",
    "guards-beat-denylist",
    "path-type-missing",
    "pattern-unused",
    "rule-name-missing",
    "timeout-too-long",
    "weight-excess",
    "weight-rounded",
];

/// Warnings that name something which is not there.
const MISSING: [&str; 2] = ["annotation-unsupported", "passthrough-off"];

/// Says how each Ingress of our classes fares, sorted by name.
pub fn compare(
    objects: &Objects,
    settings: &ClassSettings,
    translation: &Translation,
) -> Vec<Fared> {
    let all = SecretIndex::of(objects);
    let secrets = Secrets::new(&all);
    let views = ours(objects, &secrets, settings, &mut Problems::default());
    let mut all: BTreeMap<ObjectRef, Vec<Difference>> = BTreeMap::new();
    for view in &views {
        all.entry(view.subject.object.clone()).or_default();
    }
    let mut add = |ingress: &ObjectRef, difference: Difference| {
        if let Some(list) = all.get_mut(ingress) {
            list.push(difference);
        }
    };
    canaries(&translation.snapshot, &mut add);
    compare_notes::add(&views, &mut add);
    if !settings.strict_nginx {
        regexes(&views, &translation.snapshot, &mut add);
    }
    let mut problems: HashMap<&ObjectRef, Vec<&Problem>> = HashMap::new();
    for problem in translation.problems.iter() {
        problems.entry(&problem.object).or_default().push(problem);
    }
    let mut demanded: BTreeMap<ObjectRef, Vec<String>> = BTreeMap::new();
    for location in &translation.snapshot.locations {
        let known = demanded.entry(location.ingress.clone()).or_default();
        for demand in demands::of(location) {
            if !known.contains(&demand) {
                known.push(demand);
            }
        }
    }
    let fared = all.into_iter().map(|(ingress, mut differences)| {
        differences.sort();
        differences.dedup();
        let own = problems.get(&ingress).map_or(&[][..], Vec::as_slice);
        let demands = demanded.remove(&ingress).unwrap_or_default();
        Fared {
            demands,
            ..judge(ingress, own, differences)
        }
    });
    fared.collect()
}

fn judge(ingress: ObjectRef, problems: &[&Problem], differences: Vec<Difference>) -> Fared {
    let told = problems.iter().map(|it| (fate(it), it.code));
    let differ = differences.iter().map(|it| (Fate::Differs, it.code));
    let all: Vec<_> = told.chain(differ).collect();
    let fate = all.iter().map(|(fate, _)| *fate).max();
    let worth = all.iter().filter(|(fate, _)| *fate > Fate::Unchanged);
    let mut reasons: Vec<_> = worth.map(|(_, code)| *code).collect();
    reasons.sort_unstable();
    reasons.dedup();
    Fared {
        ingress,
        fate: fate.unwrap_or(Fate::Unchanged),
        reasons,
        differences,
        demands: Vec::new(),
    }
}

fn fate(problem: &Problem) -> Fate {
    match problem.severity {
        Severity::Error => Fate::NeedsWork,
        Severity::Warning if MISSING.contains(&problem.code) => Fate::NeedsWork,
        Severity::Warning if SAME.contains(&problem.code) => Fate::Unchanged,
        Severity::Warning => Fate::Differs,
    }
}

fn backend<'a>(snapshot: &'a Snapshot, variant: &Variant) -> Option<&'a Arc<Backend>> {
    snapshot.backend(variant.backend)
}

/// Where a canary's policy would not stay with its Location.
fn canaries(snapshot: &Snapshot, add: &mut impl FnMut(&ObjectRef, Difference)) {
    let mut stable: HashMap<&BackendKey, Vec<&Location>> = HashMap::new();
    for location in &snapshot.locations {
        let first = location.split.variants.first();
        if let Some(backend) = first.and_then(|it| backend(snapshot, it)) {
            stable.entry(&backend.key).or_default().push(location);
        }
    }
    for (service, locations) in &stable {
        for location in locations {
            for canary in location.split.variants.iter().skip(1) {
                let Some(backend) = backend(snapshot, canary) else {
                    continue;
                };
                leaks(snapshot, (location, canary), service, locations, add);
                let taken = stable.get(&backend.key).map_or(&[][..], Vec::as_slice);
                shared(canary, &backend.key, taken, add);
            }
            further(location, add);
        }
    }
}

/// Other Locations of the same Service, which have no such canary.
fn leaks(
    snapshot: &Snapshot,
    (location, canary): (&Location, &Variant),
    service: &BackendKey,
    locations: &[&Location],
    add: &mut impl FnMut(&ObjectRef, Difference),
) {
    let key = backend(snapshot, canary).map(|it| &it.key);
    for other in locations {
        let mut variants = other.split.variants.iter().skip(1);
        if variants.any(|it| backend(snapshot, it).map(|it| &it.key) == key) {
            continue;
        }
        let difference = Difference {
            code: "canary-leak",
            there: format!(
                "the canary {} of {} takes requests of {} too, as both lead to {service}",
                canary.name, location.key, other.key
            ),
            here: format!("only {} is split", location.key),
        };
        add(&other.ingress, difference.clone());
        add(&canary.ingress, difference);
    }
}

/// A canary's Service that other Locations lead to.
fn shared(
    canary: &Variant,
    service: &BackendKey,
    locations: &[&Location],
    add: &mut impl FnMut(&ObjectRef, Difference),
) {
    for other in locations {
        let difference = Difference {
            code: "canary-service-shared",
            there: format!(
                "{service} belongs to {} as well: whichever Ingress is younger has no effect (no \
                 canary, or 404)",
                other.key
            ),
            here: "both work, in any order".to_owned(),
        };
        add(&other.ingress, difference.clone());
        add(&canary.ingress, difference);
    }
}

/// Canaries after the first one of a Location.
fn further(location: &Location, add: &mut impl FnMut(&ObjectRef, Difference)) {
    let canaries = location.split.variants.get(1..).unwrap_or_default();
    let Some((first, others)) = canaries.split_first() else {
        return;
    };
    for canary in others {
        add(
            &canary.ingress,
            Difference {
                code: "canary-first-only",
                there: format!(
                    "only the oldest canary of {} counts: {}",
                    location.key, first.name
                ),
                here: "every canary counts".to_owned(),
            },
        );
    }
}

/// Paths that ingress-nginx would take for regular expressions on account of another Ingress.
fn regexes(views: &[View<'_>], snapshot: &Snapshot, add: &mut impl FnMut(&ObjectRef, Difference)) {
    let asks = |view: &View<'_>| {
        let set = |name| view.annotations.get(name).map(|it| it.value);
        set("use-regex").and_then(golang::parse_bool) == Some(true)
            || set("rewrite-target").is_some_and(|it| !it.trim().is_empty())
    };
    let asking: Vec<&ObjectRef> = views
        .iter()
        .filter(|view| asks(view))
        .map(|view| &view.subject.object)
        .collect();
    let mut hosts: HashMap<&HostPattern, &ObjectRef> = HashMap::new();
    for location in &snapshot.locations {
        if asking.contains(&&location.ingress) {
            hosts.entry(&location.key.host).or_insert(&location.ingress);
        }
    }
    for location in &snapshot.locations {
        let Some(cause) = hosts.get(&location.key.host) else {
            continue;
        };
        if !asking.contains(&&location.ingress) {
            add(
                &location.ingress,
                Difference {
                    code: "regex-leak",
                    there: format!(
                        "{} is a regular expression without regard to case, as {cause} has \
                         use-regex or rewrite-target for the same host",
                        location.key
                    ),
                    here: "its path is compared as written".to_owned(),
                },
            );
        }
    }
}
