//! Splitters that follow a Kubernetes API: a real one in a network namespace of this process, or one
//! that does as it is told (`fake`).
//!
//! Most tests have no node and no pod: they write EndpointSlices, and backends listen on addresses of
//! [`POD_RANGE`], all of which are local in the namespace. Those that want pods have a `runner`.

#[cfg(feature = "cluster")]
pub mod api;
pub mod fake;
pub mod instance;
pub mod objects;
#[cfg(feature = "cluster")]
pub mod plane;
#[cfg(feature = "cluster")]
pub mod runner;
pub mod site;

use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use crate::backend::Backend;

/// Where backends are. EndpointSlices take no loopback address.
pub const POD_RANGE: &str = "198.18.0.0/15";

/// Says that the process is in its namespace.
const INSIDE: &str = "SPLITTER_TEST_NAMESPACE";

/// Goes on in a network namespace of its own, as the same program with the same arguments. Without
/// root it is made in a user namespace, where the system allows that.
pub fn enter_namespace() {
    if std::env::var_os(INSIDE).is_some() {
        return;
    }
    let program = std::env::current_exe().expect("the test's own path");
    let set_up =
        format!("ip link set lo up && ip addr add {POD_RANGE} dev lo && exec \"$0\" \"$@\"");
    let mut unshare = Command::new("unshare");
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|it| it.uid() == 0);
    if !is_root {
        unshare.arg("--map-root-user");
    }
    let error = unshare
        .args(["--net", "--", "sh", "-c", &set_up])
        .arg(program)
        .args(std::env::args_os().skip(1))
        .env(INSIDE, "1")
        .exec();
    panic!("cannot run unshare (of util-linux): {error}");
}

/// A backend on the pod address with this last number, port 8080, that answers with `name`.
pub fn pod(number: u8, name: &str) -> Backend {
    let addr = (pod_ip(number), 8080);
    let listener = TcpListener::bind(addr).expect("nobody else has the pod's address");
    let name = name.to_owned();
    Backend::listening(listener, move |conversation| {
        while conversation.request().is_some() {
            let length = name.len();
            conversation.send(format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{name}"
            ));
        }
    })
}

/// A backend on the pod address with this last number, port 8080, that answers with what it was asked,
/// as the pod with that number of a Service.
pub fn echoing_pod(number: u8, service: &str) -> Backend {
    let addr = (pod_ip(number), 8080);
    let listener = TcpListener::bind(addr).expect("nobody else has the pod's address");
    Backend::echoing_on(listener, service, &format!("{service}-{number}"))
}

/// The pod address with this last number.
pub fn pod_ip(number: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(198, 18, 0, number))
}

/// A text as kubeconfigs and Secrets hold it.
pub fn base64(text: &str) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in text.as_bytes().chunks(3) {
        let bytes = [
            chunk[0],
            *chunk.get(1).unwrap_or(&0),
            *chunk.get(2).unwrap_or(&0),
        ];
        let number = u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]]);
        for place in 0..4 {
            let letter = (number >> (18 - 6 * place)) & 63;
            let used = place <= chunk.len();
            out.push(if used {
                char::from(LETTERS[letter as usize])
            } else {
                '='
            });
        }
    }
    out
}
