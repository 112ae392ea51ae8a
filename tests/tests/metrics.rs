//! What the metrics page says after a known set of requests.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::thread;

use http::Method;
use splitter::routing::Reason;
use splitter::telemetry::{ControllerLabels, Family, Registry, UpstreamRecord};
use splitter_tests::prometheus::Page;
use splitter_tests::telemetry::{API, OTHER_HOST, Request, WILDCARD, decision, empty, shop};

const REQUESTS: &str = "nginx_ingress_controller_requests";
const RESPONSE: &str = "nginx_ingress_controller_response_duration_seconds";
const TRUTH: &str = "splitter_requests_total";

fn registry() -> Registry {
    Registry::new(&ControllerLabels {
        namespace: "ingress".to_owned(),
        class: "k8s.io/ingress-nginx".to_owned(),
        pod: "splitter-1".to_owned(),
    })
}

fn page(registry: &Registry) -> Page {
    Page::read(&registry.page().into_string()).unwrap()
}

/// Observes in one worker and reads the page.
fn observed(requests: &[Request]) -> Page {
    let (registry, live) = (registry(), shop(1));
    let mut worker = registry.worker("north-south");
    for request in requests {
        worker.observe(&request.record(&live));
    }
    page(&registry)
}

fn canary() -> Request {
    Request {
        decision: Some(decision(1, Reason::Header)),
        ..Request::default()
    }
}

/// A set of requests with one of everything.
fn scripted() -> Vec<Request> {
    let mut retried = canary();
    if let Some(upstream) = &mut retried.upstream {
        upstream.tries = 3;
        upstream.connect = None;
    }
    let at = |location, host| Request {
        location: Some(location),
        host,
        decision: Some(decision(0, Reason::Only)),
        ..Request::default()
    };
    vec![
        Request::default(),
        retried,
        Request {
            decision: Some(decision(2, Reason::Weight)),
            status: 502,
            fault: Some("upstream-refused"),
            upstream: None,
            ..Request::default()
        },
        Request {
            method: Method::from_bytes(b"BREW").unwrap(),
            ..at(API, "a.example")
        },
        at(OTHER_HOST, "b.example"),
        at(WILDCARD, "x.w.example"),
        Request::refused("body-too-large", 413),
        Request::unmatched("empty.example"),
        Request::unmatched("y.w.example"),
        Request::unmatched("stranger.example"),
    ]
}

