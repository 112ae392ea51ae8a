//! WebSocket with a real client and real servers, through a canary.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use splitter::config::Settings;
use splitter_tests::instance::Splitter;
use splitter_tests::manifests::Manifests;
use splitter_tests::{PATIENCE, eventually};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::handshake::server::{Request, Response};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{self, Error, Message, WebSocket};

/// A WebSocket server that says its name and then echoes; stops when dropped.
struct Pod {
    addr: SocketAddr,
    open: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Pod {
    fn named(name: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let (open, stop) = (Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
        let (counted, stopped) = (open.clone(), stop.clone());
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                let (stream, open) = (stream.unwrap(), counted.clone());
                std::thread::spawn(move || {
                    open.fetch_add(1, Ordering::SeqCst);
                    serve(name, stream);
                    open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Pod {
            addr,
            open,
            stop,
            thread: Some(thread),
        }
    }

    fn open(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }
}

impl Drop for Pod {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.addr);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Says its name, then sends back each message; `close CODE` closes with that code.
fn serve(name: &str, stream: TcpStream) {
    stream.set_nodelay(true).unwrap();
    #[allow(clippy::result_large_err, reason = "the trait wants it so")]
    let chosen = |request: &Request, mut response: Response| {
        // The first of the protocols that the client speaks.
        let offered = request.headers().get("sec-websocket-protocol");
        if let Some(first) = offered.and_then(|it| it.to_str().ok()?.split(',').next()) {
            let first = first.trim().parse().unwrap();
            response
                .headers_mut()
                .insert("sec-websocket-protocol", first);
        }
        Ok(response)
    };
    let Ok(mut socket) = tungstenite::accept_hdr(stream, chosen) else {
        return;
    };
    let _ = socket.send(Message::text(name));
    while let Ok(message) = socket.read() {
        let answered = match message {
            Message::Text(text) if text.starts_with("close ") => {
                let code = text.strip_prefix("close ").and_then(|it| it.parse().ok());
                let frame = CloseFrame {
                    code: CloseCode::from(code.unwrap_or(0)),
                    reason: "asked to".into(),
                };
                socket.close(Some(frame))
            }
            Message::Text(_) | Message::Binary(_) => socket.send(message),
            // A ping is answered by reading on.
            _ => socket.flush(),
        };
        if answered.is_err() {
            return;
        }
    }
}

/// The Ingress with a canary by header.
fn split(stable: &Pod, canary: &Pod, change: impl FnOnce(&mut Settings)) -> Splitter {
    let rule = [("canary-by-header", "x-next")];
    let notes = [("proxy-read-timeout", "3")];
    let manifests = Manifests::new()
        .ingress("web", "a.test", "/", "Prefix", "app", &notes)
        .canary("next", "a.test", "/", "app-next", &rule)
        .service("app", &[stable.addr])
        .service("app-next", &[canary.addr]);
    Splitter::start_with(&manifests, change)
}

/// A client that has heard who answers.
fn connect(splitter: &Splitter, side: &str) -> (WebSocket<TcpStream>, String) {
    let stream = TcpStream::connect(splitter.http()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut request = "ws://a.test/chat".into_client_request().unwrap();
    let headers = request.headers_mut();
    headers.insert("x-next", side.parse().unwrap());
    headers.insert("sec-websocket-protocol", "chat, other".parse().unwrap());
    let (mut socket, response) = tungstenite::client(request, stream).unwrap();
    assert_eq!(response.headers()["sec-websocket-protocol"], "chat");
    let name = socket.read().unwrap().into_text().unwrap();
    (socket, name.to_string())
}

fn both() -> (Pod, Pod) {
    (Pod::named("stable"), Pod::named("canary"))
}

#[test]
fn messages_come_back_from_the_side_that_was_chosen() {
    let (stable, canary) = both();
    let splitter = split(&stable, &canary, |_| {});
    for (side, who) in [("never", "stable"), ("always", "canary"), ("?", "stable")] {
        let (mut socket, name) = connect(&splitter, side);
        assert_eq!(name, who);
        for size in [0, 1, 125, 126, 65_535, 65_536, 1_000_000] {
            let text = Message::text("x".repeat(size));
            socket.send(text.clone()).unwrap();
            assert_eq!(socket.read().unwrap(), text);
            let bytes = Message::binary(vec![0xa5; size]);
            socket.send(bytes.clone()).unwrap();
            assert_eq!(socket.read().unwrap(), bytes);
        }
    }
}

#[test]
fn pings_are_answered_by_the_pod() {
    let (stable, canary) = both();
    let splitter = split(&stable, &canary, |_| {});
    let (mut socket, _) = connect(&splitter, "always");
    socket.send(Message::Ping("are you there".into())).unwrap();
    assert_eq!(
        socket.read().unwrap(),
        Message::Pong("are you there".into())
    );
}

#[test]
fn close_codes_reach_the_other_side() {
    let (stable, canary) = both();
    let splitter = split(&stable, &canary, |_| {});
    for code in [1000, 1001, 1011, 1013, 4000, 4999] {
        // The pod closes.
        let (mut socket, _) = connect(&splitter, "always");
        socket.send(Message::text(format!("close {code}"))).unwrap();
        let Message::Close(Some(frame)) = socket.read().unwrap() else {
            panic!("no close");
        };
        assert_eq!((u16::from(frame.code), &*frame.reason), (code, "asked to"));
        assert!(matches!(socket.read(), Err(Error::ConnectionClosed)));
        // The client closes, and hears its own code.
        let (mut socket, _) = connect(&splitter, "never");
        let frame = CloseFrame {
            code: CloseCode::from(code),
            reason: "bye".into(),
        };
        socket.close(Some(frame.clone())).unwrap();
        assert_eq!(socket.read().unwrap(), Message::Close(Some(frame)));
        assert!(matches!(socket.read(), Err(Error::ConnectionClosed)));
    }
    eventually("both pods have let go", || {
        stable.open() + canary.open() == 0
    });
}

#[test]
fn a_client_that_is_gone_is_told_to_the_pod() {
    let (stable, canary) = both();
    let splitter = split(&stable, &canary, |_| {});
    let (socket, _) = connect(&splitter, "always");
    assert_eq!(canary.open(), 1);
    drop(socket);
    eventually("the pod has let go", || canary.open() == 0);
}

/// The longer of the tunnel's time and the Location's own, which is what is written for WebSockets.
#[test]
fn silence_has_its_time() {
    let (stable, canary) = both();
    let short = |settings: &mut Settings| settings.timeouts.tunnel = Duration::from_millis(250);
    let splitter = split(&stable, &canary, short);
    let (mut socket, _) = connect(&splitter, "always");
    let stream = socket.get_ref().try_clone().unwrap();
    // Nothing comes, so this ends with the time.
    let silence = Duration::from_millis(1_500);
    stream.set_read_timeout(Some(silence)).unwrap();
    assert!(matches!(socket.read(), Err(Error::Io(_))));
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.send(Message::text("still there")).unwrap();
    assert_eq!(socket.read().unwrap(), Message::text("still there"));
    let ended = socket.read();
    let timed_out = |e: &std::io::Error| e.kind() == std::io::ErrorKind::WouldBlock;
    assert!(
        !matches!(&ended, Err(Error::Io(e)) if timed_out(e)),
        "the tunnel is given up"
    );
}
