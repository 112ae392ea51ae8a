//! Rows of section F that real traffic can show.

use super::*;

/// As Flagger asks: the main Ingress's name, and `canary` set if and only if a canary was chosen.
#[test]
fn row_65_and_68_metrics_tell_main_and_canary_apart() {
    let (_cast, splitter) = serve(|it| {
        it.main("main", "a.test", "/", "m").canary(
            "canary",
            "a.test",
            "/",
            "c",
            &[("canary-weight", "30")],
        )
    });
    assert_eq!(share(&splitter, "a.test", 100, "C"), 30);
    let main = [
        ("namespace", "demo"),
        ("ingress", "main"),
        ("service", "m"),
        ("status", "200"),
    ];
    let count = |canary: &str| {
        let labels = [&main[..], &[("canary", canary)]].concat();
        let name = "nginx_ingress_controller_requests";
        splitter.metrics().sum(name, &labels)
    };
    eventually("all are counted", || {
        count("") + count("demo-c-80") == 100.0
    });
    assert_eq!((count(""), count("demo-c-80")), (70.0, 30.0));
    let times = "nginx_ingress_controller_response_duration_seconds_count";
    let canary = [("ingress", "main"), ("canary", "demo-c-80")];
    splitter.expect_sum(times, &canary, 30.0);
}

/// The truth stands in families of our own.
#[test]
fn row_65_chosen_ingress_and_service_are_named() {
    let (_cast, splitter) = serve(|it| {
        it.main("main", "a.test", "/", "m").canary(
            "canary",
            "a.test",
            "/",
            "c",
            &[("canary-by-header", "X")],
        )
    });
    always(&splitter, "a.test", "/", "X: always\r\n", "C");
    always(&splitter, "a.test", "/", "", "M");
    let count = |ingress: &str, service: &str, variant: &str| {
        let labels = [
            ("ingress", "main"),
            ("host", "a.test"),
            ("path", "/"),
            ("chosen_ingress", ingress),
            ("chosen_service", service),
            ("variant", variant),
            ("status", "2xx"),
        ];
        splitter.metrics().sum("splitter_requests_total", &labels)
    };
    eventually("all are counted", || {
        count("canary", "c", "c") == 10.0 && count("main", "m", "stable") == 10.0
    });
}

/// Nothing that no backend was chosen for is held against a canary.
#[test]
fn own_answers_have_no_canary() {
    let (_cast, splitter) = serve(|it| {
        it.main("main", "a.test", "/x", "m")
            .canary("canary", "a.test", "/x", "c", ALL)
    });
    assert_eq!(who(&splitter, "a.test", "/", ""), "404");
    assert_eq!(who(&splitter, "a.test", "/x/../y", ""), "400");
    eventually("both are counted", || {
        splitter.faults("no-location") == 1.0 && splitter.faults("ambiguous-path") == 1.0
    });
    let metrics = splitter.metrics();
    let requests = metrics.select("nginx_ingress_controller_requests", &[]);
    assert!(requests.iter().all(|it| it.label("canary").is_empty()));
    let truth = metrics.select("splitter_requests_total", &[]);
    assert!(truth.iter().all(|it| it.label("variant").is_empty()));
}
