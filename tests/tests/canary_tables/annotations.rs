//! What else of the canary Ingress counts, and what of the main one counts for both sides.

use super::*;

/// What the canary's pod sees and what the client gets, when `notes` are on the canary: nothing else
/// than without them.
fn on_the_canary(notes: Notes<'_>) -> Pair {
    let all = [&[ALL], notes].concat();
    let pair = Pair::new(&[], &all);
    let answer = pair
        .splitter
        .get_with("a.test", "/x?y=1", "Origin: https://b.test\r\n");
    assert_eq!(
        (answer.status, answer.text().as_str()),
        (200, "C"),
        "{notes:?}"
    );
    let seen = pair.c.last();
    assert_eq!(seen.target(), "/x?y=1", "{notes:?}");
    assert_eq!(seen.field("host"), Some("a.test"), "{notes:?}");
    assert_eq!(seen.field("x-forwarded-prefix"), None, "{notes:?}");
    assert_eq!(
        answer.field("access-control-allow-origin"),
        None,
        "{notes:?}"
    );
    assert_eq!(answer.field("set-cookie"), None, "{notes:?}");
    pair
}

#[test]
fn what_is_said_of_the_location_counts_on_the_main_ingress_only() {
    let ignored: &[Notes<'_>] = &[
        &[("rewrite-target", "/other")],
        &[("use-regex", "true")],
        &[("app-root", "/other")],
        &[("proxy-read-timeout", "1"), ("proxy-send-timeout", "1")],
        &[("proxy-body-size", "1")],
        &[("enable-cors", "true")],
        &[("auth-url", "http://auth.test/"), ("auth-type", "basic")],
        &[("satisfy", "any"), ("enable-modsecurity", "true")],
        &[("permanent-redirect", "https://b.test/")],
        &[("temporal-redirect", "https://b.test/")],
        &[("force-ssl-redirect", "true")],
        &[
            ("configuration-snippet", "return 403;"),
            ("server-snippet", "deny all;"),
        ],
        &[("backend-protocol", "GRPC")],
        &[("backend-protocol", "HTTPS"), ("proxy-ssl-verify", "on")],
        &[("custom-http-errors", "200"), ("default-backend", "m")],
        &[("mirror-target", "http://b.test/")],
        &[("allowlist-source-range", "192.0.2.1")],
        &[("denylist-source-range", "0.0.0.0/0")],
        &[("limit-rpm", "1"), ("limit-burst-multiplier", "0")],
        &[("x-forwarded-prefix", "/p")],
        &[("upstream-vhost", "inner.test")],
        &[("affinity", "cookie"), ("session-cookie-name", "s")],
        &[("ssl-ciphers", "NONE"), ("stream-snippet", "deny all;")],
        &[("auth-tls-secret", "demo/none")],
        &[("custom-headers", "demo/none")],
        &[("limit-rate", "1"), ("proxy-cookie-path", "/ /x")],
    ];
    for notes in ignored {
        let pair = on_the_canary(notes);
        // And the Ingress that has it is told.
        let told = pair.splitter.problems();
        assert!(told.iter().all(|it| it.starts_with("canary: ")), "{told:?}");
        assert!(!told.is_empty(), "{notes:?}");
    }
}

#[test]
fn what_the_main_ingress_says_counts_for_both_sides() {
    let main = [
        ("upstream-vhost", "inner.test"),
        ("enable-cors", "true"),
        ("denylist-source-range", "192.0.2.1"),
    ];
    let pair = Pair::new(&main, &[ALL]);
    let answer = pair
        .splitter
        .get_with("a.test", "/", "Origin: https://b.test\r\n");
    assert_eq!(answer.text(), "C");
    assert_eq!(pair.c.last().field("host"), Some("inner.test"));
    assert!(answer.field("access-control-allow-origin").is_some());
    let closed = Pair::new(&[("denylist-source-range", "127.0.0.0/8")], &[ALL]);
    closed.always("", "403");
    let size = Pair::new(&[("proxy-body-size", "1")], &[ALL]);
    let mut client = size.splitter.client();
    client.send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 2\r\n\r\nhi");
    assert_eq!(client.answer("POST").status, 413);
}

/// There the canary's alias would be none either; its host must be a host of main.
#[test]
fn an_alias_on_the_canary_makes_no_host() {
    let pair = on_the_canary(&[("server-alias", "b.test")]);
    assert_eq!(pair.splitter.get("b.test", "/").status, 404);
}

