//! What a service that is asked hears of a request, and what becomes of a 401 of the pod's own.

use splitter_tests::backend::Backend;

use super::external::{GOOD, authenticator, counting, site};

/// nginx hands a 401 of the pod to the page where it looks at the errors of pods at all.
#[test]
fn a_401_of_the_pod_leads_to_the_page_only_where_its_errors_are_looked_at() {
    let service = authenticator();
    let page = (
        "auth-signin",
        "https://login.test/start?rd=$escaped_request_uri",
    );
    let pages = ("custom-http-errors", "404");
    let off = ("disable-proxy-intercept-errors", "true");
    for (more, status) in [
        (&[page][..], 401),
        (&[page, pages], 302),
        (&[page, ("custom-http-errors", "401,404")], 302),
        (&[page, pages, off], 401),
        (&[pages], 401),
    ] {
        let pod = Backend::answering("HTTP/1.1 401 Unauthorized\r\nContent-Length: 3\r\n\r\npod");
        let more = [more, &[("default-backend", "app")]].concat();
        let splitter = site(&pod, &service, "/check", &more);
        let answer = splitter.get_with("a.test", "/x?y=1", GOOD);
        assert_eq!(answer.status, status, "{more:?}");
        let there = answer.field("location");
        assert_eq!(there.is_some(), status == 302);
        if let Some(there) = there {
            assert_eq!(there, "https://login.test/start?rd=%2Fx%3Fy%3D1");
        }
        // Another answer of the pod is its own.
        assert_eq!(pod.seen().len(), 1);
    }
}

/// Whatever a client says of its way and of what it asks for: the service hears it from us, and of its
/// other fields every line.
#[test]
fn what_a_client_says_of_its_way_does_not_reach_the_service() {
    let (app, service) = (Backend::named("app"), counting("200 OK"));
    let splitter = site(&app, &service, "/check", &[]);
    let fields = "X-Forwarded-Prefix: /evil\r\nX_Forwarded_Proto: https\r\nX-Forwarded-Port: 1\r\n\
        X-Forwarded-Uri: /open\r\nX-Forwarded-Method: OPTIONS\r\nX-Original-URL: http://a.test/open\r\n\
        X-Original-URI: /open\r\nX-Original-Method: OPTIONS\r\nForwarded: for=1.2.3.4\r\n\
        X-Forwarded-For: 1.2.3.4\r\nX-Real-IP: 1.2.3.4\r\nX-Forwarded-Host: evil.test\r\n\
        User-Agent: kube-probe/1.0\r\nX-Role: reader\r\nX-Role: admin\r\n";
    assert_eq!(splitter.get_with("a.test", "/x", fields).status, 200);
    let asked = service.last();
    for (name, values) in [
        ("x-forwarded-prefix", &[][..]),
        ("x_forwarded_proto", &[]),
        ("forwarded", &[]),
        ("x-forwarded-uri", &["/x"]),
        ("x-forwarded-method", &["GET"]),
        ("x-original-uri", &["/x"]),
        ("x-original-url", &["http://a.test/x"]),
        ("x-original-method", &["GET"]),
        ("x-forwarded-for", &["127.0.0.1"]),
        ("x-real-ip", &["127.0.0.1"]),
        ("x-forwarded-host", &["a.test"]),
        ("x-forwarded-proto", &["http"]),
        ("x-role", &["reader", "admin"]),
    ] {
        assert_eq!(asked.all(name), values, "{name}");
    }
    assert_ne!(asked.field("x-forwarded-port"), Some("1"));
    // What the router and a service could read in two ways is asked of nobody.
    for path in ["/open/..%2fadmin", "/open/%2e%2e/admin", "/open;/../admin"] {
        let status = splitter.get("a.test", path).status;
        assert!(
            status == 400 || service.last().field("x-original-uri") == Some(path),
            "{path}"
        );
    }
}
