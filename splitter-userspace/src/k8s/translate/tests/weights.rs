//! Several canaries on one scale.

use super::super::weights::{Common, Share, common};
use super::support::{Ing, canary, clean, main, problems_of, run, show};

fn share(weight: u32, total: u32) -> Share {
    Share { weight, total }
}

/// stable, canaries, total; without cuts and rounding.
fn exact(shares: &[Share]) -> (u32, Vec<u32>, u32) {
    let Common {
        stable,
        canaries,
        cut,
        rounded,
        total,
    } = common(shares);
    assert!(cut.is_empty() && rounded.is_empty());
    (stable, canaries, total)
}

#[test]
fn one_total_is_kept_as_written() {
    assert_eq!(exact(&[]), (100, vec![], 100));
    assert_eq!(exact(&[share(5, 10)]), (5, vec![5], 10));
    assert_eq!(
        exact(&[share(10, 100), share(20, 100)]),
        (70, vec![10, 20], 100)
    );
    assert_eq!(exact(&[share(100, 100)]), (0, vec![100], 100));
}

#[test]
fn different_totals_meet_at_their_least_common_multiple() {
    assert_eq!(
        exact(&[share(10, 100), share(1, 1000)]),
        (899, vec![100, 1], 1000)
    );
    assert_eq!(exact(&[share(1, 4), share(1, 6)]), (7, vec![3, 2], 12));
}

#[test]
fn a_canary_without_weight_has_no_say() {
    assert_eq!(
        exact(&[share(0, 7), share(10, 100)]),
        (90, vec![0, 10], 100)
    );
    // Unless nobody has one: then the oldest.
    assert_eq!(
        exact(&[share(0, 1000), share(0, 100)]),
        (1000, vec![0, 0], 1000)
    );
}

#[test]
fn what_is_too_much_is_cut_from_the_youngest() {
    let cut = common(&[
        share(60, 100),
        share(30, 100),
        share(20, 100),
        share(5, 100),
    ]);
    assert_eq!(cut.canaries, [60, 30, 10, 0]);
    assert_eq!(cut.stable, 0);
    assert_eq!(cut.cut, [(2, 20), (3, 5)]);
}

#[test]
fn totals_without_a_small_multiple_are_rounded_down() {
    let shares = [
        share(1, 999_999_937),
        share(1, 3),
        share(500_000_003, 1_000_000_000),
    ];
    let rounded = common(&shares);
    assert_eq!(rounded.total, 999_999_937);
    assert_eq!(rounded.rounded, [1, 2]);
    assert_eq!(rounded.canaries, [1, 333_333_312, 499_999_971]);
    assert_eq!(
        rounded.stable + rounded.canaries.iter().sum::<u32>(),
        rounded.total
    );
}

fn k(name: &str, weight: &str) -> Ing {
    canary(name)
        .weight(weight)
        .on("a", "/", &format!("c{}", &name[1..]))
}

#[test]
fn canaries_stand_in_order_of_age_whatever_their_names() {
    let lines = clean(&[
        main("m").on("a", "/", "m"),
        k("k2", "10").at(3),
        k("k3", "20").at(1),
    ]);
    assert_eq!(lines, ["a/ (Prefix): m=70 c3=20 c2=10"]);
}

#[test]
fn a_cut_is_reported_with_the_younger_canary() {
    let translation = run(&[main("m").on("a", "/", "m"), k("k2", "100"), k("k3", "100")]);
    assert_eq!(
        show(&translation.snapshot),
        ["a/ (Prefix): m=0 c2=100 c3=0"]
    );
    assert_eq!(problems_of(&translation, "k2"), [""; 0]);
    assert_eq!(
        problems_of(&translation, "k3"),
        ["spec.rules[0].http.paths[0] weight-cut"]
    );
}

#[test]
fn rounding_is_reported() {
    let total = |name: &str, total: &str| k(name, "1").note("canary-weight-total", total);
    let translation = run(&[
        main("m").on("a", "/", "m"),
        total("k2", "999999937"),
        total("k3", "101"),
    ]);
    assert_eq!(
        problems_of(&translation, "k3"),
        ["spec.rules[0].http.paths[0] weight-rounded"]
    );
}
