//! How header and cookie are read.

use super::*;

#[test]
fn header_names_know_no_case_and_take_underscores_for_hyphens() {
    let pair = Pair::new(&[], &[("canary-by-header", "my_Header"), NONE]);
    pair.always("MY-HEADER: always\r\n", "C");
    // One with an underscore is dropped when it comes, as it is there by default.
    pair.always("my_Header: always\r\n", "M");
}

#[test]
fn header_values_are_exact() {
    let pair = Pair::new(&[], &[HEADER, NONE]);
    for (sent, by) in [
        ("always", "C"),
        ("  always  ", "C"),
        ("ALWAYS", "M"),
        ("\"always\"", "M"),
    ] {
        pair.always(&format!("X:{sent}\r\n"), by);
    }
}

#[test]
fn a_header_that_is_sent_twice_is_one_value() {
    Pair::new(&[], &[HEADER, NONE]).always("X: always\r\nX: always\r\n", "M");
    let both = ("canary-by-header-pattern", "a..b");
    let notes = [HEADER, ("canary-by-header-pattern", "b"), NONE];
    Pair::new(&[], &notes).always("X: a\r\nX: b\r\n", "C");
    // Joined by a comma and a blank.
    let notes = [HEADER, both, NONE];
    Pair::new(&[], &notes).always("X: a\r\nX: b\r\n", "C");
}

#[test]
fn patterns_are_not_anchored_and_know_case() {
    let pair = Pair::new(&[], &[HEADER, ("canary-by-header-pattern", "gz|sz"), NONE]);
    pair.always("X: xxgzxx\r\n", "C");
    pair.always("X: xxGZxx\r\n", "M");
    pair.always("X: always\r\n", "M");
}

#[test]
fn of_cookies_the_first_of_that_name_counts_whatever_its_case() {
    let pair = Pair::new(&[], &[("canary-by-cookie", "My-Cookie"), NONE]);
    for (sent, by) in [
        ("my-cookie=always", "C"),
        ("MY-COOKIE=always; My-Cookie=never", "C"),
        ("My-Cookie=never; my-cookie=always", "M"),
        ("a=b;My-Cookie=always;c=d", "C"),
        ("xMy-Cookie=always", "M"),
    ] {
        pair.always(&format!("Cookie: {sent}\r\n"), by);
    }
}

#[test]
fn cookie_values_are_taken_as_they_stand() {
    let pair = Pair::new(&[], &[COOKIE, NONE]);
    for sent in ["k=\"always\"", "k=always x", "k= always x", "k=alway%73"] {
        pair.always(&format!("Cookie: {sent}\r\n"), "M");
    }
}

/// There the empty name is asked for when no cookie is configured.
#[test]
fn a_cookie_without_a_name_is_nobodys() {
    let pair = Pair::new(&[], &[HEADER, NONE]);
    pair.always("Cookie: =always\r\n", "M");
}
