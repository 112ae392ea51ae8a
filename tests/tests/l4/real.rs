//! Servers as people run them, behind the relay of user space.

use std::net::SocketAddr;

use splitter_tests::eventually;
use splitter_tests::real::{Redis, Server, lookup, socket};

use super::fixture::{Site, connect, free_ports};
use super::udp::names;

fn local(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

#[test]
fn redis_is_split_and_what_is_large_comes_whole() {
    let [port, main, next] = free_ports();
    let _servers = [(main, "main"), (next, "next")].map(|(port, name)| {
        let server = Server::redis(None, local(port));
        Redis::connect(local(port)).set("who", name.as_bytes());
        server
    });
    let splitter = Site::new(&[port])
        .split("50")
        .db(&[local(main)])
        .next(&[local(next)])
        .start();
    drop(connect(port));
    let value: Vec<u8> = (0..3 << 20).map(|it| (it % 251) as u8).collect();
    let mut seen = std::collections::BTreeSet::new();
    for number in 0..40 {
        let mut redis = Redis::connect(local(port));
        seen.insert(redis.get("who").unwrap());
        let key = format!("large-{number}");
        redis.set(&key, &value);
        assert!(redis.get(&key).unwrap() == value);
    }
    assert_eq!(seen.len(), 2);
    drop(splitter);
}

#[test]
fn names_are_answered_by_the_one_that_the_socket_was_given() {
    let [port, main, next] = free_ports();
    let _servers = [
        Server::dns(None, local(main), [192, 0, 2, 1]),
        Server::dns(None, local(next), [192, 0, 2, 2]),
    ];
    let _splitter = names(port, local(main), local(next));
    eventually("the port answers", || {
        lookup(&socket(local(port)), local(port)).is_some()
    });
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..40 {
        let socket = socket(local(port));
        let answer = lookup(&socket, local(port)).unwrap();
        assert_eq!(lookup(&socket, local(port)), Some(answer));
        seen.insert(answer);
    }
    assert_eq!(seen.len(), 2);
}
