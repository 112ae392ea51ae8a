//! The plainest proxy that hyper makes: no routes, no decisions, no limits, no metrics. What splitter
//! adds to it is what the count of instructions watches.
//!
//! `plain LISTEN BACKEND`: two addresses.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

use anyhow::{Context as _, Result, bail};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self as upstream, SendRequest};
use hyper::header::{CONNECTION, HeaderName, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response, Version};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Connections to the backend that nobody uses just now.
type Idle = Rc<RefCell<Vec<SendRequest<Incoming>>>>;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [listen, backend] = args.as_slice() else {
        bail!("usage: plain LISTEN BACKEND");
    };
    let (listen, backend) = (address(listen)?, address(backend)?);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    tokio::task::LocalSet::new().block_on(&runtime, serve(listen, backend))
}

fn address(text: &str) -> Result<SocketAddr> {
    text.parse()
        .with_context(|| format!("{text} is no address with a port"))
}

async fn serve(listen: SocketAddr, backend: SocketAddr) -> Result<()> {
    let listener = TcpListener::bind(listen).await?;
    let mut term = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    let idle = Idle::default();
    loop {
        let (stream, peer) = tokio::select! {
            accepted = listener.accept() => accepted?,
            _ = term.recv() => return Ok(()),
        };
        stream.set_nodelay(true)?;
        tokio::task::spawn_local(connection(stream, peer, backend, idle.clone()));
    }
}

async fn connection(stream: TcpStream, peer: SocketAddr, backend: SocketAddr, idle: Idle) {
    let service = service_fn(move |request| forward(request, peer, backend, idle.clone()));
    let server = hyper::server::conn::http1::Builder::new();
    // How a connection ends is the client's affair.
    let _ = server.serve_connection(TokioIo::new(stream), service).await;
}

async fn forward(
    mut request: Request<Incoming>,
    peer: SocketAddr,
    backend: SocketAddr,
    idle: Idle,
) -> Result<Response<Incoming>> {
    let path = request.uri().path_and_query().map_or("/", |it| it.as_str());
    *request.uri_mut() = path.parse()?;
    *request.version_mut() = Version::HTTP_11;
    let headers = request.headers_mut();
    headers.remove(CONNECTION);
    headers.append(
        X_FORWARDED_FOR,
        HeaderValue::from_str(&peer.ip().to_string())?,
    );
    let kept = idle.borrow_mut().pop();
    let mut sender = match kept {
        Some(sender) => sender,
        None => connect(backend).await?,
    };
    sender.ready().await?;
    let mut response = sender.send_request(request).await?;
    idle.borrow_mut().push(sender);
    response.headers_mut().remove(CONNECTION);
    Ok(response)
}

async fn connect(backend: SocketAddr) -> Result<SendRequest<Incoming>> {
    let stream = TcpStream::connect(backend).await?;
    stream.set_nodelay(true)?;
    let (sender, connection) = upstream::handshake(TokioIo::new(stream)).await?;
    tokio::task::spawn_local(connection);
    Ok(sender)
}