#[test]
fn an_alias_of_main_is_split_too() {
    let pair = Pair::new(&[("server-alias", "b.test")], &[ALL]);
    assert_eq!(pair.splitter.get("b.test", "/").text(), "C");
}

#[test]
fn the_class_decides_first() {
    let (m, c) = (Backend::named("M"), Backend::named("C"));
    let manifests = Manifests::new()
        .main("main", "a.test", "/", "m")
        .canary(
            "canary",
            "a.test",
            "/",
            "c",
            &[ALL, ("kubernetes.io/ingress.class", "other")],
        )
        .service("m", &[m.addr()])
        .service("c", &[c.addr()]);
    let splitter = Splitter::start(&manifests);
    assert_eq!(splitter.get("a.test", "/").text(), "M");
}

/// With TLS on the canary only, main's http is not redirected, and its host has no certificate.
#[test]
fn tls_of_the_canary_counts_for_nobody() {
    let (m, c) = (Backend::named("M"), Backend::named("C"));
    let manifests = Manifests::new()
        .main("main", "a.test", "/", "m")
        .tls("cert", &["a.test"])
        .canary("canary", "a.test", "/", "c", &[ALL])
        .tls("", &[])
        .service("m", &[m.addr()])
        .service("c", &[c.addr()]);
    let splitter = Splitter::start_with(&manifests, |settings| {
        settings.https = vec![([127, 0, 0, 1], 0).into()];
    });
    let answer = splitter.get("a.test", "/");
    assert_eq!((answer.status, answer.text().as_str()), (200, "C"));
}

#[test]
fn redirects_and_preflights_are_answered_before_anything_is_chosen() {
    let rows: &[(Notes<'_>, &str, u16)] = &[
        (&[("permanent-redirect", "https://b.test/")], "GET", 301),
        (&[("temporal-redirect", "https://b.test/")], "GET", 302),
        (&[("app-root", "/home")], "GET", 302),
        (&[("enable-cors", "true")], "OPTIONS", 204),
        (&[("denylist-source-range", "0.0.0.0/0")], "GET", 403),
        (
            &[("limit-rpm", "1"), ("limit-burst-multiplier", "0")],
            "GET",
            503,
        ),
    ];
    for (notes, method, status) in rows {
        let pair = Pair::new(notes, &[ALL]);
        let mut client = pair.splitter.client();
        let mut last = 0;
        for _ in 0..2 {
            client.send(format!(
                "{method} / HTTP/1.1\r\nHost: a.test\r\nOrigin: https://b.test\r\n\r\n"
            ));
            last = client.answer(method).status;
        }
        assert_eq!(last, *status, "{notes:?}");
        let labels = [("status", &*status.to_string())];
        let name = "nginx_ingress_controller_requests";
        eventually("it is counted", || {
            pair.splitter.metrics().sum(name, &labels) >= 1.0
        });
        let metrics = pair.splitter.metrics();
        let counted = metrics.select(name, &labels);
        assert!(
            counted.iter().all(|it| it.label("canary").is_empty()),
            "{notes:?}"
        );
        assert!(pair.m.seen().is_empty(), "{notes:?}");
    }
}

/// There the error page itself is drawn by the weight.
#[test]
fn error_pages_are_no_canarys() {
    let m = Backend::scripted(|conversation| {
        while conversation.request().is_some() {
            conversation.send("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let (c, pages) = (Backend::named("C"), Backend::named("page"));
    let notes = [("custom-http-errors", "404"), ("default-backend", "pages")];
    let manifests = |m: &[std::net::SocketAddr]| {
        Manifests::new()
            .ingress("main", "a.test", "/", "Prefix", "m", &notes)
            .canary("canary", "a.test", "/", "c", &[HEADER, NONE])
            .service("m", m)
            .service("c", &[c.addr()])
            .service("pages", &[pages.addr()])
    };
    for m in [&[m.addr()][..], &[]] {
        let splitter = Splitter::start(&manifests(m));
        for _ in 0..10 {
            let answer = splitter.get("a.test", "/");
            assert_eq!((answer.status, answer.text().as_str()), (200, "page"));
        }
    }
    assert!(c.seen().is_empty());
}
