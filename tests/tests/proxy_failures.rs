//! What happens when one side does not do its part: refused, retried, timed out, counted, told.

use std::net::{SocketAddr, TcpListener};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use splitter::config::Settings;
use splitter_tests::backend::{Backend, Conversation, refusing};
use splitter_tests::client::Answer;
use splitter_tests::instance::Splitter;
use splitter_tests::manifests::Manifests;
use splitter_tests::{PATIENCE, eventually};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// The shortest time that all timeouts allow: one tick of the clock.
const SHORT: Duration = Duration::from_millis(250);

/// One Service with these endpoints for host `a.test`.
fn service(endpoints: &[SocketAddr]) -> Manifests {
    Manifests::new()
        .main("main", "a.test", "/", "main")
        .service("main", endpoints)
}

/// What scripts tell a test, and what a test tells them.
struct Line {
    tell: Mutex<Sender<&'static str>>,
    hear: Mutex<Receiver<()>>,
}

impl Line {
    /// The script's end, what it tells, and how to let it go on.
    fn new() -> (Self, Receiver<&'static str>, Sender<()>) {
        let ((tell, told), (go, hear)) = (channel(), channel());
        let line = Line {
            tell: Mutex::new(tell),
            hear: Mutex::new(hear),
        };
        (line, told, go)
    }

    fn say(&self, what: &'static str) {
        let tell = self.tell.lock().unwrap_or_else(|e| e.into_inner());
        let _ = tell.send(what);
    }

    fn wait(&self) {
        let hear = self.hear.lock().unwrap_or_else(|e| e.into_inner());
        let _ = hear.recv_timeout(PATIENCE);
    }
}

/// A backend that reads requests, never answers, and tells when it was asked and left.
fn silent() -> (Backend, Receiver<&'static str>) {
    let (line, told, _) = Line::new();
    let backend = Backend::scripted(move |conversation| {
        if conversation.request().is_some() {
            line.say("asked");
            conversation.wait_for_close();
            line.say("left");
        }
    });
    (backend, told)
}

/// A backend that closes as soon as it has read a request.
fn closing() -> Backend {
    Backend::scripted(|conversation| {
        conversation.request();
    })
}

#[track_caller]
fn assert_ok(answer: &Answer) {
    assert_eq!(answer.status, 200, "{answer:?}");
}

mod refusing_endpoints {
    use super::*;

    #[test]
    fn the_next_endpoint_answers() {
        let backend = Backend::named("main");
        let splitter = Splitter::start(&service(&[refusing(), backend.addr()]));
        for _ in 0..20 {
            assert_ok(&splitter.get("a.test", "/"));
        }
        assert_eq!(backend.seen().len(), 20);
    }

    #[test]
    fn a_body_is_not_lost_by_it() {
        let backend = Backend::answering(OK);
        for _ in 0..4 {
            // Anew each time, so that the refusing one is tried first at least once.
            let splitter = Splitter::start(&service(&[refusing(), backend.addr()]));
            let mut client = splitter.client();
            client.send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\n\r\nhello");
            assert_ok(&client.answer("POST"));
            client.send(
                "POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n\
                 5\r\nhello\r\n0\r\n\r\n",
            );
            assert_ok(&client.answer("POST"));
        }
        assert_eq!(backend.seen().len(), 8);
        assert!(backend.seen().iter().all(|seen| seen.body == b"hello"));
    }

    #[test]
    fn it_is_left_alone_for_a_while() {
        let backend = Backend::named("main");
        let splitter = Splitter::start(&service(&[refusing(), backend.addr()]));
        for _ in 0..50 {
            assert_ok(&splitter.get("a.test", "/"));
        }
        let count = |name: &str| splitter.metrics().sum(name, &[]);
        eventually("the retry is counted", || {
            count("splitter_retries_total") == 1.0
        });
        assert_eq!(count("splitter_endpoint_ejections_total"), 1.0);
    }

    #[test]
    fn all_refusing_is_502() {
        let splitter = Splitter::start(&service(&[refusing(), refusing(), refusing()]));
        let mut client = splitter.client();
        for _ in 0..3 {
            client.get("a.test", "/").assert_own(502);
        }
        eventually("the faults are counted", || {
            splitter.faults("upstream-refused") == 3.0
        });
    }

