use std::time::Duration;

use splitter_tests::backend::{Backend, Refusing};
use splitter_tests::instance::Splitter;
use splitter_tests::manifests::Manifests;

use super::{any_size, before, before_with};

/// Longer than the time that the tests set, far shorter than the process's own.
const LATE: Duration = Duration::from_millis(2_500);

/// Never answers.
fn silent() -> Backend {
    Backend::scripted(|conversation| {
        conversation.request();
        conversation.wait_for_close();
    })
}

#[test]
fn a_pod_that_does_not_answer_in_its_locations_time_is_504() {
    let backend = silent();
    let splitter = before(&backend, &[("proxy-read-timeout", "1")]);
    splitter.get("a.test", "/").assert_own(504);
    assert_eq!(splitter.problems(), [""; 0]);
}

#[test]
fn a_pod_that_does_not_accept_in_its_locations_time_is_504() {
    // Held, but not accepted from.
    let listener = Refusing::new().listen(0);
    let addr = listener.local_addr().expect("an address");
    let mut queue = Vec::new();
    while let Ok(stream) = std::net::TcpStream::connect_timeout(&addr, Duration::from_millis(100)) {
        queue.push(stream);
    }
    let note = [("proxy-connect-timeout", "1")];
    let manifests = Manifests::new()
        .ingress("web", "a.test", "/", "Prefix", "app", &note)
        .service("app", &[addr]);
    // Without the annotation nobody would be answered in time for the test.
    let splitter = Splitter::start_with(&manifests, |settings| {
        settings.timeouts.connect = Duration::from_secs(3600);
    });
    splitter.get("a.test", "/").assert_own(504);
    assert_eq!(splitter.faults("connect-timeout"), 1.0);
}

#[test]
fn a_pod_that_does_not_read_in_its_locations_time_is_504() {
    let (go, held) = std::sync::mpsc::channel::<()>();
    let held = std::sync::Mutex::new(held);
    let backend = Backend::scripted(move |conversation| {
        conversation.head();
        // Until the test is over.
        let _ = held
            .lock()
            .map(|held| held.recv_timeout(splitter_tests::PATIENCE));
    });
    let note = [("proxy-send-timeout", "1"), ("proxy-body-size", "0")];
    let splitter = before(&backend, &note);
    let mut client = splitter.client();
    client.send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 500000000\r\n\r\n");
    let mut up = client.stream().try_clone().expect("a second handle");
    let sender = std::thread::spawn(move || {
        splitter_tests::noise::Noise::new(1).write_to(&mut up, 500_000_000)
    });
    client.answer("POST").assert_own(504);
    drop((client, go));
    assert!(sender.join().is_ok_and(|sent| sent < 500_000_000));
}

/// Two Locations share a Service and so its kept connections, but no times.
#[test]
fn times_go_with_the_location_not_with_the_connection() {
    let backend = Backend::scripted(|conversation| {
        while let Some(request) = conversation.request() {
            if request.target().ends_with("/late") {
                conversation.pause(LATE);
            }
            conversation.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        }
    });
    let note = [("proxy-read-timeout", "1")];
    let manifests = Manifests::new()
        .ingress("short", "a.test", "/short", "Prefix", "app", &note)
        .main("long", "a.test", "/long", "app")
        .service("app", &[backend.addr()]);
    let splitter = Splitter::start(&manifests);
    assert_eq!(splitter.get("a.test", "/short").status, 200);
    assert_eq!(splitter.get("a.test", "/long/late").status, 200);
    assert_eq!(backend.connections(), 1, "the connection is kept");
    splitter.get("a.test", "/short/late").assert_own(504);
    assert_eq!(splitter.get("a.test", "/long/late").status, 200);
}

#[test]
fn a_bad_time_is_reported_and_counts_as_not_set() {
    for (name, value, code) in [
        ("proxy-read-timeout", "1s", "timeout-invalid"),
        ("proxy-send-timeout", "0", "timeout-invalid"),
        ("proxy-read-timeout", "-5", "timeout-invalid"),
        ("proxy-connect-timeout", "abc", "timeout-invalid"),
        ("proxy-connect-timeout", "76", "timeout-too-long"),
        ("proxy-read-timeout", "99999999999", "timeout-too-long"),
    ] {
        let backend = Backend::named("main");
        let splitter = before_with(&backend, &[(name, value)], any_size);
        assert_eq!(splitter.get("a.test", "/").status, 200);
        assert_eq!(splitter.problems(), [format!("web: {code}")], "{value}");
    }
}
