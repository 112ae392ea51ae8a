//! Bodies: streamed both ways at the slower side's pace, framed as they came, never cut silently.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use splitter_tests::backend::Backend;
use splitter_tests::client::Client;
use splitter_tests::instance::Splitter;
use splitter_tests::noise::Noise;
use splitter_tests::{PATIENCE, eventually};

/// More than a body test can keep in any buffer by mistake.
const LARGE: usize = 20 * 1024 * 1024;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// A splitter before a backend that answers one way.
fn answering(bytes: &str) -> (Backend, Splitter) {
    let backend = Backend::answering(bytes);
    let splitter = Splitter::before(&backend);
    (backend, splitter)
}

mod framing {
    use super::*;

    #[test]
    fn a_length_stays_a_length() {
        let (backend, splitter) = answering(OK);
        let mut client = splitter.client();
        client.send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\n\r\nhello");
        let answer = client.answer("POST");
        assert_eq!(answer.text(), "ok");
        assert_eq!(answer.field("content-length"), Some("2"));
        assert_eq!(answer.field("transfer-encoding"), None);
        let seen = backend.last();
        assert_eq!(seen.body, b"hello");
        assert_eq!(seen.field("content-length"), Some("5"));
        assert_eq!(seen.field("transfer-encoding"), None);
    }

    #[test]
    fn chunks_stay_chunks() {
        let (backend, splitter) = answering(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
        );
        let mut client = splitter.client();
        client.send(
            "POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n\
             1\r\nx\r\n2\r\nyz\r\n0\r\n\r\n",
        );
        let answer = client.answer("POST");
        assert_eq!(answer.text(), "abcde");
        assert_eq!(answer.field("transfer-encoding"), Some("chunked"));
        assert_eq!(answer.field("content-length"), None);
        let seen = backend.last();
        assert_eq!(seen.body, b"xyz");
        assert_eq!(seen.field("transfer-encoding"), Some("chunked"));
        assert_eq!(seen.field("content-length"), None);
    }

    #[test]
    fn a_get_may_have_chunks() {
        let (backend, splitter) = answering(OK);
        let mut client = splitter.client();
        client.send(
            "GET /search HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n\
             5\r\nquery\r\n0\r\n\r\n",
        );
        assert_eq!(client.answer("GET").text(), "ok");
        assert_eq!(backend.last().body, b"query");
        assert_eq!(client.get("a.test", "/").text(), "ok");
    }

    #[test]
    fn a_delete_may_have_a_length() {
        let (backend, splitter) = answering(OK);
        let mut client = splitter.client();
        client.send("DELETE / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 3\r\n\r\nall");
        assert_eq!(client.answer("DELETE").text(), "ok");
        assert_eq!(backend.last().body, b"all");
    }