    /// Better an endpoint that refused a moment ago than none.
    #[test]
    fn a_service_that_comes_back_is_used_at_once() {
        let addr = refusing();
        let splitter = Splitter::start(&service(&[addr]));
        splitter.get("a.test", "/").assert_own(502);
        let listener = TcpListener::bind(addr).expect("the port is free again");
        let backend = Backend::listening(listener, |conversation| {
            while conversation.request().is_some() {
                conversation.send(OK);
            }
        });
        assert_ok(&splitter.get("a.test", "/"));
        assert_eq!(backend.seen().len(), 1);
    }

    /// canary-issues 38: with many at once, too, a retry goes to another endpoint.
    #[test]
    fn no_request_of_many_is_lost() {
        let backend = Backend::named("main");
        let splitter = Splitter::start_with(&service(&[refusing(), backend.addr()]), |settings| {
            settings.workers = 2;
        });
        let addr = splitter.http();
        let threads: Vec<_> = (0..8)
            .map(|_| {
                std::thread::spawn(move || {
                    let mut client = splitter_tests::client::Client::connect(addr);
                    (0..50).all(|_| client.get("a.test", "/").status == 200)
                })
            })
            .collect();
        for thread in threads {
            assert_eq!(thread.join().ok(), Some(true));
        }
    }
}

mod retries {
    use super::*;

    fn post(splitter: &Splitter) -> Answer {
        let mut client = splitter.client();
        client.send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\n\r\nhello");
        client.answer("POST")
    }

    #[test]
    fn what_does_no_harm_is_asked_of_another_endpoint() {
        let (bad, good) = (closing(), Backend::answering(OK));
        let splitter = Splitter::start(&service(&[bad.addr(), good.addr()]));
        let mut client = splitter.client();
        for method in ["GET", "HEAD", "OPTIONS", "PUT", "DELETE"]
            .into_iter()
            .cycle()
            .take(20)
        {
            client.send(format!("{method} / HTTP/1.1\r\nHost: a.test\r\n\r\n"));
            let answer = match method {
                "HEAD" => client.head(),
                _ => client.answer(method),
            };
            assert_ok(&answer);
            if method == "HEAD" {
                // The backend's mistake: it sends the body all the same. Not on this connection.
                client = splitter.client();
            }
        }
        assert!(bad.connections() > 0, "the bad endpoint was tried");
    }

    #[test]
    fn once_and_no_more() {
        let backends = [closing(), closing(), closing(), closing()];
        let addrs: Vec<_> = backends.iter().map(Backend::addr).collect();
        let splitter = Splitter::start(&service(&addrs));
        splitter.get("a.test", "/").assert_own(502);
        let asked: usize = backends.iter().map(|backend| backend.seen().len()).sum();
        assert_eq!(asked, 2);
    }

    #[test]
    fn the_only_endpoint_is_not_asked_twice() {
        let backend = closing();
        let splitter = Splitter::before(&backend);
        splitter.get("a.test", "/").assert_own(502);
        assert_eq!(backend.seen().len(), 1);
    }

    #[test]
    fn what_may_have_been_done_is_not_done_again() {
        for request in [
            "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\n\r\nhello",
            "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 0\r\n\r\n",
            "PATCH / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\n\r\nhello",
            "BREW / HTTP/1.1\r\nHost: a.test\r\n\r\n",
        ] {
            let backends = [closing(), closing()];
            let splitter = Splitter::start(&service(&[backends[0].addr(), backends[1].addr()]));
            let mut client = splitter.client();
            client.send(request);
            client.answer("POST").assert_own(502);
            let asked = backends[0].seen().len() + backends[1].seen().len();
            assert_eq!(asked, 1, "{request}");
        }
    }

    /// The body has gone with the first try, and was not kept.
    #[test]
    fn a_sent_body_is_not_sent_again() {
        let backends = [closing(), closing()];
        let splitter = Splitter::start(&service(&[backends[0].addr(), backends[1].addr()]));
        let mut client = splitter.client();
        client.send("PUT / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\n\r\nhello");
        client.answer("PUT").assert_own(502);
        assert_eq!(backends[0].seen().len() + backends[1].seen().len(), 1);
    }

    #[test]
    fn an_answer_that_had_begun_is_not_asked_for_again() {
        let cut = || {
            Backend::scripted(|conversation| {
                conversation.request();
                conversation.send("HTTP/1.1 200 OK\r\nContent-Le");
            })
        };
        let backends = [cut(), cut()];
        let splitter = Splitter::start(&service(&[backends[0].addr(), backends[1].addr()]));
        splitter.get("a.test", "/").assert_own(502);
        assert_eq!(backends[0].seen().len() + backends[1].seen().len(), 1);
    }

