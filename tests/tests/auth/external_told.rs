//! What a service that is asked hears of a request.

use splitter_tests::backend::Backend;

use super::external::{counting, site};

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
