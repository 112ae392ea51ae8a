//! What each pool of a whole splitter has for itself: limits, timeouts, CPUs.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::net::SocketAddr;

use splitter_tests::bpf::{Namespace, Site, site::HOST};
use splitter_tests::client::Client;
use splitter_tests::eventually;

const TO: &str = "203.0.113.1:80";

fn site() -> Site {
    Site::new(env!("CARGO_BIN_EXE_splitter-here"))
}

fn connect(from: &Namespace) -> Client {
    let to: SocketAddr = TO.parse().unwrap();
    from.run(|| Client::connect(to))
}

#[test]
fn a_pool_at_its_limit_refuses_its_own_callers_and_no_others() {
    let mut site = site();
    site.start(
        "--steering sk-lookup --pools north-south=1,east-west=1 \
         --pool-limit north-south:requests=1,north-south:connections=3",
    );
    let (out, pod) = (&site.nodes.out, &site.nodes.pod);
    // In hand until its body is there.
    let mut held = connect(out);
    held.send(format!(
        "POST / HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: 2\r\n\r\na"
    ));
    let in_hand = |site: &Site| {
        let pool = [("pool", "north-south")];
        site.metrics().sum("splitter_requests_in_flight", &pool)
    };
    eventually("the request is in hand", || in_hand(&site) == 1.0);
    assert_eq!(connect(out).get(HOST, "/").status, 503);
    for _ in 0..3 {
        assert_eq!(connect(pod).get(HOST, "/").status, 200);
    }
    held.send("b");
    assert_eq!(held.answer("POST").status, 200);

    // And so it is with connections.
    let mut open = vec![held];
    eventually("the earlier ones are closed", || {
        let pool = [("pool", "north-south")];
        site.metrics().sum("splitter_connections_open", &pool) == 1.0
    });
    for _ in 0..2 {
        let mut client = connect(out);
        eventually("a place is free again", || {
            client.get(HOST, "/").status == 200
        });
        open.push(client);
    }
    let mut fourth = connect(out);
    fourth.send(format!("GET / HTTP/1.1\r\nHost: {HOST}\r\n\r\n"));
    assert_eq!(fourth.try_answer("GET"), None, "closed at once");
    let inside: Vec<_> = (0..5).map(|_| connect(pod)).collect();
    for mut client in inside {
        assert_eq!(client.get(HOST, "/").status, 200);
    }
    let metrics = site.metrics();
    for (fault, times) in [("busy", 1.0), ("overloaded", 1.0)] {
        for (pool, times) in [("north-south", times), ("east-west", 0.0)] {
            let labels = [("fault", fault), ("pool", pool)];
            let found = metrics.sum("splitter_faults_total", &labels);
            // Trying again until a place is free may be refused too.
            let holds = if times > 0.0 {
                found >= times
            } else {
                found == 0.0
            };
            assert!(holds, "{fault} of {pool}: {found}");
        }
    }
    assert!(site.stop().success());
}

#[test]
fn a_pool_has_timeouts_of_its_own() {
    let mut site = site();
    site.start("--steering sk-lookup --pool-timeout north-south:keep-alive=300ms");
    let (mut outer, mut inner) = (connect(&site.nodes.out), connect(&site.nodes.pod));
    for client in [&mut outer, &mut inner] {
        assert_eq!(client.get(HOST, "/").status, 200);
    }
    // Idle, it is closed: nothing else ends this.
    assert_eq!(outer.try_answer("GET"), None);
    // The other, idle for as long, goes on.
    assert_eq!(inner.get(HOST, "/").status, 200);
    let dump: serde_json::Value = serde_json::from_str(&site.admin("/config_dump")).unwrap();
    let pools = &dump["steering"]["pools"];
    assert_eq!(pools[0]["timeouts_seconds"]["keep_alive"], 0.3);
    assert_eq!(pools[1]["timeouts_seconds"]["keep_alive"], 75.0);
}

/// The CPUs of every thread of a process whose name begins so.
fn cpus_of(pid: u32, name: &str) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let tasks = tasks.map(|task| task.unwrap().path());
    let named = tasks.filter(|task| {
        let comm = fs::read_to_string(task.join("comm")).unwrap_or_default();
        comm.starts_with(name)
    });
    let cpus = named.map(|task| {
        let status = fs::read_to_string(task.join("status")).unwrap_or_default();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        line.unwrap_or_default().trim().to_owned()
    });
    cpus.collect()
}

#[test]
fn threads_keep_to_the_cpus_of_their_pool() {
    let mut site = site();
    site.nodes.whole_checksums();
    let before = cpus_of(std::process::id(), "").remove(0);
    site.start("--steering xdp --cpu-isolation north-south=0");
    for (pool, cpus) in [("north-south-", "0"), ("east-west-", before.as_str())] {
        // A worker takes its CPUs as its first deed, which may be after the start was told.
        eventually(&format!("two workers of {pool} keep to {cpus}"), || {
            cpus_of(site.pid(), pool) == [cpus, cpus]
        });
    }
    for from in [&site.nodes.out, &site.nodes.pod] {
        assert_eq!(site.get(from, TO).status, 200);
    }
}
