//! Finding a running instance, and asking it what its slots are called.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use serde::{Deserialize, Serialize};

use super::steer_args::PinArgs;
use super::values;
use crate::dataplane::Pinned;

/// How long the instance may take for each step of an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often maps and instance are looked up until they belong together.
const TRIES: usize = 20;

/// Between two such tries.
const BETWEEN_TRIES: Duration = Duration::from_millis(100);

/// By what an instance is found.
#[derive(Args, Clone, Debug)]
pub struct InstanceArgs {
    /// The pin directory.
    #[command(flatten)]
    pub pin: PinArgs,

    /// Where the instance answers [default: what it left word of in the pin directory]
    #[arg(long, value_name = "ADDR", value_parser = values::listen)]
    pub admin: Option<SocketAddr>,
}

/// The part of `/config_dump` that is needed here.
#[derive(Clone, Debug, Deserialize)]
pub struct Dump {
    /// How connections reach the pools, as the instance describes it.
    pub steering: serde_json::Value,
    /// The Locations that have anything to weigh.
    pub weights: Vec<SplitDump>,
    /// What was counted where no HTTP is looked at.
    #[serde(default)]
    pub connections: Vec<ConnectionDump>,
}

/// Connections of one Variant of a Service port.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ConnectionDump {
    /// The Service port, as commands name it.
    pub service: String,
    /// `stable` or the canary's Service.
    pub variant: String,
    /// How many it was given.
    pub connections: u64,
    /// How many of them are open.
    pub open: u64,
    /// Bytes from clients.
    pub received: u64,
    /// Bytes to clients.
    pub sent: u64,
}

/// One Location's Split.
#[derive(Clone, Debug, Deserialize)]
pub struct SplitDump {
    /// Host, path and path type for people.
    pub location: String,
    /// The host pattern; empty for any.
    pub host: String,
    /// The path.
    pub path: String,
    /// `Exact` or `Prefix`.
    pub kind: String,
    /// The slot; none when there was no room.
    pub slot: Option<u32>,
    /// Stable first.
    pub variants: Vec<VariantDump>,
}

/// One Variant.
#[derive(Clone, Debug, Deserialize)]
pub struct VariantDump {
    /// `stable` or the Service.
    pub name: String,
    /// The weight that the objects ask for.
    pub wanted: u32,
    /// The weight in the slot.
    pub live: u32,
    /// Requests given to it.
    pub chosen: u64,
}

impl SplitDump {
    /// Whether somebody changed the weights past the objects.
    pub fn is_overridden(&self) -> bool {
        let mut variants = self.variants.iter();
        variants.any(|variant| variant.wanted != variant.live)
    }
}

impl InstanceArgs {
    /// Where the instance answers.
    ///
    /// # Errors
    /// When nothing says so.
    pub fn address(&self, pinned: Option<&Pinned>) -> anyhow::Result<SocketAddr> {
        let left = || pinned.and_then(Pinned::admin);
        let addr = self.admin.or_else(left).with_context(|| {
            let dir = self.pin.pin_dir.display();
            format!(
                "no instance under {dir} says where it answers; start it, or name its --admin \
                 address with --admin"
            )
        })?;
        Ok(reachable(addr))
    }

    /// The pinned maps, and what their instance says of itself. While one instance takes over from
    /// another, the maps may be of one and the answer of the other; then once more.
    ///
    /// # Errors
    /// When there is no instance, it does not answer, or it never is that of the maps.
    pub fn open(&self) -> anyhow::Result<(Pinned, Dump)> {
        for _ in 0..TRIES {
            let pinned = Pinned::open(&self.pin.pin_dir)?;
            let dump = self.ask(Some(&pinned))?;
            if dump.steering["kernel"]["splits_map"] == pinned.splits_map() {
                return Ok((pinned, dump));
            }
            std::thread::sleep(BETWEEN_TRIES);
        }
        bail!(
            "the instance that answers is not that of the maps under {}; name its --pin-dir",
            self.pin.pin_dir.display()
        )
    }

    /// What the instance says of itself.
    ///
    /// # Errors
    /// When it does not answer, or not with what is expected.
    pub fn ask(&self, pinned: Option<&Pinned>) -> anyhow::Result<Dump> {
        let addr = self.address(pinned)?;
        let body = get(addr, "/config_dump")
            .with_context(|| format!("the instance does not answer at {addr}"))?;
        serde_json::from_slice(&body)
            .with_context(|| format!("{addr} does not answer as this version of splitter does"))
    }
}

/// Any address of the host is reached by its loopback address.
fn reachable(addr: SocketAddr) -> SocketAddr {
    let ip: IpAddr = match addr.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, addr.port())
}

fn get(addr: SocketAddr, path: &str) -> anyhow::Result<Vec<u8>> {
    let stream = TcpStream::connect_timeout(&addr, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    get_on(stream, &addr.to_string(), path)
}

/// The body of a page that is asked for on a connection.
///
/// # Errors
/// When it breaks, or the answer is not 200.
pub fn get_on(mut stream: impl Read + Write, host: &str, path: &str) -> anyhow::Result<Vec<u8>> {
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    )?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    body(&answer)
}

/// The body of an answer that ends with its connection.
fn body(answer: &[u8]) -> anyhow::Result<Vec<u8>> {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n");
    let (head, body) = answer.split_at(end.context("it is no HTTP answer")? + 4);
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    if line.split(' ').nth(1) != Some("200") {
        bail!("it says {line}");
    }
    Ok(body.to_vec())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn only_a_good_answer_has_a_body() {
        let good = body(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").unwrap();
        assert_eq!(good, b"{}");
        let error = |answer: &[u8]| body(answer).unwrap_err().to_string();
        let missing = error(b"HTTP/1.1 404 Not Found\r\n\r\n200");
        assert_eq!(missing, "it says HTTP/1.1 404 Not Found");
        assert_eq!(error(b"SSH-2.0"), "it is no HTTP answer");
    }

    #[test]
    fn an_address_for_all_is_reached_by_loopback() {
        let of = |text: &str| reachable(text.parse().unwrap()).to_string();
        assert_eq!(of("0.0.0.0:1"), "127.0.0.1:1");
        assert_eq!(of("[::]:1"), "[::1]:1");
        assert_eq!(of("192.0.2.1:1"), "192.0.2.1:1");
    }
}
