//! Whole splitter processes that split what processes of the node connect to.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

use splitter_tests::bpf::net::command;
use splitter_tests::bpf::{Cgroup, Site};
use splitter_tests::{PATIENCE, eventually};

/// The Service's own address; a listener there stands for the cluster's own answer.
const OWN: &str = "10.96.0.10:5432";
const STABLE: &str = "10.244.0.1:5001";
const CANARY: &str = "10.244.0.1:5002";

/// A node with the Service `db`, whose canary is `next`.
struct Place {
    site: Site,
    cgroup: Cgroup,
}

impl Place {
    fn new() -> Place {
        let site = Site::new(env!("CARGO_BIN_EXE_splitter-here"));
        site.nodes.node.ip("addr add 10.96.0.10/32 dev lo");
        for (addr, name) in [(OWN, "cluster"), (STABLE, "stable"), (CANARY, "canary")] {
            let listener = site.nodes.node.run(|| TcpListener::bind(addr).unwrap());
            thread::spawn(move || {
                for stream in listener.incoming().flatten() {
                    let _gone = (&stream).write_all(name.as_bytes());
                }
            });
        }
        let place = Place {
            site,
            cgroup: Cgroup::new(),
        };
        place.split("next=100");
        place
    }

    /// Writes the objects; an empty text is no split.
    fn split(&self, split: &str) {
        let note = match split {
            "" => String::new(),
            split => format!("splitter.io/split: {split:?}"),
        };
        let service = |name: &str, note: &str, more: &str, endpoint: &str| {
            let endpoint: SocketAddr = endpoint.parse().unwrap();
            format!(
                "---\napiVersion: v1\nkind: Service\n\
                 metadata: {{name: {name}, namespace: demo, annotations: {{{note}}}}}\n\
                 spec: {{ports: [{{name: sql, port: 5432}}]{more}}}\n\
                 ---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\n\
                 metadata: {{name: {name}-1, namespace: demo, labels: {{kubernetes.io/service-name: {name}}}}}\n\
                 addressType: IPv4\nports: [{{name: sql, port: {}}}]\n\
                 endpoints: [{{addresses: [\"{}\"]}}]\n",
                endpoint.port(),
                endpoint.ip()
            )
        };
        let text = service("db", &note, ", clusterIP: 10.96.0.10", STABLE)
            + &service("next", "", "", CANARY);
        let objects = self.site.dir().join("objects");
        let next = self.site.dir().join("l4.next");
        fs::write(&next, text).unwrap();
        fs::rename(next, objects.join("l4.yaml")).unwrap();
    }

    fn args(&self, more: &str) -> String {
        let cgroup = self.cgroup.path().display();
        let more = format!("--steering sk-lookup --http 0.0.0.0:80 --cgroup {cgroup} {more}");
        more.trim_end().to_owned()
    }

    /// Who answers a process of the cgroup.
    fn ask(&self) -> String {
        self.site.nodes.node.run(|| {
            self.cgroup.enter();
            let mut stream = TcpStream::connect(OWN).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            assert_eq!(stream.peer_addr().unwrap(), OWN.parse().unwrap());
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            text
        })
    }

    fn answers(&self, who: &str) {
        eventually(&format!("{who} answers"), || self.ask() == who);
    }