    /// A connection that the backend closed while it was kept says nothing about the request.
    #[test]
    fn a_kept_connection_that_was_closed_is_replaced() {
        let (line, told, go) = Line::new();
        let backend = Backend::scripted(move |conversation| {
            if conversation.request().is_some() {
                conversation.send(OK);
                line.wait();
                conversation.finish();
                line.say("closed");
            }
        });
        let splitter = Splitter::before(&backend);
        let mut client = splitter.client();
        assert_ok(&client.get("a.test", "/"));
        for _ in 0..5 {
            go.send(()).expect("the backend waits");
            assert_eq!(told.recv_timeout(PATIENCE), Ok("closed"));
            assert_ok(&post(&splitter));
        }
        assert_eq!(backend.connections(), 6);
        let bodies = backend
            .seen()
            .iter()
            .filter(|seen| seen.body == b"hello")
            .count();
        assert_eq!(bodies, 5);
    }

    #[test]
    fn a_kept_connection_that_was_reset_is_replaced() {
        let (line, told, go) = Line::new();
        let line = std::sync::Arc::new(line);
        let backend = Backend::scripted(move |conversation| {
            if conversation.request().is_some() {
                conversation.send(OK);
                line.wait();
                conversation.end_with_reset();
                let line = line.clone();
                conversation.at_end(move || line.say("closed"));
            }
        });
        let splitter = Splitter::before(&backend);
        assert_ok(&splitter.get("a.test", "/"));
        for _ in 0..5 {
            go.send(()).expect("the backend waits");
            assert_eq!(told.recv_timeout(PATIENCE), Ok("closed"));
            assert_ok(&post(&splitter));
        }
        assert_eq!(backend.connections(), 6);
    }

    /// What comes on a kept connection without having been asked for is no answer to anything.
    #[test]
    fn an_answer_to_nothing_is_not_an_answer() {
        let (line, told, go) = Line::new();
        let backend = Backend::scripted(move |conversation| {
            if conversation.request().is_some() {
                conversation.send(OK);
                line.wait();
                conversation.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil");
                line.say("sent");
                conversation.wait_for_close();
            }
        });
        let splitter = Splitter::before(&backend);
        let mut client = splitter.client();
        assert_eq!(client.get("a.test", "/").text(), "ok");
        go.send(()).expect("the backend waits");
        assert_eq!(told.recv_timeout(PATIENCE), Ok("sent"));
        assert_eq!(client.get("a.test", "/").text(), "ok");
        assert_eq!(backend.connections(), 2);
    }

    #[test]
    fn bytes_behind_an_answer_are_not_the_next_answer() {
        let backend = Backend::scripted(|conversation| {
            while conversation.request().is_some() {
                conversation.send(format!(
                    "{OK}HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
                ));
            }
        });
        let splitter = Splitter::before(&backend);
        for _ in 0..5 {
            assert_eq!(splitter.get("a.test", "/").text(), "ok");
        }
        assert_eq!(backend.connections(), 5);
    }
}

mod timeouts {
    use super::*;

    fn short(change: impl FnOnce(&mut splitter::config::Timeouts)) -> impl FnOnce(&mut Settings) {
        |settings| change(&mut settings.timeouts)
    }

    #[test]
    fn a_backend_that_does_not_answer_is_504() {
        let (backend, told) = silent();
        let splitter = Splitter::before_with(&backend, short(|t| t.read = SHORT));
        let mut client = splitter.client();
        client.get("a.test", "/").assert_own(504);
        assert_eq!(told.recv_timeout(PATIENCE), Ok("asked"));
        assert_eq!(told.recv_timeout(PATIENCE), Ok("left"));
        eventually("the fault is counted", || {
            splitter.faults("upstream-timeout") == 1.0
        });
        // The client may go on.
        client.get("a.test", "/").assert_own(504);
    }

    /// It may have been done already, only slowly.
    #[test]
    fn a_timeout_is_not_tried_again() {
        let ((a, _a), (b, _b)) = (silent(), silent());
        let splitter =
            Splitter::start_with(&service(&[a.addr(), b.addr()]), short(|t| t.read = SHORT));
        splitter.get("a.test", "/").assert_own(504);
        assert_eq!(a.seen().len() + b.seen().len(), 1);
    }

    #[test]
    fn a_body_that_stops_is_a_cut() {
        let backend = Backend::scripted(|conversation| {
            conversation.request();
            conversation.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello");
            conversation.wait_for_close();
        });
        let splitter = Splitter::before_with(&backend, short(|t| t.read = SHORT));
        let mut client = splitter.client();
        client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
        assert_eq!(client.try_answer("GET"), None);
        eventually("the fault is counted", || {
            splitter.faults("upstream-timeout") == 1.0
        });
    }

