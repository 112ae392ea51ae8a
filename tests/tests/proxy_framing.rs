//! What a client's bytes must be like to become a request: RFC 9110 and 9112 on the raw stream.
//! Whatever two parsers could read in two ways is refused, counted, and never reaches a backend.

use splitter_tests::backend::Backend;
use splitter_tests::client::Client;
use splitter_tests::eventually;
use splitter_tests::instance::Splitter;

/// Behind everything that is refused: a request that must not be taken for one.
const SMUGGLED: &str = "GET /smuggled HTTP/1.1\r\nHost: a.test\r\n\r\n";

/// Sends `bytes`: the proxy answers `status` itself, closes, counts `fault` once, and the backend
/// never hears of it.
#[track_caller]
fn refused(bytes: impl AsRef<[u8]>, status: u16, fault: &str) {
    let backend = Backend::named("main");
    let splitter = Splitter::before(&backend);
    let mut client = splitter.client();
    client.send([bytes.as_ref(), SMUGGLED.as_bytes()].concat());
    client.answer("GET").assert_own(status);
    assert!(client.is_closed(), "the connection is closed");
    assert_eq!(backend.connections(), 0, "{:?}", backend.seen());
    eventually("the fault is counted", || splitter.faults(fault) == 1.0);
}

/// The same for a request of these fields and no body.
#[track_caller]
fn refused_fields(fields: &str, status: u16, fault: &str) {
    let request = format!("POST / HTTP/1.1\r\nHost: a.test\r\n{fields}\r\n");
    refused(request, status, fault);
}

/// Sends `bytes`, which hold one request: it is passed on, alone.
#[track_caller]
fn accepted(bytes: impl AsRef<[u8]>) -> splitter_tests::backend::Seen {
    let backend = Backend::named("main");
    let splitter = Splitter::before(&backend);
    let mut client = splitter.client();
    client.send(bytes);
    let answer = client.answer("GET");
    assert_eq!((answer.status, answer.text()), (200, "main".to_owned()));
    assert_eq!(backend.seen().len(), 1);
    backend.last()
}

mod heads {
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
}

mod request_lines {
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
    fn the_start_of_tls() {
        refused(
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n",
            400,
            "bad-head",
        );
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
}

mod hosts {
    use super::*;

    macro_rules! bad_hosts {
        ($($name:ident: $fields:expr;)*) => {$(
            #[test]
            fn $name() {
                refused(format!("GET / HTTP/1.1\r\n{}\r\n", $fields), 400, "bad-host");
            }
        )*};
    }

    bad_hosts! {
        none: "";
        two: "Host: a.test\r\nHost: b.test\r\n";
        the_same_twice: "Host: a.test\r\nHost: a.test\r\n";
        with_a_blank: "Host: a.test b.test\r\n";
        with_a_slash: "Host: a.test/x\r\n";
        with_a_user: "Host: me@a.test\r\n";
        with_a_port_that_is_none: "Host: a.test:x\r\n";
        with_a_port_too_large: "Host: a.test:99999\r\n";
        with_two_ports: "Host: a.test:80:80\r\n";
        with_half_a_bracket: "Host: [::1\r\n";
        with_an_empty_label: "Host: a..test\r\n";
        of_bytes_beyond_ascii: "Host: ä.test\r\n";
    }

    #[test]
    fn case_port_and_final_dot_do_not_matter() {
        for host in ["a.test", "A.Test", "a.test:8080", "a.test."] {
            let seen = accepted(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"));
            assert_eq!(seen.field("host"), Some(host));
        }
    }

    #[test]
    fn an_empty_one_belongs_to_no_host() {
        let backend = Backend::named("main");
        let splitter = Splitter::before(&backend);
        let mut client = splitter.client();
        client.send("GET / HTTP/1.1\r\nHost:\r\n\r\n");
        client.answer("GET").assert_own(404);
    }
}

mod http10 {
    use splitter_tests::manifests::Manifests;

    use super::*;

