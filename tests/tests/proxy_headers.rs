//! Which fields reach the backend and the client, and which are the proxy's own.
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use splitter_tests::backend::{Backend, Seen};
use splitter_tests::client::Answer;
use splitter_tests::instance::Splitter;

/// What the backend sees of a GET with these fields.
fn forwarded(fields: &str) -> Seen {
    let backend = Backend::named("main");
    let splitter = Splitter::before(&backend);
    assert_eq!(splitter.get_with("a.test", "/", fields).status, 200);
    backend.last()
}

/// The same from a client that is believed.
fn trusted(fields: &str) -> Seen {
    let backend = Backend::named("main");
    let splitter =
        Splitter::before_with(&backend, |settings| settings.use_forwarded_headers = true);
    assert_eq!(splitter.get_with("a.test", "/", fields).status, 200);
    backend.last()
}

/// What the client gets of an answer with these fields.
fn answered(fields: &str) -> Answer {
    let backend = Backend::answering(format!(
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n{fields}\r\nok"
    ));
    Splitter::before(&backend).get("a.test", "/")
}

mod hop_by_hop {
    use super::*;

    #[test]
    fn fields_of_this_hop_do_not_reach_the_backend() {
        let seen = forwarded(
            "Keep-Alive: timeout=5\r\nProxy-Connection: keep-alive\r\nTE: gzip\r\n\
             Connection: keep-alive\r\nX-Kept: y\r\n",
        );
        for name in [
            "keep-alive",
            "proxy-connection",
            "te",
            "connection",
            "upgrade",
        ] {
            assert_eq!(seen.all(name), Vec::<&str>::new(), "{name}");
        }
        assert_eq!(seen.field("x-kept"), Some("y"));
    }

    #[test]
    fn fields_that_connection_names_do_not_reach_the_backend() {
        let seen = forwarded(
            "Connection: X-Secret, close\r\nX-Secret: 1\r\nConnection: ,x-other,\r\n\
             X-Other: 2\r\nX-Kept: y\r\n",
        );
        assert_eq!(seen.all("x-secret"), Vec::<&str>::new());
        assert_eq!(seen.all("x-other"), Vec::<&str>::new());
        assert_eq!(seen.field("x-kept"), Some("y"));
    }

    #[test]
    fn the_proxys_own_fields_cannot_be_named_away() {
        let seen = forwarded(
            "Connection: Host, X-Forwarded-For, X-Real-IP, X-Request-ID, X-Forwarded-Proto\r\n",
        );
        assert_eq!(seen.field("host"), Some("a.test"));
        assert_eq!(seen.field("x-forwarded-for"), Some("127.0.0.1"));
        assert_eq!(seen.field("x-real-ip"), Some("127.0.0.1"));
        assert_eq!(seen.field("x-forwarded-proto"), Some("http"));
        assert!(seen.field("x-request-id").is_some());
    }

    #[test]
    fn only_trailers_of_te_are_passed_on() {
        assert_eq!(forwarded("TE: trailers\r\n").field("te"), Some("trailers"));
        assert_eq!(
            forwarded("TE: gzip;q=0.5, trailers\r\n").field("te"),
            Some("trailers")
        );
        assert_eq!(forwarded("TE: gzip\r\n").field("te"), None);
    }

    /// RFC 9110 10.1.4: whoever sends TE names it in Connection.
    #[test]
    fn te_is_named_in_connection() {
        let seen = forwarded("TE: trailers\r\nConnection: TE\r\n");
        let named = seen.field("connection").unwrap_or_default();
        assert!(named.eq_ignore_ascii_case("te"), "{named}");
    }

    #[test]
    fn fields_of_the_backends_hop_do_not_reach_the_client() {
        let answer = answered(
            "Connection: X-Secret\r\nX-Secret: 1\r\nKeep-Alive: timeout=5\r\n\
             Proxy-Connection: keep-alive\r\nX-Kept: y\r\n",
        );
        for name in ["connection", "x-secret", "keep-alive", "proxy-connection"] {
            assert_eq!(answer.all(name), Vec::<&str>::new(), "{name}");
        }
        assert_eq!(answer.field("x-kept"), Some("y"));
    }
}

