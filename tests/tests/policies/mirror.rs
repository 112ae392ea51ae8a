//! Copies of requests for a canary.

use splitter_tests::backend::{Backend, refusing};
use splitter_tests::eventually;
use splitter_tests::instance::Splitter;
use splitter_tests::manifests::Manifests;

fn serve(main: &Backend, canary: std::net::SocketAddr, rules: &[(&str, &str)]) -> Splitter {
    Splitter::start(
        &Manifests::new()
            .main("web", "a.test", "/", "app")
            .canary("web-canary", "a.test", "/", "app-canary", rules)
            .service("app", &[main.addr()])
            .service("app-canary", &[canary]),
    )
}

fn mirrored(splitter: &Splitter, result: &str) -> f64 {
    let labels = [("result", result)];
    let name = "splitter_mirrored_requests_total";
    splitter.metrics().sum(name, &labels)
}

const ALL: (&str, &str) = ("splitter.io/mirror", "100");

#[test]
fn the_canary_sees_what_the_pod_sees_and_the_client_does_not_notice() {
    let (main, canary) = (Backend::named("main"), Backend::named("canary"));
    let splitter = serve(&main, canary.addr(), &[ALL]);
    assert_eq!(splitter.problems(), [""; 0]);
    let mut client = splitter.client();
    for number in 0..20 {
        let path = format!("/p/{number}?q=1");
        assert_eq!(client.get_with("a.test", &path, "X: y\r\n").text(), "main");
    }
    eventually("all are copied", || canary.seen().len() == 20);
    let (original, copy) = (main.last(), canary.last());
    assert_eq!(copy.line, original.line);
    assert_eq!(copy.fields, original.fields);
    eventually("copies are counted", || {
        mirrored(&splitter, "answered") == 20.0
    });
    // They are no requests of the Location, and nobody decided for the canary.
    let total = splitter.metrics().sum("splitter_requests_total", &[]);
    assert_eq!(total, 20.0);
    let labels = [("variant", "app-canary")];
    assert_eq!(
        splitter.metrics().sum("splitter_requests_total", &labels),
        0.0
    );
}

#[test]
fn a_share_is_copied_and_what_the_canary_answers_itself_is_not() {
    let (main, canary) = (Backend::named("main"), Backend::named("canary"));
    let splitter = serve(&main, canary.addr(), &[("splitter.io/mirror", "25")]);
    let mut client = splitter.client();
    for _ in 0..400 {
        assert_eq!(client.get("a.test", "/").text(), "main");
    }
    let copies = || mirrored(&splitter, "answered") + mirrored(&splitter, "dropped");
    eventually("a quarter is copied", || (60.0..140.0).contains(&copies()));
    let canary = Backend::named("canary");
    let splitter = serve(&main, canary.addr(), &[ALL, ("canary-weight", "100")]);
    for _ in 0..10 {
        assert_eq!(splitter.get("a.test", "/").text(), "canary");
    }
    assert_eq!(canary.seen().len(), 10);
}

#[test]
fn a_canary_that_fails_or_hangs_delays_nobody() {
    let main = Backend::named("main");
    let splitter = serve(&main, refusing(), &[ALL]);
    for _ in 0..10 {
        assert_eq!(splitter.get("a.test", "/").text(), "main");
    }
    eventually("failures are counted", || {
        mirrored(&splitter, "failed") == 10.0
    });
    let hanging = Backend::scripted(|conversation| {
        conversation.request();
        conversation.wait_for_close();
    });
    let splitter = serve(&main, hanging.addr(), &[ALL]);
    let mut client = splitter.client();
    for _ in 0..100 {
        assert_eq!(client.get("a.test", "/").text(), "main");
    }
    // 64 are under way and wait, the others are not even sent.
    eventually("the rest is dropped", || {
        mirrored(&splitter, "dropped") == 36.0
    });
}

#[test]
fn bodies_and_upgrades_are_not_copied() {
    let (main, canary) = (Backend::named("main"), Backend::named("canary"));
    let splitter = serve(&main, canary.addr(), &[ALL]);
    let mut client = splitter.client();
    client.send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 2\r\n\r\nhi");
    assert_eq!(client.answer("POST").text(), "main");
    let fields = "Connection: upgrade\r\nUpgrade: websocket\r\n";
    assert_eq!(client.get_with("a.test", "/", fields).text(), "main");
    eventually("both are counted", || mirrored(&splitter, "unfit") == 2.0);
    assert_eq!(canary.seen().len(), 0);
}

#[test]
fn a_bad_share_is_reported_and_copies_nothing() {
    let (main, canary) = (Backend::named("main"), Backend::named("canary"));
    for share in ["101", "-1", "1e1", "5%", "0.12345", "."] {
        let rules = [("splitter.io/mirror", share), ("canary-weight", "0")];
        let splitter = serve(&main, canary.addr(), &rules);
        assert_eq!(
            splitter.problems(),
            ["web-canary: canary-rule-invalid"],
            "{share}"
        );
        assert_eq!(splitter.get("a.test", "/").text(), "main");
    }
    assert_eq!(canary.seen().len(), 0);
}

/// The default backend is asked in other terms than the pods, so what it is sent is no copy for them.
#[test]
fn what_the_default_backend_answers_is_not_copied() {
    let (pages, canary) = (Backend::named("pages"), Backend::named("canary"));
    let notes = [("default-backend", "pages"), ("backend-protocol", "HTTPS")];
    let splitter = Splitter::start(
        &Manifests::new()
            .ingress("web", "a.test", "/", "Prefix", "app", &notes)
            .canary("web-canary", "a.test", "/", "app-canary", &[ALL])
            .service("app", &[])
            .service("app-canary", &[canary.addr()])
            .service("pages", &[pages.addr()]),
    );
    let mut client = splitter.client();
    // A copy of the first would have arrived long before the last is answered.
    for _ in 0..20 {
        assert_eq!(client.get("a.test", "/").text(), "pages");
    }
    assert_eq!(canary.connections(), 0);
    assert_eq!(
        splitter
            .metrics()
            .sum("splitter_mirrored_requests_total", &[]),
        0.0
    );
}
