//! Who gets which connection.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, TcpStream};

use splitter::model::Transport;
use splitter::routing::l4_flow;
use splitter_common::variant_at;

use super::fixture::{Named, Site, connect, connect_to, free_ports, given, is_reset, read};

/// The Variant that the pure function gives a connection.
fn expected(stream: &TcpStream, weights: [u32; 2]) -> &'static str {
    let (client, asked) = (stream.local_addr().unwrap(), stream.peer_addr().unwrap());
    let flow = l4_flow(Transport::Tcp, client, asked);
    let mut all = [0; 8];
    all[..2].copy_from_slice(&weights);
    ["main", "next"][variant_at(&all, flow.point())]
}

#[test]
fn each_connection_has_the_variant_that_the_pure_function_says() {
    let (main, next) = (Named::start("main"), Named::start("next"));
    let [port] = free_ports();
    let splitter = Site::new(&[port])
        .split("30")
        .db(&[main.addr])
        .next(&[next.addr])
        .start();
    let mut seen: BTreeMap<String, u64> = BTreeMap::new();
    for _ in 0..200 {
        let mut stream = connect(port);
        let name = read::<4>(&mut stream);
        assert_eq!(name, expected(&stream, [70, 30]));
        *seen.entry(name).or_default() += 1;
    }
    splitter_tests::eventually("all are counted", || {
        given(&splitter, "stable") == seen["main"] && given(&splitter, "next") == seen["next"]
    });
    // What is counted by slot is the same, and stands in the dump.
    let dump = splitter.dump("/config_dump");
    let split = &dump["weights"][0];
    assert_eq!(split["location"], "service/demo/db:5432");
    assert_eq!(split["variants"][1]["chosen"], seen["next"]);
    assert_eq!(split["variants"][1]["live"], 30);
    assert_eq!(dump["connections"].as_array().unwrap().len(), 2);
}

#[test]
fn none_and_all_are_exact() {
    for (share, name) in [("0", "main"), ("100", "next")] {
        let (main, next) = (Named::start("main"), Named::start("next"));
        let [port] = free_ports();
        let _splitter = Site::new(&[port])
            .split(share)
            .db(&[main.addr])
            .next(&[next.addr])
            .start();
        for _ in 0..50 {
            assert_eq!(read::<4>(&mut connect(port)), name);
        }
    }
}

#[test]
fn both_families_are_listened_on() {
    let main = Named::start("main");
    let [port] = free_ports();
    let _splitter = Site::new(&[port]).db(&[main.addr]).start();
    for ip in [
        IpAddr::from([127, 0, 0, 1]),
        IpAddr::from([127, 0, 0, 2]),
        "::1".parse().unwrap(),
    ] {
        assert_eq!(read::<4>(&mut connect_to(ip, port)), "main");
    }
}

#[test]
fn a_service_without_endpoints_refuses_and_an_empty_canary_gives_way() {
    let main = Named::start("main");
    let [port] = free_ports();
    let site = Site::new(&[port]).split("100").db(&[main.addr]);
    let splitter = site.start();
    assert_eq!(read::<4>(&mut connect(port)), "main");
    let count = |name: &str| splitter.metrics().sum(name, &[("service", "db")]) as u64;
    splitter.expect_sum("splitter_l4_fallbacks_total", &[("service", "db")], 1.0);
    splitter.apply(
        &Site {
            db: Vec::new(),
            ..site
        }
        .yaml(),
    );
    // One that was just being connected may be cut; the next ones are refused.
    splitter_tests::eventually("connections are refused and counted", || {
        is_reset(&mut connect(port)) && count("splitter_l4_refused_total") >= 1
    });
}

#[test]
fn an_endpoint_that_does_not_accept_is_passed_over() {
    let main = Named::start("main");
    let [port, nobody] = free_ports();
    let nobody = SocketAddr::from(([127, 0, 0, 1], nobody));
    let _splitter = Site::new(&[port]).db(&[main.addr, nobody]).start();
    for _ in 0..50 {
        assert_eq!(read::<4>(&mut connect(port)), "main");
    }
}
