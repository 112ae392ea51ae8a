//! Clients that measure, and those that are too many.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_setaffinity};
use socket2::{Domain, Protocol, Socket, Type};
use splitter_tests::PATIENCE;
use splitter_tests::bpf::Namespace;
use splitter_tests::bpf::site::HOST;

/// Where the splitter answers callers from everywhere.
pub const TO: &str = "203.0.113.1:80";

/// Keeps the calling thread to one CPU, where there are two.
pub fn keep_to(cpu: usize) {
    let mut set = CpuSet::new();
    set.set(cpu);
    // With one CPU there is nothing to choose.
    let _ = sched_setaffinity(None, &set);
}

fn connect() -> TcpStream {
    let to: SocketAddr = TO.parse().unwrap();
    let stream = TcpStream::connect(to).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Asks for a host on a kept connection; the answer has this status and a body that ends so.
fn ask(stream: &mut TcpStream, host: &str, status: &str, end: &str) -> std::io::Result<()> {
    stream.write_all(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes())?;
    let mut buffer = [0; 4096];
    let mut len = 0;
    loop {
        let read = stream.read(&mut buffer[len..])?;
        len += read;
        let text = String::from_utf8_lossy(&buffer[..len]);
        if read == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        assert!(text.starts_with(&format!("HTTP/1.1 {status}")), "{text}");
        if text.contains("\r\n\r\n") && text.ends_with(end) {
            return Ok(());
        }
    }
}

/// A request that a backend answers. All weight is with the one of this name.
fn ask_backend(stream: &mut TcpStream) {
    ask(stream, HOST, "200", "web").unwrap();
}

/// Connections with one request each, one after the other, on as many threads; gives how many a
/// second.
pub fn connections(from: &Namespace, threads: usize, time: Duration) -> f64 {
    let done = AtomicU64::new(0);
    let began = Instant::now();
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                from.run(|| {
                    while began.elapsed() < time {
                        let mut stream = connect();
                        let request =
                            format!("GET / HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n");
                        stream.write_all(request.as_bytes()).unwrap();
                        let mut answer = String::new();
                        stream.read_to_string(&mut answer).unwrap();
                        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                });
            });
        }
    });
    done.load(Ordering::Relaxed) as f64 / began.elapsed().as_secs_f64()
}

/// Requests on kept connections at a fixed rate, whether answers come in time or not: each is timed
/// from when it was due. Gives the latency below which 99 of 100 are, in milliseconds.
pub fn p99(from: &Namespace, cpu: usize, rate: u32, time: Duration) -> f64 {
    const CONNECTIONS: u32 = 4;
    let every = Duration::from_secs(1) * CONNECTIONS / rate;
    let mut latencies = thread::scope(|scope| {
        let clients: Vec<_> = (0..CONNECTIONS)
            .map(|n| {
                scope.spawn(move || {
                    from.run(|| {
                        keep_to(cpu);
                        let mut stream = connect();
                        ask_backend(&mut stream);
                        let began = Instant::now() + every * n / CONNECTIONS;
                        let mut latencies = Vec::new();
                        let mut due = began;
                        while due < began + time {
                            thread::sleep(due.saturating_duration_since(Instant::now()));
                            ask_backend(&mut stream);
                            latencies.push(due.elapsed().as_secs_f64() * 1000.0);
                            due += every;
                        }
                        latencies
                    })
                })
            })
            .collect();
        let all = clients
            .into_iter()
            .flat_map(|client| client.join().unwrap());
        all.collect::<Vec<_>>()
    });
    latencies.sort_by(f64::total_cmp);
    latencies[latencies.len() * 99 / 100]
}

/// Requests as fast as they are answered, on this many kept connections, until `stop`. Gives how
/// many were answered. A connection that is refused is opened again.
pub fn keep_alive_flood(from: &Namespace, cpu: usize, many: usize, stop: &AtomicBool) -> u64 {
    let done = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..many {
            scope.spawn(|| {
                from.run(|| {
                    keep_to(cpu);
                    let mut stream = connect();
                    while !stop.load(Ordering::Relaxed) {
                        match ask(&mut stream, "flood.test", "404", "\n") {
                            Ok(()) => _ = done.fetch_add(1, Ordering::Relaxed),
                            Err(_) => stream = connect(),
                        }
                    }
                });
            });
        }
    });
    done.into_inner()
}

/// SYNs of sources that do not exist, as fast as they can be sent, until `stop`. Gives how many.
pub fn syn_flood(from: &Namespace, cpu: usize, stop: &AtomicBool) -> u64 {
    from.run(|| {
        keep_to(cpu);
        let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::TCP)).unwrap();
        socket.set_header_included_v4(true).unwrap();
        let to: SocketAddr = TO.parse().unwrap();
        let SocketAddr::V4(v4) = to else {
            panic!("an IPv4 address");
        };
        let mut sent = 0;
        while !stop.load(Ordering::Relaxed) {
            // 198.18.0.0/15 is for benches.
            let source = Ipv4Addr::from_bits(0xc612_0000 | fastrand::u32(..0x2_0000));
            let packet = syn(source, *v4.ip(), fastrand::u16(1024..), v4.port());
            // A full queue is as much as there can be.
            sent += u64::from(socket.send_to(&packet, &to.into()).is_ok());
        }
        sent
    })
}

/// An IPv4 packet with a SYN; the kernel fills in what it knows better.
fn syn(source: Ipv4Addr, to: Ipv4Addr, port: u16, to_port: u16) -> Vec<u8> {
    let mut tcp = [port.to_be_bytes(), to_port.to_be_bytes()].concat();
    tcp.extend(fastrand::u32(..).to_be_bytes());
    tcp.extend([0, 0, 0, 0, 0x50, 0x02, 0xff, 0xff, 0, 0, 0, 0]);
    let pseudo = [&source.octets()[..], &to.octets(), &[0, 6, 0, 20], &tcp].concat();
    let words = pseudo
        .chunks_exact(2)
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    tcp[16..18].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    let mut packet = vec![0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0];
    packet.extend(source.octets());
    packet.extend(to.octets());
    packet.extend(tcp);
    packet
}
