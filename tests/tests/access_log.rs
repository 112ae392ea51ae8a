//! Lines of the access log as they arrive in a file.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use http::Method;
use http::header::{HeaderValue, REFERER, USER_AGENT};
use serde_json::Value;
use splitter::config::{AccessLog as Target, LogFormat};
use splitter::routing::Reason;
use splitter::telemetry::{AccessLog, ControllerLabels, Registry};
use splitter_tests::prometheus::Page;
use splitter_tests::telemetry::{Request, WILDCARD, decision, shop};

const DEADLINE: Duration = Duration::from_secs(20);
const DROPPED: &str = "splitter_access_log_dropped_total";

fn registry() -> Registry {
    Registry::new(&ControllerLabels::default())
}

fn start(path: &Path, format: LogFormat, registry: &Registry) -> AccessLog {
    AccessLog::start(&Target::File(path.to_owned()), format, registry).unwrap()
}

/// The lines that these requests leave.
fn lines(format: LogFormat, requests: &[Request]) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("access.log");
    let (log, live) = (start(&path, format, &registry()), shop(1));
    let mut worker = log.worker();
    for request in requests {
        worker.write(&request.record(&live));
    }
    drop(worker);
    assert!(log.close(DEADLINE));
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn json(request: Request) -> Value {
    let lines = lines(LogFormat::Json, &[request]);
    assert_eq!(lines.len(), 1);
    serde_json::from_str(&lines[0]).unwrap()
}

fn canary() -> Request {
    Request {
        decision: Some(decision(1, Reason::Weight)),
        ..Request::default()
    }
}

fn hostile() -> Request {
    let mut request = canary();
    request.method = Method::from_bytes(b"GET'").unwrap();
    request.target = "/\"] 200 \u{1b}[31m\r\n127.0.0.1 - forged";
    request.host = "h\"\n";
    let agent = HeaderValue::from_bytes(b"a\" \\ \xff\t\xe2\x80\xa8").unwrap();
    request.headers.insert(USER_AGENT, agent);
    request
}

/// Everything but the time of a text line.
fn without_time(line: &str) -> String {
    let (before, rest) = line.split_once('[').unwrap();
    let (time, after) = rest.split_once(']').unwrap();
    assert!(time.ends_with(" +0000") && time.len() == 26, "{time}");
    format!("{before}[]{after}")
}

#[test]
fn text_is_ingress_nginx_format_with_the_truth_after_it() {
    let mut retried = canary();
    if let Some(upstream) = &mut retried.upstream {
        upstream.tries = 2;
    }
    retried
        .headers
        .insert(REFERER, HeaderValue::from_static("http://r.example/"));
    let lines = lines(
        LogFormat::Text,
        &[
            Request::default(),
            retried,
            Request {
                decision: Some(decision(0, Reason::CanaryUnavailable)),
                location: Some(WILDCARD),
                ..Request::default()
            },
            Request::unmatched("stranger.example"),
        ],
    );
    let lines: Vec<String> = lines.iter().map(|line| without_time(line)).collect();
    let id = "00112233445566778899aabbccddeeff";
    let start = r#"192.0.2.7 - - [] "GET /?q=1 HTTP/1.1""#;
    let expected = [
        format!(
            r#"{start} 200 2000 "-" "-" 100 0.040 [shop-web-80] [] 10.0.0.1:8080 2000 0.030 200 {id} host="a.example" pool=north-south location="a.example/" ingress=shop/web chosen_ingress=shop/web chosen_service=web:80 variant=stable reason=weight tries=1 fault=-"#
        ),
        format!(
            r#"{start} 200 2000 "http://r.example/" "-" 100 0.040 [shop-web-80] [shop-web-canary-80] 10.0.0.1:8080 2000 0.030 200 {id} host="a.example" pool=north-south location="a.example/" ingress=shop/web chosen_ingress=shop/web-canary chosen_service=web-canary:80 variant=web-canary reason=weight tries=2 fault=-"#
        ),
        format!(
            r#"{start} 200 2000 "-" "-" 100 0.040 [shop-web-80] [] 10.0.0.1:8080 2000 0.030 200 {id} host="a.example" pool=north-south location="*.w.example/" ingress=shop/web chosen_ingress=shop/web chosen_service=web:80 variant=stable reason=canary-unavailable tries=1 fault=-"#
        ),
        format!(
            r#"{start} 404 2000 "-" "-" 100 0.040 [-] [] - - - - {id} host="stranger.example" pool=north-south location=- ingress=- chosen_ingress=- chosen_service=- variant=- reason=- tries=0 fault=no-location"#
        ),
    ];
    assert_eq!(lines, expected);
}

