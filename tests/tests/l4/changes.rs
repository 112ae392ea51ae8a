//! What changes while connections are open.

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use splitter_tests::eventually;

use super::fixture::{Named, Site, connect, free_ports, given, is_reset, read};

fn says(stream: &mut TcpStream) {
    stream.write_all(b"ping").unwrap();
    assert_eq!(read::<4>(stream), "ping");
}

#[test]
fn ports_come_and_go_and_cut_nothing() {
    let main = Named::start("main");
    let [one, two] = free_ports();
    let site = Site::new(&[one]).db(&[main.addr]);
    let splitter = site.start();
    let mut first = connect(one);
    assert_eq!(read::<4>(&mut first), "main");
    splitter.apply(
        &Site {
            ports: vec![(one, ""), (two, "")],
            ..site.clone()
        }
        .yaml(),
    );
    let mut second = connect(two);
    assert_eq!(read::<4>(&mut second), "main");
    says(&mut first);
    splitter.apply(
        &Site {
            ports: vec![(two, "")],
            ..site
        }
        .yaml(),
    );
    eventually("the port is closed", || {
        TcpStream::connect(("127.0.0.1", one)).is_err()
    });
    says(&mut first);
    says(&mut second);
    // Looking whether the port is closed may have reset some of its own.
    for reason in ["endpoint-gone", "idle", "stopped"] {
        let labels = [("reason", reason)];
        assert_eq!(
            splitter.metrics().sum("splitter_l4_cut_total", &labels),
            0.0
        );
    }
}

#[test]
fn a_port_that_somebody_has_is_a_problem_until_it_is_free() {
    let main = Named::start("main");
    let foreign = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = foreign.local_addr().unwrap().port();
    let splitter = Site::new(&[port]).db(&[main.addr]).start();
    assert_eq!(splitter.problems(), ["tcp: l4-port-not-opened"]);
    drop(foreign);
    assert_eq!(read::<4>(&mut connect(port)), "main");
    eventually("the problem is gone", || splitter.problems().is_empty());
}

#[test]
fn a_port_of_our_own_is_a_problem() {
    let main = Named::start("main");
    let [port, http] = free_ports();
    let site = Site {
        ports: vec![(port, ""), (http, "")],
        ..Site::default()
    }
    .db(&[main.addr]);
    let splitter = site.start_with(|settings| {
        settings.http = vec![std::net::SocketAddr::from(([127, 0, 0, 1], http))];
    });
    assert_eq!(splitter.problems(), ["tcp: l4-port-taken"]);
    assert_eq!(read::<4>(&mut connect(port)), "main");
}

#[test]
fn an_endpoint_that_is_gone_resets_its_connections_and_no_others() {
    let (main, other) = (Named::start("main"), Named::start("othr"));
    let [port] = free_ports();
    let site = Site::new(&[port]).db(&[main.addr, other.addr]);
    let splitter = site.start();
    let mut open: Vec<(String, TcpStream)> = (0..20)
        .map(|_| {
            let mut stream = connect(port);
            (read::<4>(&mut stream), stream)
        })
        .collect();
    assert!(open.iter().any(|(name, _)| name == "main"));
    assert!(open.iter().any(|(name, _)| name == "othr"));
    splitter.apply(
        &Site {
            db: vec![main.addr],
            ..site
        }
        .yaml(),
    );
    for (name, stream) in &mut open {
        match name.as_str() {
            "othr" => assert!(is_reset(stream)),
            _ => says(stream),
        }
    }
    let gone = open.iter().filter(|(name, _)| name == "othr").count();
    let labels = [("reason", "endpoint-gone")];
    eventually("they are counted", || {
        splitter.metrics().sum("splitter_l4_cut_total", &labels) == gone as f64
    });
}

#[test]
fn a_change_of_weight_under_load_moves_nothing_and_cuts_nothing() {
    let (main, next) = (Named::start("main"), Named::start("next"));
    let [port] = free_ports();
    let site = Site::new(&[port])
        .split("10")
        .db(&[main.addr])
        .next(&[next.addr]);
    let splitter = site.start();
    let (stop, changed) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicBool::new(false)),
    );
    let load: Vec<_> = (0..2)
        .map(|_| {
            let (stop, changed) = (Arc::clone(&stop), Arc::clone(&changed));
            std::thread::spawn(move || {
                let (mut kept, mut after) = (Vec::new(), [0u32; 2]);
                while !stop.load(Ordering::SeqCst) || after.iter().sum::<u32>() < 100 {
                    let sure = changed.load(Ordering::SeqCst);
                    let mut stream = connect(port);
                    let name = read::<4>(&mut stream);
                    if sure {
                        after[usize::from(name == "next")] += 1;
                    }
                    if kept.len() < 50 {
                        kept.push(stream);
                    } else {
                        says(&mut stream);
                    }
                }
                (kept, after)
            })
        })
        .collect();
    eventually("there is load", || {
        given(&splitter, "stable") + given(&splitter, "next") > 100
    });
    splitter.apply(&site.clone().split("100").yaml());
    eventually("the weight is in force", || {
        splitter.dump("/config_dump")["weights"][0]["variants"][1]["live"] == 100
    });
    changed.store(true, Ordering::SeqCst);
    stop.store(true, Ordering::SeqCst);
    let given_before = main.accepted();
    for thread in load {
        let (kept, after) = thread.join().unwrap();
        // Since the change only the canary has got any, and who was there before still is.
        assert_eq!(after[0], 0);
        for mut stream in kept {
            says(&mut stream);
        }
    }
    assert!(main.accepted() >= given_before);
    assert_eq!(splitter.metrics().sum("splitter_l4_cut_total", &[]), 0.0);
    assert_eq!(
        splitter.metrics().sum("splitter_l4_refused_total", &[]),
        0.0
    );
}