mod forwarded_fields {
    use super::*;

    /// The port that the client connected to.
    fn port_of(splitter: &Splitter) -> String {
        splitter.http().port().to_string()
    }

    #[test]
    fn are_those_of_ingress_nginx() {
        let backend = Backend::named("main");
        let splitter = Splitter::before(&backend);
        splitter.get("a.test:8080", "/");
        let seen = backend.last();
        for (name, value) in [
            ("host", "a.test:8080"),
            ("x-real-ip", "127.0.0.1"),
            ("x-forwarded-for", "127.0.0.1"),
            ("x-forwarded-host", "a.test:8080"),
            ("x-forwarded-port", port_of(&splitter).as_str()),
            ("x-forwarded-proto", "http"),
            ("x-forwarded-scheme", "http"),
            ("x-scheme", "http"),
        ] {
            assert_eq!(seen.field(name), Some(value), "{name}");
        }
        assert_eq!(seen.field("x-original-forwarded-for"), None);
    }

    #[test]
    fn do_not_repeat_what_a_client_claims() {
        let backend = Backend::named("main");
        let splitter = Splitter::before(&backend);
        splitter.get_with(
            "a.test",
            "/",
            "X-Forwarded-For: 9.9.9.9\r\nX-Forwarded-Host: evil.test\r\nX-Forwarded-Port: 1\r\n\
             X-Forwarded-Proto: https\r\nX-Forwarded-Scheme: https\r\nX-Scheme: https\r\n\
             X-Real-IP: 9.9.9.9\r\nX-Request-ID: mine\r\n",
        );
        let seen = backend.last();
        for (name, value) in [
            ("x-real-ip", "127.0.0.1"),
            ("x-forwarded-for", "127.0.0.1"),
            ("x-forwarded-host", "a.test"),
            ("x-forwarded-port", port_of(&splitter).as_str()),
            ("x-forwarded-proto", "http"),
            ("x-forwarded-scheme", "http"),
            ("x-scheme", "http"),
            ("x-original-forwarded-for", "9.9.9.9"),
        ] {
            assert_eq!(seen.field(name), Some(value), "{name}");
        }
        assert_ne!(seen.field("x-request-id"), Some("mine"));
    }

    #[test]
    fn replace_every_line_of_a_claim() {
        let seen = forwarded(
            "X-Forwarded-For: 9.9.9.9\r\nX-Forwarded-For: 8.8.8.8\r\nX-Real-IP: 1.1.1.1\r\n\
             X-Real-IP: 2.2.2.2\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Proto: https\r\n",
        );
        assert_eq!(seen.field("x-forwarded-for"), Some("127.0.0.1"));
        assert_eq!(seen.field("x-real-ip"), Some("127.0.0.1"));
        assert_eq!(seen.field("x-forwarded-proto"), Some("http"));
    }

    #[test]
    fn a_client_cannot_name_its_original_address() {
        let seen = forwarded("X-Original-Forwarded-For: 9.9.9.9\r\n");
        assert_eq!(seen.all("x-original-forwarded-for"), Vec::<&str>::new());
    }

    #[test]
    fn of_a_trusted_client_are_kept_and_it_is_added() {
        let seen = trusted(
            "X-Forwarded-For: 9.9.9.9, 10.0.0.1\r\nX-Forwarded-Host: shop.test\r\n\
             X-Forwarded-Port: 443\r\nX-Forwarded-Proto: https\r\nX-Request-ID: mine\r\n",
        );
        for (name, value) in [
            ("x-real-ip", "9.9.9.9"),
            ("x-forwarded-for", "9.9.9.9, 10.0.0.1, 127.0.0.1"),
            ("x-forwarded-host", "shop.test"),
            ("x-forwarded-port", "443"),
            ("x-forwarded-proto", "https"),
            ("x-request-id", "mine"),
        ] {
            assert_eq!(seen.field(name), Some(value), "{name}");
        }
    }

