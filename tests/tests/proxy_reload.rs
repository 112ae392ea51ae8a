//! Changes of the manifests under load: live soon, felt by nobody.
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use splitter_tests::backend::Backend;
use splitter_tests::client::Client;
use splitter_tests::eventually;
use splitter_tests::instance::Splitter;
use splitter_tests::manifests::Manifests;

/// Clients that ask without pause until they are told to stop, each on one connection.
struct Load {
    stop: Arc<AtomicBool>,
    asked: Arc<AtomicUsize>,
    threads: Vec<JoinHandle<Result<(), String>>>,
}

impl Load {
    fn start(addr: SocketAddr, host: &'static str) -> Self {
        let stop = Arc::<AtomicBool>::default();
        let asked = Arc::<AtomicUsize>::default();
        let threads = (0..4)
            .map(|i| {
                let (stop, asked) = (stop.clone(), asked.clone());
                std::thread::spawn(move || {
                    let mut client = Client::connect(addr);
                    while !stop.load(Ordering::SeqCst) {
                        if i % 2 == 0 {
                            client.send(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"));
                        } else {
                            client.send(format!(
                                "POST / HTTP/1.1\r\nHost: {host}\r\nContent-Length: 5\r\n\r\nhello"
                            ));
                        }
                        let answer = client
                            .try_answer("GET")
                            .ok_or("the connection was closed")?;
                        if answer.status != 200 {
                            return Err(format!("{answer:?}"));
                        }
                        asked.fetch_add(1, Ordering::SeqCst);
                    }
                    Ok(())
                })
            })
            .collect();
        Load {
            stop,
            asked,
            threads,
        }
    }

    /// Waits until every client has certainly asked something more.
    fn goes_on(&self) {
        let before = self.asked.load(Ordering::SeqCst);
        eventually("the load goes on", || {
            self.asked.load(Ordering::SeqCst) > before + 20 || self.has_ended()
        });
    }

    fn has_ended(&self) -> bool {
        self.threads.iter().any(JoinHandle::is_finished)
    }

    /// Every request was answered, on the first connection.
    #[track_caller]
    fn finish(self) {
        self.stop.store(true, Ordering::SeqCst);
        for thread in self.threads {
            assert_eq!(thread.join().expect("no panic"), Ok(()));
        }
    }
}

fn split(main: &Backend, canary: &Backend, weight: u32) -> Manifests {
    Manifests::new()
        .main("main", "a.test", "/", "main")
        .canary(
            "canary",
            "a.test",
            "/",
            "canary",
            &[("canary-weight", &weight.to_string())],
        )
        .service("main", &[main.addr()])
        .service("canary", &[canary.addr()])
}

#[test]
fn no_request_and_no_connection_is_lost_by_changes() {
    let (main, canary) = (Backend::named("main"), Backend::named("canary"));
    let splitter = Splitter::start_with(&split(&main, &canary, 50), |settings| {
        settings.workers = 2;
    });
    let load = Load::start(splitter.http(), "a.test");
    for round in 0..20 {
        // Weights, other hosts, other paths and endpoints: everything changes but that it works.
        let mut next = split(&main, &canary, round * 5);
        if round % 2 == 0 {
            next = next.main("other", &format!("b{round}.test"), "/", "main");
        }
        if round % 3 == 0 {
            next = next.main("path", "a.test", &format!("/p{round}"), "canary");
        }
        next = match round % 4 {
            0 => next.endpoint("main", 7, canary.addr(), "ready: true"),
            1 => next.endpoint("main", 8, canary.addr(), "ready: false, serving: false"),
            _ => next,
        };
        next = next.main("round", "round.test", &format!("/{round}"), "main");
        splitter.apply(&next);
        eventually("the round is live", || {
            splitter.get("round.test", &format!("/{round}")).status == 200
        });
        load.goes_on();
    }
    load.finish();
}

#[test]
fn connections_survive_their_host_being_removed_and_added() {
    let backend = Backend::named("main");
    let manifests = Manifests::new()
        .main("main", "a.test", "/", "main")
        .main("keep", "keep.test", "/", "main")
        .service("main", &[backend.addr()]);
    let without = Manifests::new()
        .main("keep", "keep.test", "/", "main")
        .service("main", &[backend.addr()]);
    let splitter = Splitter::start(&manifests);
    let mut client = splitter.client();
    for _ in 0..3 {
        assert_eq!(client.get("a.test", "/").status, 200);
        splitter.apply(&without);
        eventually("the host is gone", || {
            client.get("a.test", "/").status == 404
        });
        assert_eq!(client.get("keep.test", "/").status, 200);
        splitter.apply(&manifests);
        eventually("the host is back", || {
            client.get("a.test", "/").status == 200
        });
    }
}

#[test]
fn a_request_in_hand_ends_by_the_state_it_began_with() {
    let (tell, told) = std::sync::mpsc::channel();
    let (go, hear) = std::sync::mpsc::channel::<()>();
    let shared = std::sync::Mutex::new((tell, hear));
    let backend = Backend::scripted(move |conversation| {
        if conversation.request().is_some() {
            conversation.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello");
            let shared = shared.lock().unwrap_or_else(|e| e.into_inner());
            let _ = shared.0.send(());
            let _ = shared.1.recv_timeout(splitter_tests::PATIENCE);
            conversation.send("world");
        }
    });
    let other = Backend::named("other");
    let splitter = Splitter::before(&backend);
    let mut client = splitter.client();
    client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
    told.recv_timeout(splitter_tests::PATIENCE)
        .expect("the backend is asked");
    splitter.apply(
        &Manifests::new()
            .main("other", "b.test", "/", "other")
            .service("other", &[other.addr()]),
    );
    eventually("the change is live", || {
        splitter.get("b.test", "/").status == 200 && splitter.get("a.test", "/").status == 404
    });
    go.send(()).expect("the backend waits");
    assert_eq!(client.answer("GET").text(), "helloworld");
}

/// How long the last write of a change takes to decide the first request.
fn time_to_switch(
    splitter: &Splitter,
    client: &mut Client,
    next: &Manifests,
    to: &str,
) -> Duration {
    // A burst, as tools write: the change counts from its last write.
    for _ in 0..3 {
        splitter.apply(next);
    }
    let written = Instant::now();
    eventually("the change is live", || {
        client.get("a.test", "/").text() == to
    });
    written.elapsed()
}

#[test]
fn weights_count_within_100_ms_of_the_last_write() {
    let (main, canary) = (Backend::named("main"), Backend::named("canary"));
    let splitter = Splitter::start(&split(&main, &canary, 0));
    let mut client = splitter.client();
    assert_eq!(client.get("a.test", "/").text(), "main");
    let mut times = Vec::new();
    for _ in 0..5 {
        let on = split(&main, &canary, 100);
        times.push(time_to_switch(&splitter, &mut client, &on, "canary"));
        let off = split(&main, &canary, 0);
        times.push(time_to_switch(&splitter, &mut client, &off, "main"));
    }
    times.sort();
    // The machine may be busy now and then, but not always.
    assert!(times[2] < Duration::from_millis(100), "{times:?}");
    assert!(times[9] < Duration::from_secs(5), "{times:?}");
}

#[test]
fn a_change_is_seen_by_every_worker() {
    let (main, canary) = (Backend::named("main"), Backend::named("canary"));
    let splitter = Splitter::start_with(&split(&main, &canary, 0), |settings| {
        settings.workers = 4;
    });
    // The kernel spreads connections over the workers.
    let mut clients: Vec<_> = (0..32).map(|_| splitter.client()).collect();
    for client in &mut clients {
        assert_eq!(client.get("a.test", "/").text(), "main");
    }
    splitter.apply(&split(&main, &canary, 100));
    for client in &mut clients {
        eventually("the worker follows", || {
            client.get("a.test", "/").text() == "canary"
        });
        // And stays.
        assert_eq!(client.get("a.test", "/").text(), "canary");
    }
}

#[test]
fn a_removed_ingress_is_404() {
    let backend = Backend::named("main");
    let both = Manifests::new()
        .main("one", "one.test", "/", "main")
        .main("two", "two.test", "/", "main")
        .service("main", &[backend.addr()]);
    let splitter = Splitter::start(&both);
    assert_eq!(splitter.get("one.test", "/").status, 200);
    splitter.apply(
        &Manifests::new()
            .main("two", "two.test", "/", "main")
            .service("main", &[backend.addr()]),
    );
    eventually("it is gone", || splitter.get("one.test", "/").status == 404);
    splitter.get("one.test", "/").assert_own(404);
    assert_eq!(splitter.get("two.test", "/").status, 200);
}

#[test]
fn files_may_come_and_go() {
    let backend = Backend::named("main");
    let splitter = Splitter::before(&backend);
    let more = Manifests::new().main("more", "more.test", "/", "main");
    let path = splitter.dir().join("more.yml");
    std::fs::write(&path, more.yaml()).expect("a file");
    eventually("it is served", || {
        splitter.get("more.test", "/").status == 200
    });
    std::fs::remove_file(&path).expect("no file");
    eventually("it is gone", || {
        splitter.get("more.test", "/").status == 404
    });
    let below = splitter.dir().join("team/shop");
    std::fs::create_dir_all(&below).expect("a directory");
    std::fs::write(below.join("more.yaml"), more.yaml()).expect("a file");
    eventually("it is served again", || {
        splitter.get("more.test", "/").status == 200
    });
    assert_eq!(splitter.get("a.test", "/").status, 200);
}

#[test]
fn a_half_written_file_keeps_the_last_good_state() {
    let (main, canary) = (Backend::named("main"), Backend::named("canary"));
    let splitter = Splitter::start(&split(&main, &canary, 0));
    let load = Load::start(splitter.http(), "a.test");
    let problems = || splitter.metrics().sum("splitter_problems", &[]);
    assert_eq!(problems(), 0.0);
    let path = splitter.dir().join("objects.yaml");
    // In the midst of a flow mapping: not YAML.
    let next = split(&main, &canary, 100);
    let half = next.yaml().find("canary: ").expect("the annotation");
    std::fs::write(&path, &next.yaml()[..half]).expect("half a file");
    eventually("it is reported", || problems() > 0.0);
    for _ in 0..10 {
        assert_eq!(splitter.get("a.test", "/").text(), "main");
    }
    load.goes_on();
    std::fs::write(&path, next.yaml()).expect("the whole file");
    eventually("the whole counts", || {
        splitter.get("a.test", "/").text() == "canary"
    });
    eventually("the report is gone", || problems() == 0.0);
    load.finish();
}

#[test]
fn a_broken_file_does_not_hold_up_the_others() {
    let backend = Backend::named("main");
    let splitter = Splitter::before(&backend);
    std::fs::write(splitter.dir().join("broken.yaml"), "kind: [Ingress\n").expect("a file");
    let more = Manifests::new().main("more", "more.test", "/", "main");
    std::fs::write(splitter.dir().join("more.yaml"), more.yaml()).expect("a file");
    eventually("the good one counts", || {
        splitter.get("more.test", "/").status == 200
    });
    assert_eq!(splitter.get("a.test", "/").status, 200);
    eventually("the broken one is reported", || {
        splitter.metrics().sum("splitter_problems", &[]) > 0.0
    });
}

#[test]
fn endpoints_that_leave_get_no_more_requests() {
    let (old, new) = (Backend::named("old"), Backend::named("new"));
    let with = |backends: &[&Backend]| {
        let addrs: Vec<_> = backends.iter().map(|backend| backend.addr()).collect();
        Manifests::new()
            .main("main", "a.test", "/", "main")
            .service("main", &addrs)
    };
    let splitter = Splitter::start(&with(&[&old]));
    let load = Load::start(splitter.http(), "a.test");
    load.goes_on();
    splitter.apply(&with(&[&old, &new]));
    eventually("the new one is used", || !new.seen().is_empty());
    splitter.apply(&with(&[&new]));
    eventually("only the new one is left", || {
        (0..10).all(|_| splitter.get("a.test", "/").text() == "new")
    });
    load.goes_on();
    let asked = old.seen().len();
    load.goes_on();
    assert_eq!(old.seen().len(), asked);
    load.finish();
}