    /// The time is for each step, not for the whole.
    #[test]
    fn an_answer_that_moves_may_take_its_time() {
        let backend = Backend::scripted(|conversation| {
            conversation.request();
            conversation.send("HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n");
            for _ in 0..12 {
                // A pace, not a wait for something: nobody else sends here.
                conversation.pause(SHORT / 2);
                conversation.send("x");
            }
        });
        let splitter = Splitter::before_with(&backend, short(|t| t.read = SHORT));
        assert_eq!(splitter.get("a.test", "/").text(), "xxxxxxxxxxxx");
    }

    /// The kernel answers no further connection once a listener's queue is full.
    #[test]
    fn a_backend_that_does_not_accept_is_504() {
        let listener = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)
            .expect("a socket");
        let any: SocketAddr = "127.0.0.1:0".parse().expect("an address");
        listener.bind(&any.into()).expect("a port");
        listener.listen(0).expect("a queue of one");
        let addr = listener.local_addr().expect("an address");
        let addr = addr.as_socket().expect("an IP address");
        let mut queue = Vec::new();
        while let Ok(stream) =
            std::net::TcpStream::connect_timeout(&addr, Duration::from_millis(100))
        {
            queue.push(stream);
        }
        let splitter = Splitter::start_with(&service(&[addr]), short(|t| t.connect = SHORT));
        splitter.get("a.test", "/").assert_own(504);
        eventually("the fault is counted", || {
            splitter.faults("connect-timeout") == 1.0
        });
    }

    #[test]
    fn a_head_that_does_not_end_is_408() {
        let backend = Backend::named("main");
        let splitter = Splitter::before_with(&backend, short(|t| t.header = SHORT));
        let mut client = splitter.client();
        client.send("GET / HTTP/1.1\r\nHost: a");
        client.answer("GET").assert_own(408);
        assert!(client.is_closed());
        eventually("the fault is counted", || {
            splitter.faults("head-timeout") == 1.0
        });
    }

    #[test]
    fn a_head_that_drips_is_408_all_the_same() {
        let backend = Backend::named("main");
        let splitter = Splitter::before_with(&backend, short(|t| t.header = SHORT * 2));
        let mut client = splitter.client();
        client.send("GET / HTTP/1.1\r\nX: ");
        let answered = (0..400).any(|_| {
            client.send("x");
            client.hears_within(Duration::from_millis(20))
        });
        assert!(answered, "the time runs from the first byte");
        client.answer("GET").assert_own(408);
    }

    #[test]
    fn the_next_head_has_its_own_time() {
        let backend = Backend::named("main");
        let splitter = Splitter::before_with(&backend, short(|t| t.header = SHORT));
        let mut client = splitter.client();
        assert_ok(&client.get("a.test", "/"));
        client.send("GET / HTTP/1.1\r\n");
        client.answer("GET").assert_own(408);
    }

    #[test]
    fn a_body_that_does_not_come_is_408() {
        for head in [
            "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 10\r\n\r\nhello",
            "POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        ] {
            let backend = Backend::named("main");
            let splitter = Splitter::before_with(&backend, short(|t| t.read = SHORT));
            let mut client = splitter.client();
            client.send(head);
            client.answer("POST").assert_own(408);
            assert!(client.is_closed());
            assert_eq!(backend.seen(), []);
            eventually("the fault is counted", || {
                splitter.faults("body-timeout") == 1.0
            });
        }
    }

    #[test]
    fn an_idle_connection_is_closed_without_a_word() {
        let backend = Backend::named("main");
        let splitter = Splitter::before_with(&backend, short(|t| t.keep_alive = SHORT));
        let mut client = splitter.client();
        assert_ok(&client.get("a.test", "/"));
        assert!(client.is_closed());
        for fault in ["head-timeout", "client-gone"] {
            assert_eq!(splitter.faults(fault), 0.0, "{fault}");
        }
    }

    #[test]
    fn a_slow_backend_does_not_count_as_idle() {
        let (line, told, go) = Line::new();
        let backend = Backend::scripted(move |conversation| {
            while conversation.request().is_some() {
                line.say("asked");
                line.wait();
                conversation.send(OK);
            }
        });
        let splitter = Splitter::before_with(
            &backend,
            short(|t| (t.keep_alive, t.header) = (SHORT, SHORT)),
        );
        let mut client = splitter.client();
        client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
        assert_eq!(told.recv_timeout(PATIENCE), Ok("asked"));
        let early = client.hears_within(SHORT * 4);
        assert!(!early, "{:?}", client.try_answer("GET"));
        go.send(()).expect("the backend waits");
        assert_ok(&client.answer("GET"));
    }

    #[test]
    fn a_client_that_does_not_read_is_given_up() {
        let (line, told, _go) = Line::new();
        let backend = Backend::scripted(move |conversation| {
            conversation.request();
            conversation.send("HTTP/1.1 200 OK\r\nContent-Length: 500000000\r\n\r\n");
            let sent =
                splitter_tests::noise::Noise::new(1).write_to(conversation.stream(), 500_000_000);
            line.say(match sent {
                500_000_000 => "all taken",
                _ => "cut",
            });
        });
        let splitter = Splitter::before_with(&backend, short(|t| t.send = SHORT));
        let mut client = splitter.client();
        client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
        assert_eq!(told.recv_timeout(PATIENCE), Ok("cut"));
        eventually("the connection is given up", || {
            splitter.metrics().sum("splitter_connections_open", &[]) == 0.0
        });
    }

    #[test]
    fn a_backend_that_does_not_read_is_504() {
        let (line, told, go) = Line::new();
        let backend = Backend::scripted(move |conversation| {
            conversation.head();
            line.say("asked");
            line.wait();
        });
        let splitter = Splitter::before_with(&backend, short(|t| t.send = SHORT));
        let mut client = splitter.client();
        client.send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 500000000\r\n\r\n");
        let mut up = client.stream().try_clone().expect("a second handle");
        let sender = std::thread::spawn(move || {
            splitter_tests::noise::Noise::new(1).write_to(&mut up, 500_000_000)
        });
        assert_eq!(told.recv_timeout(PATIENCE), Ok("asked"));
        client.answer("POST").assert_own(504);
        drop(client);
        go.send(()).expect("the backend waits");
        assert!(sender.join().is_ok_and(|sent| sent < 500_000_000));
    }

    #[test]
    fn an_idle_connection_to_a_backend_is_closed() {
        let (line, told, _go) = Line::new();
        let backend = Backend::scripted(move |conversation| {
            while conversation.request().is_some() {
                conversation.send(OK);
            }
            line.say("left");
        });
        let splitter = Splitter::before_with(&backend, short(|t| t.upstream_idle = SHORT));
        let mut client = splitter.client();
        assert_ok(&client.get("a.test", "/"));
        assert_eq!(told.recv_timeout(PATIENCE), Ok("left"));
        assert_ok(&client.get("a.test", "/"));
        assert_eq!(backend.connections(), 2);
    }
}