    #[test]
    fn an_empty_body_stays_empty() {
        let (backend, splitter) = answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        let mut client = splitter.client();
        client.send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 0\r\n\r\n");
        let answer = client.answer("POST");
        assert_eq!(answer.field("content-length"), Some("0"));
        assert_eq!(backend.last().field("content-length"), Some("0"));
        client
            .send("POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
        assert_eq!(client.answer("POST").status, 200);
        assert_eq!(backend.last().body, b"");
    }

    #[test]
    fn an_answer_that_ends_with_its_connection_is_complete() {
        for head in ["HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.0 200 OK\r\n\r\n"] {
            let backend = Backend::scripted(move |conversation| {
                if conversation.request().is_some() {
                    conversation.send(format!("{head}hello"));
                }
            });
            let splitter = Splitter::before(&backend);
            let mut client = splitter.client();
            for _ in 0..3 {
                let answer = client.get("a.test", "/");
                assert_eq!(answer.text(), "hello");
                assert_eq!(answer.field("transfer-encoding"), Some("chunked"));
            }
            assert_eq!(backend.connections(), 3);
        }
    }

    #[test]
    fn http10_gets_an_unknown_length_until_the_close() {
        let (_backend, splitter) = answering(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        );
        for fields in ["", "Connection: keep-alive\r\n"] {
            let mut client = splitter.client();
            client.send(format!("GET / HTTP/1.0\r\nHost: a.test\r\n{fields}\r\n"));
            let answer = client.answer("GET");
            assert_eq!(answer.text(), "hello");
            assert_eq!(answer.field("transfer-encoding"), None);
            assert_eq!(answer.field("content-length"), None);
            assert_ne!(answer.field("connection"), Some("keep-alive"));
        }
    }

    #[test]
    fn http10_may_keep_a_connection_when_the_length_is_known() {
        let (_backend, splitter) = answering(OK);
        let mut client = splitter.client();
        for _ in 0..2 {
            client.send("GET / HTTP/1.0\r\nHost: a.test\r\nConnection: keep-alive\r\n\r\n");
            let answer = client.answer("GET");
            assert_eq!(answer.text(), "ok");
            assert_eq!(answer.field("connection"), Some("keep-alive"));
        }
        client.send("GET / HTTP/1.0\r\nHost: a.test\r\n\r\n");
        assert_eq!(client.answer("GET").text(), "ok");
        assert!(client.is_closed());
    }

    #[test]
    fn http10_uploads_pass() {
        let (backend, splitter) = answering(OK);
        let mut client = splitter.client();
        client.send("POST / HTTP/1.0\r\nHost: a.test\r\nContent-Length: 5\r\n\r\nhello");
        assert_eq!(client.answer("POST").text(), "ok");
        assert_eq!(backend.last().body, b"hello");
        assert!(client.is_closed());
    }
}

mod without_a_body {
    use super::*;

    #[test]
    fn head_keeps_the_length_that_get_would_have() {
        let (backend, splitter) = answering("HTTP/1.1 200 OK\r\nContent-Length: 12345\r\n\r\n");
        let mut client = splitter.client();
        for _ in 0..2 {
            client.send("HEAD / HTTP/1.1\r\nHost: a.test\r\n\r\n");
            let answer = client.answer("HEAD");
            assert_eq!(answer.field("content-length"), Some("12345"));
        }
        assert_eq!(backend.connections(), 1);
        assert_eq!(backend.last().method(), "HEAD");
    }

    #[test]
    fn head_gets_no_length_that_nobody_told() {
        for fields in ["", "Transfer-Encoding: chunked\r\n"] {
            let (backend, splitter) = answering(&format!("HTTP/1.1 200 OK\r\n{fields}\r\n"));
            let mut client = splitter.client();
            for _ in 0..2 {
                client.send("HEAD / HTTP/1.1\r\nHost: a.test\r\n\r\n");
                let answer = client.answer("HEAD");
                assert_eq!(answer.status, 200);
                assert_eq!(answer.field("content-length"), None);
            }
            assert_eq!(backend.connections(), 1);
        }
    }

    #[test]
    fn head_of_an_own_answer_has_no_body() {
        let (_backend, splitter) = answering(OK);
        let mut client = splitter.client();
        for _ in 0..2 {
            client.send("HEAD / HTTP/1.1\r\nHost: nobody.test\r\n\r\n");
            let answer = client.answer("HEAD");
            assert_eq!(answer.status, 404);
            let get = splitter.get("nobody.test", "/");
            assert_eq!(answer.field("content-length"), get.field("content-length"));
        }
    }

    #[test]
    fn no_content_has_neither_body_nor_length() {
        let (backend, splitter) = answering("HTTP/1.1 204 No Content\r\nX: y\r\n\r\n");
        let mut client = splitter.client();
        for _ in 0..2 {
            let answer = client.get("a.test", "/");
            assert_eq!(answer.status, 204);
            assert_eq!(answer.field("content-length"), None);
            assert_eq!(answer.field("transfer-encoding"), None);
            assert_eq!(answer.field("x"), Some("y"));
        }
        assert_eq!(backend.connections(), 1);
    }

