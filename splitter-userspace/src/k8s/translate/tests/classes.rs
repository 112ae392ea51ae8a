//! Which Ingresses are ours.

use super::support::{Ing, codes, main, manifest, objects, show};
use crate::config::ClassSettings;
use crate::k8s::translate;

const ANNOTATION: &str = "kubernetes.io/ingress.class";

fn class(name: &str, controller: &str, default: &str) -> String {
    format!(
        "---\napiVersion: networking.k8s.io/v1\nkind: IngressClass\n\
         metadata: {{name: {name}, annotations: {{ingressclass.kubernetes.io/is-default-class: {default:?}}}}}\n\
         spec: {{controller: {controller}}}\n"
    )
}

/// Whether the Ingress is served beside these classes, and the codes of the Problems.
fn served(ingress: Ing, classes: &[&str], settings: &ClassSettings) -> (bool, Vec<String>) {
    let mut all = manifest(&[ingress.on("a", "/", "m")]);
    all.classes = objects(&classes.concat()).classes;
    let translation = translate(&all, settings);
    let found = show(&translation.snapshot) == ["a/ (Prefix): m=100"];
    assert_eq!(found, translation.served == 1);
    assert_eq!(found, !translation.snapshot.hosts.is_empty());
    (found, codes(&translation.problems))
}

#[test]
fn by_field_and_by_annotation() {
    let nginx = class("nginx", "k8s.io/ingress-nginx", "false");
    let ours = class("ours", "splitter.io/ingress-controller", "false");
    let foreign = class("traefik", "traefik.io/ingress-controller", "false");
    let stolen = class("nginx", "nginx.org/ingress-controller", "false");
    let none: [&str; 0] = [];
    type Row<'a> = (Option<&'a str>, Option<&'a str>, &'a [&'a str], bool);
    // field, annotation, classes, served
    let rows: [Row<'_>; 16] = [
        // The own name needs no object.
        (Some("nginx"), None, &none, true),
        (None, Some("nginx"), &none, true),
        (Some("nginx"), None, &[&nginx], true),
        (Some("nginx"), None, &[&foreign], true),
        // Every class of ours counts, whatever its name.
        (Some("ours"), None, &[&ours], true),
        (None, Some("ours"), &[&ours], true),
        (Some("ours"), None, &none, false),
        // A class of somebody else does not, even under our name.
        (Some("traefik"), None, &[&foreign], false),
        (None, Some("traefik"), &[&foreign], false),
        (Some("nginx"), None, &[&stolen], false),
        (None, Some("nginx"), &[&stolen], false),
        // Names are compared as they are.
        (Some("Nginx"), None, &none, false),
        (None, Some(""), &none, false),
        // Without a class: only as long as there is no class at all.
        (None, None, &none, true),
        (None, None, &[&nginx], false),
        (None, None, &[&foreign], false),
    ];
    for (field, annotation, classes, expected) in rows {
        let mut ingress = main("i").class(field);
        if let Some(annotation) = annotation {
            ingress = ingress.raw_note(ANNOTATION, annotation);
        }
        let (found, problems) = served(ingress, classes, &ClassSettings::default());
        assert_eq!(found, expected, "{field:?} {annotation:?} {classes:?}");
        assert_eq!(problems, [""; 0]);
    }
}

#[test]
fn the_field_counts_before_the_annotation() {
    let both = |field, annotation| {
        let ingress = main("i")
            .class(Some(field))
            .raw_note(ANNOTATION, annotation);
        served(ingress, &[], &ClassSettings::default())
    };
    assert_eq!(both("nginx", "nginx"), (true, vec![]));
    assert_eq!(
        both("nginx", "other"),
        (true, vec!["class-contradiction".to_owned()])
    );
    assert_eq!(
        both("other", "nginx"),
        (false, vec!["class-contradiction".to_owned()])
    );
    assert_eq!(both("other", "third"), (false, vec![]));
}

#[test]
fn a_default_class_of_ours_takes_those_without() {
    let unnamed = || main("i").class(None);
    let ours = class("a", "k8s.io/ingress-nginx", "true");
    let foreign = class("b", "example.com/other", "true");
    let settings = ClassSettings::default();
    assert_eq!(served(unnamed(), &[&ours], &settings), (true, vec![]));
    assert_eq!(served(unnamed(), &[&foreign], &settings), (false, vec![]));
    // Both are equally old: the first by name is the default.
    let (found, problems) = served(unnamed(), &[&foreign, &ours], &settings);
    assert!(found);
    assert_eq!(problems, ["default-class-again"]);
}

#[test]
fn the_newest_default_class_counts() {
    let dated = |name: &str, controller: &str, second: u32| {
        let stamp = format!("metadata: {{creationTimestamp: \"2026-01-01T00:00:{second:02}Z\", ");
        class(name, controller, "true").replace("metadata: {", &stamp)
    };
    for (ours, foreign, expected) in [(2, 1, true), (1, 2, false)] {
        let ours = dated("z", "k8s.io/ingress-nginx", ours);
        let foreign = dated("a", "example.com/other", foreign);
        let classes = [ours.as_str(), foreign.as_str()];
        let (found, _) = served(main("i").class(None), &classes, &ClassSettings::default());
        assert_eq!(found, expected);
    }
}

#[test]
fn settings_change_what_is_ours() {
    let foreign = class("x", "example.com/x", "false");
    let settings = ClassSettings {
        ingress_class: "edge".to_owned(),
        controllers: vec!["example.com/x".to_owned()],
        without_class: true,
        ..ClassSettings::default()
    };
    let is_served = |class| served(main("i").class(class), &[&foreign], &settings).0;
    assert!(is_served(Some("edge")));
    assert!(is_served(Some("x")));
    assert!(is_served(None));
    assert!(!is_served(Some("nginx")));
}
