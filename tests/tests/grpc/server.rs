//! A gRPC server with one method of each kind, and some that go wrong.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::thread::JoinHandle;

use bytes::Bytes;
use tonic::codegen::Service;
use tonic::codegen::tokio_stream::wrappers::ReceiverStream;
use tonic::metadata::MetadataMap;
use tonic::server::{Grpc, NamedService};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status, Streaming};

use crate::codec::Raw;

/// What a server counts.
#[derive(Default)]
pub struct Counts {
    /// Calls that have begun.
    pub calls: AtomicUsize,
    /// Calls in hand.
    pub open: AtomicUsize,
    /// Messages given to the transport by `Stream`.
    pub sent: AtomicUsize,
}

/// A running server; stops when dropped.
pub struct Pod {
    pub addr: SocketAddr,
    pub counts: Arc<Counts>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Pod {
    pub fn named(name: &'static str) -> Self {
        Self::with_streams(name, None)
    }

    /// One that allows a connection only so many streams at once.
    pub fn with_streams(name: &'static str, streams: Option<u32>) -> Self {
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let (tell, told) = std::sync::mpsc::channel();
        let counts = Arc::<Counts>::default();
        let echo = Echo {
            name,
            counts: counts.clone(),
        };
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let any = SocketAddr::from(([127, 0, 0, 1], 0));
                let listener = tokio::net::TcpListener::bind(any).await.unwrap();
                tell.send(listener.local_addr().unwrap()).unwrap();
                let server = Server::builder()
                    .max_concurrent_streams(streams)
                    .add_service(echo)
                    .serve_with_incoming(TcpIncoming::from(listener));
                tokio::select! {
                    ended = server => ended.unwrap(),
                    _ = stopped => {}
                }
            });
        });
        Pod {
            addr: told.recv().unwrap(),
            counts,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    pub fn calls(&self) -> usize {
        self.counts.calls.load(Ordering::SeqCst)
    }

    pub fn open(&self) -> usize {
        self.counts.open.load(Ordering::SeqCst)
    }

    pub fn sent(&self) -> usize {
        self.counts.sent.load(Ordering::SeqCst)
    }
}

impl Drop for Pod {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The service `t.Echo`.
#[derive(Clone)]
struct Echo {
    name: &'static str,
    counts: Arc<Counts>,
}

impl NamedService for Echo {
    const NAME: &'static str = "t.Echo";
}

type Answers = ReceiverStream<Result<Bytes, Status>>;
type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

impl Service<http::Request<tonic::body::Body>> for Echo {
    type Response = http::Response<tonic::body::Body>;
    type Error = Infallible;
    type Future = Boxed<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<tonic::body::Body>) -> Self::Future {
        let echo = self.clone();
        let open = Open::new(&self.counts);
        Box::pin(async move {
            let _open = open;
            let mut grpc = Grpc::new(Raw);
            Ok(match request.uri().path() {
                "/t.Echo/Unary" => {
                    grpc.unary(Call(move |it| echo.clone().unary(it)), request)
                        .await
                }
                "/t.Echo/Stream" => {
                    let call = Call(move |it| echo.clone().stream(it));
                    grpc.server_streaming(call, request).await
                }
                "/t.Echo/Collect" => grpc.client_streaming(Call(Echo::collect), request).await,
                "/t.Echo/Both" => {
                    let call = Call(move |it| echo.clone().both(it));
                    grpc.streaming(call, request).await
                }
                "/t.Echo/Refuse" => grpc.unary(Call(Echo::refuse), request).await,
                "/t.Echo/Hang" => grpc.unary(Call(Echo::hang), request).await,
                _ => http::Response::builder()
                    .header("content-type", "application/grpc")
                    .header("grpc-status", "12")
                    .body(tonic::body::Body::empty())
                    .unwrap(),
            })
        })
    }
}

/// Counts a call for as long as it is in hand.
struct Open(Arc<Counts>);

