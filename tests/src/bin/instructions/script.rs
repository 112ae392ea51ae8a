//! The requests that are counted, one at a time so that each run makes the same ones in the same way.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::Request;
use hyper_util::rt::{TokioExecutor, TokioIo};
use splitter_tests::client::{self, Client};
use splitter_tests::manifests::Manifests;

/// What clients do.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Way {
    /// HTTP/1.1, all on one connection.
    Kept,
    /// HTTP/1.1, each on a connection of its own.
    Close,
    /// HTTP/2 in clear, a stream after the other on one connection.
    Http2,
}

/// One thing to count.
pub struct Script {
    pub name: &'static str,
    pub way: Way,
    /// The format of the access log, if there is one.
    pub log: Option<&'static str>,
    /// Further annotations of the path, without ingress-nginx's prefix.
    pub policies: &'static [(&'static str, &'static str)],
}

const fn script(name: &'static str, way: Way) -> Script {
    Script {
        name,
        way,
        log: None,
        policies: &[],
    }
}

/// What is counted of the plain proxy, too.
pub const KEPT: Script = script("keepalive", Way::Kept);

pub const SCRIPTS: &[Script] = &[
    KEPT,
    Script {
        log: Some("text"),
        ..script("logged", Way::Kept)
    },
    Script {
        log: Some("json"),
        ..script("logged-json", Way::Kept)
    },
    Script {
        policies: &[
            ("affinity", "cookie"),
            ("enable-cors", "true"),
            ("limit-rps", "100000"),
            ("rewrite-target", "/$2"),
            ("use-regex", "true"),
        ],
        ..script("policies", Way::Kept)
    },
    script("close", Way::Close),
    script("h2c", Way::Http2),
];

const HOST: &str = "shop.example.test";
/// What a browser sends beside, more or less.
const FIELDS: &str = "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0)\r\nAccept: */*\r\n\
    Accept-Language: en\r\nAccept-Encoding: gzip, br\r\nOrigin: https://shop.example.test\r\n\
    Cookie: session=0123456789abcdef; theme=dark\r\n";

impl Script {
    /// The objects: a path that is split by weight, header and cookie.
    pub fn manifests(&self, backend: SocketAddr) -> Manifests {
        let path = match self.policies.is_empty() {
            true => "/api",
            false => "/api(/|$)(.*)",
        };
        let kind = match self.policies.is_empty() {
            true => "Prefix",
            false => "ImplementationSpecific",
        };
        let canary = [
            ("canary", "true"),
            ("canary-weight", "10"),
            ("canary-by-header", "X-Canary"),
            ("canary-by-cookie", "canary"),
        ];
        Manifests::new()
            .ingress("main", HOST, path, kind, "main", self.policies)
            .ingress("canary", HOST, path, kind, "canary", &canary)
            .service("main", &[backend])
            .service("canary", &[backend])
    }

    /// The arguments for its access log, in `dir`.
    pub fn log(&self, dir: &Path) -> Vec<String> {
        match self.log {
            None => vec!["--access-log=off".to_owned()],
            Some(format) => vec![
                format!("--access-log={}", dir.join("access.log").display()),
                format!("--log-format={format}"),
            ],
        }
    }

    /// Makes so many requests.
    pub fn ask(&self, proxy: SocketAddr, times: u32) -> Result<()> {
        match self.way {
            Way::Kept => {
                let mut client = Client::connect(proxy);
                (0..times).try_for_each(|_| is_ok(client.get_with(HOST, "/api/items", FIELDS)))
            }
            Way::Close => {
                let fields = format!("{FIELDS}Connection: close\r\n");
                let ask = || client::get_with(proxy, HOST, "/api/items", &fields);
                (0..times).try_for_each(|_| is_ok(ask()))
            }
            Way::Http2 => tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?
                .block_on(http2(proxy, times)),
        }
    }
}

fn is_ok(answer: client::Answer) -> Result<()> {
    ensure!(answer.status == 200, "answered with {}", answer.status);
    Ok(())
}

async fn http2(proxy: SocketAddr, times: u32) -> Result<()> {
    let stream = tokio::net::TcpStream::connect(proxy).await?;
    stream.set_nodelay(true)?;
    let io = TokioIo::new(stream);
    let handshake = hyper::client::conn::http2::handshake(TokioExecutor::new(), io);
    let (mut sender, connection) = handshake.await?;
    let connection = tokio::spawn(connection);
    for _ in 0..times {
        let mut request =
            Request::get(format!("http://{HOST}/api/items")).body(Empty::<Bytes>::new())?;
        for field in FIELDS.split_terminator("\r\n") {
            let (name, value) = field.split_once(": ").context("a field has a value")?;
            let name: http::HeaderName = name.parse()?;
            request.headers_mut().append(name, value.parse()?);
        }
        sender.ready().await?;
        let response = sender.send_request(request).await?;
        let status = response.status();
        response.into_body().collect().await?;
        ensure!(status == 200, "answered with {status}");
    }
    drop(sender);
    connection.abort();
    Ok(())
}