    #[test]
    fn needs_no_host() {
        let backend = Backend::named("main");
        let splitter = Splitter::start(
            &Manifests::new()
                .main("any", "", "/", "main")
                .service("main", &[backend.addr()]),
        );
        let mut client = splitter.client();
        client.send("GET / HTTP/1.0\r\n\r\n");
        let answer = client.answer("GET");
        assert_eq!((answer.status, answer.text()), (200, "main".to_owned()));
        assert!(client.is_closed());
        assert_eq!(backend.last().line, "GET / HTTP/1.1");
        assert!(backend.last().field("host").is_some());
    }

    #[test]
    fn without_a_host_belongs_to_no_host() {
        let backend = Backend::named("main");
        let splitter = Splitter::before(&backend);
        let mut client = splitter.client();
        client.send("GET / HTTP/1.0\r\n\r\n");
        client.answer("GET").assert_own(404);
        assert!(client.is_closed());
    }

    #[test]
    fn with_a_transfer_coding_is_faulty() {
        refused(
            "POST / HTTP/1.0\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            400,
            "bad-framing",
        );
    }
}

mod lengths {
    use super::*;

    #[test]
    fn a_coding_after_a_length() {
        refused_fields(
            "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
            400,
            "bad-framing",
        );
    }

    #[test]
    fn a_length_after_a_coding() {
        refused_fields(
            "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n",
            400,
            "bad-framing",
        );
    }

    #[test]
    fn a_length_between_other_fields_after_a_coding() {
        refused_fields(
            "X: a\r\ntransfer-encoding: Chunked\r\nY: b\r\nCONTENT-LENGTH: 0\r\nZ: c\r\n",
            400,
            "bad-framing",
        );
    }

    macro_rules! bad_lengths {
        ($($name:ident: $fields:expr;)*) => {$(
            #[test]
            fn $name() {
                refused_fields($fields, 400, "bad-framing");
            }
        )*};
    }

    bad_lengths! {
        two_different: "Content-Length: 3\r\nContent-Length: 4\r\n";
        the_same_twice: "Content-Length: 3\r\nContent-Length: 3\r\n";
        a_list: "Content-Length: 3, 3\r\n";
        a_sign: "Content-Length: +3\r\n";
        below_zero: "Content-Length: -1\r\n";
        hexadecimal: "Content-Length: 0x3\r\n";
        empty: "Content-Length:\r\n";
        a_word: "Content-Length: three\r\n";
        two_numbers: "Content-Length: 3 3\r\n";
        a_fraction: "Content-Length: 3.0\r\n";
        beyond_64_bits: "Content-Length: 18446744073709551616\r\n";
        a_coding_twice: "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n";
    }

    macro_rules! unknown_codings {
        ($($name:ident: $fields:expr;)*) => {$(
            #[test]
            fn $name() {
                refused_fields($fields, 501, "unknown-coding");
            }
        )*};
    }

    unknown_codings! {
        gzip: "Transfer-Encoding: gzip\r\n";
        gzip_then_chunked: "Transfer-Encoding: gzip, chunked\r\n";
        gzip_then_chunked_in_two_lines:
            "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n";
        identity: "Transfer-Encoding: identity\r\n";
        nearly_chunked: "Transfer-Encoding: xchunked\r\n";
        chunked_in_quotes: "Transfer-Encoding: \"chunked\"\r\n";
        no_coding_at_all: "Transfer-Encoding:\r\n";
        chunked_with_a_parameter: "Transfer-Encoding: chunked;x=y\r\n";
    }

    #[test]
    fn zeros_in_front_of_a_length_are_decimal() {
        let seen =
            accepted("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 010\r\n\r\n0123456789");
        assert_eq!(seen.body, b"0123456789");
    }
}

mod chunks {
    use super::*;

    const HEAD: &str = "POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n";

    /// The backend may see the head, but no request that is complete; the connection ends.
    #[track_caller]
    fn broken(body: impl AsRef<[u8]>) {
        let backend = Backend::named("main");
        let splitter = Splitter::before(&backend);
        let mut client = splitter.client();
        client.send([HEAD.as_bytes(), body.as_ref(), SMUGGLED.as_bytes()].concat());
        client.answer("POST").assert_own(400);
        assert!(client.is_closed(), "the connection is closed");
        assert_eq!(backend.seen(), []);
        eventually("the fault is counted", || {
            splitter.faults("bad-body") == 1.0
        });
    }

