//! PROXY headers, from clients and to Endpoints.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use super::fixture::{Named, Site, connect, free_ports, read};

#[test]
fn an_endpoint_is_told_whose_connection_it_is() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let [port] = free_ports();
    let mut site = Site::new(&[port]).db(&[listener.local_addr().unwrap()]);
    site.ports[0].1 = "::PROXY";
    let _splitter = site.start();
    let mut client = connect(port);
    client.write_all(b"hello").unwrap();
    let (mut server, _) = listener.accept().unwrap();
    let from = client.local_addr().unwrap().port();
    let expected = format!("PROXY TCP4 127.0.0.1 127.0.0.1 {from} {port}\r\nhello");
    let mut got = vec![0; expected.len()];
    server.read_exact(&mut got).unwrap();
    assert_eq!(String::from_utf8_lossy(&got), expected);
}

#[test]
fn the_header_of_a_client_is_taken_off_and_passed_on() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let [port] = free_ports();
    let mut site = Site::new(&[port]).db(&[listener.local_addr().unwrap()]);
    site.ports[0].1 = ":PROXY:PROXY";
    let _splitter = site.start();
    let header = "PROXY TCP4 192.0.2.9 203.0.113.7 4000 5432\r\n";
    let mut client = connect(port);
    client
        .write_all(format!("{header}hello").as_bytes())
        .unwrap();
    let (mut server, _) = listener.accept().unwrap();
    let mut got = vec![0; header.len() + 5];
    server.read_exact(&mut got).unwrap();
    assert_eq!(String::from_utf8_lossy(&got), format!("{header}hello"));
}

#[test]
fn only_the_header_is_taken_off_where_none_is_passed_on() {
    let main = Named::start("main");
    let [port] = free_ports();
    let mut site = Site::new(&[port]).db(&[main.addr]);
    site.ports[0].1 = ":PROXY";
    let splitter = site.start();
    let mut client = connect(port);
    client.write_all(b"PROXY UNKNOWN\r\nhello").unwrap();
    assert_eq!(read::<9>(&mut client), "mainhello");
    // One without a header reaches nobody.
    let mut client = connect(port);
    client.write_all(b"SELECT 1;\r\n").unwrap();
    let mut rest = Vec::new();
    let _ = client.read_to_end(&mut rest);
    assert_eq!(rest, b"");
    assert_eq!(main.accepted(), 1);
    let labels = [("reason", "bad-proxy-header")];
    splitter.expect_sum("splitter_l4_refused_total", &labels, 1.0);
}