    /// ingress-nginx takes all three from X-Forwarded-Proto.
    #[test]
    fn of_a_trusted_client_agree_on_the_scheme() {
        let seen = trusted("X-Forwarded-Proto: https\r\n");
        for name in ["x-forwarded-proto", "x-forwarded-scheme", "x-scheme"] {
            assert_eq!(seen.field(name), Some("https"), "{name}");
        }
    }

    #[test]
    fn are_set_for_a_trusted_client_that_says_nothing() {
        let seen = trusted("");
        for (name, value) in [
            ("x-real-ip", "127.0.0.1"),
            ("x-forwarded-for", "127.0.0.1"),
            ("x-forwarded-host", "a.test"),
            ("x-forwarded-proto", "http"),
            ("x-scheme", "http"),
        ] {
            assert_eq!(seen.field(name), Some(value), "{name}");
        }
        assert!(seen.field("x-request-id").is_some());
    }

    #[test]
    fn several_lines_of_a_trusted_chain_become_one() {
        let seen = trusted("X-Forwarded-For: 9.9.9.9\r\nX-Forwarded-For: 10.0.0.1\r\n");
        assert_eq!(
            seen.field("x-forwarded-for"),
            Some("9.9.9.9, 10.0.0.1, 127.0.0.1")
        );
    }

    /// Scripts would take it for the environment variable HTTP_PROXY.
    #[test]
    fn proxy_is_not_passed_on() {
        assert_eq!(
            forwarded("Proxy: http://evil.test\r\n").field("proxy"),
            None
        );
    }

    #[test]
    fn an_ipv6_client_has_its_plain_address() {
        let backend = Backend::named("main");
        let splitter = Splitter::before_with(&backend, |settings| {
            settings.http = vec!["[::1]:0".parse().expect("an address")];
        });
        splitter.get("a.test", "/");
        assert_eq!(backend.last().field("x-forwarded-for"), Some("::1"));
        assert_eq!(backend.last().field("x-real-ip"), Some("::1"));
    }
}

mod request_ids {
    use super::*;

    #[test]
    fn are_32_hexadecimal_digits_and_differ() {
        let backend = Backend::named("main");
        let splitter = Splitter::before(&backend);
        let mut client = splitter.client();
        for _ in 0..100 {
            client.get("a.test", "/");
        }
        let mut ids: Vec<String> = backend
            .seen()
            .iter()
            .map(|seen| seen.field("x-request-id").unwrap_or_default().to_owned())
            .collect();
        for id in &ids {
            assert_eq!(id.len(), 32, "{id}");
            assert!(
                id.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f')),
                "{id}"
            );
        }
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 100);
    }

    #[test]
    fn of_a_trusted_client_are_not_taken_over_when_absurd() {
        let long = "x".repeat(5000);
        let seen = trusted(&format!("X-Request-ID: {long}\r\n"));
        assert_eq!(seen.field("x-request-id").map(str::len), Some(32));
        let seen = trusted("X-Request-ID:\r\n");
        assert_eq!(seen.field("x-request-id").map(str::len), Some(32));
    }
}

mod requests {
    use super::*;

    #[test]
    fn the_host_is_kept_as_it_came() {
        for host in ["a.test", "A.Test", "a.test:80", "a.test:8080"] {
            let backend = Backend::named("main");
            let splitter = Splitter::before(&backend);
            assert_eq!(splitter.get(host, "/").status, 200);
            assert_eq!(backend.last().field("host"), Some(host));
        }
    }

    #[test]
    fn fields_pass_in_order_with_every_value() {
        let seen = forwarded(
            "X-A: 1\r\nCookie: a=1; b=2\r\nX-B:   blanks around  \r\nX-A: 2\r\nX-Empty:\r\n\
             User-Agent: me/1.0 (x; y)\r\nAccept: */*\r\nX-A: 3, 4\r\nAuthorization: Basic eA==\r\n",
        );
        assert_eq!(seen.all("x-a"), ["1", "2", "3, 4"]);
        assert_eq!(seen.field("cookie"), Some("a=1; b=2"));
        assert_eq!(seen.field("x-b"), Some("blanks around"));
        assert_eq!(seen.field("x-empty"), Some(""));
        assert_eq!(seen.field("user-agent"), Some("me/1.0 (x; y)"));
        assert_eq!(seen.field("accept"), Some("*/*"));
        assert_eq!(seen.field("authorization"), Some("Basic eA=="));
    }

