use super::*;

#[test]
fn none_is_503() {
    let splitter = Splitter::start(&service(&[]));
    let mut client = splitter.client();
    for _ in 0..2 {
        client.get("a.test", "/").assert_own(503);
    }
    eventually("the faults are counted", || {
        splitter.faults("no-endpoint") == 2.0
    });
}

#[test]
fn a_service_that_does_not_exist_is_503() {
    let manifests = Manifests::new().main("main", "a.test", "/", "main");
    Splitter::start(&manifests)
        .get("a.test", "/")
        .assert_own(503);
}

#[test]
fn unready_ones_are_not_used() {
    let (ready, unready) = (Backend::named("ready"), Backend::named("unready"));
    let splitter = Splitter::start(&service(&[ready.addr()]).endpoint(
        "main",
        1,
        unready.addr(),
        "ready: false, serving: false",
    ));
    for _ in 0..10 {
        assert_eq!(splitter.get("a.test", "/").text(), "ready");
    }
    assert_eq!(unready.connections(), 0);
}

#[test]
fn ready_ones_share_the_requests() {
    let backends: Vec<_> = (0..5).map(|i| Backend::named(&format!("{i}"))).collect();
    let addrs: Vec<_> = backends.iter().map(Backend::addr).collect();
    let splitter = Splitter::start(&service(&addrs));
    for _ in 0..50 {
        assert_ok(&splitter.get("a.test", "/"));
    }
    for backend in &backends {
        assert_eq!(backend.seen().len(), 10);
    }
}

#[test]
fn addresses_of_both_families_are_used() {
    let listener = std::net::TcpListener::bind("[::1]:0").expect("IPv6 is there");
    let six = Backend::listening(listener, |conversation| {
        while conversation.request().is_some() {
            conversation.send(OK);
        }
    });
    let four = Backend::answering(OK);
    let splitter = Splitter::start(&service(&[six.addr(), four.addr()]));
    for _ in 0..10 {
        assert_ok(&splitter.get("a.test", "/"));
    }
    assert_eq!((six.seen().len(), four.seen().len()), (5, 5));
}

const DRAINING: &str = "ready: false, serving: true, terminating: true";

#[test]
fn draining_ones_are_not_used_while_there_are_others() {
    let (ready, draining) = (Backend::named("ready"), Backend::named("draining"));
    let splitter =
        Splitter::start(&service(&[ready.addr()]).endpoint("main", 1, draining.addr(), DRAINING));
    for _ in 0..10 {
        assert_eq!(splitter.get("a.test", "/").text(), "ready");
    }
    assert_eq!(draining.connections(), 0);
}

#[test]
fn draining_ones_are_the_last_resort() {
    let draining = Backend::named("draining");
    let gone = Backend::named("gone");
    let splitter = Splitter::start(
        &service(&[])
            .endpoint("main", 1, draining.addr(), DRAINING)
            .endpoint(
                "main",
                2,
                gone.addr(),
                "ready: false, serving: false, terminating: true",
            ),
    );
    for _ in 0..10 {
        assert_eq!(splitter.get("a.test", "/").text(), "draining");
    }
    assert_eq!(gone.connections(), 0);
}

fn split(main: &[SocketAddr], canary: &[SocketAddr], weight: &str) -> Splitter {
    Splitter::start(
        &service(main)
            .canary(
                "canary",
                "a.test",
                "/",
                "canary",
                &[("canary-weight", weight), ("canary-by-header", "x-canary")],
            )
            .service("canary", canary),
    )
}

#[test]
fn a_canary_without_any_leaves_all_to_stable() {
    let main = Backend::named("main");
    let splitter = split(&[main.addr()], &[], "100");
    for _ in 0..10 {
        assert_eq!(splitter.get("a.test", "/").text(), "main");
    }
    let answer = splitter.get_with("a.test", "/", "X-Canary: always\r\n");
    assert_eq!(answer.text(), "main");
}

#[test]
fn a_chosen_canary_answers_although_stable_has_none() {
    let canary = Backend::named("canary");
    let splitter = split(&[], &[canary.addr()], "0");
    let answer = splitter.get_with("a.test", "/", "X-Canary: always\r\n");
    assert_eq!(answer.text(), "canary");
    splitter.get("a.test", "/").assert_own(503);
    let splitter = split(&[], &[canary.addr()], "100");
    for _ in 0..10 {
        assert_eq!(splitter.get("a.test", "/").text(), "canary");
    }
    splitter
        .get_with("a.test", "/", "X-Canary: never\r\n")
        .assert_own(503);
}

#[test]
fn a_canary_that_refuses_is_not_replaced_by_stable() {
    let main = Backend::named("main");
    let splitter = split(&[main.addr()], &[refusing()], "100");
    splitter.get("a.test", "/").assert_own(502);
    assert_eq!(main.seen(), []);
}
