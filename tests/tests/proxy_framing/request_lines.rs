use super::*;

macro_rules! bad_lines {
    ($($name:ident: $line:expr;)*) => {$(
        #[test]
        fn $name() {
            refused(format!("{}\r\nHost: a.test\r\n\r\n", $line), 400, "bad-head");
        }
    )*};
}

bad_lines! {
    nothing_but_a_word: "hello";
    no_version: "GET /";
    an_unknown_version: "GET / HTTP/3.7";
    a_version_of_another_protocol: "GET / ICY/1.1";
    a_version_in_small_letters: "GET / http/1.1";
    two_blanks: "GET  / HTTP/1.1";
    a_tab: "GET\t/ HTTP/1.1";
    a_blank_at_the_end: "GET / HTTP/1.1 ";
    a_blank_at_the_start: " GET / HTTP/1.1";
    a_blank_in_the_target: "GET /a b HTTP/1.1";
    no_target: "GET HTTP/1.1";
    a_method_that_is_no_token: "G(T / HTTP/1.1";
    a_nul_in_the_target: "GET /a\0b HTTP/1.1";
    a_control_byte_in_the_target: "GET /a\u{1}b HTTP/1.1";
    a_bare_cr_in_the_line: "GET /\r HTTP/1.1";
    // Other programs cut it off, or do not.
    a_fragment_in_the_target: "GET /a#b HTTP/1.1";
}

#[test]
fn a_method_that_nobody_knows_passes() {
    let seen = accepted("BREW /pot HTTP/1.1\r\nHost: a.test\r\n\r\n");
    assert_eq!(seen.line, "BREW /pot HTTP/1.1");
}

/// What a browser does not send and no grammar allows: refused in our own form, or passed on as
/// it is, but not cut or changed.
#[test]
fn targets_of_odd_bytes_are_refused_or_passed_unchanged() {
    let backend = Backend::named("main");
    let splitter = Splitter::before(&backend);
    for odd in [
        "/a\"b", "/a<b>", "/a{b}", "/a|b", "/a\\b", "/a^b", "/a`b", "/ä",
    ] {
        let mut client = splitter.client();
        client.send(format!("GET {odd} HTTP/1.1\r\nHost: a.test\r\n\r\n"));
        let answer = client.answer("GET");
        if answer.status == 200 {
            assert_eq!(backend.last().target(), odd);
        } else {
            answer.assert_own(400);
        }
    }
}

#[test]
fn absolute_form_replaces_host() {
    let seen = accepted("GET http://a.test/x?y=1 HTTP/1.1\r\nHost: other.test\r\n\r\n");
    assert_eq!(seen.line, "GET /x?y=1 HTTP/1.1");
    assert_eq!(seen.field("host"), Some("a.test"));
}

#[test]
fn absolute_form_keeps_its_port() {
    let seen = accepted("GET http://a.test:8080/ HTTP/1.1\r\nHost: a.test:8080\r\n\r\n");
    assert_eq!(seen.field("host"), Some("a.test:8080"));
}

#[test]
fn absolute_form_without_a_path_means_the_root() {
    let seen = accepted("GET http://a.test HTTP/1.1\r\nHost: a.test\r\n\r\n");
    assert_eq!(seen.line, "GET / HTTP/1.1");
    let seen = accepted("GET http://a.test?x=1 HTTP/1.1\r\nHost: a.test\r\n\r\n");
    assert_eq!(seen.line, "GET /?x=1 HTTP/1.1");
}

#[test]
fn absolute_form_of_another_scheme() {
    refused(
        "GET ftp://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
        400,
        "bad-target",
    );
}

#[test]
fn absolute_form_with_a_user() {
    refused(
        "GET http://me@a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
        400,
        "bad-host",
    );
}

#[test]
fn asterisk_form() {
    refused(
        "OPTIONS * HTTP/1.1\r\nHost: a.test\r\n\r\n",
        400,
        "bad-target",
    );
}

#[test]
fn a_target_that_is_only_a_name() {
    refused(
        "GET a.test HTTP/1.1\r\nHost: a.test\r\n\r\n",
        400,
        "bad-target",
    );
}

/// 405, with the methods that are served.
fn not_served(request: &str) {
    let backend = Backend::named("main");
    let splitter = Splitter::before(&backend);
    let mut client = splitter.client();
    client.send(request);
    let answer = client.answer("GET");
    answer.assert_own(405);
    assert!(
        answer.field("allow").is_some(),
        "RFC 9110 15.5.6: {answer:?}"
    );
    assert_eq!(backend.connections(), 0);
    eventually("the fault is counted", || {
        splitter.faults("method-not-allowed") == 1.0
    });
}

#[test]
fn connect_is_not_served() {
    not_served("CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n");
}

#[test]
fn trace_is_not_served() {
    not_served("TRACE / HTTP/1.1\r\nHost: a.test\r\n\r\n");
}