    #[test]
    fn not_modified_keeps_what_it_says_of_the_body_it_has_not() {
        for (fields, length) in [("Content-Length: 7\r\n", Some("7")), ("", None)] {
            let (backend, splitter) = answering(&format!(
                "HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n{fields}\r\n"
            ));
            let mut client = splitter.client();
            for _ in 0..2 {
                let answer = client.get("a.test", "/");
                assert_eq!(answer.status, 304);
                assert_eq!(answer.field("etag"), Some("\"x\""));
                // It may be left away, but not changed.
                let told = answer.field("content-length");
                assert!(told.is_none() || told == length, "{told:?}");
                assert_eq!(answer.field("transfer-encoding"), None);
            }
            assert_eq!(backend.connections(), 1);
        }
    }
}

mod interim {
    use super::*;

    /// Reads answers until the final one.
    fn last(client: &mut Client) -> splitter_tests::client::Answer {
        loop {
            let answer = client.answer("GET");
            if answer.status >= 200 {
                return answer;
            }
        }
    }

    #[test]
    fn interim_answers_of_a_backend_do_not_stand_for_the_final_one() {
        for interim in [
            "HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n",
            "HTTP/1.1 102 Processing\r\n\r\n",
            "HTTP/1.1 100 Continue\r\n\r\n",
            "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n",
        ] {
            let (backend, splitter) = answering(&format!("{interim}{OK}"));
            let mut client = splitter.client();
            for _ in 0..2 {
                client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
                let answer = last(&mut client);
                assert_eq!((answer.status, answer.text()), (200, "ok".to_owned()));
            }
            assert_eq!(backend.connections(), 1);
        }
    }

    #[test]
    fn http10_gets_no_interim_answer() {
        let (_backend, splitter) = answering(&format!("HTTP/1.1 103 Early Hints\r\n\r\n{OK}"));
        let mut client = splitter.client();
        client.send("GET / HTTP/1.0\r\nHost: a.test\r\n\r\n");
        assert_eq!(client.answer("GET").status, 200);
    }

    #[test]
    fn a_client_that_waits_is_told_to_continue() {
        let (backend, splitter) = answering(OK);
        let mut client = splitter.client();
        client.send(
            "POST / HTTP/1.1\r\nHost: a.test\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n",
        );
        assert_eq!(client.answer("POST").status, 100);
        client.send("hello");
        assert_eq!(client.answer("POST").text(), "ok");
        assert_eq!(backend.last().body, b"hello");
    }

    #[test]
    fn a_client_that_does_not_wait_is_answered_all_the_same() {
        let (backend, splitter) = answering(OK);
        let mut client = splitter.client();
        client.send(
            "POST / HTTP/1.1\r\nHost: a.test\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n\
             hello",
        );
        let answer = last(&mut client);
        assert_eq!(answer.text(), "ok");
        assert_eq!(backend.last().body, b"hello");
    }

    #[test]
    fn a_refused_client_is_not_told_to_continue() {
        let (_backend, splitter) = answering(OK);
        let mut client = splitter.client();
        client.send(
            "POST / HTTP/1.1\r\nHost: nobody.test\r\nExpect: 100-continue\r\n\
             Content-Length: 5\r\n\r\n",
        );
        client.answer("POST").assert_own(404);
    }

    #[test]
    fn chunks_may_be_waited_for_too() {
        let (backend, splitter) = answering(OK);
        let mut client = splitter.client();
        client.send(
            "PUT / HTTP/1.1\r\nHost: a.test\r\nExpect: 100-Continue\r\n\
             Transfer-Encoding: chunked\r\n\r\n",
        );
        assert_eq!(client.answer("PUT").status, 100);
        client.send("5\r\nhello\r\n0\r\n\r\n");
        assert_eq!(client.answer("PUT").text(), "ok");
        assert_eq!(backend.last().body, b"hello");
    }
}

mod trailers {
    use super::*;