    #[test]
    fn nothing_else_is_added() {
        let seen = forwarded("");
        let mut names: Vec<_> = seen.fields.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(
            names,
            [
                "host",
                "x-forwarded-for",
                "x-forwarded-host",
                "x-forwarded-port",
                "x-forwarded-proto",
                "x-forwarded-scheme",
                "x-real-ip",
                "x-request-id",
                "x-scheme",
            ]
        );
    }

    #[test]
    fn a_large_cookie_passes() {
        let cookie = "c".repeat(32 * 1024);
        let seen = forwarded(&format!("Cookie: s={cookie}\r\n"));
        assert_eq!(seen.field("cookie").map(str::len), Some(cookie.len() + 2));
    }
}

mod answers {
    use super::*;

    #[test]
    fn fields_pass_in_order_with_every_value() {
        let answer = answered(
            "Set-Cookie: a=1; Path=/\r\nX-A: 1\r\nSet-Cookie: b=2; HttpOnly\r\nX-Empty:\r\n\
             X-A: 2\r\nX-Bytes: \u{fc}\r\nContent-Type: text/html\r\nLocation: /x?y=z\r\n\
             WWW-Authenticate: Basic realm=\"x\"\r\nX_Under: score\r\nVary: Accept\r\n",
        );
        assert_eq!(answer.all("set-cookie"), ["a=1; Path=/", "b=2; HttpOnly"]);
        assert_eq!(answer.all("x-a"), ["1", "2"]);
        assert_eq!(answer.field("x-empty"), Some(""));
        assert_eq!(answer.field("x-bytes"), Some("\u{fc}"));
        assert_eq!(answer.field("content-type"), Some("text/html"));
        assert_eq!(answer.field("location"), Some("/x?y=z"));
        assert_eq!(answer.field("www-authenticate"), Some("Basic realm=\"x\""));
        assert_eq!(answer.field("x_under"), Some("score"));
        assert_eq!(answer.field("vary"), Some("Accept"));
    }

    #[test]
    fn the_backends_server_is_kept() {
        assert_eq!(
            answered("Server: gunicorn\r\n").field("server"),
            Some("gunicorn")
        );
    }

    #[test]
    fn a_backend_without_a_name_gets_ours() {
        assert_eq!(answered("").field("server"), Some("splitter"));
    }

    #[test]
    fn the_backends_date_is_kept() {
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        let answer = answered(&format!("Date: {date}\r\n"));
        assert_eq!(answer.field("date"), Some(date));
    }

    #[test]
    fn an_undated_answer_is_dated() {
        let date = answered("").field("date").unwrap_or_default().to_owned();
        assert!(date.ends_with(" GMT"), "{date}");
    }

    #[test]
    fn every_status_passes() {
        for status in [
            200, 201, 206, 301, 302, 307, 308, 400, 401, 403, 404, 418, 422, 429, 499, 500, 502,
            503, 504, 599,
        ] {
            let backend = Backend::answering(format!(
                "HTTP/1.1 {status} Some Reason\r\nContent-Length: 4\r\n\r\nbody"
            ));
            let splitter = Splitter::before(&backend);
            let answer = splitter.get("a.test", "/");
            assert_eq!((answer.status, answer.text()), (status, "body".to_owned()));
            assert_eq!(splitter.get("a.test", "/").status, status);
            assert_eq!(backend.connections(), 1, "{status} keeps the connection");
        }
    }

    #[test]
    fn many_and_large_fields_pass() {
        let fields: String = (0..90)
            .map(|i| format!("X-{i}: {}\r\n", "y".repeat(500)))
            .collect();
        let answer = answered(&fields);
        assert_eq!(answer.field("x-89").map(str::len), Some(500));
    }
}
