//! Session affinity: what the annotations come to in the Split.

use super::support::{canary, main, problems_of, run};
use crate::model::{Affinity, AffinityMode, SameSite, Snapshot};

fn affinity_of(snapshot: &Snapshot, host: &str) -> Option<Affinity> {
    let of = |it: &&std::sync::Arc<crate::model::Location>| it.key.host.to_string() == host;
    let location = snapshot.locations.iter().find(of)?;
    location.split.affinity().cloned()
}

#[test]
fn all_annotations_are_read() {
    let translation = run(&[main("m")
        .note("affinity", "cookie")
        .note("affinity-mode", "persistent")
        .note("session-cookie-name", "route")
        .note("session-cookie-path", "/p")
        .note("session-cookie-domain", "a.test")
        .note("session-cookie-expires", "-1")
        .note("session-cookie-max-age", "60")
        .note("session-cookie-samesite", "STRICT")
        .note("session-cookie-conditional-samesite-none", "true")
        .note("session-cookie-secure", "1")
        .note("session-cookie-change-on-failure", "T")
        .on("a", "/x", "m")]);
    assert_eq!(problems_of(&translation, "m"), [""; 0]);
    let affinity = affinity_of(&translation.snapshot, "a").expect("affinity");
    assert_eq!(affinity.mode, AffinityMode::Persistent);
    assert_eq!(&*affinity.path, "/p");
    let cookie = &*affinity.cookie;
    assert_eq!(&*cookie.name, "route");
    assert_eq!(cookie.domain.as_deref(), Some("a.test"));
    assert_eq!((cookie.expires, cookie.max_age), (Some(-1), Some(60)));
    assert_eq!(cookie.same_site, Some(SameSite::Strict));
    assert!(cookie.conditional_none && cookie.secure && cookie.change_on_failure);
}

#[test]
fn tags_name_the_service_and_are_the_same_everywhere() {
    let with = |name: &str| main(name).note("affinity", "cookie");
    let translation = run(&[
        with("m").on("a", "/", "m"),
        with("n").on("b", "/", "m"),
        canary("c").on("a", "/", "c").on("b", "/", "c"),
        canary("d")
            .note("affinity-canary-behavior", "legacy")
            .on("a", "/", "c"),
    ]);
    let a = affinity_of(&translation.snapshot, "a").expect("affinity");
    let b = affinity_of(&translation.snapshot, "b").expect("affinity");
    assert_eq!(a.sides[..2], b.sides[..]);
    let sticky: Vec<bool> = a.sides.iter().map(|side| side.sticky).collect();
    assert_eq!(sticky, [true, true, false]);
    // Two canaries on one Service are two Variants.
    let tags: std::collections::BTreeSet<u64> = a.sides.iter().map(|side| side.tag).collect();
    assert_eq!(tags.len(), 3);
}

#[test]
fn the_behavior_is_read_from_the_canary() {
    let on_main = run(&[main("m")
        .note("affinity-canary-behavior", "legacy")
        .on("a", "/", "m")]);
    assert_eq!(
        problems_of(&on_main, "m"),
        ["metadata.annotations.affinity-canary-behavior annotation-misplaced"]
    );
    let bad = run(&[
        main("m").note("affinity", "cookie").on("a", "/", "m"),
        canary("c")
            .note("canary-weight", "5")
            .note("affinity-canary-behavior", "Legacy")
            .on("a", "/", "c"),
    ]);
    assert_eq!(
        problems_of(&bad, "c"),
        ["metadata.annotations.affinity-canary-behavior !affinity-behavior-invalid"]
    );
    let affinity = affinity_of(&bad.snapshot, "a").expect("affinity");
    assert!(affinity.is_sticky_throughout());
}
