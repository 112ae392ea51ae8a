use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicU32, Ordering};

use splitter_tests::backend::Backend;
use splitter_tests::client::Client;
use splitter_tests::eventually;
use splitter_tests::instance::Splitter;
use splitter_tests::manifests::Manifests;

use super::before;

fn from(last: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(127, 0, 0, last))
}

/// How many of `n` requests from 127.0.0.`last` are answered by a pod.
fn passed(splitter: &Splitter, last: u8, n: usize) -> usize {
    let mut client = Client::connect_from(from(last), splitter.http());
    let statuses = (0..n).map(|_| client.get("a.test", "/").status);
    statuses.filter(|status| *status == 200).count()
}

#[test]
fn a_client_has_its_burst_and_others_have_theirs() {
    let backend = Backend::named("main");
    // One a minute: nothing is earned while the test runs.
    let notes = [("limit-rpm", "1"), ("limit-burst-multiplier", "3")];
    let splitter = before(&backend, &notes);
    assert_eq!(passed(&splitter, 1, 10), 4);
    assert_eq!(
        passed(&splitter, 1, 10),
        0,
        "a new connection is no new client"
    );
    assert_eq!(passed(&splitter, 2, 10), 4);
    assert_eq!(backend.seen().len(), 8);
    assert_eq!(splitter.faults("rate-limited"), 22.0);
    let answer = splitter.get("a.test", "/");
    answer.assert_own(503);
    assert_eq!(answer.text(), "503 too many requests\n");
}

#[test]
fn all_locations_of_an_ingress_count_together_and_others_apart() {
    let backend = Backend::named("main");
    let note = ("limit-rpm", "1");
    let manifests = Manifests::new()
        .ingress("web", "a.test", "/", "Prefix", "app", &[note])
        .ingress("other", "b.test", "/", "Prefix", "app", &[note])
        .main("free", "c.test", "/", "app")
        .service("app", &[backend.addr()]);
    let splitter = Splitter::start(&manifests);
    assert_eq!(passed(&splitter, 1, 10), 6);
    let mut client = splitter.client();
    let count = |client: &mut Client, host: &str| {
        (0..10)
            .filter(|_| client.get(host, "/").status == 200)
            .count()
    };
    assert_eq!(count(&mut client, "b.test"), 6);
    assert_eq!(count(&mut client, "c.test"), 10);
}

#[test]
fn the_count_is_exact_over_workers_under_load() {
    let backend = Backend::named("main");
    let manifests = Manifests::new()
        .ingress(
            "web",
            "a.test",
            "/",
            "Prefix",
            "app",
            &[("limit-rpm", "20")],
        )
        .service("app", &[backend.addr()]);
    let splitter = Splitter::start_with(&manifests, |settings| settings.workers = 4);
    let began = std::time::Instant::now();
    let (good, bad) = (AtomicU32::new(0), AtomicU32::new(0));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..5 {
                    let mut client = splitter.client();
                    for _ in 0..10 {
                        match client.get("a.test", "/").status {
                            200 => good.fetch_add(1, Ordering::Relaxed),
                            503 => bad.fetch_add(1, Ordering::Relaxed),
                            other => panic!("{other}"),
                        };
                    }
                }
            });
        }
    });
    let (good, bad) = (good.into_inner(), bad.into_inner());
    // One more for each three seconds that the machine took.
    let earned = u32::try_from(began.elapsed().as_secs() / 3).unwrap();
    assert_eq!(good + bad, 400);
    assert!(
        (101..=102 + earned).contains(&good),
        "{good} in {:?}",
        began.elapsed()
    );
    assert_eq!(splitter.faults("rate-limited"), f64::from(bad));
}

#[test]
fn requests_at_once_are_limited_until_they_end() {
    let backend = Backend::scripted(|conversation| {
        conversation.request();
        conversation.wait_for_close();
    });
    let splitter = before(&backend, &[("limit-connections", "2")]);
    let request = "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n";
    let mut open: Vec<Client> = Vec::new();
    for n in 1..=2 {
        let mut client = splitter.client();
        client.send(request);
        open.push(client);
        eventually("it is at the pod", || backend.seen().len() == n);
    }
    let answer = splitter.get("a.test", "/");
    assert_eq!(
        (answer.status, answer.text().as_str()),
        (503, "503 too many requests at once\n")
    );
    assert_eq!(splitter.faults("connections-limited"), 1.0);
    let mut other = Client::connect_from(from(2), splitter.http());
    other.send(request);
    eventually("another client's is at the pod", || {
        backend.seen().len() == 3
    });
    // One leaves: there is room for one more.
    open.pop();
    eventually("it is given back", || {
        let mut client = splitter.client();
        client.send(request);
        let refused = client.hears_within(std::time::Duration::from_millis(50));
        open.push(client);
        !refused
    });
}

#[test]
fn exempt_clients_are_not_counted() {
    let backend = Backend::named("main");
    for name in ["limit-allowlist", "limit-whitelist"] {
        let splitter = before(&backend, &[("limit-rps", "1"), (name, "127.0.0.2/32, ::1")]);
        assert_eq!(passed(&splitter, 2, 50), 50);
        assert!(passed(&splitter, 1, 50) < 50);
    }
}

#[test]
fn bad_values_are_reported() {
    let backend = Backend::named("main");
    for (name, value, code, all) in [
        ("limit-rpm", "few", "limit-invalid", true),
        ("limit-rpm", "-1", "limit-invalid", true),
        ("limit-connections", "1.5", "limit-invalid", true),
        ("limit-burst-multiplier", "x", "limit-invalid", false),
        ("limit-allowlist", "home", "limit-allowlist-invalid", false),
    ] {
        let notes = match all {
            true => vec![(name, value)],
            false => vec![("limit-rpm", "1"), (name, value)],
        };
        let splitter = before(&backend, &notes);
        assert_eq!(splitter.problems(), [format!("web: {code}")], "{name}");
        assert_eq!(passed(&splitter, 1, 20), if all { 20 } else { 6 }, "{name}");
    }
}