    macro_rules! bad_chunks {
        ($($name:ident: $body:expr;)*) => {$(
            #[test]
            fn $name() {
                broken($body);
            }
        )*};
    }

    bad_chunks! {
        a_size_that_is_no_number: "xyz\r\nabc\r\n0\r\n\r\n";
        a_size_below_zero: "-3\r\nabc\r\n0\r\n\r\n";
        a_size_with_a_sign: "+3\r\nabc\r\n0\r\n\r\n";
        a_size_with_a_prefix: "0x3\r\nabc\r\n0\r\n\r\n";
        an_empty_size: "\r\nabc\r\n0\r\n\r\n";
        a_size_beyond_64_bits: "10000000000000003\r\nabc\r\n0\r\n\r\n";
        a_size_line_that_ends_in_lf: "3\nabc\r\n0\r\n\r\n";
        an_lf_in_an_extension: "3;x\nabc\r\n0\r\n\r\n";
        a_cr_in_an_extension: "3;x\ry\r\nabc\r\n0\r\n\r\n";
        a_nul_in_an_extension: "3;x\0y\r\nabc\r\n0\r\n\r\n";
        data_longer_than_its_size: "3\r\nabcd\r\n0\r\n\r\n";
        data_that_ends_in_lf: "3\r\nabc\n0\r\n\r\n";
        data_that_ends_in_cr: "3\r\nabc\r0\r\n\r\n";
        a_last_chunk_that_ends_in_lf: "3\r\nabc\r\n0\n\n";
        a_folded_trailer: "3\r\nabc\r\n0\r\nX: a\r\n b\r\n\r\n";
        a_nul_in_a_trailer: "3\r\nabc\r\n0\r\nX: a\0b\r\n\r\n";
        a_trailer_without_a_colon: "3\r\nabc\r\n0\r\nXa\r\n\r\n";
        a_blank_before_the_colon_of_a_trailer: "3\r\nabc\r\n0\r\nX : a\r\n\r\n";
        a_trailer_that_ends_in_lf: "3\r\nabc\r\n0\r\nX: a\n\r\n";
    }

    #[test]
    fn a_size_line_without_end() {
        broken(format!("3;{}", "x".repeat(100_000)));
    }

    #[test]
    fn trailers_without_end() {
        let trailers: String = (0..20_000).map(|i| format!("X-{i}: x\r\n")).collect();
        broken(format!("3\r\nabc\r\n0\r\n{trailers}\r\n"));
    }

    /// hyper takes no more of these than 16 KiB a body.
    #[test]
    fn extensions_without_end() {
        let chunk = format!("3;{}\r\nabc\r\n", "x".repeat(4000));
        broken(chunk.repeat(10));
    }

    #[test]
    fn an_error_after_good_chunks() {
        let good = "1000\r\n".to_owned() + &"x".repeat(0x1000) + "\r\n";
        broken(good.repeat(20) + "nonsense\r\n");
    }

    #[test]
    fn extensions_and_capital_digits_pass() {
        let seen = accepted(format!("{HEAD}A;x=\"y\"\r\n0123456789\r\n0000;z\r\n\r\n"));
        assert_eq!(seen.body, b"0123456789");
    }

    #[test]
    fn the_end_of_the_stream_in_a_body_is_no_end_of_the_body() {
        let backend = Backend::named("main");
        let splitter = Splitter::before(&backend);
        let mut client = splitter.client();
        client.send(format!("{HEAD}3\r\nabc\r\n"));
        client.finish();
        assert_eq!(client.try_answer("POST"), None);
        let mut client = splitter.client();
        client.send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 6\r\n\r\nabc");
        client.finish();
        assert_eq!(client.try_answer("POST"), None);
        assert_eq!(backend.seen(), []);
    }
}

mod pipelining {
    use super::*;

    #[test]
    fn requests_are_answered_in_order() {
        let backend = Backend::reflecting();
        let splitter = Splitter::before(&backend);
        let mut client = splitter.client();
        let requests: String = (0..50)
            .map(|i| format!("GET /{i} HTTP/1.1\r\nHost: a.test\r\n\r\n"))
            .collect();
        client.send(requests);
        for i in 0..50 {
            assert_eq!(client.answer("GET").text(), format!("/{i}"));
        }
        assert_eq!(client.get("a.test", "/last").text(), "/last");
    }

