//! What logs and metrics say of main and canary.

use splitter::config::AccessLog;

use super::*;

/// Lines of the access log in ingress-nginx's format, of these requests.
fn log(canary: Notes<'_>, requests: &[&str]) -> Vec<String> {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("access.log");
    let (m, c) = (Backend::named("M"), Backend::named("C"));
    let manifests = Manifests::new()
        .main("main", "a.test", "/", "m")
        .canary("canary", "a.test", "/", "c", canary)
        .service("m", &[m.addr()])
        .service("c", &[c.addr()]);
    let splitter = Splitter::start_with(&manifests, |settings| {
        settings.access_log = AccessLog::File(path.clone());
    });
    for fields in requests {
        assert_eq!(splitter.get_with("a.test", "/", fields).status, 200);
    }
    splitter.stop();
    let log = std::fs::read_to_string(path).expect("a log");
    let pods = [("C", c.addr()), ("M", m.addr())];
    let lines = log.lines().map(|line| {
        pods.iter().fold(line.to_owned(), |line, (name, addr)| {
            line.replace(&addr.to_string(), &format!("<{name}>"))
        })
    });
    lines.collect()
}

#[test]
fn the_log_names_main_and_the_canary_that_was_chosen() {
    let lines = log(&[HEADER], &["", "X: always\r\n"]);
    let [main, canary] = lines.as_slice() else {
        panic!("{lines:?}");
    };
    assert!(main.contains("[demo-m-80] [] <M>"), "{main}");
    assert!(canary.contains("[demo-m-80] [demo-c-80] <C>"), "{canary}");
}

#[test]
fn labels_are_mains_and_the_canary_has_its_own() {
    let pair = Pair::new(&[], &[HEADER]);
    pair.always("", "M");
    pair.always("X: always\r\n", "C");
    let name = "nginx_ingress_controller_requests";
    let main = [
        ("namespace", "demo"),
        ("ingress", "main"),
        ("service", "m"),
        ("path", "/"),
    ];
    let count = |canary| {
        let labels = [&main[..], &[("canary", canary)]].concat();
        pair.splitter.metrics().sum(name, &labels)
    };
    eventually("all are counted", || {
        count("") == 10.0 && count("demo-c-80") == 10.0
    });
    // No series carries the canary Ingress's name there.
    let metrics = pair.splitter.metrics();
    let all = metrics.select(name, &[]);
    assert!(all.iter().all(|it| it.label("ingress") == "main"));
}

#[test]
fn every_family_is_there_for_both_sides() {
    let pair = Pair::new(&[], &[HEADER]);
    pair.always("", "M");
    pair.always("X: always\r\n", "C");
    for family in [
        "requests",
        "request_duration_seconds_count",
        "response_duration_seconds_count",
        "header_duration_seconds_count",
        "connect_duration_seconds_count",
        "request_size_count",
        "response_size_count",
        "bytes_sent_count",
    ] {
        let name = format!("nginx_ingress_controller_{family}");
        for canary in ["", "demo-c-80"] {
            let labels = [("ingress", "main"), ("canary", canary)];
            eventually(&format!("{family} of {canary:?}"), || {
                pair.splitter.metrics().sum(&name, &labels) > 0.0
            });
        }
    }
}

#[test]
fn hosts_are_labelled_and_unknown_ones_are_dropped() {
    let pair = Pair::new(&[], &[]);
    pair.always("", "M");
    assert_eq!(pair.splitter.get("b.test", "/").status, 404);
    let name = "nginx_ingress_controller_requests";
    let of = |host| pair.splitter.metrics().sum(name, &[("host", host)]);
    eventually("it is counted", || of("a.test") == 10.0);
    assert_eq!(of("b.test"), 0.0);
}

/// Two names can make one text (`a-b` and `c`, `a` and `b-c`): there they are mixed up.
#[test]
fn names_that_make_one_text_stay_apart_in_the_truth() {
    let (one, other) = (Backend::named("one"), Backend::named("other"));
    let manifests = Manifests::new()
        .namespace("a-b")
        .main("one", "a.test", "/", "c")
        .service("c", &[one.addr()])
        .namespace("a")
        .main("other", "b.test", "/", "b-c")
        .service("b-c", &[other.addr()]);
    let splitter = Splitter::start(&manifests);
    assert_eq!(splitter.get("a.test", "/").text(), "one");
    assert_eq!(splitter.get("b.test", "/").text(), "other");
    let of = |namespace, service| {
        let labels = [("namespace", namespace), ("chosen_service", service)];
        splitter.metrics().sum("splitter_requests_total", &labels)
    };
    eventually("both are counted", || {
        of("a-b", "c") == 1.0 && of("a", "b-c") == 1.0
    });
}
