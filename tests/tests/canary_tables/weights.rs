//! What weights come to. Shares are exact over each run of the total.

use super::*;

fn share(notes: Notes<'_>, n: usize) -> usize {
    Pair::new(&[], notes).share(n)
}

const TOTAL: &str = "canary-weight-total";
const WEIGHT: &str = "canary-weight";

#[test]
fn nothing_or_what_is_no_number_is_0() {
    for weight in ["0", "10%", "0.5", " 5", "1e2", "x"] {
        assert_eq!(share(&[(WEIGHT, weight), HEADER], 200), 0, "{weight}");
    }
    assert_eq!(share(&[HEADER], 200), 0);
}

#[test]
fn less_than_nothing_is_nothing() {
    assert_eq!(share(&[(WEIGHT, "-5"), HEADER], 200), 0);
}

#[test]
fn a_hundred_without_a_total_is_all() {
    assert_eq!(share(&[(WEIGHT, "100")], 200), 200);
}

#[test]
fn more_than_the_total_is_all() {
    assert_eq!(share(&[(WEIGHT, "150")], 200), 200);
}

#[test]
fn as_much_as_the_total_is_all() {
    assert_eq!(share(&[(WEIGHT, "1000"), (TOTAL, "1000")], 200), 200);
}

#[test]
fn half_of_the_total_is_half() {
    assert_eq!(share(&[(WEIGHT, "100"), (TOTAL, "200")], 400), 200);
}

/// There it is 5 of 100, as totals below 100 do not count.
#[test]
fn a_small_total_counts_as_written() {
    assert_eq!(share(&[(WEIGHT, "5"), (TOTAL, "10")], 200), 100);
}

#[test]
fn a_thousandth_is_a_thousandth() {
    assert_eq!(share(&[(WEIGHT, "1"), (TOTAL, "1000")], 2000), 2);
}

#[test]
fn a_total_that_is_no_number_is_a_hundred() {
    for total in ["x", "0", "-1", "1e3"] {
        assert_eq!(share(&[(WEIGHT, "25"), (TOTAL, total)], 200), 50, "{total}");
    }
}
