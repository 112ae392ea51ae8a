//! What a connection costs that is kept and not used: 100,000 of them, each after one request.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use socket2::{Domain, Socket, Type};
use splitter_tests::backend::Backend;
use splitter_tests::manifests::Manifests;

use crate::process::Process;

/// Ports of one address of ours towards one of its: well below the kernel's usual range.
const FROM_ONE_ADDRESS: usize = 20_000;

/// Files that are open beside the connections.
const OTHERS: u64 = 500;

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n";

pub fn measure(wanted: usize) {
    let connections = wanted.min(most());
    if connections < wanted {
        println!(
            "{connections} idle connections instead of {wanted}: the limit of open files allows no more"
        );
    }
    let backend = Backend::answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    let dir = tempfile::TempDir::new().unwrap();
    let manifests = Manifests::new()
        .main("main", "a.test", "/", "main")
        .service("main", &[backend.addr()]);
    std::fs::write(dir.path().join("objects.yaml"), manifests.yaml()).unwrap();
    let process = Process::start_with(&[
        format!("--manifests={}", dir.path().display()),
        format!("--max-connections={connections}"),
        "--keep-alive-timeout=1h".to_owned(),
    ]);
    // What the first connection of each worker makes for good is none of theirs.
    let first: Vec<_> = (0..100).map(|it| kept(process.http, it)).collect();
    let before = process.memory_kib();
    let rest: Vec<_> = (100..connections)
        .map(|it| kept(process.http, it))
        .collect();
    let kib = process.memory_kib() - before;
    println!(
        "{connections} idle connections: {:.2} KiB each (at most 8)",
        kib as f64 / rest.len() as f64
    );
    drop((first, rest));
}

/// As many connections as both processes may have open; raises their limit as far as that may be.
fn most() -> usize {
    let files = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: files.maximum,
        ..files
    };
    setrlimit(Resource::Nofile, raised).unwrap();
    let most = files.maximum.unwrap_or(u64::MAX).saturating_sub(OTHERS);
    usize::try_from(most).unwrap_or(usize::MAX)
}

/// A connection that has had its answer.
fn kept(proxy: SocketAddr, number: usize) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    let last = u8::try_from(number / FROM_ONE_ADDRESS + 1).unwrap();
    let source = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 0, 1, last)), 0);
    socket.bind(&source.into()).unwrap();
    socket.connect(&proxy.into()).unwrap();
    let mut stream = TcpStream::from(socket);
    stream.write_all(REQUEST).unwrap();
    let mut answer = [0; 1024];
    let mut length = 0;
    while !answer[..length].ends_with(b"\r\n\r\nok") {
        let more = stream.read(&mut answer[length..]).unwrap();
        assert!(more > 0, "it was closed");
        length += more;
    }
    stream
}