#[test]
fn golden_page() {
    let (registry, live) = (registry(), shop(1));
    let mut worker = registry.worker("north-south");
    for request in scripted() {
        worker.observe(&request.record(&live));
    }
    worker.count_fault("bad-head");
    let config = registry.config();
    config.applied(1);
    let text = registry.page().into_string();
    Page::read(&text).unwrap();
    // Memory, CPU time and moments are not the same in every run; buckets are in a test of their
    // own.
    let varies = ["_process_", "timestamp", "_bucket{", "splitter_build_info"];
    let stable = |line: &&str| !varies.iter().any(|part| line.contains(part));
    let lines: Vec<&str> = text.lines().filter(stable).collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn flagger_sees_exactly_the_requests_that_a_canary_got() {
    let page = observed(&scripted());
    let main = [("namespace", "shop"), ("ingress", "web")];
    let all = page.select(REQUESTS, &main);
    let canary: Vec<_> = all
        .iter()
        .filter(|s| !s.label("canary").is_empty())
        .collect();
    let ok: f64 = canary
        .iter()
        .filter(|s| !s.label("status").starts_with('5'))
        .map(|s| s.value)
        .sum();
    assert_eq!(canary.iter().map(|s| s.value).sum::<f64>(), 2.0);
    assert_eq!(ok, 1.0);
    let named = |s: &splitter_tests::prometheus::Sample| s.label("ingress") == "web-canary";
    assert!(!page.samples.iter().any(named));
    let timed = page.select(&format!("{RESPONSE}_count"), &main);
    let timed = timed.iter().filter(|s| !s.label("canary").is_empty());
    assert_eq!(timed.map(|s| s.value).sum::<f64>(), 1.0);
}

#[test]
fn canary_is_the_upstream_name_and_service_stays_the_main_one() {
    let page = observed(&[canary()]);
    let labels = [("canary", "shop-web-canary-80"), ("service", "web")];
    assert_eq!(page.sum(REQUESTS, &labels), 1.0);
    let truth = [
        ("ingress", "web"),
        ("variant", "web-canary"),
        ("chosen_ingress", "web-canary"),
        ("chosen_service", "web-canary"),
        ("chosen_port", "80"),
        ("reason", "header"),
        ("status", "2xx"),
        ("pool", "north-south"),
    ];
    assert_eq!(page.sum(TRUTH, &truth), 1.0);
}

#[test]
fn what_never_reached_a_choice_has_no_canary() {
    let page = observed(&[
        Request::refused("redirect", 308),
        Request::refused("body-too-large", 413),
        Request::unmatched("empty.example"),
        Request {
            decision: Some(decision(0, Reason::CanaryUnavailable)),
            ..Request::default()
        },
    ]);
    assert_eq!(page.sum(REQUESTS, &[("canary", "")]), 4.0);
    assert_eq!(page.sum(TRUTH, &[("variant", "")]), 3.0);
    let fallen = [("reason", "canary-unavailable"), ("variant", "stable")];
    assert_eq!(page.sum(TRUTH, &fallen), 1.0);
}

#[test]
fn hosts_are_labelled_by_rule_and_unknown_ones_not_at_all() {
    let page = observed(&[
        Request {
            location: Some(WILDCARD),
            host: "x.w.example",
            ..Request::default()
        },
        Request::unmatched("z.w.example"),
        Request::unmatched("stranger.example"),
        Request::unmatched(""),
    ]);
    for ingress in ["web", ""] {
        let labels = [("host", "*.w.example"), ("ingress", ingress)];
        assert_eq!(page.sum(REQUESTS, &labels), 1.0, "{ingress}");
    }
    assert_eq!(page.sum(REQUESTS, &[]), 2.0, "strangers have no series");
    let fault = [("fault", "no-location")];
    assert_eq!(page.sum(TRUTH, &fault), 3.0);
    assert_eq!(page.sum("splitter_faults_total", &fault), 3.0);
}

#[test]
fn methods_are_bounded() {
    let words = ["BREW", "PROPFIND", "get", "X"];
    let requests = words.map(|word| Request {
        method: Method::from_bytes(word.as_bytes()).unwrap(),
        ..Request::default()
    });
    let page = observed(&requests);
    assert_eq!(page.select(REQUESTS, &[]).len(), 1);
    assert_eq!(page.sum(REQUESTS, &[("method", "OTHER")]), 4.0);
}

#[test]
fn histograms_have_ingress_nginx_buckets() {
    let page = observed(&[Request::default()]);
    let bounds = |family: &str| {
        let samples = page.select(&format!("nginx_ingress_controller_{family}_bucket"), &[]);
        let bounds = samples.iter().map(|s| s.label("le").to_owned());
        bounds.collect::<Vec<_>>().join(" ")
    };
    let time = "0.005 0.01 0.025 0.05 0.1 0.25 0.5 1 2.5 5 10 +Inf";
    for family in ["request", "response", "header", "connect"] {
        assert_eq!(bounds(&format!("{family}_duration_seconds")), time);
    }
    let length = "10 20 30 40 50 60 70 80 90 100 +Inf";
    assert_eq!(bounds("request_size"), length);
    assert_eq!(bounds("response_size"), length);
    let size = "10 100 1000 10000 100000 1e+06 1e+07 +Inf";
    assert_eq!(bounds("bytes_sent"), size);
}

#[test]
fn values_fall_into_the_bucket_whose_bound_they_do_not_pass() {
    let page = observed(&[Request::default()]);
    let at = |family: &str, bound: &str| {
        let name = format!("nginx_ingress_controller_{family}_bucket");
        page.sum(&name, &[("le", bound)])
    };
    // 40 ms, 30 ms, 20 ms, 1 ms, 100 bytes, 2,000 bytes.
    assert_eq!(at("request_duration_seconds", "0.025"), 0.0);
    assert_eq!(at("request_duration_seconds", "0.05"), 1.0);
    assert_eq!(at("connect_duration_seconds", "0.005"), 1.0);
    assert_eq!(at("request_size", "90"), 0.0);
    assert_eq!(at("request_size", "100"), 1.0);
    assert_eq!(at("response_size", "100"), 0.0);
    assert_eq!(at("response_size", "+Inf"), 1.0);
    assert_eq!(at("bytes_sent", "10000"), 1.0);
    let sum = |family: &str| page.sum(&format!("nginx_ingress_controller_{family}_sum"), &[]);
    assert_eq!(sum("request_duration_seconds"), 0.04);
    assert_eq!(sum("response_duration_seconds"), 0.03);
    assert_eq!(sum("header_duration_seconds"), 0.02);
    assert_eq!(sum("connect_duration_seconds"), 0.001);
    assert_eq!(sum("bytes_sent"), 2_000.0);
}

#[test]
fn a_kept_connection_took_no_time_and_a_refused_one_is_not_timed() {
    let with = |change: fn(&mut UpstreamRecord)| {
        let mut request = Request::default();
        change(request.upstream.as_mut().unwrap());
        observed(&[request])
    };
    let connect = "nginx_ingress_controller_connect_duration_seconds";
    let kept = with(|upstream| upstream.connect = None);
    assert_eq!(kept.sum(&format!("{connect}_count"), &[]), 1.0);
    assert_eq!(kept.sum(&format!("{connect}_sum"), &[]), 0.0);
    let refused = with(|upstream| {
        upstream.connect = None;
        upstream.header = None;
    });
    assert!(refused.select(&format!("{connect}_count"), &[]).is_empty());
    assert_eq!(refused.sum(&format!("{RESPONSE}_count"), &[]), 1.0);
}

#[test]
fn series_go_on_over_generations_and_workers() {
    let registry = registry();
    let mut first = registry.worker("north-south");
    let mut second = registry.worker("north-south");
    for generation in 1..=3 {
        let live = shop(generation);
        first.observe(&canary().record(&live));
        second.observe(&canary().record(&live));
    }
    // An answer that began in an older generation.
    first.observe(&canary().record(&shop(1)));
    let labels = [("canary", "shop-web-canary-80")];
    assert_eq!(page(&registry).sum(REQUESTS, &labels), 7.0);
    drop(second);
    let mut third = registry.worker("north-south");
    third.observe(&canary().record(&shop(3)));
    let page = page(&registry);
    assert_eq!(page.sum(REQUESTS, &labels), 8.0);
    let held = page.sum("splitter_metrics_series", &[("family", "nginx")]);
    assert_eq!(held, 2.0, "the third worker went on with the second's");
}

#[test]
fn an_id_that_means_another_location_counts_there() {
    let registry = registry();
    let mut worker = registry.worker("north-south");
    let (before, mut after) = (shop(1), shop(2));
    let snapshot = Arc::make_mut(&mut after.snapshot);
    let mut locations: Vec<_> = snapshot.locations.iter().cloned().collect();
    locations.swap(0, 2);
    snapshot.locations = locations.into();
    worker.observe(&Request::default().record(&before));
    worker.observe(&Request::default().record(&after));
    let page = page(&registry);
    assert_eq!(page.sum(REQUESTS, &[("host", "a.example")]), 1.0);
    assert_eq!(page.sum(REQUESTS, &[("host", "b.example")]), 1.0);
}

#[test]
fn what_has_no_room_is_counted() {
    let registry = Registry::with_limit(&ControllerLabels::default(), 2);
    let mut worker = registry.worker("north-south");
    let live = shop(1);
    for status in 200..=210 {
        let request = Request {
            status,
            ..Request::default()
        };
        worker.observe(&request.record(&live));
    }
    worker.observe(&Request::default().record(&live));
    let page = page(&registry);
    assert_eq!(page.sum(REQUESTS, &[]), 3.0, "200 twice and 201");
    let dropped = "splitter_metrics_dropped_total";
    assert_eq!(page.sum(dropped, &[("family", "nginx")]), 9.0);
    assert_eq!(page.sum(dropped, &[("family", "splitter")]), 0.0);
    assert_eq!(page.sum(TRUTH, &[]), 12.0, "a class is one label set");
}

#[test]
fn an_ingress_that_is_gone_leaves_the_page() {
    let registry = registry();
    let mut worker = registry.worker("north-south");
    worker.observe(&Request::default().record(&shop(1)));
    worker.observe(&Request::unmatched("empty.example").record(&shop(1)));
    let of_web = || page(&registry).sum(REQUESTS, &[("ingress", "web")]);
    registry.prune(&shop(1).snapshot);
    assert_eq!(of_web(), 1.0);
    registry.prune(&empty(2).snapshot);
    assert_eq!(of_web(), 0.0);
    let all = page(&registry).sum(REQUESTS, &[]);
    assert_eq!(all, 1.0, "what has no Ingress stays");
    worker.observe(&Request::default().record(&shop(3)));
    assert_eq!(of_web(), 1.0);
}

#[test]
fn connections_are_open_as_long_as_their_guard() {
    let registry = registry();
    let worker = registry.worker("east-west");
    let connections = worker.connections();
    let first = connections.open();
    let second = connections.open();
    let request = connections.request();
    connections.refuse();
    drop(first);
    assert_eq!(connections.open_now(), 1);
    let read = page(&registry);
    let pool = [("pool", "east-west")];
    assert_eq!(read.sum("splitter_connections_open", &pool), 1.0);
    assert_eq!(read.sum("splitter_connections_accepted_total", &pool), 3.0);
    assert_eq!(read.sum("splitter_connections_refused_total", &pool), 1.0);
    let state = |state: &str| {
        let name = "nginx_ingress_controller_nginx_process_connections";
        read.sum(name, &[("state", state)])
    };
    assert_eq!(state("active"), 1.0);
    assert_eq!(state("writing"), 1.0);
    assert_eq!(state("waiting"), 0.0);
    drop((second, request, worker));
    assert_eq!(page(&registry).sum("splitter_connections_open", &[]), 0.0);
}

#[test]
fn named_counters_are_added_up_and_outlive_their_handles() {
    const TRIED: Family = Family::counter("splitter_test_total", "A \\ and\na line");
    let registry = registry();
    let labels = [("pool", "a\"b\\c\nd")];
    let handles = [(); 2].map(|()| registry.counter(&TRIED, &labels));
    handles[0].add(2);
    handles[1].inc();
    let total = || page(&registry).sum("splitter_test_total", &labels);
    assert_eq!(total(), 3.0);
    drop(handles);
    assert_eq!(total(), 3.0);
    registry.counter(&TRIED, &labels).inc();
    assert_eq!(total(), 4.0);
}

#[test]
fn gauges_go_below_zero_and_away_with_their_handles() {
    const LEVEL: Family = Family::gauge("splitter_test", "x");
    let registry = registry();
    let low = registry.gauge(&LEVEL, &[]);
    low.set(-5);
    let high = registry.gauge(&LEVEL, &[]);
    high.add(3);
    assert_eq!(page(&registry).sum("splitter_test", &[]), -2.0);
    drop(low);
    assert_eq!(page(&registry).sum("splitter_test", &[]), 3.0);
    drop(high);
    assert!(page(&registry).select("splitter_test", &[]).is_empty());
}

#[test]
fn configurations_are_counted_under_both_names() {
    let registry = registry();
    let config = registry.config();
    config.applied(7);
    config.failed();
    let page = page(&registry);
    let value = |name: &str| page.sum(name, &[]);
    assert_eq!(value("nginx_ingress_controller_success"), 1.0);
    assert_eq!(value("nginx_ingress_controller_errors"), 1.0);
    let last = "nginx_ingress_controller_config_last_reload_successful";
    assert_eq!(value(last), 0.0);
    assert_eq!(value("splitter_config_generation"), 7.0);
    assert_eq!(value("splitter_config_reloads_total"), 2.0);
}

#[test]
fn every_family_that_the_dashboards_select_is_there() {
    let registry = registry();
    let config = registry.config();
    config.applied(1);
    let mut worker = registry.worker("north-south");
    worker.observe(&Request::default().record(&shop(1)));
    let page = page(&registry);
    for name in [
        "requests",
        "request_duration_seconds_bucket",
        "request_duration_seconds_count",
        "response_duration_seconds_bucket",
        "response_duration_seconds_sum",
        "request_size_sum",
        "response_size_sum",
        "response_size_count",
        "response_size_bucket",
        "nginx_process_connections",
        "nginx_process_resident_memory_bytes",
        "nginx_process_cpu_seconds_total",
        "success",
        "config_last_reload_successful",
        "config_last_reload_successful_timestamp_seconds",
    ] {
        let name = format!("nginx_ingress_controller_{name}");
        let labels = [
            ("controller_class", "k8s.io/ingress-nginx"),
            ("controller_namespace", "ingress"),
            ("controller_pod", "splitter-1"),
        ];
        let all = page.select(&name, &[]);
        assert!(!all.is_empty(), "{name}");
        assert_eq!(page.select(&name, &labels).len(), all.len(), "{name}");
    }
    let memory = "nginx_ingress_controller_nginx_process_resident_memory_bytes";
    assert!(page.sum(memory, &[]) > 100_000.0);
}

/// Workers write while the page is read: nothing is lost, and no page goes back.
#[test]
fn pages_read_under_load_only_grow() {
    const EACH: usize = 20_000;
    let registry = registry();
    let workers: Vec<_> = (0..2)
        .map(|_| {
            let mut worker = registry.worker("north-south");
            thread::spawn(move || {
                let request = canary();
                for generation in 0..4 {
                    let live = shop(generation);
                    for _ in 0..EACH / 4 {
                        worker.observe(&request.record(&live));
                    }
                }
            })
        })
        .collect();
    let mut seen = 0.0;
    while workers.iter().any(|worker| !worker.is_finished()) {
        let now = page(&registry).sum(REQUESTS, &[]);
        assert!(now >= seen, "{now} after {seen}");
        seen = now;
    }
    for worker in workers {
        worker.join().unwrap();
    }
    let page = page(&registry);
    let expected = (2 * EACH) as f64;
    assert_eq!(page.sum(REQUESTS, &[]), expected);
    assert_eq!(page.sum(TRUTH, &[]), expected);
    let seconds = 0.03 * expected;
    let sum = page.sum(&format!("{RESPONSE}_sum"), &[]);
    assert!((sum - seconds).abs() < 1e-6 * seconds, "{sum} {seconds}");
}
