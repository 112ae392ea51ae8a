#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

use std::io::Write as _;
use std::mem::MaybeUninit;
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use super::super::clock::Clock;
use super::super::flush::Flusher;
use super::super::io::ClientIo;
use super::*;

/// Far longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// A client of which nothing has been read, and its other end. The clock never ticks.
fn connected() -> (Rc<Client>, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let local = listener.local_addr().unwrap();
    let peer = TcpStream::connect(local).unwrap();
    let (stream, addr) = listener.accept().unwrap();
    stream.set_nonblocking(true).unwrap();
    let (clock, flusher) = (Clock::new(), Rc::<Flusher>::default());
    let socket = Socket::new(stream, PATIENCE, &clock, &flusher);
    let timeouts = Rc::new(Timeouts::default());
    let client = Client::new(
        socket,
        Origin {
            peer: addr,
            client: addr.ip(),
            port: local.port(),
            scheme: "http",
            forwards: false,
            names_client: false,
        },
        "outside",
        &timeouts,
        &Limits::default(),
    );
    (client, peer)
}

/// Reads once and has the guard judge it.
async fn read(client: &Client) -> usize {
    let mut buf = [MaybeUninit::uninit(); 256];
    let n = std::future::poll_fn(|cx| client.socket.poll_read(cx, &mut buf)).await;
    n.expect("the connection stands")
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime
        .block_on(async { tokio::time::timeout(PATIENCE, test).await })
        .expect("nobody waits for the clock, which stands still");
}

#[test]
fn a_body_that_comes_late_is_not_left_to_the_clock() {
    const HEAD: &[u8] = b"POST / HTTP/1.1\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n";
    run(async {
        let (client, mut peer) = connected();
        peer.write_all(HEAD).unwrap();
        assert_eq!(read(&client).await, HEAD.len());
        client.inspect(HEAD).unwrap();
        client.begin();
        let body = read(&client);
        let mut body = std::pin::pin!(body);
        let early = std::future::poll_fn(|cx| Poll::Ready(body.as_mut().poll(cx))).await;
        assert!(early.is_pending(), "nothing has been sent");
        peer.write_all(b"hello").unwrap();
        assert_eq!(body.await, 5);
    });
}

#[test]
fn a_request_without_a_body_costs_no_registration_until_the_clock_says_so() {
    const HEAD: &[u8] = b"GET / HTTP/1.1\r\n\r\n";
    run(async {
        let (client, mut peer) = connected();
        peer.write_all(HEAD).unwrap();
        assert_eq!(read(&client).await, HEAD.len());
        client.inspect(HEAD).unwrap();
        client.begin();
        let gone = |cx: &mut Context<'_>| Poll::Ready(client.poll_gone(cx));
        assert!(!std::future::poll_fn(gone).await);
        assert!(client.socket.is_unregistered());
        drop(peer);
        client.socket.end_laziness();
        std::future::poll_fn(|cx| match client.poll_gone(cx) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
    });
}

#[test]
fn the_end_of_the_stream_goes_with_the_last_bytes() {
    use hyper::rt::Write as _;
    run(async {
        let (client, mut peer) = connected();
        let mut io = ClientIo(client.clone());
        let mut io = std::pin::Pin::new(&mut io);
        std::future::poll_fn(|cx| io.as_mut().poll_write(cx, b"bye"))
            .await
            .unwrap();
        // What hyper does at the end must not send them ahead of it.
        std::future::poll_fn(|cx| io.as_mut().poll_shutdown(cx))
            .await
            .unwrap();
        assert_eq!(client.socket.held(), 3);
        client.socket.close_after_flush();
        client.socket.flush_dirty();
        assert_eq!(client.socket.held(), 0);
        let mut said = [0; 3];
        std::io::Read::read_exact(&mut peer, &mut said).unwrap();
        assert_eq!(&said, b"bye");
    });
}
