//! Properties that hold for any input.

use proptest::collection::vec;
use proptest::prelude::*;

use super::support::{Ing, canary, main, manifest, run};
use crate::config::ClassSettings;
use crate::k8s::translate;
use crate::model::{MAX_VARIANTS, Rows};

/// An Ingress out of few names, so that many meet.
fn ingress() -> impl Strategy<Value = Parts> {
    let path = (0u8..4, 0u8..4, 0u8..3, 0u8..6);
    let weight = prop_oneof!["[0-9]{1,3}", "-?[0-9]{1,12}", any::<String>()];
    (
        any::<bool>(),
        0u32..4,
        vec(path, 0..4),
        proptest::option::of(0u8..6),
        weight,
    )
}

/// Canary, age, paths (host, path, type, Service), default backend, weight.
type Parts = (bool, u32, Vec<Path>, Option<u8>, String);

type Path = (u8, u8, u8, u8);

fn build(index: usize, (is_canary, age, paths, default, weight): &Parts) -> Ing {
    const HOSTS: [&str; 4] = ["", "a", "*.a", "b"];
    const PATHS: [&str; 4] = ["/", "/x", "/x/", "/y/z"];
    const KINDS: [&str; 3] = ["Exact", "Prefix", "ImplementationSpecific"];
    const SERVICES: [&str; 6] = ["m", "m2", "c", "c2", "c3", "missing"];
    let name = format!("i{index}");
    let mut ingress = if *is_canary {
        canary(&name)
    } else {
        main(&name)
    };
    if *age > 0 {
        ingress = ingress.at(*age);
    }
    ingress = ingress.weight(weight);
    for (host, path, kind, service) in paths {
        let service = SERVICES[usize::from(*service)];
        ingress = ingress.path(
            HOSTS[usize::from(*host)],
            PATHS[usize::from(*path)],
            KINDS[usize::from(*kind)],
            service,
        );
    }
    if let Some(service) = default {
        ingress = ingress.default_to(SERVICES[usize::from(*service)]);
    } else if paths.is_empty() {
        ingress = ingress.bare("bare");
    }
    ingress
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn the_order_of_objects_does_not_matter(
        parts in vec(ingress(), 1..10),
        seed in any::<u64>(),
    ) {
        let all: Vec<_> = parts.iter().enumerate().map(|(i, it)| build(i, it)).collect();
        let objects = manifest(&all);
        let expected = translate(&objects, &ClassSettings::default());
        let mut random = fastrand::Rng::with_seed(seed);
        let mut shuffled = objects;
        shuffled.ingresses = shuffle(&shuffled.ingresses, &mut random);
        shuffled.services = shuffle(&shuffled.services, &mut random);
        shuffled.slices = shuffle(&shuffled.slices, &mut random);
        prop_assert_eq!(translate(&shuffled, &ClassSettings::default()), expected);
    }

    #[test]
    fn every_snapshot_is_well_formed(parts in vec(ingress(), 0..12)) {
        let all: Vec<_> = parts.iter().enumerate().map(|(i, it)| build(i, it)).collect();
        let snapshot = run(&all).snapshot;
        prop_assert!(snapshot.locations.iter().is_sorted_by(|a, b| a.key < b.key));
        prop_assert!(snapshot.backends.iter().is_sorted_by(|a, b| (&a.key, a.fault) < (&b.key, b.fault)));
        prop_assert!(snapshot.hosts.iter().is_sorted_by(|a, b| a.pattern < b.pattern));
        let mut listed = 0;
        for host in &snapshot.hosts {
            for id in &host.locations {
                prop_assert_eq!(&snapshot.location(*id).unwrap().key.host, &host.pattern);
                listed += 1;
            }
        }
        prop_assert_eq!(listed, snapshot.locations.len());
        for location in &snapshot.locations {
            let split = &location.split;
            prop_assert!((1..=MAX_VARIANTS).contains(&split.variants.len()));
            prop_assert_eq!(&*split.variants[0].name, "stable");
            let total: u64 = split.variants.iter().map(|it| u64::from(it.weight)).sum();
            prop_assert!((1..=1_000_000_000).contains(&total));
            for (index, variant) in split.variants.iter().enumerate() {
                prop_assert!(snapshot.backend(variant.backend).is_some());
                let same = split.variants.iter().filter(|it| it.name == variant.name);
                prop_assert_eq!(same.count(), 1, "variant {}", index);
            }
            for rule in &split.rules {
                prop_assert!((1..split.variants.len()).contains(&usize::from(rule.variant)));
            }
        }
    }

    #[test]
    fn any_annotation_values_are_taken_without_panic(
        values in vec((0usize..12, any::<String>()), 0..12),
    ) {
        const NAMES: [&str; 12] = [
            "canary", "canary-weight", "canary-weight-total", "canary-by-header",
            "canary-by-header-value", "canary-by-header-pattern", "canary-by-cookie",
            "backend-protocol", "allowlist-source-range", "configuration-snippet",
            "canary-x", "x",
        ];
        let objects = manifest(&[main("m").on("a", "/", "m"), canary("k").on("a", "/", "c")]);
        let mut changed = objects;
        for ingress in changed.ingresses.iter_mut() {
            let mut object = (*ingress.object).clone();
            let annotations = object.metadata.annotations.get_or_insert_default();
            for (name, value) in &values {
                let key = format!("nginx.ingress.kubernetes.io/{}", NAMES[*name]);
                annotations.insert(key, value.clone());
            }
            ingress.object = object.into();
        }
        let translation = translate(&changed, &ClassSettings::default());
        prop_assert_eq!(translation.snapshot.locations.len(), 1);
    }

    #[test]
    fn any_pattern_is_compiled_or_refused(text in "[-a-z\\[\\](){}*+?|&=\\\\^$.:~]{0,24}") {
        if let Ok(pattern) = super::super::pattern::compile(&text) {
            pattern.is_match(text.as_bytes());
        }
    }
}

/// The same things in another order.
fn shuffle<T: Clone>(all: &Rows<T>, random: &mut fastrand::Rng) -> Rows<T> {
    let mut all: Vec<T> = all.iter().cloned().collect();
    random.shuffle(&mut all);
    all.into()
}