mod leaving_clients {
    use super::*;

    #[test]
    fn a_client_that_leaves_cancels_its_request() {
        let (backend, told) = silent();
        let splitter = Splitter::before(&backend);
        let mut client = splitter.client();
        client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
        assert_eq!(told.recv_timeout(PATIENCE), Ok("asked"));
        let began = std::time::Instant::now();
        drop(client);
        assert_eq!(told.recv_timeout(PATIENCE), Ok("left"));
        assert!(
            began.elapsed() < Duration::from_secs(2),
            "{:?}",
            began.elapsed()
        );
        eventually("the fault is counted", || {
            splitter.faults("client-gone") == 1.0
        });
        assert_eq!(
            splitter.metrics().sum("splitter_requests_in_flight", &[]),
            0.0
        );
    }

    #[test]
    fn a_client_that_leaves_amid_the_answer_cancels_it() {
        let (line, told, _go) = Line::new();
        let backend = Backend::scripted(move |conversation| {
            conversation.request();
            conversation.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n");
            conversation.wait_for_close();
            line.say("left");
        });
        let splitter = Splitter::before(&backend);
        let mut client = splitter.client();
        client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
        assert_eq!(client.head().status, 200);
        assert_eq!(client.chunk().as_deref(), Some(&b"x"[..]));
        drop(client);
        assert_eq!(told.recv_timeout(PATIENCE), Ok("left"));
        eventually("the fault is counted", || {
            splitter.faults("client-gone") == 1.0
        });
    }

    #[test]
    fn a_client_that_leaves_amid_its_upload_cancels_it() {
        let (line, told, _go) = Line::new();
        let backend = Backend::scripted(move |conversation: &mut Conversation<'_>| {
            if conversation.head().is_some() {
                line.say("asked");
                conversation.wait_for_close();
                line.say("left");
            }
        });
        let splitter = Splitter::before(&backend);
        let mut client = splitter.client();
        client.send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 100\r\n\r\nhello");
        assert_eq!(told.recv_timeout(PATIENCE), Ok("asked"));
        drop(client);
        assert_eq!(told.recv_timeout(PATIENCE), Ok("left"));
        eventually("the fault is counted", || {
            splitter.faults("client-gone") == 1.0
        });
    }
}