    const ANSWER: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n\
        3\r\nabc\r\n0\r\nX-Sum: 900150983cd24fb0\r\n\r\n";

    #[test]
    fn go_to_a_client_that_takes_them() {
        let (backend, splitter) = answering(ANSWER);
        let answer = splitter.get_with("a.test", "/", "TE: trailers\r\nConnection: TE\r\n");
        assert_eq!(answer.text(), "abc");
        let sum = ("x-sum".to_owned(), "900150983cd24fb0".to_owned());
        assert_eq!(answer.trailers, [sum]);
        assert_eq!(backend.last().field("te"), Some("trailers"));
    }

    #[test]
    fn do_not_disturb_a_client_that_does_not() {
        let (backend, splitter) = answering(ANSWER);
        let mut client = splitter.client();
        for _ in 0..2 {
            assert_eq!(client.get("a.test", "/").text(), "abc");
        }
        assert_eq!(backend.last().field("te"), None);
        assert_eq!(backend.connections(), 1);
    }

    #[test]
    fn go_to_the_backend() {
        let (backend, splitter) = answering(OK);
        let mut client = splitter.client();
        client.send(
            "POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\
             \r\n3\r\nabc\r\n0\r\nX-Sum: 12\r\n\r\n",
        );
        assert_eq!(client.answer("POST").text(), "ok");
        let seen = backend.last();
        assert_eq!(seen.body, b"abc");
        assert_eq!(seen.trailers, [("x-sum".to_owned(), "12".to_owned())]);
    }

    /// RFC 9110 6.5.1: what frames, routes or authenticates a message does not stand in a trailer.
    #[test]
    fn do_not_change_the_message() {
        let (backend, splitter) = answering(OK);
        let mut client = splitter.client();
        client.send(
            "POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\
             Trailer: Content-Length, Host, Transfer-Encoding\r\n\r\n\
             3\r\nabc\r\n0\r\nContent-Length: 99\r\nHost: b.test\r\n\
             Transfer-Encoding: gzip\r\n\r\n",
        );
        let answer = client.answer("POST");
        if answer.status == 200 {
            assert_eq!(backend.last().trailers, []);
        } else {
            answer.assert_own(400);
        }
    }
}

mod streaming {
    use super::*;

    /// Lets a script, which may run more than once, receive.
    struct Shared(Mutex<Receiver<()>>);

    impl Shared {
        fn wait(&self) {
            let receiver = self.0.lock().unwrap_or_else(|e| e.into_inner());
            let _ = receiver.recv_timeout(PATIENCE);
        }
    }

    #[test]
    fn each_part_of_an_answer_arrives_before_the_next_is_sent() {
        let (go, gone) = channel();
        let gone = Shared(Mutex::new(gone));
        let backend = Backend::scripted(move |conversation| {
            conversation.request();
            conversation.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
            for i in 0..3 {
                gone.wait();
                conversation.send(format!("1\r\n{i}\r\n"));
            }
            gone.wait();
            conversation.send("0\r\n\r\n");
        });
        let splitter = Splitter::before(&backend);
        let mut client = splitter.client();
        client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
        // The head alone, too.
        assert_eq!(client.head().status, 200);
        for i in 0..3 {
            go.send(()).expect("the backend waits");
            assert_eq!(client.chunk(), Some(format!("{i}").into_bytes()));
        }
        go.send(()).expect("the backend waits");
        assert_eq!(client.chunk(), Some(Vec::new()));
    }

