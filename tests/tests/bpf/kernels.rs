//! The same tests on the oldest kernel that is supported and one between it and today's.

use splitter_tests::bpf::figures;
use splitter_tests::vm;

/// Loading and attaching, and every test run. The tests with real connections follow the host's
/// kernel only: they would take minutes in an emulated machine.
const FILTERS: [&str; 3] = ["load::", "ingress::", "steer::"];

fn passes_on(series: &str) {
    let text = vm::run(series, &FILTERS);
    let found = figures::of(&text);
    let of_both = ["steer", "ingress"].map(|name| found.iter().any(|line| line.contains(name)));
    assert_eq!(of_both, [true; 2], "not everything was loaded:\n{text}");
    found.iter().for_each(|line| figures::note(line));
}

#[test]
fn linux_6_1() {
    passes_on("6.1");
}

#[test]
fn linux_6_12() {
    passes_on("6.12");
}