mod endpoints {
    use super::*;

    #[test]
    fn none_is_503() {
        let splitter = Splitter::start(&service(&[]));
        let mut client = splitter.client();
        for _ in 0..2 {
            client.get("a.test", "/").assert_own(503);
        }
        eventually("the faults are counted", || {
            splitter.faults("no-endpoint") == 2.0
        });
    }

    #[test]
    fn a_service_that_does_not_exist_is_503() {
        let manifests = Manifests::new().main("main", "a.test", "/", "main");
        Splitter::start(&manifests)
            .get("a.test", "/")
            .assert_own(503);
    }

    #[test]
    fn unready_ones_are_not_used() {
        let (ready, unready) = (Backend::named("ready"), Backend::named("unready"));
        let splitter = Splitter::start(&service(&[ready.addr()]).endpoint(
            "main",
            1,
            unready.addr(),
            "ready: false, serving: false",
        ));
        for _ in 0..10 {
            assert_eq!(splitter.get("a.test", "/").text(), "ready");
        }
        assert_eq!(unready.connections(), 0);
    }

    #[test]
    fn ready_ones_share_the_requests() {
        let backends: Vec<_> = (0..5).map(|i| Backend::named(&format!("{i}"))).collect();
        let addrs: Vec<_> = backends.iter().map(Backend::addr).collect();
        let splitter = Splitter::start(&service(&addrs));
        for _ in 0..50 {
            assert_ok(&splitter.get("a.test", "/"));
        }
        for backend in &backends {
            assert_eq!(backend.seen().len(), 10);
        }
    }

    const DRAINING: &str = "ready: false, serving: true, terminating: true";

    #[test]
    fn draining_ones_are_not_used_while_there_are_others() {
        let (ready, draining) = (Backend::named("ready"), Backend::named("draining"));
        let splitter = Splitter::start(&service(&[ready.addr()]).endpoint(
            "main",
            1,
            draining.addr(),
            DRAINING,
        ));
        for _ in 0..10 {
            assert_eq!(splitter.get("a.test", "/").text(), "ready");
        }
        assert_eq!(draining.connections(), 0);
    }

    #[test]
    fn draining_ones_are_the_last_resort() {
        let draining = Backend::named("draining");
        let gone = Backend::named("gone");
        let splitter = Splitter::start(
            &service(&[])
                .endpoint("main", 1, draining.addr(), DRAINING)
                .endpoint(
                    "main",
                    2,
                    gone.addr(),
                    "ready: false, serving: false, terminating: true",
                ),
        );
        for _ in 0..10 {
            assert_eq!(splitter.get("a.test", "/").text(), "draining");
        }
        assert_eq!(gone.connections(), 0);
    }

    fn split(main: &[SocketAddr], canary: &[SocketAddr], weight: &str) -> Splitter {
        Splitter::start(
            &service(main)
                .canary(
                    "canary",
                    "a.test",
                    "/",
                    "canary",
                    &[("canary-weight", weight), ("canary-by-header", "x-canary")],
                )
                .service("canary", canary),
        )
    }

    #[test]
    fn a_canary_without_any_leaves_all_to_stable() {
        let main = Backend::named("main");
        let splitter = split(&[main.addr()], &[], "100");
        for _ in 0..10 {
            assert_eq!(splitter.get("a.test", "/").text(), "main");
        }
        let answer = splitter.get_with("a.test", "/", "X-Canary: always\r\n");
        assert_eq!(answer.text(), "main");
    }

    #[test]
    fn a_chosen_canary_answers_although_stable_has_none() {
        let canary = Backend::named("canary");
        let splitter = split(&[], &[canary.addr()], "0");
        let answer = splitter.get_with("a.test", "/", "X-Canary: always\r\n");
        assert_eq!(answer.text(), "canary");
        splitter.get("a.test", "/").assert_own(503);
        let splitter = split(&[], &[canary.addr()], "100");
        for _ in 0..10 {
            assert_eq!(splitter.get("a.test", "/").text(), "canary");
        }
        splitter
            .get_with("a.test", "/", "X-Canary: never\r\n")
            .assert_own(503);
    }

    #[test]
    fn a_canary_that_refuses_is_not_replaced_by_stable() {
        let main = Backend::named("main");
        let splitter = split(&[main.addr()], &[refusing()], "100");
        splitter.get("a.test", "/").assert_own(502);
        assert_eq!(main.seen(), []);
    }
}

