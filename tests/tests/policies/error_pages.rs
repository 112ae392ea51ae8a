use std::net::SocketAddr;

use splitter_tests::backend::{Backend, refusing};
use splitter_tests::instance::Splitter;
use splitter_tests::manifests::Manifests;

/// Answers 200 with a short text.
const PAGE: &str = "HTTP/1.1 418 Page\r\nContent-Length: 5\r\n\r\npage\n";

/// The Ingress `web` with a default backend at `pages`, error pages for 404, 502 and 503 and these
/// further annotations, in front of `pods`.
fn before(pods: &[SocketAddr], pages: &[SocketAddr], more: &[(&str, &str)]) -> Splitter {
    let errors = [
        ("default-backend", "pages"),
        ("custom-http-errors", "404,502,503"),
    ];
    let notes = [&errors[..], more].concat();
    Splitter::start(
        &Manifests::new()
            .ingress("web", "a.test", "/x", "Prefix", "app", &notes)
            .canary(
                "next",
                "a.test",
                "/x",
                "next",
                &[("canary-by-header", "Next")],
            )
            .service("app", pods)
            .service("next", &[])
            .service("pages", pages),
    )
}

#[test]
fn an_error_of_a_pod_is_replaced_by_a_page() {
    let answer = "HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\nX-Pod: 1\r\n\r\npod";
    let (pod, pages) = (Backend::answering(answer), Backend::answering(PAGE));
    let splitter = before(&[pod.addr()], &[pages.addr()], &[]);
    let fields = "Accept: text/html\r\nIf-None-Match: x\r\nCookie: a=b\r\n";
    let answer = splitter.get_with("a.test", "/x/y?q=1", fields);
    assert_eq!((answer.status, answer.text()), (418, "page\n".to_owned()));
    assert_eq!(answer.field("x-pod"), None);
    let asked = pages.last();
    assert_eq!((asked.method(), asked.target()), ("GET", "/?q=1"));
    for (name, expected) in [
        ("x-code", "404"),
        ("x-format", "text/html"),
        ("x-original-uri", "/x/y?q=1"),
        ("x-namespace", "demo"),
        ("x-ingress-name", "web"),
        ("x-service-name", "app"),
        ("x-service-port", "80"),
        ("host", "a.test"),
        ("cookie", "a=b"),
    ] {
        assert_eq!(asked.field(name), Some(expected), "{name}");
    }
    let id = asked.field("x-request-id");
    assert!(id.is_some() && id == pod.last().field("x-request-id"));
    assert_eq!(asked.field("if-none-match"), None);
    splitter.expect_sum(
        "nginx_ingress_controller_requests",
        &[("status", "418"), ("service", "app"), ("canary", "")],
        1.0,
    );
}

#[test]
fn bodies_are_not_for_pages_and_other_statuses_stay() {
    let (pod, pages) = (
        Backend::answering("HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n"),
        Backend::answering(PAGE),
    );
    let splitter = before(&[pod.addr()], &[pages.addr()], &[]);
    assert_eq!(splitter.get("a.test", "/x").status, 500);
    assert_eq!(pages.seen().len(), 0);

    let pod = Backend::answering("HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n");
    let splitter = before(&[pod.addr()], &[pages.addr()], &[]);
    let mut client = splitter.client();
    client.send("POST /x HTTP/1.1\r\nHost: a.test\r\nContent-Length: 2\r\n\r\nhi");
    assert_eq!(client.answer("POST").status, 418);
    let asked = pages.last();
    assert_eq!(
        (asked.method(), asked.field("content-length")),
        ("GET", None)
    );
}

#[test]
fn an_error_of_the_proxys_own_is_replaced_too() {
    let pages = Backend::answering(PAGE);
    for more in [&[][..], &[("disable-proxy-intercept-errors", "true")]] {
        let splitter = before(&[refusing()], &[pages.addr()], more);
        assert_eq!(splitter.get("a.test", "/x").status, 418);
        assert_eq!(pages.last().field("x-code"), Some("502"));
    }
}

#[test]
fn answers_of_pods_can_be_left_alone() {
    let pod = Backend::answering("HTTP/1.1 404 No\r\nContent-Length: 3\r\n\r\npod");
    let pages = Backend::answering(PAGE);
    let left = [("disable-proxy-intercept-errors", "true")];
    let splitter = before(&[pod.addr()], &[pages.addr()], &left);
    let answer = splitter.get("a.test", "/x");
    assert_eq!((answer.status, answer.text()), (404, "pod".to_owned()));
    assert_eq!(pages.seen().len(), 0);
}

#[test]
fn without_a_page_the_status_stays() {
    let pod = Backend::answering("HTTP/1.1 404 No\r\nContent-Length: 3\r\n\r\npod");
    let splitter = before(&[pod.addr()], &[refusing()], &[]);
    splitter.get("a.test", "/x").assert_own(404);
    assert_eq!(splitter.faults("no-error-page"), 1.0);

    let splitter = before(&[refusing()], &[refusing()], &[]);
    splitter.get("a.test", "/x").assert_own(502);
    assert_eq!(splitter.faults("no-error-page"), 1.0);

    let splitter = before(&[pod.addr()], &[], &[]);
    let answer = splitter.get("a.test", "/x");
    assert_eq!((answer.status, answer.text()), (404, "pod".to_owned()));
}

#[test]
fn the_default_backend_answers_when_there_is_no_pod() {
    let pages = Backend::named("pages");
    let splitter = before(&[], &[pages.addr()], &[]);
    // Nobody is there for the canary either.
    for field in ["", "Next: always\r\n"] {
        let mut client = splitter.client();
        client.send(format!(
            "POST /x/y HTTP/1.1\r\nHost: a.test\r\n{field}Content-Length: 2\r\n\r\nhi"
        ));
        let answer = client.answer("POST");
        assert_eq!((answer.status, answer.text()), (200, "pages".to_owned()));
        let asked = pages.last();
        assert_eq!((asked.method(), asked.target()), ("POST", "/x/y"));
        assert_eq!(asked.field("x-code"), Some("503"));
        assert_eq!(asked.field("x-service-name"), Some("app"));
    }
    let labels = [("status", "200"), ("canary", "")];
    splitter.expect_sum("nginx_ingress_controller_requests", &labels, 2.0);
}

#[test]
fn without_anybody_it_is_503() {
    let splitter = before(&[], &[], &[]);
    splitter.get("a.test", "/x").assert_own(503);
}
