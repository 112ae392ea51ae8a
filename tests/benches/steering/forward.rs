//! TCP and UDP where no HTTP is looked at: what a connection, a mebibyte and a datagram cost the machine,
//! through XDP, through user space, and through others, beside the way without anybody in between. CPU time
//! is that of the whole machine, softirqs too, so nothing else may run.

mod ways;

use std::fs;
use std::io::Read as _;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use splitter_tests::bpf::Namespace;

use self::ways::ways;
use super::median;

const TIME: Duration = Duration::from_secs(1);
const CLIENTS: usize = 2;
/// What one connection of the second kind carries.
const BULK: u64 = 256 << 20;

/// Datagrams of a client that are on their way at once.
const ON_THE_WAY: usize = 16;

pub fn run(rounds: usize) {
    let ways = ways();
    let mut costs = vec![[Vec::new(), Vec::new(), Vec::new()]; ways.len()];
    let mut rates = vec![[Vec::new(), Vec::new()]; ways.len()];
    for _ in 0..rounds {
        for ((way, costs), [rates, answered]) in ways.iter().zip(&mut costs).zip(&mut rates) {
            let out = &way.nodes().out;
            let (count, spent) = measured(|| connections(out, way.asked[0]));
            costs[0].push(spent * 1e6 / count);
            rates.push(count / TIME.as_secs_f64());
            let (bytes, spent) = measured(|| bulk(out, way.asked[1]));
            costs[1].push(spent * 1e6 / (bytes / f64::from(1 << 20)));
            if way.has_udp {
                let (count, spent) = measured(|| datagrams(out, way.asked[2]));
                costs[2].push(spent * 1e6 / count);
                answered.push(count / TIME.as_secs_f64());
            }
        }
    }
    println!(
        "over veth to a pod, medians of {rounds} rounds; CPU us of the whole machine, softirqs too"
    );
    println!("(in brackets: what is above the way without anybody, and that beside the peer's)");
    let of = |index: usize, which: usize| median(&costs[index][which]);
    let peer = |name: &str| ways.iter().position(|way| way.name == name);
    let column = |index: usize, which: usize, beside: Option<usize>| {
        let above = of(index, which) - of(0, which);
        let beside = beside.map_or(f64::NAN, |it| above / (of(it, which) - of(0, which)));
        format!("{:>7.1} ({above:>6.1}, x {beside:.2})", of(index, which))
    };
    let haproxy = peer("HAProxy");
    for (index, way) in ways.iter().enumerate() {
        println!(
            "  {:<22} a connection {}   a MiB {}   {:>7.0} connections a second",
            way.name,
            column(index, 0, haproxy),
            column(index, 1, haproxy),
            median(&rates[index][0])
        );
    }
    println!("  (beside HAProxy; XDP: at most 0.35 a connection, 0.20 a MiB)");
    let nginx = peer("nginx stream");
    for (index, way) in ways.iter().enumerate().filter(|(_, way)| way.has_udp) {
        println!(
            "  {:<22} a datagram and its answer {}   {:>7.0} a second",
            way.name,
            column(index, 2, nginx),
            median(&rates[index][1])
        );
    }
    println!("  (beside nginx)\n");
}

/// What was done, and the CPU time of the machine meanwhile, in seconds.
fn measured(work: impl FnOnce() -> f64) -> (f64, f64) {
    let before = busy();
    let done = work();
    (done, busy() - before)
}

/// CPU time that was not idle, in seconds, of all CPUs.
fn busy() -> f64 {
    let stat = fs::read_to_string("/proc/stat").unwrap();
    let fields = stat.lines().next().unwrap().split_whitespace().skip(1);
    let fields: Vec<f64> = fields.map(|it| it.parse().unwrap()).collect();
    // Idle and waiting for a disk are the fourth and fifth; guests are in the first.
    let all: f64 = fields[..8].iter().sum();
    (all - fields[3] - fields[4]) / 100.0
}

/// How many connections were opened, answered and closed.
fn connections(out: &Namespace, to: &str) -> f64 {
    let to: SocketAddr = to.parse().unwrap();
    let done = AtomicU64::new(0);
    let began = Instant::now();
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                out.run(|| {
                    let mut text = Vec::with_capacity(2);
                    while began.elapsed() < TIME {
                        let mut stream = TcpStream::connect(to).unwrap();
                        text.clear();
                        stream.read_to_end(&mut text).unwrap();
                        assert_eq!(text, b"hi");
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                });
            });
        }
    });
    done.load(Ordering::Relaxed) as f64
}

/// How many bytes one connection has brought.
fn bulk(out: &Namespace, to: &str) -> f64 {
    let to: SocketAddr = to.parse().unwrap();
    let bytes = out.run(|| {
        let mut stream = TcpStream::connect(to).unwrap();
        let mut buffer = vec![0; 1 << 20];
        let mut bytes = 0;
        loop {
            match stream.read(&mut buffer).unwrap() {
                0 => return bytes,
                read => bytes += read as u64,
            }
        }
    });
    assert_eq!(bytes, BULK);
    bytes as f64
}

/// How many datagrams were answered.
fn datagrams(out: &Namespace, to: &str) -> f64 {
    let to: SocketAddr = to.parse().unwrap();
    let done = AtomicU64::new(0);
    let began = Instant::now();
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                out.run(|| {
                    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
                    socket.connect(to).unwrap();
                    let lost = Duration::from_millis(20);
                    socket.set_read_timeout(Some(lost)).unwrap();
                    let mut data = [7; 64];
                    while began.elapsed() < TIME {
                        for _ in 0..ON_THE_WAY {
                            socket.send(&data).unwrap();
                        }
                        // What is lost is not waited for.
                        let heard = (0..ON_THE_WAY).take_while(|_| socket.recv(&mut data).is_ok());
                        done.fetch_add(heard.count() as u64, Ordering::Relaxed);
                    }
                });
            });
        }
    });
    done.load(Ordering::Relaxed) as f64
}