    #[test]
    fn each_part_of_an_upload_arrives_before_the_next_is_sent() {
        let (seen, sees) = channel();
        let seen = Mutex::new(seen);
        let backend = Backend::scripted(move |conversation| {
            let Some(head) = conversation.head() else {
                return;
            };
            let tell = |bytes: Vec<u8>| {
                let seen = seen.lock().unwrap_or_else(|e| e.into_inner());
                let _ = seen.send(bytes);
            };
            tell(head.method().into());
            for _ in 0..3 {
                tell(conversation.read(2));
            }
            conversation.send(OK);
        });
        let splitter = Splitter::before(&backend);
        let mut client = splitter.client();
        client.send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 6\r\n\r\n");
        assert_eq!(sees.recv_timeout(PATIENCE).as_deref(), Ok(&b"POST"[..]));
        for part in ["ab", "cd", "ef"] {
            client.send(part);
            assert_eq!(sees.recv_timeout(PATIENCE).as_deref(), Ok(part.as_bytes()));
        }
        assert_eq!(client.answer("POST").text(), "ok");
    }

    /// A dialogue within one request, as some RPC protocols have it.
    #[test]
    fn an_answer_may_begin_before_the_upload_ends() {
        let backend = Backend::scripted(|conversation| {
            if conversation.head().is_none() {
                return;
            }
            conversation.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
            for _ in 0..3 {
                let part = String::from_utf8_lossy(&conversation.read(2)).into_owned();
                conversation.send(format!("4\r\n<{part}>\r\n"));
            }
            conversation.send("0\r\n\r\n");
        });
        let splitter = Splitter::before(&backend);
        let mut client = splitter.client();
        client.send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 6\r\n\r\n");
        assert_eq!(client.head().status, 200);
        for part in ["ab", "cd", "ef"] {
            client.send(part);
            assert_eq!(client.chunk(), Some(format!("<{part}>").into_bytes()));
        }
        assert_eq!(client.chunk(), Some(Vec::new()));
    }

    #[test]
    fn an_early_answer_reaches_a_client_that_still_sends() {
        let backend = Backend::scripted(|conversation| {
            if conversation.head().is_some() {
                conversation.send(
                    "HTTP/1.1 413 Content Too Large\r\nContent-Length: 4\r\n\
                     Connection: close\r\n\r\nmuch",
                );
                conversation.finish();
                conversation.wait_for_close();
            }
        });
        let splitter = Splitter::before(&backend);
        let mut client = splitter.client();
        client.send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 50000000\r\n\r\n");
        client.send(vec![b'x'; 200 * 1024]);
        let answer = client.answer("POST");
        assert_eq!((answer.status, answer.text()), (413, "much".to_owned()));
        // Nothing else can come on this connection before 50 MB have gone.
        assert!(client.is_cut());
        // And the next one is served.
        assert_eq!(splitter.get("a.test", "/").status, 413);
    }
}

mod pressure {
    use super::*;

    const TOTAL: usize = 96 * 1024 * 1024;

    /// All buffers of the kernel on the way (two connections) and of the proxy hold less.
    const BUFFERS: usize = 40 * 1024 * 1024;

    /// When a side that sends as fast as it can counts as stopped.
    const STALL: Duration = Duration::from_millis(700);

    /// Writes up to `n` bytes, until the peer takes no more for [`STALL`].
    fn push(mut stream: &TcpStream, n: usize) -> usize {
        stream.set_write_timeout(Some(STALL)).expect("a timeout");
        let piece = [b'x'; 64 * 1024];
        let mut written = 0;
        while written < n {
            match stream.write(&piece[..piece.len().min(n - written)]) {
                Ok(n) if n > 0 => written += n,
                _ => break,
            }
        }
        stream.set_write_timeout(Some(PATIENCE)).expect("a timeout");
        written
    }

    fn drain(mut from: impl Read, n: usize) -> usize {
        let mut buf = vec![0; 256 * 1024];
        let mut read = 0;
        while read < n {
            match from.read(&mut buf) {
                Ok(n) if n > 0 => read += n,
                _ => break,
            }
        }
        read
    }