mod limits {
    use super::*;

    #[test]
    fn connections_beyond_the_limit_are_refused_and_counted() {
        let backend = Backend::named("main");
        let splitter =
            Splitter::before_with(&backend, |settings| settings.limits.max_connections = 2);
        let mut clients = [splitter.client(), splitter.client()];
        for client in &mut clients {
            assert_ok(&client.get("a.test", "/"));
        }
        let mut third = splitter.client();
        third.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
        assert_eq!(third.try_answer("GET"), None);
        eventually("the refusal is counted", || {
            let metrics = splitter.metrics();
            metrics.sum("splitter_connections_refused_total", &[]) == 1.0
                && metrics.sum("splitter_faults_total", &[("fault", "overloaded")]) == 1.0
        });
        // The others do not feel it, and a place that becomes free can be taken.
        for client in &mut clients {
            assert_ok(&client.get("a.test", "/"));
        }
        drop(clients);
        eventually("a place becomes free", || {
            splitter.metrics().sum("splitter_connections_open", &[]) == 0.0
        });
        assert_ok(&splitter.get("a.test", "/"));
    }

    #[test]
    fn no_more_idle_connections_are_kept_than_the_limit() {
        let (line, told, go) = Line::new();
        let backend = Backend::scripted(move |conversation| {
            while conversation.request().is_some() {
                line.say("asked");
                line.wait();
                conversation.send(OK);
            }
            line.say("left");
        });
        let splitter = Splitter::before_with(&backend, |settings| {
            settings.limits.upstream_idle_per_endpoint = 1;
        });
        let mut clients = [splitter.client(), splitter.client(), splitter.client()];
        for client in &mut clients {
            client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
            assert_eq!(told.recv_timeout(PATIENCE), Ok("asked"));
        }
        for _ in 0..3 {
            go.send(()).expect("the backend waits");
        }
        for client in &mut clients {
            assert_ok(&client.answer("GET"));
        }
        for _ in 0..2 {
            assert_eq!(told.recv_timeout(PATIENCE), Ok("left"));
        }
        assert!(told.try_recv().is_err(), "one is kept");
    }
}

mod draining {
    use super::*;

    #[test]
    fn what_is_in_hand_is_finished_and_nothing_new_is_taken() {
        let (line, told, go) = Line::new();
        let backend = Backend::scripted(move |conversation| {
            while let Some(request) = conversation.request() {
                if request.target() == "/slow" {
                    line.say("asked");
                    line.wait();
                }
                conversation.send(OK);
            }
        });
        let mut splitter = Splitter::before(&backend);
        let mut idle = splitter.client();
        assert_ok(&idle.get("a.test", "/"));
        let mut busy = splitter.client();
        busy.send("GET /slow HTTP/1.1\r\nHost: a.test\r\n\r\n");
        assert_eq!(told.recv_timeout(PATIENCE), Ok("asked"));

        splitter.begin_stop();
        assert!(idle.is_closed(), "idle connections end at once");
        eventually("new connections are refused", || {
            std::net::TcpStream::connect(splitter.http()).is_err()
        });
        go.send(()).expect("the backend waits");
        let answer = busy.answer("GET");
        assert_ok(&answer);
        assert_eq!(answer.field("connection"), Some("close"));
        assert!(busy.is_closed());
        splitter.stop();
    }

    #[test]
    fn an_upload_in_hand_is_finished() {
        let backend = Backend::answering(OK);
        let mut splitter = Splitter::before(&backend);
        let mut client = splitter.client();
        client.send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 10\r\n\r\nhello");
        eventually("the upload has begun", || backend.connections() == 1);
        splitter.begin_stop();
        eventually("new connections are refused", || {
            std::net::TcpStream::connect(splitter.http()).is_err()
        });
        client.send("world");
        assert_ok(&client.answer("POST"));
        assert_eq!(backend.last().body, b"helloworld");
        splitter.stop();
    }

    #[test]
    fn what_takes_too_long_is_cut() {
        let (backend, told) = silent();
        let mut splitter =
            Splitter::before_with(&backend, |settings| settings.drain_timeout = SHORT);
        let mut client = splitter.client();
        client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
        assert_eq!(told.recv_timeout(PATIENCE), Ok("asked"));
        splitter.begin_stop();
        assert_eq!(client.try_answer("GET"), None);
        assert_eq!(told.recv_timeout(PATIENCE), Ok("left"));
        splitter.stop();
    }

