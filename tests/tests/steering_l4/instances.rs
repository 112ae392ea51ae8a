//! One instance after the other: what is forwarded goes on.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use splitter_tests::eventually;

use crate::fixture::{ASKED, HERE, Objects, Place, THERE, hear};

fn objects(endpoint: &'static str) -> Objects {
    Objects {
        db: vec![endpoint],
        ..Objects::default()
    }
}

fn open(place: &Place) -> TcpStream {
    place.site.nodes.out.run(|| {
        let mut stream = Place::connect(ASKED);
        hear(&mut stream);
        stream
    })
}

fn echo(stream: &mut TcpStream) {
    stream.write_all(b"ping").unwrap();
    let mut back = [0; 4];
    stream.read_exact(&mut back).unwrap();
    assert_eq!(&back, b"ping");
}

#[test]
fn a_successor_goes_on_with_what_was_forwarded() {
    for endpoint in [HERE[0], THERE[0]] {
        let mut place = Place::stopped(&objects(endpoint));
        let args = Place::args(&place.site.hand_over_args());
        place.site.start(&args);
        place.is_forwarding();
        let mut before = open(&place);
        let args = place.site.run_args(&args);
        let mut next = place.site.start_beside(&args);
        place.site.wait_for(&mut next);
        let mut former = place.site.promote(next);
        eventually("the former instance ends", || former.has_ended());
        place.is_forwarding();
        echo(&mut before);
        let mut after = open(&place);
        echo(&mut after);
        echo(&mut before);
        assert!(place.reason("new") >= 1.0);
        assert_eq!(place.reason("gone") + place.reason("no-flow"), 0.0);
    }
}

#[test]
fn after_a_crash_kept_programs_go_on_and_the_next_instance_with_them() {
    for endpoint in [HERE[0], THERE[0]] {
        let mut place = Place::stopped(&objects(endpoint));
        place.start("--keep-attached");
        let mut before = open(&place);
        place.site.kill();
        echo(&mut before);
        // Nobody is there, and connections are still made.
        let mut between = open(&place);
        echo(&mut between);
        place.start("--keep-attached");
        for stream in [&mut before, &mut between] {
            echo(stream);
        }
        echo(&mut open(&place));
        assert_eq!(place.reason("gone"), 0.0);
        place.site.stop();
        let detached = place.site.output("detach");
        assert!(detached.status.success(), "{detached:?}");
    }
}

#[test]
fn status_says_what_is_forwarded_and_bpftool_shows_it() {
    let place = Place::new(&objects(HERE[0]));
    let _one = open(&place);
    eventually("it is counted", || {
        let status = place.site.output("status");
        let status = String::from_utf8_lossy(&status.stdout).into_owned();
        status.contains("services   XDP forwards") && status.contains("service/demo/db:5432")
    });
    let map = place.site.map("l4_flows");
    let dump = place
        .site
        .nodes
        .node
        .run(|| splitter_tests::bpf::command("bpftool", &["map", "dump", "pinned", &map]));
    assert!(dump.contains("\"destination_port\": 5432"), "{dump}");
    assert!(dump.contains("\"destination_port\": 5001"), "{dump}");
}

#[test]
fn neighbours_by_which_endpoints_are_reached_are_kept() {
    let place = Place::new(&objects(THERE[0]));
    let node = &place.site.nodes.node;
    node.ip("neigh flush dev en0");
    // Nobody sends there: only the splitter asks.
    eventually("the endpoint's host is known again", || {
        node.ip("neigh show to 203.0.113.50 dev en0")
            .contains("lladdr")
    });
}