    #[test]
    fn a_client_that_does_not_read_stops_the_backend() {
        let (stalled, stalls) = channel();
        let stalled = Mutex::new(stalled);
        let backend = Backend::scripted(move |conversation| {
            conversation.request();
            conversation.send(format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {TOTAL}\r\n\r\n"
            ));
            let written = push(conversation.stream(), TOTAL);
            let tell = stalled.lock().unwrap_or_else(|e| e.into_inner());
            let _ = tell.send(written);
            push(conversation.stream(), TOTAL - written);
        });
        let splitter = Splitter::before(&backend);
        let mut client = splitter.client();
        client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
        let taken = stalls.recv_timeout(PATIENCE).expect("the backend stops");
        assert!(taken < BUFFERS, "{taken} bytes are somewhere");
        assert_eq!(client.head().status, 200);
        assert_eq!(drain(client.reader(), TOTAL), TOTAL);
    }

    #[test]
    fn a_backend_that_does_not_read_stops_the_client() {
        let (go, gone) = channel::<()>();
        let gone = Mutex::new(gone);
        let backend = Backend::scripted(move |conversation| {
            if conversation.head().is_some() {
                let wait = gone.lock().unwrap_or_else(|e| e.into_inner());
                let _ = wait.recv_timeout(PATIENCE);
                drain(conversation.reader(), TOTAL);
                conversation.send(OK);
            }
        });
        let splitter = Splitter::before(&backend);
        let mut client = splitter.client();
        client.send(format!(
            "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: {TOTAL}\r\n\r\n"
        ));
        let taken = push(client.stream(), TOTAL);
        assert!(taken < BUFFERS, "{taken} bytes are somewhere");
        go.send(()).expect("the backend waits");
        assert_eq!(push(client.stream(), TOTAL - taken), TOTAL - taken);
        assert_eq!(client.answer("POST").text(), "ok");
    }
}

mod large {
    use super::*;

    /// In no step with any buffer.
    const CHUNK: usize = 30_011;

    #[test]
    fn an_answer_of_known_length_arrives_whole() {
        let backend = Backend::scripted(|conversation| {
            while conversation.request().is_some() {
                conversation.send(format!(
                    "HTTP/1.1 200 OK\r\nContent-Length: {LARGE}\r\n\r\n"
                ));
                Noise::new(1).write_to(conversation.stream(), LARGE);
            }
        });
        let splitter = Splitter::before(&backend);
        let mut client = splitter.client();
        for _ in 0..2 {
            client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
            assert_eq!(client.head().status, 200);
            assert_eq!(Noise::new(1).check_from(client.reader(), LARGE), LARGE);
        }
        assert_eq!(backend.connections(), 1);
    }

    #[test]
    fn a_chunked_answer_arrives_whole() {
        let backend = Backend::scripted(|conversation| {
            while conversation.request().is_some() {
                conversation.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
                let mut noise = Noise::new(2);
                for _ in 0..LARGE / CHUNK {
                    conversation.send(format!("{CHUNK:x}\r\n"));
                    conversation.send(noise.next(CHUNK));
                    conversation.send("\r\n");
                }
                conversation.send("0\r\n\r\n");
            }
        });
        let splitter = Splitter::before(&backend);
        let body = splitter.get("a.test", "/").body;
        let length = LARGE / CHUNK * CHUNK;
        assert_eq!(body.len(), length);
        assert_eq!(Noise::new(2).check_from(&body[..], length), length);
    }

    #[test]
    fn an_upload_of_known_length_arrives_whole() {
        let backend = Backend::scripted(|conversation| {
            while conversation.head().is_some() {
                let good = Noise::new(3).check_from(conversation.reader(), LARGE);
                let body = good.to_string();
                let length = body.len();
                conversation.send(format!(
                    "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}"
                ));
            }
        });
        let splitter = Splitter::before(&backend);
        let mut client = splitter.client();
        for _ in 0..2 {
            client.send(format!(
                "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: {LARGE}\r\n\r\n"
            ));
            assert_eq!(Noise::new(3).write_to(client.stream(), LARGE), LARGE);
            assert_eq!(client.answer("POST").text(), LARGE.to_string());
        }
        assert_eq!(backend.connections(), 1);
    }

