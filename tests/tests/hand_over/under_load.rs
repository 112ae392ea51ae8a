use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use splitter_tests::bpf::net::command;
use splitter_tests::{PATIENCE, eventually};

use super::*;

/// Two updates in a row, each with the former process gone before the next.
fn updates(mode: &str, prepare: impl FnOnce(&Site)) {
    let mut site = site();
    prepare(&site);
    let more = format!("--steering {mode} --http 0.0.0.0:80");
    start(&mut site, &more);
    let load = load(&site);
    for _ in 0..2 {
        load.wait_for(50);
        let args = args(&site, &more);
        let mut next = site.start_beside(&args);
        site.wait_for(&mut next);
        let mut former = site.promote(next);
        load.wait_for(50);
        eventually("the former instance ends by itself", || former.has_ended());
        assert!(former.wait().success(), "{}", former.log());
        load.wait_for(50);
    }
    nothing_lost(load, 300);
    assert!(site.stop().success());
}

fn cookies(site: &Site) {
    let node = ["netns", "exec", site.nodes.node.name()];
    let always = ["sysctl", "-qw", "net.ipv4.tcp_syncookies=2"];
    command("ip", &[&node[..], &always].concat());
}

#[test]
fn nothing_is_lost_with_xdp() {
    updates("xdp", |_| {});
}

#[test]
fn nothing_is_lost_with_sk_lookup_and_syn_cookies() {
    updates("sk-lookup", cookies);
}

#[test]
fn nothing_is_lost_without_steering() {
    updates("none", |_| {});
}

#[test]
fn nothing_is_lost_without_steering_and_with_syn_cookies() {
    updates("none", cookies);
}

/// The kernel keeps a connection for itself until it has sent something: it is half open here.
#[test]
fn a_connection_that_is_half_open_goes_to_the_successor() {
    for mode in ["sk-lookup", "none"] {
        let mut site = site();
        let more = format!("--steering {mode} --http 0.0.0.0:80");
        start(&mut site, &more);
        let (out, pod) = (&site.nodes.out, &site.nodes.pod);
        let connect = |addr: &'static str| move || TcpStream::connect(addr).unwrap();
        let half_open: Vec<_> = (0..4)
            .flat_map(|_| {
                [
                    out.run(connect("203.0.113.1:80")),
                    pod.run(connect("10.244.0.1:80")),
                ]
            })
            .collect();
        let args = args(&site, &more);
        let mut next = site.start_beside(&args);
        site.wait_for(&mut next);
        let _former = site.promote(next);
        for mut stream in half_open {
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            let request = format!("GET / HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n");
            stream.write_all(request.as_bytes()).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            assert!(answer.starts_with("HTTP/1.1 200 "), "{mode}: {answer}");
        }
    }
}
