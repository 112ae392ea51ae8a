use std::net::{IpAddr, Ipv4Addr};

use splitter::model::AddressSet;
use splitter_tests::backend::Backend;
use splitter_tests::client::Client;
use splitter_tests::instance::Splitter;
use splitter_tests::manifests::Manifests;

use super::before;

fn set(text: &str) -> AddressSet {
    text.parse().unwrap()
}

/// The status that a client at this loopback address gets.
fn status_of(splitter: &Splitter, last: u8, fields: &str) -> u16 {
    let source = IpAddr::V4(Ipv4Addr::new(127, 0, 0, last));
    let mut client = Client::connect_from(source, splitter.http());
    client.get_with("a.test", "/", fields).status
}

#[test]
fn the_allow_list_lets_in_and_the_deny_list_keeps_out() {
    let backend = Backend::named("main");
    let splitter = before(
        &backend,
        &[
            ("allowlist-source-range", "127.0.0.0/30, 127.0.0.9"),
            ("denylist-source-range", "127.0.0.2"),
        ],
    );
    for (last, status) in [(1, 200), (2, 403), (3, 200), (4, 403), (9, 200)] {
        assert_eq!(status_of(&splitter, last, ""), status, "127.0.0.{last}");
    }
    assert_eq!(backend.seen().len(), 3, "who is refused reaches no pod");
    assert_eq!(splitter.faults("address-denied"), 2.0);
    // A refusal counts for the Ingress.
    splitter.expect_sum(
        "nginx_ingress_controller_requests",
        &[("status", "403")],
        2.0,
    );
}

#[test]
fn the_answer_is_ours_and_says_why() {
    let backend = Backend::named("main");
    let splitter = before(&backend, &[("whitelist-source-range", "10.0.0.0/8")]);
    let answer = splitter.get("a.test", "/");
    answer.assert_own(403);
    assert!(
        answer.text().contains("this address may not call here"),
        "{answer:?}"
    );
}

#[test]
fn the_own_canary_has_no_list_and_gets_through_none() {
    let (main, canary) = (Backend::named("main"), Backend::named("canary"));
    let note = ("denylist-source-range", "127.0.0.2");
    let manifests = Manifests::new()
        .ingress("web", "a.test", "/", "Prefix", "app", &[note])
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
    assert_eq!(status_of(&splitter, 2, ""), 403);
    assert_eq!(status_of(&splitter, 1, ""), 200);
    assert_eq!((main.seen().len(), canary.seen().len()), (0, 1));
    let requests = |status| {
        let labels = [("status", status), ("canary", "")];
        splitter
            .metrics()
            .sum("nginx_ingress_controller_requests", &labels)
    };
    splitter_tests::eventually("it is counted", || requests("403") == 1.0);
    assert_eq!(requests("200"), 0.0);
}

#[test]
fn a_bad_list_closes_its_ingress_and_no_other() {
    let backend = Backend::named("main");
    let manifests = Manifests::new()
        .ingress(
            "web",
            "a.test",
            "/",
            "Prefix",
            "app",
            &[("allowlist-source-range", "127.0.0.0/8,office")],
        )
        .main("open", "b.test", "/", "app")
        .service("app", &[backend.addr()]);
    let splitter = Splitter::start(&manifests);
    assert_eq!(splitter.get("a.test", "/").status, 503);
    assert_eq!(splitter.get("b.test", "/").status, 200);
    assert_eq!(splitter.problems(), ["web: source-range-invalid"]);
}

#[test]
fn a_client_is_not_believed_whom_it_speaks_for() {
    let backend = Backend::named("main");
    let splitter = before(&backend, &[("allowlist-source-range", "127.0.0.1")]);
    assert_eq!(
        status_of(&splitter, 2, "X-Forwarded-For: 127.0.0.1\r\n"),
        403
    );
    assert_eq!(status_of(&splitter, 2, "Forwarded: for=127.0.0.1\r\n"), 403);
    assert_eq!(
        status_of(&splitter, 1, "X-Forwarded-For: 192.0.2.1\r\n"),
        200
    );
}

#[test]
fn a_trusted_proxy_names_the_client() {
    let backend = Backend::named("main");
    let note = ("allowlist-source-range", "192.0.2.0/24");
    let manifests = Manifests::new()
        .ingress("web", "a.test", "/", "Prefix", "app", &[note])
        .service("app", &[backend.addr()]);
    let splitter = Splitter::start_with(&manifests, |settings| {
        settings.use_forwarded_headers = true;
        settings.proxy_real_ip = set("127.0.0.1,10.0.0.0/8");
    });
    for (last, fields, status) in [
        (1, "X-Forwarded-For: 192.0.2.7\r\n", 200),
        (1, "X-Forwarded-For: 192.0.2.7, 10.0.0.1\r\n", 200),
        (1, "X-Forwarded-For: 192.0.2.7, 203.0.113.1\r\n", 403),
        (1, "Forwarded: for=192.0.2.7\r\n", 200),
        (1, "", 403),
        (2, "X-Forwarded-For: 192.0.2.7\r\n", 403),
    ] {
        assert_eq!(
            status_of(&splitter, last, fields),
            status,
            "{last} {fields}"
        );
    }
    status_of(
        &splitter,
        1,
        "X-Forwarded-For: 203.0.113.5, 192.0.2.7, 10.0.0.1\r\n",
    );
    let seen = backend.last();
    assert_eq!(seen.field("x-real-ip"), Some("192.0.2.7"));
    assert_eq!(
        seen.field("x-forwarded-for"),
        Some("203.0.113.5, 192.0.2.7, 10.0.0.1, 127.0.0.1")
    );
}