    fn status(&self) -> String {
        let output = self.site.output("status");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

#[test]
fn a_split_is_followed_shown_and_ends_with_the_process() {
    let mut place = Place::new();
    for keep in ["", "--keep-attached"] {
        place.split("next=100");
        let args = place.args(keep);
        place.site.start(&args);
        // Attached before it is ready.
        assert_eq!(place.ask(), "canary");
        let status = place.status();
        let line = format!("connects   attached to {}", place.cgroup.path().display());
        assert!(status.lines().any(|it| it == line), "{status}");
        let set = place
            .site
            .output("weight set service/demo/db next=0 stable=100");
        assert!(set.status.success(), "{set:?}");
        assert_eq!(place.ask(), "stable");
        let metrics = place.site.metrics();
        assert!(metrics.sum("splitter_connects_total", &[("reason", "split")]) >= 2.0);
        let state = |metrics: &splitter_tests::prometheus::Page, state| {
            metrics.sum("splitter_connect_hooks", &[("state", state)])
        };
        assert_eq!(
            (state(&metrics, "attached"), state(&metrics, "waiting")),
            (1.0, 0.0)
        );
        let maps = place.site.output("maps");
        let maps: serde_json::Value = serde_json::from_slice(&maps.stdout).unwrap();
        assert_eq!(maps["connects"][0]["addr"], OWN);
        assert_eq!(maps["connects"][0]["endpoints"][1][0], CANARY);
        place.split("");
        place.answers("cluster");
        eventually("it says that it waits", || {
            state(&place.site.metrics(), "waiting") == 1.0
        });
        place.split("next=100");
        place.answers("canary");
        place.site.kill();
        place.answers("cluster");
    }
}

#[test]
fn it_ends_when_it_is_told_to_stop() {
    let mut place = Place::new();
    let args = place.args("");
    place.site.start(&args);
    assert_eq!(place.ask(), "canary");
    assert!(place.site.stop().success());
    place.answers("cluster");
    // And what it left says nothing any more.
    let gone = place.site.output("detach");
    assert!(gone.status.success(), "{gone:?}");
}

#[test]
fn a_successor_goes_on_without_a_gap() {
    let mut place = Place::new();
    let hand_over = place.site.hand_over_args();
    let args = place.args(&hand_over);
    place.site.start(&args);
    assert_eq!(place.ask(), "canary");
    let run = place.site.run_args(&args);
    let mut next = place.site.start_beside(&run);
    while !place.site.probe(&next).is_some_and(|(ready, _)| ready) {
        assert!(!next.has_ended(), "{}", next.log());
        assert_eq!(place.ask(), "canary");
    }
    let mut former = place.site.promote(next);
    while !former.has_ended() {
        assert_eq!(place.ask(), "canary");
    }
    assert_eq!(place.ask(), "canary");
    let status = place.status();
    assert!(status.contains("connects   attached to "), "{status}");
    assert!(!status.contains("beside programs"), "{status}");
}

/// Fills the map of Services with rows of nobody's, or takes them out again.
fn crowd(site: &Site, what: &str) {
    let map = site.map("l4_services");
    let row = |number: u32| {
        let [a, b, c, d] = number.to_be_bytes();
        let key = format!("203 0 113 0 {a} {b} {c} {d} 0 0 0 0 0 0 0 0 0 0 0 0");
        let value = match what {
            "update" => format!(" value{}", " 0".repeat(80)),
            _ => String::new(),
        };
        format!("map {what} pinned {map} key {key}{value}\n")
    };
    let batch = site.dir().join("batch");
    fs::write(&batch, (0..8_192).map(row).collect::<String>()).unwrap();
    command("bpftool", &["batch", "file", &batch.to_string_lossy()]);
}

#[test]
fn what_could_not_be_written_is_told_and_tried_again() {
    let mut place = Place::new();
    place.split("");
    let args = place.args("");
    place.site.start(&args);
    crowd(&place.site, "update");
    place.split("next=100");
    let failures = |site: &Site| site.metrics().sum("splitter_connect_failures_total", &[]);
    eventually("it is counted", || failures(&place.site) >= 1.0);
    assert_eq!(place.ask(), "cluster");
    let told = |site: &Site| site.log().matches("left to the cluster").count();
    eventually("it is tried again", || failures(&place.site) >= 2.0);
    assert_eq!(told(&place.site), 1, "{}", place.site.log());
    crowd(&place.site, "delete");
    place.answers("canary");
    assert!(place.site.stop().success());
}

#[test]
fn who_may_not_or_cannot_says_so() {
    let mut place = Place::new();
    let args = place.args("--connect-hooks off");
    place.site.start(&args);
    assert_eq!(place.ask(), "cluster");
    assert!(place.status().contains("connects   off"));
    assert!(place.site.stop().success());
    // Asked for by name, it is an error at the start.
    let wrong = "--steering sk-lookup --http 0.0.0.0:80 --connect-hooks on --cgroup /proc";
    let refused = place.site.output(&place.site.run_args(wrong));
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    let text = text + &String::from_utf8_lossy(&refused.stdout);
    assert!(!refused.status.success());
    assert!(
        text.contains("--connect-hooks on is not to be had: /proc is no cgroup"),
        "{text}"
    );
    let none = "--steering none --http 0.0.0.0:80 --connect-hooks on";
    let refused = place.site.output(&place.site.run_args(none));
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    let text = text + &String::from_utf8_lossy(&refused.stdout);
    assert!(
        text.contains("no kernel programs without steering"),
        "{text}"
    );
    // Without a name it goes on, and says why.
    let auto = "--steering sk-lookup --http 0.0.0.0:80 --cgroup /proc";
    place.site.start(auto);
    assert_eq!(place.ask(), "cluster");
    assert!(
        place
            .status()
            .contains("connects   standing aside: /proc is no cgroup")
    );
    let metrics = place.site.metrics();
    assert_eq!(
        metrics.sum("splitter_connect_hooks", &[("state", "aside")]),
        1.0
    );
}
