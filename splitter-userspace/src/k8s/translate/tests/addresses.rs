//! Allow and deny lists.

use super::support::{main, problems_of, run, show};
use crate::model::Addresses;

/// The lists of a main Ingress with these annotations, its Location's line and its Problems.
fn read(notes: &[(&str, &str)]) -> (Option<Addresses>, String, Vec<String>) {
    let ingress = notes
        .iter()
        .fold(main("m"), |it, (name, value)| it.note(name, value));
    let translation = run(&[ingress.on("a", "/", "m")]);
    let policy = translation.snapshot.locations[0].policy.clone();
    let addresses = policy.and_then(|policy| policy.addresses.clone());
    let line = show(&translation.snapshot).remove(0);
    (addresses, line, problems_of(&translation, "m"))
}

#[test]
fn lists_become_sets_under_both_names() {
    for name in ["allowlist-source-range", "whitelist-source-range"] {
        let (lists, _, problems) = read(&[(name, "10.0.0.0/8, 192.168.1.1")]);
        let lists = lists.unwrap();
        assert_eq!(
            lists.allow.unwrap().to_string(),
            "10.0.0.0/8,192.168.1.1/32"
        );
        assert_eq!((lists.deny, problems), (None, vec![]));
    }
    let (lists, line, problems) = read(&[("denylist-source-range", "2001:db8::/32")]);
    assert_eq!(lists.unwrap().deny.unwrap().to_string(), "2001:db8::/32");
    assert_eq!((line.as_str(), problems), ("a/ (Prefix): m=100", vec![]));
}

#[test]
fn a_list_of_everybody_is_no_policy() {
    for list in ["0.0.0.0/0,::/0", "::/0, 10.0.0.0/8, 0.0.0.0/0"] {
        let (lists, line, problems) = read(&[("whitelist-source-range", list)]);
        assert_eq!((lists, problems), (None, vec![]));
        assert_eq!(line, "a/ (Prefix): m=100");
    }
    let (lists, ..) = read(&[("allowlist-source-range", "0.0.0.0/0")]);
    assert!(lists.is_some(), "IPv6 clients are not in it");
}

#[test]
fn a_list_that_cannot_be_read_closes_the_ingress() {
    for (name, list) in [
        ("allowlist-source-range", ""),
        ("allowlist-source-range", "10.0.0.0/33"),
        ("whitelist-source-range", "10.0.0.0/8,office"),
        ("denylist-source-range", "10.0.0.0/8,"),
    ] {
        let (_, line, problems) = read(&[(name, list)]);
        assert_eq!(line, "a/ (Prefix): m!GuardInvalid=100", "{name}: {list}");
        assert_eq!(
            problems,
            [format!("metadata.annotations.{name} !source-range-invalid")]
        );
    }
}

#[test]
fn the_newer_name_counts() {
    let (lists, _, problems) = read(&[
        ("allowlist-source-range", "10.0.0.0/8"),
        ("whitelist-source-range", "0.0.0.0/0"),
    ]);
    assert_eq!(lists.unwrap().allow.unwrap().to_string(), "10.0.0.0/8");
    assert_eq!(
        problems,
        ["metadata.annotations.whitelist-source-range annotation-contradiction"]
    );
}