    #[test]
    fn a_chunked_upload_arrives_whole() {
        let (backend, splitter) = answering(OK);
        let mut client = splitter.client();
        client.send("POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n");
        let mut noise = Noise::new(4);
        for _ in 0..LARGE / CHUNK {
            client.send(format!("{CHUNK:x}\r\n"));
            client.send(noise.next(CHUNK));
            client.send("\r\n");
        }
        client.send("0\r\n\r\n");
        assert_eq!(client.answer("POST").text(), "ok");
        let body = backend.last().body;
        let length = LARGE / CHUNK * CHUNK;
        assert_eq!(body.len(), length);
        assert_eq!(Noise::new(4).check_from(&body[..], length), length);
    }
}

mod cuts {
    use super::*;

    /// The backend sends this and, when told to, ends the connection by a close or a reset.
    fn cutting(bytes: &'static str, reset: bool) -> (Backend, Splitter, Sender<()>) {
        let (cut, when) = channel::<()>();
        let when = Mutex::new(when);
        let backend = Backend::scripted(move |conversation| {
            if conversation.request().is_some() {
                conversation.send(bytes);
                let when = when.lock().unwrap_or_else(|e| e.into_inner());
                let _ = when.recv_timeout(PATIENCE);
                if reset {
                    conversation.end_with_reset();
                }
            }
        });
        let splitter = Splitter::before(&backend);
        (backend, splitter, cut)
    }

    /// The client gets what came, and cannot take it for the whole.
    #[track_caller]
    fn is_cut(bytes: &'static str, version: &str) {
        for reset in [false, true] {
            let (_backend, splitter, cut) = cutting(bytes, reset);
            let mut client = splitter.client();
            client.send(format!("GET / {version}\r\nHost: a.test\r\n\r\n"));
            let head = client.head();
            assert_eq!(head.status, 200);
            let chunked = head.field("transfer-encoding").is_some();
            match chunked {
                true => assert_eq!(client.chunk().as_deref(), Some(&b"hello"[..])),
                false => assert_eq!(client.read(5), b"hello"),
            }
            cut.send(()).expect("the backend waits");
            let mut rest = Vec::new();
            let end = client.reader().read_to_end(&mut rest);
            assert_eq!(rest, b"", "nothing that could be an end");
            if head.field("content-length").is_none() && !chunked {
                assert!(end.is_err(), "a close would be the end of the answer");
            }
        }
    }

    const LENGTH: &str = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello";
    const CHUNKS: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n";

    #[test]
    fn a_body_shorter_than_its_length_is_cut() {
        is_cut(LENGTH, "HTTP/1.1");
    }

    #[test]
    fn chunks_without_the_last_are_cut() {
        is_cut(CHUNKS, "HTTP/1.1");
    }

    #[test]
    fn http10_is_told_by_a_reset_when_it_knows_no_length() {
        is_cut(LENGTH, "HTTP/1.0");
        is_cut(CHUNKS, "HTTP/1.0");
    }

    #[test]
    fn a_reset_is_not_the_end_of_an_answer() {
        let (_backend, splitter, cut) = cutting("HTTP/1.1 200 OK\r\n\r\nhello", true);
        let mut client = splitter.client();
        client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
        assert_eq!(client.head().status, 200);
        assert_eq!(client.chunk().as_deref(), Some(&b"hello"[..]));
        cut.send(()).expect("the backend waits");
        assert_eq!(client.chunk(), None);
    }

    #[test]
    fn a_malformed_chunk_is_a_cut() {
        let (_backend, splitter) = answering(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nnonsense\r\n",
        );
        let mut client = splitter.client();
        client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
        assert_eq!(client.try_answer("GET"), None);
    }
}

