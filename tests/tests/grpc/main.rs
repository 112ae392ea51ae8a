//! gRPC through the splitter, with a real client and real servers.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod calls;
mod canary;
mod codec;
mod faults;
mod guards;
mod secure;
mod server;
mod streams;

use std::net::SocketAddr;

use bytes::Bytes;
use http::uri::PathAndQuery;
use splitter_tests::instance::Splitter;
use splitter_tests::manifests::Manifests;
use tonic::client::Grpc;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Response, Status, Streaming};

use codec::Raw;
use server::Pod;

const GRPC: (&str, &str) = ("backend-protocol", "GRPC");

/// One Ingress for `a.test/` before these pods, with these annotations beside the protocol.
fn before(pods: &[&Pod], notes: &[(&str, &str)]) -> Splitter {
    let addrs: Vec<SocketAddr> = pods.iter().map(|pod| pod.addr).collect();
    at(&addrs, notes)
}

fn at(addrs: &[SocketAddr], notes: &[(&str, &str)]) -> Splitter {
    let notes = [&[GRPC], notes].concat();
    Splitter::start(
        &Manifests::new()
            .ingress("web", "a.test", "/", "Prefix", "app", &notes)
            .service("app", addrs),
    )
}

/// Runs `test` on a runtime of its own.
fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let done = async { tokio::time::timeout(splitter_tests::PATIENCE, test).await };
    runtime.block_on(done).expect("in time");
}

/// A client of one connection.
#[derive(Clone)]
struct Client(Grpc<Channel>);

impl Client {
    async fn of(splitter: &Splitter) -> Self {
        let endpoint = Endpoint::from_shared(format!("http://{}", splitter.http())).unwrap();
        let endpoint = endpoint.origin("http://a.test".parse().unwrap());
        Client(Grpc::new(endpoint.connect().await.unwrap()))
    }

    async fn ready(&mut self) {
        self.0.ready().await.unwrap();
    }

    async fn unary(&mut self, method: &str, message: &str) -> Result<String, Status> {
        let request = Request::new(Bytes::from(message.to_owned()));
        let response = self.unary_with(method, request).await?;
        Ok(String::from_utf8(response.into_inner().to_vec()).unwrap())
    }

    async fn unary_with(
        &mut self,
        method: &str,
        request: Request<Bytes>,
    ) -> Result<Response<Bytes>, Status> {
        self.ready().await;
        self.0.unary(request, path(method), Raw).await
    }

    /// Calls `Stream` with `ask`.
    async fn stream(&mut self, ask: &str) -> Result<Streaming<Bytes>, Status> {
        self.ready().await;
        let request = Request::new(Bytes::from(ask.to_owned()));
        let response = self
            .0
            .server_streaming(request, path("Stream"), Raw)
            .await?;
        Ok(response.into_inner())
    }
}

fn path(method: &str) -> PathAndQuery {
    format!("/t.Echo/{method}").parse().unwrap()
}

/// Waits until `condition` is true, letting the runtime go on meanwhile.
async fn eventually(what: &str, condition: impl Fn() -> bool) {
    let began = std::time::Instant::now();
    while !condition() {
        assert!(began.elapsed() < splitter_tests::PATIENCE, "{what}");
        // Not a wait for something to happen: only lets the others run between two looks.
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}
