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

/// Closes as soon as it has read a request.
fn closing() -> Backend {
    Backend::scripted(|conversation| {
        conversation.request();
    })
}

/// ingress-nginx has a list of times there, and observes none of them.
#[test]
fn a_request_that_was_tried_again_is_one_whose_times_count() {
    const REQUESTS: usize = 12;
    let (m, good) = (Backend::named("M"), Backend::named("C"));
    let bad = [closing(), closing()];
    let pods = [bad[0].addr(), bad[1].addr(), good.addr()];
    let manifests = Manifests::new()
        .main("main", "a.test", "/", "m")
        .canary("canary", "a.test", "/", "c", &[ALL])
        .service("m", &[m.addr()])
        .service("c", &pods);
    let splitter = Splitter::start(&manifests);
    for _ in 0..REQUESTS {
        assert_eq!(splitter.get("a.test", "/").text(), "C");
    }
    let tried: usize = bad.iter().map(|pod| pod.seen().len()).sum();
    assert!(tried > 0, "somebody was asked in vain");
    for family in [
        "requests",
        "request_duration_seconds_count",
        "response_duration_seconds_count",
        "header_duration_seconds_count",
    ] {
        let name = format!("nginx_ingress_controller_{family}");
        let of = |canary| {
            let labels = [("ingress", "main"), ("canary", canary)];
            splitter.metrics().sum(&name, &labels)
        };
        eventually(family, || of("demo-c-80") == REQUESTS as f64);
        assert_eq!(of(""), 0.0, "{family}");
    }
    assert_eq!(m.seen().len(), 0);
}

/// ingress-nginx draws for the log where nobody was asked, and counts refusals for the canary.
#[test]
fn what_no_pod_was_asked_for_has_no_canary() {
    let preflight = "Origin: https://b.test\r\nAccess-Control-Request-Method: GET\r\n";
    for (note, method, fields, status) in [
        (("permanent-redirect", "https://b.test"), "GET", "", 301),
        (("force-ssl-redirect", "true"), "GET", "", 308),
        (("enable-cors", "true"), "OPTIONS", preflight, 204),
        (("denylist-source-range", "127.0.0.0/8"), "GET", "", 403),
        (("splitter.io/traffic-class", "north-south"), "GET", "", 403),
        (("auth-secret", "none"), "GET", "", 503),
        (("auth-url", "http://127.0.0.1:1/"), "GET", "", 500),
    ] {
        let pair = Pair::new(&[note], &[ALL]);
        for _ in 0..5 {
            let mut client = pair.splitter.client();
            client.send(format!(
                "{method} / HTTP/1.1\r\nHost: a.test\r\n{fields}\r\n"
            ));
            assert_eq!(client.answer(method).status, status, "{note:?}");
        }
        let of = |canary| {
            let labels = [("ingress", "main"), ("canary", canary)];
            let name = "nginx_ingress_controller_requests";
            pair.splitter.metrics().sum(name, &labels)
        };
        eventually("all are counted", || of("") == 5.0);
        assert_eq!(of("demo-c-80"), 0.0, "{note:?}");
        assert_eq!(pair.c.seen().len() + pair.m.seen().len(), 0, "{note:?}");
    }
}

/// What answers after a limit, for one who has asked for too much.
#[test]
fn a_limit_is_no_failure_of_the_canary() {
    let notes = [("limit-rps", "1"), ("limit-burst-multiplier", "1")];
    let pair = Pair::new(&notes, &[ALL]);
    let mut client = pair.splitter.client();
    let statuses = (0..20).map(|_| client.get("a.test", "/").status);
    let refused = statuses.filter(|status| *status == 503).count();
    assert!(refused > 0);
    let of = |canary, status| {
        let labels = [("canary", canary), ("status", status)];
        let name = "nginx_ingress_controller_requests";
        pair.splitter.metrics().sum(name, &labels)
    };
    eventually("all are counted", || of("", "503") == refused as f64);
    assert_eq!(of("demo-c-80", "503"), 0.0);
}