mod connections {
    use super::*;

    #[test]
    fn a_thousand_requests_share_one_connection_each_side() {
        let backend = Backend::reflecting();
        let splitter = Splitter::before(&backend);
        let mut client = splitter.client();
        for i in 0..1000 {
            let path = format!("/{i}");
            assert_eq!(client.get("a.test", &path).text(), path);
        }
        assert_eq!(backend.connections(), 1);
    }

    #[test]
    fn clients_share_kept_connections_to_the_backend() {
        for answer in [
            OK,
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 204 No Content\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        ] {
            let (backend, splitter) = answering(answer);
            for _ in 0..10 {
                assert!(splitter.get("a.test", "/").status < 300);
            }
            assert_eq!(backend.connections(), 1, "{answer}");
        }
    }

    #[test]
    fn a_complete_answer_counts_as_one() {
        for answer in [
            OK,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n0\r\nX: y\r\n\r\n",
        ] {
            let (_backend, splitter) = answering(answer);
            assert_eq!(splitter.get("a.test", "/").status, 200);
            eventually("the request is counted", || {
                splitter.metrics().sum("splitter_requests_total", &[]) == 1.0
            });
            assert_eq!(splitter.faults("client-gone"), 0.0, "{answer}");
        }
    }

    #[test]
    fn a_client_that_asks_for_a_close_gets_it() {
        let backend = Backend::named("main");
        let splitter = Splitter::before(&backend);
        for fields in ["Connection: close\r\n", "Connection: foo, Close\r\n"] {
            let mut client = splitter.client();
            let answer = client.get_with("a.test", "/", fields);
            assert_eq!(answer.text(), "main");
            assert_eq!(answer.field("connection"), Some("close"));
            assert!(client.is_closed());
        }
        // Which is no business of the backend.
        assert_eq!(backend.connections(), 1);
        assert_ne!(backend.last().field("connection"), Some("close"));
    }

    #[test]
    fn a_backend_that_closes_does_not_close_the_client() {
        let backend = Backend::scripted(|conversation| {
            if conversation.request().is_some() {
                conversation
                    .send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
            }
        });
        let splitter = Splitter::before(&backend);
        let mut client = splitter.client();
        for _ in 0..3 {
            let answer = client.get("a.test", "/");
            assert_eq!(answer.text(), "ok");
            assert_eq!(answer.field("connection"), None);
        }
        assert_eq!(backend.connections(), 3);
    }

    #[test]
    fn a_http10_backend_is_asked_anew_each_time() {
        let backend = Backend::scripted(|conversation| {
            if conversation.request().is_some() {
                conversation.send("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok");
            }
        });
        let splitter = Splitter::before(&backend);
        let mut client = splitter.client();
        for _ in 0..3 {
            assert_eq!(client.get("a.test", "/").text(), "ok");
        }
    }

    #[test]
    fn requests_at_the_same_time_have_connections_of_their_own() {
        let (arrived, arrivals) = channel();
        let (go, gone) = channel::<()>();
        let shared = Mutex::new((arrived, gone));
        let backend = Backend::scripted(move |conversation| {
            while conversation.request().is_some() {
                let shared = shared.lock().unwrap_or_else(|e| e.into_inner());
                let _ = shared.0.send(());
                drop(shared);
                conversation.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n");
                // Holds the answer until the other request is here too.
                conversation.send("ok");
            }
        });
        let splitter = Splitter::before(&backend);
        let mut clients = [splitter.client(), splitter.client()];
        for client in &mut clients {
            client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
        }
        for _ in 0..2 {
            arrivals.recv_timeout(PATIENCE).expect("a request arrives");
        }
        let _ = go.send(());
        for client in &mut clients {
            assert_eq!(client.answer("GET").text(), "ok");
        }
    }
}