    #[test]
    fn bodies_do_not_run_into_the_next_request() {
        let backend = Backend::reflecting();
        let splitter = Splitter::before(&backend);
        let mut client = splitter.client();
        client.send(
            "POST /1 HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\n\r\n12345\
             POST /2 HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n\
             2\r\nab\r\n0\r\n\r\n\
             GET /3 HTTP/1.1\r\nHost: a.test\r\n\r\n",
        );
        for path in ["/1", "/2", "/3"] {
            assert_eq!(client.answer("GET").text(), path);
        }
        let bodies: Vec<_> = backend.seen().into_iter().map(|seen| seen.body).collect();
        assert_eq!(bodies, [b"12345".to_vec(), b"ab".to_vec(), Vec::new()]);
    }

    #[track_caller]
    fn good_then_bad(bad: &str, status: u16) {
        let backend = Backend::reflecting();
        let splitter = Splitter::before(&backend);
        let mut client = splitter.client();
        client.send(format!(
            "GET /1 HTTP/1.1\r\nHost: a.test\r\n\r\n\
             POST /2 HTTP/1.1\r\nHost: a.test\r\nContent-Length: 3\r\n\r\nabc{bad}{SMUGGLED}"
        ));
        assert_eq!(client.answer("GET").text(), "/1");
        assert_eq!(client.answer("POST").text(), "/2");
        client.answer("GET").assert_own(status);
        assert!(client.is_closed());
        assert_eq!(backend.seen().len(), 2, "{:?}", backend.seen());
    }

    #[test]
    fn a_malformed_request_behind_good_ones() {
        good_then_bad("GET /3 HTTP/1.1\r\nHost : a.test\r\n\r\n", 400);
    }

    #[test]
    fn garbage_behind_good_ones() {
        good_then_bad("}\r\n", 400);
    }

    #[test]
    fn bad_framing_behind_good_ones() {
        good_then_bad(
            "POST /3 HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1\r\n\
             Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            400,
        );
    }

    #[test]
    fn an_unknown_coding_behind_good_ones() {
        good_then_bad(
            "POST /3 HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: gzip\r\n\r\n",
            501,
        );
    }

    #[test]
    fn two_hosts_behind_good_ones() {
        good_then_bad(
            "GET /3 HTTP/1.1\r\nHost: a.test\r\nHost: b.test\r\n\r\n",
            400,
        );
    }

    /// The first answer takes long; the refusal behind it must wait for it.
    #[test]
    fn a_refusal_does_not_overtake_a_slow_answer() {
        let backend = Backend::scripted(|conversation| {
            if conversation.request().is_some() {
                conversation.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
                for _ in 0..2000 {
                    conversation.send("400\r\n".to_owned() + &"x".repeat(0x400) + "\r\n");
                }
                conversation.send("0\r\n\r\n");
            }
        });
        let splitter = Splitter::before(&backend);
        let mut client = splitter.client();
        client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\nGET / HTTP/9.9\r\n\r\n");
        assert_eq!(client.answer("GET").body.len(), 2000 * 0x400);
        client.answer("GET").assert_own(400);
        assert!(client.is_closed());
    }

    /// A request that is refused by itself, but whose end is known, does not end the connection.
    #[test]
    fn an_unknown_location_leaves_the_connection() {
        let backend = Backend::reflecting();
        let splitter = Splitter::before(&backend);
        let mut client = splitter.client();
        client.get("b.test", "/").assert_own(404);
        assert_eq!(client.get("a.test", "/x").text(), "/x");
    }
}

mod smuggling {
    use super::*;

    /// Everything sent is one request with its body; whatever looks like another is part of it.
    #[track_caller]
    fn one_request(client: &mut Client, backend: &Backend, request: &str, body: &str) {
        client.send(request);
        assert_eq!(client.answer("POST").status, 200);
        assert_eq!(backend.seen().len(), 1, "{:?}", backend.seen());
        assert_eq!(backend.last().body, body.as_bytes());
    }

