//! Copies of requests for a canary.

use std::net::SocketAddr;

use splitter_tests::backend::{Backend, refusing};
use splitter_tests::eventually;
use splitter_tests::instance::Splitter;
use splitter_tests::manifests::Manifests;
use splitter_tests::noise::Noise;

fn serve(main: &Backend, canary: SocketAddr, rules: &[(&str, &str)]) -> Splitter {
    Splitter::start(&manifests(main, canary, rules))
}

fn manifests(main: &Backend, canary: SocketAddr, rules: &[(&str, &str)]) -> Manifests {
    Manifests::new()
        .main("web", "a.test", "/", "app")
        .canary("web-canary", "a.test", "/", "app-canary", rules)
        .service("app", &[main.addr()])
        .service("app-canary", &[canary])
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
fn bodies_are_copied_as_they_come() {
    let (main, canary) = (Backend::named("main"), Backend::named("canary"));
    let splitter = serve(&main, canary.addr(), &[ALL]);
    let mut client = splitter.client();
    let mut noise = Noise::new(3);
    for (number, size) in [1, 1000, 60_000, 65_000].into_iter().enumerate() {
        let body = noise.next(size).to_vec();
        client.send("POST / HTTP/1.1\r\nHost: a.test\r\n");
        match number % 2 {
            0 => {
                client.send(format!("Content-Length: {size}\r\n\r\n"));
                client.send(&body);
            }
            _ => {
                client.send("Transfer-Encoding: chunked\r\n\r\n");
                for part in body.chunks(999) {
                    client.send(format!("{:x}\r\n", part.len()));
                    client.send(part);
                    client.send("\r\n");
                }
                client.send("0\r\n\r\n");
            }
        }
        assert_eq!(client.answer("POST").text(), "main");
        eventually("it is copied", || canary.seen().len() == number + 1);
        let (original, copy) = (main.last(), canary.last());
        assert!(original.body == body && copy.body == body, "{size}");
        assert_eq!(copy.fields, original.fields);
    }
    eventually("copies are counted", || {
        mirrored(&splitter, "answered") == 4.0
    });
}

#[test]
fn large_bodies_and_upgrades_are_not_copied() {
    const LARGE: usize = (1 << 20) + 1;
    let (main, canary) = (Backend::named("main"), Backend::named("canary"));
    let splitter = Splitter::start_with(&manifests(&main, canary.addr(), &[ALL]), super::any_size);
    let mut client = splitter.client();
    client.send(format!(
        "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: {LARGE}\r\n\r\n"
    ));
    client.send(vec![b'x'; LARGE]);
    assert_eq!(client.answer("POST").text(), "main");
    assert_eq!(main.last().body.len(), LARGE);
    assert_eq!(mirrored(&splitter, "too-large"), 1.0);
    // Of one that does not say how large it is, the canary sees a beginning.
    client.send("POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n");
    client.send(format!("{LARGE:x}\r\n"));
    client.send(vec![b'x'; LARGE]);
    client.send("\r\n0\r\n\r\n");
    assert_eq!(client.answer("POST").text(), "main");
    assert_eq!(main.last().body.len(), LARGE);
    eventually("it is broken off", || {
        mirrored(&splitter, "too-large") == 2.0
    });
    let fields = "Connection: upgrade\r\nUpgrade: websocket\r\n";
    assert_eq!(client.get_with("a.test", "/", fields).text(), "main");
    eventually("it is counted", || mirrored(&splitter, "unfit") == 1.0);
    assert_eq!(canary.seen().len(), 0);
}

#[test]
fn a_canary_that_takes_no_body_delays_nobody() {
    let main = Backend::named("main");
    let deaf = Backend::scripted(|conversation| {
        // Never reads on, and leaves with the process.
        if conversation.head().is_some() {
            std::mem::forget(conversation.stream().try_clone());
        }
    });
    let splitter = serve(&main, deaf.addr(), &[ALL]);
    let mut client = splitter.client();
    // More than the canary's socket takes, and than may wait for it.
    for _ in 0..40 {
        client.send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1000000\r\n\r\n");
        client.send(vec![b'x'; 1_000_000]);
        assert_eq!(client.answer("POST").text(), "main");
    }
    assert_eq!(main.seen().len(), 40);
}

#[test]
fn a_client_that_leaves_in_the_middle_ends_the_copy_too() {
    let (main, canary) = (Backend::named("main"), Backend::named("canary"));
    let splitter = serve(&main, canary.addr(), &[ALL]);
    let mut client = splitter.client();
    client.send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 10\r\n\r\nhalf");
    eventually("both have begun", || {
        main.connections() == 1 && canary.connections() == 1
    });
    drop(client);
    eventually("it is counted", || mirrored(&splitter, "failed") == 1.0);
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
