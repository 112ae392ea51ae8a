//! Default backends of main Ingresses.

use super::support::{clean, main, problems_of, run, show};

#[test]
fn without_rules_it_is_the_catch_all() {
    assert_eq!(clean(&[main("i").default_to("m")]), ["*/ (Prefix): m=100"]);
}

#[test]
fn the_oldest_catch_all_wins() {
    let translation = run(&[
        main("a").at(2).default_to("m"),
        main("b").at(1).default_to("m2"),
    ]);
    assert_eq!(show(&translation.snapshot), ["*/ (Prefix): m2=100"]);
    assert_eq!(
        problems_of(&translation, "a"),
        ["spec.defaultBackend default-backend-taken"]
    );
}

#[test]
fn a_written_catch_all_beats_an_older_default() {
    let translation = run(&[
        main("a").at(1).default_to("m"),
        main("b").at(2).on("", "/", "m2"),
    ]);
    assert_eq!(show(&translation.snapshot), ["*/ (Prefix): m2=100"]);
    assert_eq!(
        problems_of(&translation, "a"),
        ["spec.defaultBackend default-backend-taken"]
    );
    assert_eq!(problems_of(&translation, "b"), [""; 0]);
}

#[test]
fn with_rules_it_is_the_root_of_its_own_hosts_only() {
    let lines = clean(&[
        main("a")
            .on("a", "/x", "m")
            .on("b", "/", "m")
            .bare("c")
            .default_to("m2"),
        main("d").on("d", "/x", "m"),
    ]);
    assert_eq!(
        lines,
        [
            "a/ (Prefix): m2=100",
            "a/x (Prefix): m=100",
            // b has a root of its own.
            "b/ (Prefix): m=100",
            "c/ (Prefix): m2=100",
            "d/x (Prefix): m=100",
        ]
    );
}

#[test]
fn an_exact_root_leaves_room_for_it() {
    let lines = clean(&[main("a").path("a", "/", "Exact", "m").default_to("m2")]);
    assert_eq!(lines, ["a/ (Exact): m=100", "a/ (Prefix): m2=100"]);
}

#[test]
fn the_root_of_another_ingress_beats_it() {
    let translation = run(&[
        main("a").at(1).on("a", "/x", "m").default_to("m2"),
        main("b").at(2).on("a", "/", "c"),
    ]);
    assert_eq!(
        show(&translation.snapshot),
        ["a/ (Prefix): c=100", "a/x (Prefix): m=100"]
    );
    assert_eq!(
        problems_of(&translation, "a"),
        ["spec.defaultBackend default-backend-taken"]
    );
}

#[test]
fn rules_without_a_host_give_any_host() {
    let lines = clean(&[main("a").on("", "/x", "m").default_to("m2")]);
    assert_eq!(lines, ["*/ (Prefix): m2=100", "*/x (Prefix): m=100"]);
}

#[test]
fn a_default_backend_to_nowhere_is_a_503_with_a_problem() {
    let translation = run(&[main("a").default_to("missing")]);
    assert_eq!(
        show(&translation.snapshot),
        ["*/ (Prefix): missing!ServiceNotFound=100"]
    );
    assert_eq!(
        problems_of(&translation, "a"),
        ["spec.defaultBackend !service-not-found"]
    );
}
