use splitter_tests::backend::Backend;
use splitter_tests::instance::Splitter;
use splitter_tests::manifests::Manifests;

use super::before;

#[test]
fn a_further_name_is_served_as_the_host() {
    let backend = Backend::named("main");
    let other = Backend::named("other");
    let splitter = Splitter::start(
        &Manifests::new()
            .ingress(
                "web",
                "a.test",
                "/",
                "Prefix",
                "app",
                &[("server-alias", "b.test,*.c.test,d.test")],
            )
            .main("other", "d.test", "/", "other")
            .service("app", &[backend.addr()])
            .service("other", &[other.addr()]),
    );
    for host in ["a.test", "b.test", "B.test:8080", "x.c.test"] {
        assert_eq!(splitter.get(host, "/").text(), "main", "{host}");
    }
    assert_eq!(splitter.get("d.test", "/").text(), "other");
    assert_eq!(splitter.get("c.test", "/").status, 404);
    assert_eq!(splitter.problems(), ["web: alias-taken"]);
    splitter.expect_sum(
        "nginx_ingress_controller_requests",
        &[("host", "a.test"), ("ingress", "web")],
        4.0,
    );
}

#[test]
fn the_root_of_the_host_is_sent_to_the_application() {
    let backend = Backend::named("main");
    let splitter = before(&backend, &[("app-root", "/app")]);
    let answer = splitter.get("a.test:8080", "/?q=1");
    assert_eq!(answer.status, 302);
    assert_eq!(answer.field("location"), Some("http://a.test:8080/app"));
    assert_eq!(backend.seen().len(), 0);
    assert_eq!(splitter.get("a.test", "/app").status, 200);
    assert_eq!(splitter.get("a.test", "/other").status, 200);
    assert_eq!(splitter.problems(), [""; 0]);
}

#[test]
fn the_name_with_www_is_sent_to_the_one_without() {
    let backend = Backend::named("main");
    let splitter = before(&backend, &[("from-to-www-redirect", "true")]);
    for (path, location) in [
        ("/", "http://a.test"),
        ("/x/?q=1", "http://a.test/x/?q=1"),
        ("/x/", "http://a.test/x"),
    ] {
        let answer = splitter.get("www.a.test", path);
        assert_eq!(answer.status, 308);
        assert_eq!(answer.field("location"), Some(location));
    }
    assert_eq!(backend.seen().len(), 0);
    assert_eq!(splitter.get("a.test", "/").status, 200);
}

#[test]
fn redirects_count_for_no_canary() {
    let (stable, canary) = (Backend::named("stable"), Backend::named("canary"));
    let splitter = Splitter::start(
        &Manifests::new()
            .ingress(
                "web",
                "a.test",
                "/",
                "Prefix",
                "app",
                &[("permanent-redirect", "https://b.test$request_uri")],
            )
            .canary("next", "a.test", "/", "next", &[("canary-weight", "100")])
            .service("app", &[stable.addr()])
            .service("next", &[canary.addr()]),
    );
    let answer = splitter.get("a.test", "/x?q=1");
    assert_eq!(answer.status, 301);
    assert_eq!(answer.field("location"), Some("https://b.test/x?q=1"));
    assert_eq!((stable.seen().len(), canary.seen().len()), (0, 0));
    let requests = "nginx_ingress_controller_requests";
    splitter.expect_sum(requests, &[("status", "301"), ("canary", "")], 1.0);
    splitter.expect_sum(requests, &[("status", "301")], 1.0);
}