    #[test]
    fn a_get_with_a_length_has_a_body() {
        let backend = Backend::named("main");
        let splitter = Splitter::before(&backend);
        let length = SMUGGLED.len();
        let request =
            format!("GET / HTTP/1.1\r\nHost: a.test\r\nContent-Length: {length}\r\n\r\n{SMUGGLED}");
        one_request(&mut splitter.client(), &backend, &request, SMUGGLED);
    }

    #[test]
    fn a_get_with_chunks_has_a_body() {
        let backend = Backend::named("main");
        let splitter = Splitter::before(&backend);
        let length = SMUGGLED.len();
        let request = format!(
            "GET / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n\
             {length:x}\r\n{SMUGGLED}\r\n0\r\n\r\n"
        );
        one_request(&mut splitter.client(), &backend, &request, SMUGGLED);
    }

    #[test]
    fn framing_cannot_be_named_away() {
        for name in ["Content-Length", "content-length, close"] {
            let backend = Backend::named("main");
            let splitter = Splitter::before(&backend);
            let length = SMUGGLED.len();
            let request = format!(
                "POST / HTTP/1.1\r\nHost: a.test\r\nConnection: {name}\r\n\
                 Content-Length: {length}\r\n\r\n{SMUGGLED}"
            );
            one_request(&mut splitter.client(), &backend, &request, SMUGGLED);
        }
        let backend = Backend::named("main");
        let splitter = Splitter::before(&backend);
        let length = SMUGGLED.len();
        let request = format!(
            "POST / HTTP/1.1\r\nHost: a.test\r\nConnection: Transfer-Encoding\r\n\
             Transfer-Encoding: chunked\r\n\r\n{length:x}\r\n{SMUGGLED}\r\n0\r\n\r\n"
        );
        one_request(&mut splitter.client(), &backend, &request, SMUGGLED);
    }

    /// A backend that answers before it has read the body must not make the rest of the body a
    /// request: neither for us nor for itself.
    #[test]
    fn the_rest_of_an_answered_upload_is_no_request() {
        let backend = Backend::scripted(|conversation| {
            while conversation.head().is_some() {
                conversation.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nearly");
            }
        });
        let splitter = Splitter::before(&backend);
        let mut client = splitter.client();
        let body = SMUGGLED.repeat(3);
        let length = body.len() + 10;
        client.send(format!(
            "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: {length}\r\n\r\n{SMUGGLED}"
        ));
        assert_eq!(client.answer("POST").text(), "early");
        client.send(SMUGGLED.repeat(2));
        // What is left of the body has no answer: either the connection ends or it waits for more.
        client.finish();
        assert_eq!(client.try_answer("GET"), None);
    }

    #[test]
    fn two_codings_of_which_one_is_odd() {
        for fields in [
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: cow\r\n",
            "Transfer-Encoding: cow\r\nTransfer-Encoding: chunked\r\n",
            "Content-Length: 3\r\nTransfer-Encoding: cow\r\n",
            "Content-Length: 3\r\nTransfer-Encoding: xchunked\r\n",
        ] {
            let backend = Backend::named("main");
            let splitter = Splitter::before(&backend);
            let mut client = splitter.client();
            client.send(format!(
                "POST / HTTP/1.1\r\nHost: a.test\r\n{fields}\r\n{SMUGGLED}"
            ));
            let answer = client.answer("POST");
            assert!(matches!(answer.status, 400 | 501), "{fields}: {answer:?}");
            assert!(client.is_closed());
            assert_eq!(backend.connections(), 0);
        }
    }

    /// `Transfer_Encoding` is Transfer-Encoding, and `X_Real_IP` is X-Real-IP, to programs that take
    /// fields as environment variables. ingress-nginx lets no name with `_` through.
    #[test]
    fn names_that_a_backend_could_take_for_others_do_not_pass() {
        let seen = accepted(
            "POST / HTTP/1.1\r\nHost: a.test\r\nTransfer_Encoding: chunked\r\n\
             X_Forwarded_For: 9.9.9.9\r\nX_Real_IP: 9.9.9.9\r\nContent-Length: 3\r\n\r\nabc",
        );
        assert_eq!(seen.body, b"abc");
        let odd = seen.fields.iter().find(|(name, _)| name.contains('_'));
        assert_eq!(odd, None);
    }
}
