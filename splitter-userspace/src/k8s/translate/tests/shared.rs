//! Sections 6 and 7 of the contract: several canaries, and Services used more than once.

use super::support::{Ing, canary, clean, main, problems_of, run, show};
use crate::k8s::Translation;

fn full(name: &str) -> Ing {
    canary(name).weight("100")
}

fn names(translation: &Translation, location: usize) -> Vec<String> {
    let variants = &translation.snapshot.locations[location].split.variants;
    variants.iter().map(|it| it.name.to_string()).collect()
}

#[test]
fn two_canaries_with_different_services_both_count() {
    let lines = clean(&[
        main("m").on("a", "/", "m"),
        canary("k1").weight("10").on("a", "/", "c"),
        canary("k2").weight("10").on("a", "/", "c2"),
    ]);
    assert_eq!(lines, ["a/ (Prefix): m=80 c=10 c2=10"]);
}

#[test]
fn a_header_canary_and_a_weight_canary_on_one_service_both_count() {
    let translation = run(&[
        main("m").on("a", "/", "m"),
        canary("k1").note("canary-by-header", "h").on("a", "/", "c"),
        canary("k2").weight("10").on("a", "/", "c"),
    ]);
    assert_eq!(
        show(&translation.snapshot),
        ["a/ (Prefix): m=90 c=0 c=10 | 1 header h always/never"]
    );
    assert_eq!(names(&translation, 0), ["stable", "c", "c~2"]);
}

#[test]
fn a_service_called_stable_does_not_take_the_name() {
    let translation = run(&[
        main("m").on("a", "/", "m"),
        canary("k1").weight("1").on("a", "/", "stable"),
        canary("k2").weight("1").on("a", "/", "stable"),
    ]);
    assert_eq!(names(&translation, 0), ["stable", "stable~2", "stable~3"]);
}

#[test]
fn headers_come_before_cookies_and_the_oldest_canary_first() {
    let both = |name: &str, second, service: &str| {
        let ingress = canary(name).at(second);
        let ingress = ingress.note("canary-by-header", &format!("h-{service}"));
        ingress
            .note("canary-by-cookie", &format!("k-{service}"))
            .on("a", "/", service)
    };
    let lines = clean(&[
        main("m").on("a", "/", "m"),
        both("a", 2, "c"),
        both("b", 1, "c2"),
    ]);
    assert_eq!(
        lines,
        [
            "a/ (Prefix): m=100 c2=0 c=0 | 1 header h-c2 always/never | 2 header h-c always/never \
          | 1 cookie k-c2 | 2 cookie k-c"
        ]
    );
}

#[test]
fn one_service_as_canary_of_two_locations_keeps_both_policies() {
    let lines = clean(&[
        main("m")
            .on("a", "/", "m")
            .on("a", "/x", "m")
            .on("b", "/", "m"),
        canary("k1").weight("10").on("a", "/", "c"),
        canary("k2").weight("90").on("a", "/x", "c"),
    ]);
    assert_eq!(
        lines,
        [
            "a/ (Prefix): m=90 c=10",
            "a/x (Prefix): m=10 c=90",
            "b/ (Prefix): m=100"
        ]
    );
}

#[test]
fn at_most_seven_canaries() {
    let mut all = vec![main("m").on("a", "/", "m").on("b", "/", "m")];
    for number in 1..=9 {
        let canary = canary(&format!("k{number}")).weight("1").on("a", "/", "c");
        all.push(if number == 9 {
            canary.on("b", "/", "c")
        } else {
            canary
        });
    }
    let translation = run(&all);
    assert_eq!(
        show(&translation.snapshot),
        [
            "a/ (Prefix): m=93 c=1 c=1 c=1 c=1 c=1 c=1 c=1",
            "b/ (Prefix): m=99 c=1"
        ]
    );
    for name in ["k8", "k9"] {
        assert_eq!(
            problems_of(&translation, name),
            ["spec.rules[0].http.paths[0] !too-many-canaries"]
        );
    }
    assert_eq!(translation.problems.len(), 2);
}

#[test]
fn hosts_that_share_a_service_are_split_apart() {
    let lines = clean(&[
        main("a").on("a", "/", "m"),
        main("b").on("b", "/", "m"),
        full("k").on("a", "/", "c"),
    ]);
    assert_eq!(lines, ["a/ (Prefix): m=0 c=100", "b/ (Prefix): m=100"]);
}

#[test]
fn paths_that_share_a_service_are_split_apart() {
    let lines = clean(&[
        main("m").on("a", "/", "m").on("a", "/hello", "m"),
        full("k").on("a", "/hello", "c"),
    ]);
    assert_eq!(lines, ["a/ (Prefix): m=100", "a/hello (Prefix): m=0 c=100"]);
}

#[test]
fn a_canary_service_may_be_main_elsewhere_in_any_order() {
    for (main_age, other_age, canary_age) in [(1, 2, 3), (3, 2, 1), (2, 3, 1), (2, 1, 3), (1, 1, 1)]
    {
        let lines = clean(&[
            main("m").at(main_age).on("a", "/", "m"),
            main("o").at(other_age).on("canary.a", "/", "c"),
            full("k").at(canary_age).on("a", "/", "c"),
        ]);
        assert_eq!(
            lines,
            ["a/ (Prefix): m=0 c=100", "canary.a/ (Prefix): c=100"]
        );
    }
}

#[test]
fn copied_paths_never_take_the_mains_own_away() {
    for canary_age in [1, 3] {
        let lines = clean(&[
            main("m").at(2).on("a", "/", "m").on("a", "/api", "m2"),
            full("k")
                .at(canary_age)
                .on("a", "/", "c")
                .on("a", "/api", "m2"),
        ]);
        assert_eq!(lines, ["a/ (Prefix): m=0 c=100", "a/api (Prefix): m2=100"]);
    }
}

#[test]
fn a_stray_canary_path_on_a_mains_service_is_no_location() {
    let translation = run(&[
        main("m").on("a", "/", "m").on("canary.a", "/", "c"),
        full("k").on("a", "/", "c").on("a", "/stray", "c"),
    ]);
    assert_eq!(
        show(&translation.snapshot),
        ["a/ (Prefix): m=0 c=100", "canary.a/ (Prefix): c=100"]
    );
    assert_eq!(
        problems_of(&translation, "k"),
        ["spec.rules[1].http.paths[0] !canary-stray"]
    );
}