impl Open {
    fn new(counts: &Arc<Counts>) -> Self {
        counts.calls.fetch_add(1, Ordering::SeqCst);
        counts.open.fetch_add(1, Ordering::SeqCst);
        Open(counts.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A function as one of tower's services.
struct Call<F>(F);

impl<F, R, O, Fut> Service<Request<R>> for Call<F>
where
    F: FnMut(Request<R>) -> Fut,
    Fut: Future<Output = Result<Response<O>, Status>>,
{
    type Response = Response<O>;
    type Error = Status;
    type Future = Fut;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<R>) -> Fut {
        (self.0)(request)
    }
}

impl Echo {
    /// The server's name and the message; `x-ask` comes back as `x-told`.
    async fn unary(self, request: Request<Bytes>) -> Result<Response<Bytes>, Status> {
        let asked = request.metadata().get("x-ask").cloned();
        let authority = request.metadata().get("x-forwarded-host").cloned();
        let mut text = format!("{}:", self.name).into_bytes();
        text.extend_from_slice(request.get_ref());
        let mut response = Response::new(Bytes::from(text));
        let fields = [("x-told", asked), ("x-host", authority)];
        for (name, value) in fields {
            if let Some(value) = value {
                response.metadata_mut().insert(name, value);
            }
        }
        Ok(response)
    }

    /// `count,size`: so many messages of that size, then OK; `count,size,code` ends with that
    /// status, whose message says so, and a field of its own in the trailers.
    async fn stream(self, request: Request<Bytes>) -> Result<Response<Answers>, Status> {
        let text = String::from_utf8(request.into_inner().to_vec()).unwrap();
        let numbers: Vec<usize> = text.split(',').map(|it| it.parse().unwrap()).collect();
        let (tell, told) = tokio::sync::mpsc::channel(1);
        let open = Open::new(&self.counts);
        tokio::spawn(async move {
            let open = open;
            for index in 0..numbers[0] {
                let byte = u8::try_from(index % 251).unwrap();
                if tell.send(Ok(vec![byte; numbers[1]].into())).await.is_err() {
                    return;
                }
                open.0.sent.fetch_add(1, Ordering::SeqCst);
            }
            if let Some(code) = numbers.get(2) {
                let mut fields = MetadataMap::new();
                fields.insert("x-end", "told".parse().unwrap());
                let code = tonic::Code::from_i32(i32::try_from(*code).unwrap());
                let status = Status::with_metadata(code, "that was all", fields);
                let _ = tell.send(Err(status)).await;
            }
        });
        Ok(Response::new(ReceiverStream::new(told)))
    }

    /// How many messages and bytes came.
    async fn collect(request: Request<Streaming<Bytes>>) -> Result<Response<Bytes>, Status> {
        let mut messages = request.into_inner();
        let (mut count, mut size) = (0, 0);
        while let Some(message) = messages.message().await? {
            count += 1;
            size += message.len();
        }
        Ok(Response::new(format!("{count},{size}").into()))
    }

    /// Each message as soon as it comes.
    async fn both(self, request: Request<Streaming<Bytes>>) -> Result<Response<Answers>, Status> {
        let mut messages = request.into_inner();
        let (tell, told) = tokio::sync::mpsc::channel(1);
        let open = Open::new(&self.counts);
        tokio::spawn(async move {
            let _open = open;
            while let Ok(Some(message)) = messages.message().await {
                if tell.send(Ok(message)).await.is_err() {
                    return;
                }
            }
        });
        Ok(Response::new(ReceiverStream::new(told)))
    }

    /// No message, only a status.
    async fn refuse(_: Request<Bytes>) -> Result<Response<Bytes>, Status> {
        Err(Status::failed_precondition("not today, \u{fc}ber"))
    }

    /// Never answers.
    async fn hang(_: Request<Bytes>) -> Result<Response<Bytes>, Status> {
        std::future::pending().await
    }
}