#[test]
fn json_names_both_identities() {
    let mut value = json(canary());
    let time = value["time"].take();
    assert!(time.as_str().unwrap().ends_with('Z'), "{time}");
    insta::assert_json_snapshot!(value);
}

#[test]
fn json_leaves_out_what_there_was_not() {
    let value = json(Request::unmatched("stranger.example"));
    assert_eq!(value["fault"], "no-location");
    assert_eq!(value["status"], 404);
    let keys = value.as_object().unwrap();
    for absent in ["ingress", "variant", "reason", "upstream_addr", "referer"] {
        assert!(!keys.contains_key(absent), "{absent}");
    }
}

#[test]
fn a_client_cannot_forge_a_line_or_a_field() {
    let text = lines(LogFormat::Text, &[hostile(), Request::default()]);
    assert_eq!(text.len(), 2);
    assert!(
        text.iter()
            .flat_map(|line| line.bytes())
            .all(|b| (0x20..0x7f).contains(&b))
    );
    // Quotes: request, referer, agent, host, location.
    assert_eq!(text[0].matches('"').count(), 10, "{}", text[0]);
    assert!(
        text[0].contains(r"\x0D\x0A127.0.0.1 - forged"),
        "{}",
        text[0]
    );
    let value = json(hostile());
    assert_eq!(value["target"], hostile().target);
    assert_eq!(value["host"], "h\"\n");
    assert_eq!(value["user_agent"], "a\" \\ \u{fffd}\t\u{2028}");
}

#[test]
fn a_tick_hands_over_what_waits() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("access.log");
    let log = start(&path, LogFormat::Text, &registry());
    let (mut worker, live) = (log.worker(), shop(1));
    worker.write(&Request::default().record(&live));
    worker.tick();
    wait_until(|| fs::read_to_string(&path).unwrap().ends_with("fault=-\n"));
}

#[test]
fn a_full_buffer_is_handed_over_without_a_tick() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("access.log");
    let log = start(&path, LogFormat::Text, &registry());
    let (mut worker, live) = (log.worker(), shop(1));
    for _ in 0..200 {
        worker.write(&Request::default().record(&live));
    }
    wait_until(|| fs::metadata(&path).unwrap().len() > 30_000);
}

#[test]
fn after_rotation_lines_go_to_the_new_file() {
    let dir = tempfile::tempdir().unwrap();
    let (path, rotated) = (dir.path().join("log"), dir.path().join("log.1"));
    let log = start(&path, LogFormat::Text, &registry());
    let (mut worker, live) = (log.worker(), shop(1));
    worker.write(&Request::default().record(&live));
    worker.tick();
    wait_until(|| fs::metadata(&path).unwrap().len() > 0);
    fs::rename(&path, &rotated).unwrap();
    log.reopen();
    wait_until(|| path.exists());
    worker.write(&canary().record(&live));
    drop(worker);
    assert!(log.close(DEADLINE));
    let read = |path: &Path| fs::read_to_string(path).unwrap();
    assert_eq!(read(&rotated).lines().count(), 1);
    assert_eq!(read(&path).lines().count(), 1);
    assert!(read(&path).contains("web-canary"));
}

#[test]
fn a_full_disk_drops_lines_and_counts_them() {
    let registry = registry();
    let log = start(Path::new("/dev/full"), LogFormat::Json, &registry);
    let (mut worker, live) = (log.worker(), shop(1));
    for _ in 0..3 {
        worker.write(&Request::default().record(&live));
    }
    drop(worker);
    assert!(log.close(DEADLINE));
    let page = Page::read(&registry.page().into_string()).unwrap();
    assert_eq!(page.sum(DROPPED, &[("cause", "write-failed")]), 3.0);
    assert_eq!(page.sum(DROPPED, &[("cause", "queue-full")]), 0.0);
}

#[test]
fn a_path_that_cannot_be_opened_is_an_error_that_names_it() {
    let target = Target::File("/nowhere/at/all".into());
    let error = AccessLog::start(&target, LogFormat::Text, &registry());
    let error = error.err().unwrap().to_string();
    assert!(
        error.contains("/nowhere/at/all") && error.contains("--access-log"),
        "{error}"
    );
}

fn wait_until(condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < DEADLINE, "timed out");
        std::thread::yield_now();
    }
}
