//! The same tests on the oldest kernel that is supported and one between it and today's.

#![allow(clippy::print_stdout, reason = "the verifier's figures are for people")]

use splitter_tests::vm;

/// Loading and attaching, and every test run. The tests with real connections follow the host's
/// kernel only: they would take minutes in an emulated machine.
const FILTERS: [&str; 3] = ["load::", "ingress::", "steer::"];

fn passes_on(series: &str) {
    let text = vm::run(series, &FILTERS);
    let figures = text
        .lines()
        .filter(|line| line.contains("the verifier went through"));
    let figures: std::collections::BTreeSet<_> = figures.collect();
    assert!(!figures.is_empty(), "nothing was loaded:\n{text}");
    for line in figures {
        println!("{line}");
    }
}

#[test]
fn linux_6_1() {
    passes_on("6.1");
}

#[test]
fn linux_6_12() {
    passes_on("6.12");
}