    #[test]
    fn a_connection_without_a_request_does_not_hold_it_up() {
        let backend = Backend::named("main");
        let mut splitter = Splitter::before_with(&backend, |settings| {
            settings.drain_timeout = Duration::from_secs(60);
        });
        let mut silent = splitter.client();
        let mut idle = splitter.client();
        assert_ok(&idle.get("a.test", "/"));
        let began = std::time::Instant::now();
        splitter.begin_stop();
        assert!(idle.is_closed());
        // The kernel kept it for itself and says nothing until it is spoken to.
        silent.send("GET");
        assert!(silent.is_cut());
        splitter.stop();
        assert!(
            began.elapsed() < Duration::from_secs(10),
            "{:?}",
            began.elapsed()
        );
    }

    #[test]
    fn a_request_of_which_half_has_come_is_served() {
        let backend = Backend::named("main");
        let mut splitter = Splitter::before(&backend);
        let mut client = splitter.client();
        client.send("GET / HTTP/1.1\r\nHo");
        eventually("the half request is read", || {
            splitter.metrics().sum("splitter_connections_open", &[]) == 1.0
        });
        splitter.begin_stop();
        eventually("new connections are refused", || {
            std::net::TcpStream::connect(splitter.http()).is_err()
        });
        client.send("st: a.test\r\n\r\n");
        let answer = client.answer("GET");
        assert_ok(&answer);
        assert_eq!(answer.field("connection"), Some("close"));
        assert!(client.is_closed());
        splitter.stop();
    }
}

mod answers_that_are_none {
    use super::*;

    #[track_caller]
    fn invalid(bytes: impl Into<Vec<u8>>) {
        let bytes = bytes.into();
        let backend = Backend::scripted(move |conversation| {
            if conversation.request().is_some() {
                conversation.send(&bytes);
                conversation.finish();
                conversation.wait_for_close();
            }
        });
        let splitter = Splitter::before(&backend);
        let mut client = splitter.client();
        client.get("a.test", "/").assert_own(502);
        eventually("the fault is counted", || {
            splitter.metrics().sum("splitter_faults_total", &[]) == 1.0
        });
        // It was the backend's fault: the client goes on.
        client.get("a.test", "/").assert_own(502);
    }

    macro_rules! invalid {
        ($($name:ident: $bytes:expr;)*) => {$(
            #[test]
            fn $name() {
                invalid($bytes);
            }
        )*};
    }

    invalid! {
        garbage: "garbage\r\n\r\n";
        binary: &b"\x15\x03\x01\x00\x02\x02\x46"[..];
        a_greeting_of_another_protocol: "220 mail.test ESMTP\r\n";
        only_a_body: "<html>hello</html>";
        half_a_head: "HTTP/1.1 200 OK\r\nContent-Le";
        a_status_that_is_no_number: "HTTP/1.1 abc OK\r\n\r\n";
        a_status_out_of_range: "HTTP/1.1 99 Low\r\nContent-Length: 0\r\n\r\n";
        a_version_that_is_none: "HTTP/3.7 200 OK\r\nContent-Length: 0\r\n\r\n";
        a_field_without_a_colon: "HTTP/1.1 200 OK\r\nnonsense\r\nContent-Length: 0\r\n\r\n";
        a_nul_in_a_field: "HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 0\r\n\r\n";
        a_bare_cr_in_a_field: "HTTP/1.1 200 OK\r\nX: a\rSet-Cookie: b\r\nContent-Length: 0\r\n\r\n";
        two_lengths: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc";
        a_length_that_is_none: "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n";
        only_an_interim_answer: "HTTP/1.1 100 Continue\r\n\r\n";
        a_head_too_large: format!(
            "HTTP/1.1 200 OK\r\nX: {}\r\nContent-Length: 0\r\n\r\n",
            "x".repeat(600 * 1024)
        );
        too_many_fields: format!(
            "HTTP/1.1 200 OK\r\n{}Content-Length: 0\r\n\r\n",
            "X: y\r\n".repeat(2000)
        );
    }

    /// RFC 9112 6.3: the coding overrules the length, and both must not go on together.
    #[test]
    fn a_length_beside_a_coding_does_not_go_on() {
        let backend = Backend::answering(
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n\
             5\r\nhello\r\n0\r\n\r\n",
        );
        let splitter = Splitter::before(&backend);
        let answer = splitter.get("a.test", "/");
        if answer.status == 200 {
            assert_eq!(answer.text(), "hello");
            assert_eq!(answer.field("content-length"), None);
        } else {
            answer.assert_own(502);
        }
    }
}
