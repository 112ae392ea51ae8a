//! How connections end.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::Duration;

use splitter_tests::eventually;

use super::fixture::{Named, Site, connect, free_ports, is_reset, read};

/// A client and what the Endpoint has of it, once bytes go from one to the other.
fn pair(port: u16, endpoint: &TcpListener) -> (TcpStream, TcpStream) {
    let mut client = connect(port);
    let (mut server, _) = endpoint.accept().unwrap();
    server
        .set_read_timeout(Some(splitter_tests::PATIENCE))
        .unwrap();
    server.write_all(b"here").unwrap();
    assert_eq!(read::<4>(&mut client), "here");
    (client, server)
}

fn endpoint() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}

fn reset(stream: TcpStream) {
    socket2::SockRef::from(&stream)
        .set_linger(Some(Duration::ZERO))
        .unwrap();
}

#[test]
fn the_end_of_one_stream_leaves_the_other_open() {
    let main = Named::start("main");
    let [port] = free_ports();
    let _splitter = Site::new(&[port]).db(&[main.addr]).start();
    let mut client = connect(port);
    client.write_all(b"hello").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let mut all = String::new();
    client.read_to_string(&mut all).unwrap();
    assert_eq!(all, "mainhello");
}

#[test]
fn resets_travel_as_resets_both_ways() {
    let listener = endpoint();
    let [port] = free_ports();
    let splitter = Site::new(&[port])
        .db(&[listener.local_addr().unwrap()])
        .start();
    let (client, mut server) = pair(port, &listener);
    reset(client);
    assert!(is_reset(&mut server));
    let (mut client, server) = pair(port, &listener);
    reset(server);
    assert!(is_reset(&mut client));
    let labels = [("reason", "reset")];
    eventually("both are counted", || {
        splitter.metrics().sum("splitter_l4_cut_total", &labels) == 2.0
    });
    eventually("nothing is open", || {
        splitter.metrics().sum("splitter_l4_open_connections", &[]) == 0.0
    });
}

#[test]
fn much_goes_both_ways_at_once_and_nothing_is_lost() {
    const MUCH: usize = 8 << 20;
    let main = Named::start("main");
    let [port] = free_ports();
    let splitter = Site::new(&[port]).db(&[main.addr]).start();
    let mut client = connect(port);
    assert_eq!(read::<4>(&mut client), "main");
    let mut writer = client.try_clone().unwrap();
    let pattern = |at: usize| (at.wrapping_mul(2_654_435_761) >> 7) as u8;
    let sent: Vec<u8> = (0..MUCH).map(pattern).collect();
    let writing = std::thread::spawn(move || {
        writer.write_all(&sent).unwrap();
        writer.shutdown(Shutdown::Write).unwrap();
    });
    let mut received = Vec::new();
    client.read_to_end(&mut received).unwrap();
    writing.join().unwrap();
    assert_eq!(received.len(), MUCH);
    assert!(
        received
            .iter()
            .enumerate()
            .all(|(at, byte)| *byte == pattern(at))
    );
    for (direction, bytes) in [("in", MUCH), ("out", MUCH + 4)] {
        let labels = [("direction", direction)];
        splitter.expect_sum("splitter_l4_bytes_total", &labels, bytes as f64);
    }
}

#[test]
fn a_silent_connection_is_reset_after_its_time() {
    let main = Named::start("main");
    let [port] = free_ports();
    let site = Site::new(&[port]).db(&[main.addr]);
    let splitter = site.start_with(|settings| settings.l4.idle = Duration::from_millis(300));
    let mut client = connect(port);
    assert_eq!(read::<4>(&mut client), "main");
    assert!(is_reset(&mut client));
    let labels = [("reason", "idle")];
    eventually("it is counted", || {
        splitter.metrics().sum("splitter_l4_cut_total", &labels) == 1.0
    });
}

#[test]
fn one_too_many_is_reset_and_the_others_stay() {
    let main = Named::start("main");
    let [port] = free_ports();
    let site = Site::new(&[port]).db(&[main.addr]);
    let splitter = site.start_with(|settings| {
        settings.workers = 1;
        settings.l4.max_connections = 2;
    });
    let mut open: Vec<TcpStream> = (0..2).map(|_| connect(port)).collect();
    for client in &mut open {
        assert_eq!(read::<4>(client), "main");
    }
    assert!(is_reset(&mut connect(port)));
    for client in &mut open {
        client.write_all(b"ping").unwrap();
        assert_eq!(read::<4>(client), "ping");
    }
    let labels = [("reason", "over-limit")];
    splitter.expect_sum("splitter_l4_refused_total", &labels, 1.0);
}

#[test]
fn what_is_open_at_the_end_of_the_drain_is_reset() {
    let main = Named::start("main");
    let [port] = free_ports();
    let site = Site::new(&[port]).db(&[main.addr]);
    let mut splitter =
        site.start_with(|settings| settings.drain_timeout = Duration::from_millis(700));
    let mut client = connect(port);
    assert_eq!(read::<4>(&mut client), "main");
    splitter.begin_stop();
    eventually("nothing new is taken", || {
        TcpStream::connect(("127.0.0.1", port)).is_err()
    });
    assert!(is_reset(&mut client));
}
