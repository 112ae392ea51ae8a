use super::*;

#[test]
fn one_line_without_end_is_too_large() {
    let line = "x".repeat(600 * 1024);
    refused(
        format!("GET / HTTP/1.1\r\nHost: a.test\r\nX: {line}"),
        431,
        "head-too-large",
    );
}

#[test]
fn many_lines_are_too_large_together() {
    let value = "x".repeat(1000);
    let fields: String = (0..90).map(|i| format!("X-{i}: {value}\r\n")).collect();
    refused_fields(&fields, 431, "head-too-large");
}

#[test]
fn a_target_beyond_the_limit_is_too_large() {
    let path = "x".repeat(70_000);
    refused(
        format!("GET /{path} HTTP/1.1\r\nHost: a.test\r\n\r\n"),
        431,
        "head-too-large",
    );
}

#[test]
fn one_field_more_than_the_limit_is_too_many() {
    // With Host.
    let fields: String = (0..100).map(|i| format!("X-{i}: x\r\n")).collect();
    refused_fields(&fields, 431, "head-too-large");
}

#[test]
fn as_many_fields_as_the_limit_pass() {
    let fields: String = (0..99).map(|i| format!("X-{i}: {i}\r\n")).collect();
    let seen = accepted(format!("GET / HTTP/1.1\r\nHost: a.test\r\n{fields}\r\n"));
    for i in 0..99 {
        assert_eq!(seen.field(&format!("x-{i}")), Some(i.to_string().as_str()));
    }
}

#[test]
fn a_head_just_below_the_limit_passes() {
    let value = "x".repeat(60 * 1024);
    let seen = accepted(format!(
        "GET / HTTP/1.1\r\nHost: a.test\r\nX: {value}\r\n\r\n"
    ));
    assert_eq!(seen.field("x"), Some(value.as_str()));
}

#[test]
fn the_limits_can_be_set() {
    let backend = Backend::named("main");
    let splitter = Splitter::before_with(&backend, |settings| {
        settings.limits.max_head_bytes = 1000;
        settings.limits.max_headers = 5;
    });
    let long = "x".repeat(1000);
    let answer = splitter.get_with("a.test", "/", &format!("X: {long}\r\n"));
    answer.assert_own(431);
    let answer = splitter.get_with("a.test", "/", &"X: y\r\n".repeat(5));
    answer.assert_own(431);
    assert_eq!(
        splitter
            .get_with("a.test", "/", &"X: y\r\n".repeat(4))
            .status,
        200
    );
    let splitter = Splitter::before_with(&backend, |settings| {
        settings.limits.max_head_bytes = 1024 * 1024;
        settings.limits.max_headers = 1000;
    });
    let long = "x".repeat(500 * 1024);
    let many = "Y: z\r\n".repeat(900);
    let answer = splitter.get_with("a.test", "/", &format!("X: {long}\r\n{many}"));
    assert_eq!(answer.status, 200);
    assert_eq!(backend.last().field("x").map(str::len), Some(500 * 1024));
}

#[test]
fn empty_lines_before_a_request_are_ignored() {
    let seen = accepted("\r\n\r\nGET /x HTTP/1.1\r\nHost: a.test\r\n\r\n");
    assert_eq!(seen.line, "GET /x HTTP/1.1");
}

#[test]
fn empty_lines_without_end_are_too_large() {
    refused("\r\n".repeat(40_000), 431, "head-too-large");
}

#[test]
fn bytes_may_come_one_by_one() {
    let backend = Backend::named("main");
    let splitter = Splitter::before(&backend);
    let mut client = splitter.client();
    for byte in b"POST /x HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n\
        3\r\nabc\r\n0\r\n\r\n"
    {
        client.send([*byte]);
    }
    assert_eq!(client.answer("POST").status, 200);
    assert_eq!(backend.last().body, b"abc");
}

/// A field line that no grammar allows.
macro_rules! bad_fields {
    ($($name:ident: $line:expr;)*) => {$(
        #[test]
        fn $name() {
            refused_fields(&format!("{}\r\n", $line), 400, "bad-head");
        }
    )*};
}

bad_fields! {
    a_folded_line: "X: a\r\n b";
    a_folded_line_by_tab: "X: a\r\n\tb";
    a_folded_first_line: " X: a";
    a_bare_cr_in_a_value: "X: a\rb";
    a_bare_cr_before_a_line: "\rX: a";
    a_bare_lf_between_fields: "X: a\nY: b";
    a_nul_in_a_value: "X: a\0b";
    a_nul_in_a_name: "X\0: a";
    a_control_byte_in_a_value: "X: a\u{1}b";
    a_delete_in_a_value: "X: a\u{7f}b";
    a_vertical_tab_before_a_value: "Transfer-Encoding:\u{b}chunked";
    a_blank_before_the_colon: "X : a";
    a_tab_before_the_colon: "X\t: a";
    a_blank_before_the_colon_of_a_length: "Content-Length : 5";
    a_blank_before_the_colon_of_a_coding: "Transfer-Encoding : chunked";
    a_field_without_a_name: ": a";
    a_field_without_a_colon: "Xa";
    a_bracket_in_a_name: "X(a): a";
    a_letter_beyond_ascii_in_a_name: "Xä: a";
}

#[test]
fn lines_that_end_in_a_bare_lf() {
    refused("GET / HTTP/1.1\nHost: a.test\n\n", 400, "bad-head");
}

#[test]
fn a_head_that_ends_in_a_bare_lf() {
    refused("GET / HTTP/1.1\r\nHost: a.test\r\n\n", 400, "bad-head");
}

#[test]
fn bytes_beyond_ascii_pass_in_a_value() {
    let seen = accepted("GET / HTTP/1.1\r\nHost: a.test\r\nX: ä\r\n\r\n");
    assert_eq!(seen.field("x"), Some("ä"));
}
