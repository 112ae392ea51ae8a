//! The decision for one request without affinity: the first row that applies wins.

use super::*;

fn value(text: &str) -> (&str, &str) {
    ("canary-by-header-value", text)
}

fn pattern(text: &str) -> (&str, &str) {
    ("canary-by-header-pattern", text)
}

/// There: 503 for everybody. Here the canary answers what is chosen for it.
#[test]
fn row_1_main_without_endpoints() {
    let pair = Pair::with(&[], &[HEADER, NONE], (false, true));
    pair.always("X: always\r\n", "C");
    pair.always("", "503");
    Pair::with(&[], &[ALL], (false, true)).always("", "C");
}

#[test]
fn row_2_no_canary_at_all() {
    let pair = Pair::new(&[], &[]);
    pair.always("X: always\r\nCookie: k=always\r\n", "M");
}

#[test]
fn row_3_canary_without_endpoints_or_service() {
    let pair = Pair::with(&[], &[HEADER, ALL], (true, false));
    pair.always("X: always\r\n", "M");
    pair.always("", "M");
    let m = Backend::named("M");
    let manifests = Manifests::new()
        .main("main", "a.test", "/", "m")
        .canary("canary", "a.test", "/", "nobody", &[HEADER, ALL])
        .service("m", &[m.addr()]);
    let splitter = Splitter::start(&manifests);
    let answer = splitter.get_with("a.test", "/", "X: always\r\n");
    assert_eq!((answer.status, answer.text().as_str()), (200, "M"));
}

#[test]
fn row_4_value_that_is_equal() {
    Pair::new(&[], &[HEADER, value("DoCanary"), NONE]).always("X: DoCanary\r\n", "C");
}

#[test]
fn row_5_value_that_differs_goes_on_and_always_and_never_mean_nothing() {
    let none = Pair::new(&[], &[HEADER, value("DoCanary"), COOKIE, NONE]);
    none.always("X: always\r\n", "M");
    none.always("X: docanary\r\n", "M");
    none.always("X: other\r\nCookie: k=always\r\n", "C");
    let all = Pair::new(&[], &[HEADER, value("DoCanary"), ALL]);
    all.always("X: never\r\n", "C");
}

#[test]
fn row_6_pattern_that_matches() {
    let pair = Pair::new(&[], &[HEADER, pattern("^Do[A-Z][a-z]+y$"), NONE]);
    pair.always("X: DoCanary\r\n", "C");
}

#[test]
fn row_7_pattern_that_does_not_match_goes_on() {
    let none = Pair::new(&[], &[HEADER, pattern("^Do[A-Z][a-z]+y$"), COOKIE, NONE]);
    none.always("X: Docanary\r\n", "M");
    none.always("X: always\r\n", "M");
    none.always("X: Docanary\r\nCookie: k=always\r\n", "C");
    let all = Pair::new(&[], &[HEADER, pattern("^a+$"), ALL]);
    all.always("X: never\r\n", "C");
    // Unless the pattern itself takes the word, which means the canary.
    Pair::new(&[], &[HEADER, pattern("ever"), NONE]).always("X: never\r\n", "C");
}

/// There: main, and nothing else is asked. Here the rule never matches, with a Problem, and the
/// others are asked.
#[test]
fn row_8_pattern_that_does_not_compile() {
    let pair = Pair::new(&[], &[HEADER, pattern("[[*"), COOKIE, NONE]);
    pair.always("X: DoCanary\r\n", "M");
    pair.always("X: always\r\n", "M");
    pair.always("X: DoCanary\r\nCookie: k=always\r\n", "C");
    assert!(!pair.splitter.problems().is_empty());
}

#[test]
fn row_8a_always() {
    Pair::new(&[], &[HEADER, NONE]).always("X: always\r\n", "C");
}

#[test]
fn row_8b_never_ends_it() {
    let pair = Pair::new(&[], &[HEADER, COOKIE, ALL]);
    pair.always("X: never\r\nCookie: k=always\r\n", "M");
}

#[test]
fn row_8c_anything_else_goes_on() {
    let pair = Pair::new(&[], &[HEADER, COOKIE, NONE]);
    for other in ["", "Always", "always, always", "1", "alwaysx"] {
        pair.always(&format!("X: {other}\r\n"), "M");
        pair.always(&format!("X: {other}\r\nCookie: k=always\r\n"), "C");
    }
}

#[test]
fn row_9_cookie_always() {
    Pair::new(&[], &[COOKIE, NONE]).always("Cookie: k=always\r\n", "C");
}

#[test]
fn row_9a_cookie_never_ends_it() {
    Pair::new(&[], &[COOKIE, ALL]).always("Cookie: k=never\r\n", "M");
}

#[test]
fn row_9b_cookie_of_another_value_goes_on() {
    for (weight, by) in [(NONE, "M"), (ALL, "C")] {
        let pair = Pair::new(&[], &[COOKIE, weight]);
        for other in ["", "Always", "maybe"] {
            pair.always(&format!("Cookie: k={other}\r\n"), by);
        }
    }
}

#[test]
fn row_10_weight() {
    Pair::new(&[], &[ALL]).always("", "C");
}

#[test]
fn row_10a_otherwise_main() {
    Pair::new(&[], &[NONE]).always("", "M");
}

#[test]
fn a_value_makes_a_pattern_beside_it_meaningless() {
    let pair = Pair::new(&[], &[HEADER, value("DoCanary"), pattern("^x+$"), NONE]);
    pair.always("X: DoCanary\r\n", "C");
    pair.always("X: xx\r\n", "M");
}

#[test]
fn value_and_pattern_without_a_header_have_no_effect() {
    for lone in [value("always"), pattern(".*")] {
        Pair::new(&[], &[lone, NONE]).always("X: always\r\n", "M");
    }
}

#[test]
fn header_comes_before_cookie_and_cookie_before_weight() {
    let pair = Pair::new(&[], &[HEADER, COOKIE, ALL]);
    pair.always("X: always\r\nCookie: k=never\r\n", "C");
    pair.always("X: never\r\nCookie: k=always\r\n", "M");
    pair.always("X: other\r\nCookie: k=never\r\n", "M");
    pair.always("X: other\r\nCookie: k=other\r\n", "C");
}

/// Retries stay on the side that was chosen.
#[test]
fn a_canary_whose_pods_refuse_is_not_replaced_by_main() {
    let m = Backend::named("M");
    let manifests = Manifests::new()
        .main("main", "a.test", "/", "m")
        .canary("canary", "a.test", "/", "c", &[ALL])
        .service("m", &[m.addr()])
        .service("c", &[splitter_tests::backend::refusing()]);
    let splitter = Splitter::start(&manifests);
    assert_eq!(splitter.get("a.test", "/").status, 502);
    assert_eq!(m.seen().len(), 0);
}
