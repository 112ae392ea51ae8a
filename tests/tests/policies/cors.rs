use splitter_tests::backend::Backend;
use splitter_tests::client::Answer;
use splitter_tests::instance::Splitter;
use splitter_tests::manifests::Manifests;

use super::before;

const METHODS: &str = "GET, PUT, POST, DELETE, PATCH, OPTIONS";
const HEADERS: &str = "DNT,Keep-Alive,User-Agent,X-Requested-With,If-Modified-Since,Cache-Control,\
                       Content-Type,Range,Authorization";

/// The answer to `method` with this Origin.
fn ask(splitter: &Splitter, method: &str, origin: Option<&str>) -> Answer {
    let origin = origin.map_or_else(String::new, |it| format!("Origin: {it}\r\n"));
    let mut client = splitter.client();
    client.send(format!(
        "{method} /x HTTP/1.1\r\nHost: a.test\r\n{origin}Access-Control-Request-Method: PUT\r\n\r\n"
    ));
    client.answer(method)
}

/// What an answer says: origin, credentials, methods, headers, max-age, exposed.
fn says(answer: &Answer) -> [Option<&str>; 6] {
    [
        "allow-origin",
        "allow-credentials",
        "allow-methods",
        "allow-headers",
        "max-age",
        "expose-headers",
    ]
    .map(|name| answer.field(&format!("access-control-{name}")))
}

#[test]
fn defaults_are_ingress_nginxs() {
    let backend = Backend::named("main");
    let splitter = before(&backend, &[("enable-cors", "true")]);
    let all = [
        Some("*"),
        Some("true"),
        Some(METHODS),
        Some(HEADERS),
        Some("1728000"),
        None,
    ];
    for origin in [Some("https://any.example"), None] {
        let answer = ask(&splitter, "GET", origin);
        assert_eq!((answer.status, says(&answer)), (200, all));
        assert_eq!(answer.field("vary"), None, "it is the same for all origins");
    }
    assert_eq!(backend.seen().len(), 2);
}

#[test]
fn preflights_are_answered_without_a_pod() {
    let (main, canary) = (Backend::named("main"), Backend::named("canary"));
    let manifests = Manifests::new()
        .ingress(
            "web",
            "a.test",
            "/",
            "Prefix",
            "app",
            &[
                ("enable-cors", "true"),
                ("denylist-source-range", "127.0.0.1"),
            ],
        )
        .service("app", &[main.addr()])
        .ingress(
            "web-canary",
            "a.test",
            "/",
            "Prefix",
            "app-canary",
            &[("canary", "true"), ("canary-weight", "100")],
        )
        .service("app-canary", &[canary.addr()]);
    let splitter = Splitter::start(&manifests);
    let answer = ask(&splitter, "OPTIONS", Some("https://any.example"));
    assert_eq!(answer.status, 204, "before anybody asks who may call");
    assert_eq!(says(&answer)[..3], [Some("*"), Some("true"), Some(METHODS)]);
    assert_eq!((main.seen().len(), canary.seen().len()), (0, 0));
    // It counts for no canary.
    let requests = "nginx_ingress_controller_requests";
    splitter.expect_sum(requests, &[("canary", "")], 1.0);
    splitter.expect_sum(requests, &[], 1.0);
    assert_eq!(splitter.faults("cors-preflight"), 1.0);
    // Refusals say it too, so that a page can read why.
    let refused = ask(&splitter, "GET", Some("https://any.example"));
    assert_eq!((refused.status, says(&refused)[0]), (403, Some("*")));
}

#[test]
fn every_key_has_its_effect_and_replaces_what_the_pod_says() {
    let backend = Backend::answering(
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nAccess-Control-Allow-Origin: https://pod\r\n\
         Access-Control-Allow-Credentials: true\r\nAccess-Control-Max-Age: 1\r\n\
         Access-Control-Expose-Headers: X-Pod\r\nVary: Accept\r\n\r\n",
    );
    let splitter = before(
        &backend,
        &[
            ("enable-cors", "true"),
            (
                "cors-allow-origin",
                "https://a.example:8443, https://*.b.example",
            ),
            ("cors-allow-methods", "PUT, GET"),
            ("cors-allow-headers", "X-A,X-B"),
            ("cors-allow-credentials", "false"),
            ("cors-expose-headers", "*, X-Own"),
            ("cors-max-age", "600"),
        ],
    );
    for origin in ["https://a.example:8443", "https://x.b.example"] {
        for (method, status) in [("GET", 200), ("OPTIONS", 204)] {
            let answer = ask(&splitter, method, Some(origin));
            assert_eq!(answer.status, status);
            assert_eq!(
                says(&answer),
                [
                    Some(origin),
                    None,
                    Some("PUT, GET"),
                    Some("X-A,X-B"),
                    Some("600"),
                    Some("*, X-Own")
                ]
            );
            assert!(answer.all("vary").contains(&"Origin"), "{answer:?}");
        }
    }
    for origin in [
        Some("https://a.example"),
        Some("https://y.x.b.example"),
        Some("https://b.example"),
        Some("https://evil.example/https://a.example:8443"),
        None,
    ] {
        let answer = ask(&splitter, "GET", origin);
        assert_eq!(
            answer.field("access-control-allow-origin"),
            Some("https://pod")
        );
        assert_eq!(answer.all("vary"), ["Accept", "Origin"]);
        let before = backend.seen().len();
        assert_eq!(ask(&splitter, "OPTIONS", origin).status, 200, "{origin:?}");
        assert_eq!(backend.seen().len(), before + 1, "the pod may know better");
    }
}

#[test]
fn a_star_among_others_is_everybody() {
    let backend = Backend::named("main");
    let notes = [
        ("enable-cors", "true"),
        ("cors-allow-origin", "https://a.example, *"),
    ];
    let splitter = before(&backend, &notes);
    let answer = ask(&splitter, "GET", Some("https://other.example"));
    assert_eq!(says(&answer)[0], Some("*"));
}

#[test]
fn bad_values_are_reported_and_allow_no_more() {
    let backend = Backend::named("main");
    for (name, value, expected) in [
        ("cors-allow-origin", "a.example", [None; 2]),
        ("cors-allow-methods", "GET; PUT", [Some("*"), Some(METHODS)]),
        ("cors-max-age", "long", [Some("*"), Some(METHODS)]),
        ("cors-allow-credentials", "yes", [Some("*"), Some(METHODS)]),
        ("enable-cors", "yes", [None; 2]),
    ] {
        let notes = match name {
            "enable-cors" => vec![(name, value)],
            _ => vec![("enable-cors", "true"), (name, value)],
        };
        let splitter = before(&backend, &notes);
        let answer = ask(&splitter, "GET", Some("https://any.example"));
        let found = says(&answer);
        assert_eq!([found[0], found[2]], expected, "{name}: {value}");
        assert_eq!(splitter.problems(), ["web: cors-invalid"], "{name}");
        if name == "cors-allow-credentials" {
            assert_eq!(found[1], None);
        }
    }
}

#[test]
fn without_enable_cors_nothing_happens_and_is_said() {
    let backend = Backend::named("main");
    let splitter = before(&backend, &[("cors-allow-origin", "*")]);
    assert_eq!(says(&ask(&splitter, "GET", Some("https://a"))), [None; 6]);
    assert_eq!(ask(&splitter, "OPTIONS", Some("https://a")).status, 200);
    assert_eq!(splitter.problems(), ["web: cors-off"]);
}
