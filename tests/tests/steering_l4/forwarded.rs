//! What is forwarded, and how it looks from both ends.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, UdpSocket};

use crate::fixture::{ASKED, ASKED6, HERE, NAMES, NAMES6, Objects, Place, THERE, ask_udp, hear};

fn only(endpoint: &'static str) -> Objects {
    Objects {
        db: vec![endpoint],
        ..Objects::default()
    }
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn a_pod_of_the_node_sees_the_client_and_the_client_whom_it_asked() {
    for (place, asked, client) in [
        (HERE[0], ASKED, "203.0.113.2"),
        (HERE[1], ASKED6, "2001:db8::2"),
    ] {
        let place = Place::new(&only(place));
        assert_eq!(place.ask(asked), ("here".to_owned(), ip(client)));
        assert_eq!(place.reason("new"), 1.0);
        // User space has had nothing of it.
        assert_eq!(place.site.metrics().sum("splitter_l4_open", &[]), 0.0);
        place.site.expect_sum(
            "splitter_l4_connections_total",
            &[("variant", "stable")],
            1.0,
        );
        bulk(&place, asked);
    }
}

#[test]
fn another_host_sees_the_node_and_the_client_whom_it_asked() {
    for (place, asked, node) in [
        (THERE[0], ASKED, "203.0.113.1"),
        (THERE[1], ASKED6, "2001:db8::1"),
    ] {
        let place = Place::new(&only(place));
        assert_eq!(place.ask(asked), ("there".to_owned(), ip(node)));
        assert_eq!(place.reason("new"), 1.0, "{}", place.site.admin("/metrics"));
        bulk(&place, asked);
    }
}

/// A mebibyte there and back arrives as it was sent, and is counted.
fn bulk(place: &Place, asked: &str) {
    const SIZE: usize = 1 << 20;
    let sent: Vec<u8> = (0..SIZE).map(|it| (it * 7 % 251) as u8).collect();
    let back = place.site.nodes.out.run(|| {
        let mut stream = Place::connect(asked);
        hear(&mut stream);
        let mut writer = stream.try_clone().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                writer.write_all(&sent).unwrap();
                writer.shutdown(std::net::Shutdown::Write).unwrap();
            });
            let mut back = Vec::new();
            stream.read_to_end(&mut back).unwrap();
            back
        })
    });
    assert!(back == sent, "{} bytes came back", back.len());
    let metrics = place.site.metrics();
    for direction in ["in", "out"] {
        let bytes = metrics.sum("splitter_l4_bytes_total", &[("direction", direction)]);
        assert!(bytes > SIZE as f64, "{direction}: {bytes}");
    }
    assert_eq!(place.reason("no-flow") + place.reason("gone"), 0.0);
}

#[test]
fn datagrams_reach_one_endpoint_and_their_answers_come_from_whom_was_asked() {
    for (here, there, asked) in [(HERE[0], THERE[0], NAMES), (HERE[1], THERE[1], NAMES6)] {
        let objects = Objects {
            db: vec![here],
            next: vec![there],
            weight: "50",
        };
        let place = Place::new(&objects);
        let mut seen = BTreeMap::<String, u32>::new();
        let out = &place.site.nodes.out;
        for _ in 0..40 {
            let bind = if asked.starts_with('[') {
                "[::]:0"
            } else {
                "0.0.0.0:0"
            };
            let socket = out.run(|| UdpSocket::bind(bind).unwrap());
            let first = ask_udp(&socket, asked, b"who");
            assert_eq!(ask_udp(&socket, asked, b"and now"), first);
            *seen.entry(first.0).or_default() += 1;
        }
        assert_eq!(
            seen.keys().map(String::as_str).collect::<Vec<_>>(),
            ["here", "there"]
        );
        assert_eq!(place.reason("new"), 40.0);
        assert_eq!(place.reason("known"), 40.0);
        for (variant, name) in [("stable", "here"), ("next", "there")] {
            let labels = [("variant", variant), ("protocol", "UDP")];
            let wanted = f64::from(seen[name]);
            place
                .site
                .expect_sum("splitter_l4_connections_total", &labels, wanted);
        }
    }
}

#[test]
fn weights_hold_exactly_over_ports_and_none_and_all_are_exact() {
    let mut objects = Objects {
        db: vec![HERE[0]],
        next: vec![THERE[0]],
        weight: "25",
    };
    let place = Place::new(&objects);
    let mut names = BTreeMap::<String, u32>::new();
    for _ in 0..200 {
        *names.entry(place.ask(ASKED).0).or_default() += 1;
    }
    let there = names["there"];
    // Of 200 ports that the kernel has chosen; the share is exact over all of them only.
    assert!((20..=85).contains(&there), "{names:?}");
    for (weight, name) in [("0", "here"), ("100", "there")] {
        objects.weight = weight;
        place.follow(&objects);
        for _ in 0..50 {
            assert_eq!(place.ask(ASKED).0, name);
        }
    }
}

#[test]
fn datagrams_in_pieces_are_forwarded_both_ways() {
    for (endpoint, name) in [(HERE[0], "here"), (THERE[0], "there")] {
        let place = Place::new(&only(endpoint));
        let socket = place
            .site
            .nodes
            .out
            .run(|| UdpSocket::bind("0.0.0.0:0").unwrap());
        for size in [10, 1472, 1473, 4000] {
            assert_eq!(ask_udp(&socket, NAMES, &vec![b'x'; size]).0, name, "{size}");
        }
        assert_eq!(
            place
                .site
                .metrics()
                .sum("splitter_l4_open_connections", &[]),
            0.0
        );
        assert_eq!(place.reason("new"), 1.0);
    }
}

#[test]
fn a_narrow_way_to_the_client_is_learnt_by_the_endpoint() {
    for (endpoint, asked) in [(HERE[0], ASKED), (THERE[0], ASKED), (HERE[1], ASKED6)] {
        let place = Place::new(&only(endpoint));
        let before = place.reason("error");
        // A client behind a router whose way on is narrow.
        let far = place.site.nodes.behind(1300);
        let received = far.run(|| {
            let mut stream = Place::connect(asked);
            hear(&mut stream);
            let mut writer = stream.try_clone().unwrap();
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    writer.write_all(&vec![7; 100_000]).unwrap();
                    writer.shutdown(std::net::Shutdown::Write).unwrap();
                });
                let mut back = Vec::new();
                stream.read_to_end(&mut back).unwrap();
                back.len()
            })
        });
        assert_eq!(received, 100_000);
        assert!(place.reason("error") > before, "{endpoint}");
    }
}
