//! Servers as people run them, forwarded in XDP: Redis by TCP, dnsmasq by UDP.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use splitter_tests::real::{Redis, Server, lookup, socket};

use crate::fixture::{ASKED, NAMES, Objects, Place};

/// In the pod of the node.
const HERE: &str = "10.244.0.7:6001";
/// On another host.
const THERE: &str = "203.0.113.50:6002";

fn objects(weight: &'static str) -> Objects {
    Objects {
        db: vec![HERE],
        next: vec![THERE],
        weight,
    }
}

fn addr(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

#[test]
fn redis_is_split_and_a_connection_stays_where_it_is() {
    let place = Place::new(&objects("50"));
    let nodes = &place.site.nodes;
    let _servers = [(&nodes.pod, HERE), (&nodes.out, THERE)].map(|(at, server)| {
        let redis = Server::redis(Some(at), addr(server));
        at.run(|| Redis::connect(addr(server)).set("who", server.as_bytes()));
        redis
    });
    let mut kept = nodes.out.run(|| {
        (0..40)
            .map(|_| Redis::connect(addr(ASKED)))
            .collect::<Vec<_>>()
    });
    let who = |redis: &mut Redis| String::from_utf8(redis.get("who").unwrap()).unwrap();
    let first: Vec<_> = kept.iter_mut().map(who).collect();
    let mut counts = BTreeMap::<&str, u32>::new();
    for server in &first {
        *counts.entry(server).or_default() += 1;
    }
    assert!(counts[HERE] + counts[THERE] == 40, "{counts:?}");
    let value: Vec<u8> = (0..1 << 20).map(|it| (it % 253) as u8).collect();
    for redis in &mut kept[..4] {
        redis.set("large", &value);
        assert!(redis.get("large").unwrap() == value);
    }
    // What was open stays, what is new follows the weight.
    place.follow(&objects("100"));
    assert_eq!(kept.iter_mut().map(who).collect::<Vec<_>>(), first);
    for _ in 0..20 {
        let mut redis = nodes.out.run(|| Redis::connect(addr(ASKED)));
        assert_eq!(who(&mut redis), THERE);
    }
    assert_eq!(place.site.metrics().sum("splitter_l4_open", &[]), 0.0);
}

#[test]
fn names_are_asked_for_at_one_server_or_its_canary() {
    let place = Place::new(&objects("50"));
    let nodes = &place.site.nodes;
    let _servers = [
        Server::dns(Some(&nodes.pod), addr(HERE), [192, 0, 2, 1]),
        Server::dns(Some(&nodes.out), addr(THERE), [192, 0, 2, 2]),
    ];
    let mut counts = BTreeMap::<u8, u32>::new();
    nodes.out.run(|| {
        for _ in 0..60 {
            let socket = socket(addr(NAMES));
            let answer = lookup(&socket, addr(NAMES)).unwrap();
            // The same socket is answered by the same server.
            assert_eq!(lookup(&socket, addr(NAMES)), Some(answer));
            *counts.entry(answer[3]).or_default() += 1;
        }
    });
    assert_eq!(
        counts.keys().copied().collect::<Vec<_>>(),
        [1, 2],
        "{counts:?}"
    );
    assert_eq!(place.reason("new"), 60.0);
}
