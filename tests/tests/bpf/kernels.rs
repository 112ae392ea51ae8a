//! The same tests on the oldest kernel that is supported and one between it and today's.

use splitter_tests::bpf::figures;
use splitter_tests::vm;

/// Loading and attaching, every test run, and real sockets on the hooks of a cgroup. The other tests with
/// real connections follow the host's kernel only: they would take minutes in an emulated machine.
const FILTERS: [&str; 6] = [
    "load::",
    "ingress::",
    "steer::",
    "connect::owners::the_programs_load",
    "connect::given::tcp_and_udp",
    "connect::given::new_weights",
];

fn passes_on(series: &str) {
    let text = vm::run(series, &FILTERS);
    let found = figures::of(&text);
    let of_all = ["steer", "ingress", "connect4", "sendmsg6"];
    let of_all = of_all.map(|name| found.iter().any(|line| line.contains(name)));
    assert_eq!(of_all, [true; 4], "not everything was loaded:\n{text}");
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
