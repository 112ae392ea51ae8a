//! TCP where no HTTP is looked at: what a connection and a mebibyte cost the machine, through XDP, through
//! user space, and through others, beside the way without anybody in between. CPU time is that of the whole
//! machine, softirqs too, so nothing else may run.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use splitter_tests::bpf::{Namespace, Nodes, Site};
use splitter_tests::{PATIENCE, eventually};

use super::median;

const TIME: Duration = Duration::from_secs(1);
const CLIENTS: usize = 2;
/// What one connection of the second kind carries.
const BULK: u64 = 256 << 20;

/// Where the pod answers: shortly, and at length.
const POD: [&str; 2] = ["10.244.0.7:5001", "10.244.0.7:5002"];
/// Where the node is asked for these.
const NODE: [&str; 2] = ["203.0.113.1:5432", "203.0.113.1:5433"];

/// One way to the pod.
struct Way {
    name: &'static str,
    place: Place,
    asked: [&'static str; 2],
    _peer: Option<Peer>,
}

enum Place {
    Alone(Nodes),
    Splitter(Box<Site>),
}

/// Another program on the node; ended with this.
struct Peer(Child);

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = (self.0.kill(), self.0.wait());
    }
}

impl Way {
    fn nodes(&self) -> &Nodes {
        match &self.place {
            Place::Alone(nodes) => nodes,
            Place::Splitter(site) => &site.nodes,
        }
    }
}

pub fn run(rounds: usize) {
    let ways = ways();
    let mut costs = vec![[Vec::new(), Vec::new()]; ways.len()];
    let mut rates = vec![Vec::new(); ways.len()];
    for _ in 0..rounds {
        for ((way, costs), rates) in ways.iter().zip(&mut costs).zip(&mut rates) {
            let out = &way.nodes().out;
            let (count, spent) = measured(|| connections(out, way.asked[0]));
            costs[0].push(spent * 1e6 / count);
            rates.push(count / TIME.as_secs_f64());
            let (bytes, spent) = measured(|| bulk(out, way.asked[1]));
            costs[1].push(spent * 1e6 / (bytes / f64::from(1 << 20)));
        }
    }
    println!(
        "TCP over veth to a pod, medians of {rounds} rounds; CPU us of the whole machine, softirqs too"
    );
    println!("(in brackets: what is above the way without anybody, and that beside HAProxy's)");
    let of = |index: usize, which: usize| median(&costs[index][which]);
    let haproxy = ways.iter().position(|way| way.name == "HAProxy");
    for (index, way) in ways.iter().enumerate() {
        let column = |which: usize| {
            let above = of(index, which) - of(0, which);
            let beside = haproxy.map_or(f64::NAN, |it| above / (of(it, which) - of(0, which)));
            format!("{:>7.1} ({above:>6.1}, x {beside:.2})", of(index, which))
        };
        println!(
            "  {:<22} a connection {}   a MiB {}   {:>7.0} connections a second",
            way.name,
            column(0),
            column(1),
            median(&rates[index])
        );
    }
    println!("  (XDP: at most 0.35 a connection, 0.20 a MiB of HAProxy's)\n");
}

/// The way without anybody first.
fn ways() -> Vec<Way> {
    let alone = |name, asked, start: &dyn Fn(&Nodes) -> Option<Option<Peer>>| {
        let nodes = Nodes::new();
        prepare(&nodes);
        let peer = start(&nodes)?;
        let way = Way {
            name,
            place: Place::Alone(nodes),
            asked,
            _peer: peer,
        };
        answers(&way);
        Some(way)
    };
    let mut ways = vec![
        alone("nobody", POD, &|_| Some(None)),
        alone("HAProxy", NODE, &|nodes| haproxy(nodes).map(Some)),
        alone("nginx stream", NODE, &|nodes| nginx(nodes).map(Some)),
        alone("nftables DNAT map", NODE, &|nodes| {
            nftables(nodes).then_some(None)
        }),
    ];
    for (name, flag) in [("splitter, user space", "false"), ("splitter, XDP", "true")] {
        let site = Site::new(env!("CARGO_BIN_EXE_splitter-here"));
        prepare(&site.nodes);
        ways.push(Some(splitter(site, name, flag)));
    }
    ways.into_iter().flatten().collect()
}

fn prepare(nodes: &Nodes) {
    nodes.whole_checksums();
    let forward = || fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap();
    nodes.node.run(forward);
    let [short, long] = POD.map(|addr| nodes.pod.run(|| TcpListener::bind(addr).unwrap()));
    thread::spawn(move || {
        for mut stream in short.incoming().flatten() {
            let _gone = stream.write_all(b"hi");
        }
    });
    thread::spawn(move || {
        let part = vec![7; 1 << 20];
        for mut stream in long.incoming().flatten() {
            for _ in 0..BULK >> 20 {
                if stream.write_all(&part).is_err() {
                    break;
                }
            }
        }
    });
}

fn answers(way: &Way) {
    let name = way.name;
    eventually(&format!("{name} answers"), || {
        way.nodes().out.run(|| {
            let to: SocketAddr = way.asked[0].parse().unwrap();
            let mut text = Vec::new();
            let stream = TcpStream::connect_timeout(&to, PATIENCE);
            stream.is_ok_and(|mut it| it.read_to_end(&mut text).is_ok()) && text == b"hi"
        })
    });
}

fn splitter(mut site: Site, name: &'static str, xdp: &str) -> Way {
    let mut text = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: tcp, namespace: demo}\n\
                    data: {\"5432\": demo/short:1, \"5433\": demo/long:1}\n"
        .to_owned();
    for (name, addr) in ["short", "long"].into_iter().zip(POD) {
        let (ip, port) = addr.split_once(':').unwrap();
        text.push_str(&format!(
            "---\napiVersion: v1\nkind: Service\nmetadata: {{name: {name}, namespace: demo}}\n\
             spec: {{clusterIP: None, ports: [{{name: main, port: 1}}]}}\n\
             ---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\n\
             metadata: {{name: {name}-1, namespace: demo, labels: {{kubernetes.io/service-name: {name}}}}}\n\
             addressType: IPv4\nports: [{{name: main, port: {port}}}]\nendpoints: [{{addresses: [\"{ip}\"]}}]\n"
        ));
    }
    fs::write(site.dir().join("objects/l4.yaml"), text).unwrap();
    site.start(&format!(
        "--steering xdp --http 0.0.0.0:80 --tcp-services-configmap demo/tcp --l4-flow-limit off \
         --l4-xdp={xdp}"
    ));
    if xdp == "true" {
        site.expect_sum("splitter_l4_xdp", &[("state", "on")], 1.0);
    }
    let way = Way {
        name,
        place: Place::Splitter(Box::new(site)),
        asked: NODE,
        _peer: None,
    };
    answers(&way);
    way
}

/// Starts a program on the node; none, with a word, when it is not there.
fn peer(nodes: &Nodes, program: &str, args: &[&str], config: (&str, String)) -> Option<Peer> {
    let path = std::env::temp_dir().join(format!(
        "splitter-bench-{}-{}",
        std::process::id(),
        config.0
    ));
    fs::write(&path, config.1).unwrap();
    let mut command = Command::new(program);
    command
        .args(args)
        .arg(&path)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    nodes.node.adopt(&mut command);
    match splitter_tests::bpf::spawn(&mut command) {
        Ok(child) => Some(Peer(child)),
        Err(error) => {
            println!("{program} is left out: {error}");
            None
        }
    }
}

fn haproxy(nodes: &Nodes) -> Option<Peer> {
    let listen = |n: usize| {
        format!(
            "listen l{n}\n  bind {}\n  server s {} maxconn 100000\n",
            NODE[n], POD[n]
        )
    };
    let config = format!(
        "global\n  nbthread 1\n  maxconn 5000\ndefaults\n  mode tcp\n  option splice-auto\n  timeout connect 5s\n  \
         timeout client 30s\n  timeout server 30s\n{}{}",
        listen(0),
        listen(1)
    );
    peer(nodes, "haproxy", &["-db", "-f"], ("haproxy.cfg", config))
}

fn nginx(nodes: &Nodes) -> Option<Peer> {
    let module = "/usr/lib/nginx/modules/ngx_stream_module.so";
    if !fs::exists(module).unwrap_or(false) {
        println!("nginx is left out: there is no {module}");
        return None;
    }
    let server = |n: usize| {
        format!(
            "  server {{ listen {}; proxy_pass {}; }}\n",
            NODE[n], POD[n]
        )
    };
    let config = format!(
        "load_module {module};\ndaemon off;\nmaster_process off;\npid /dev/null;\nerror_log /dev/null;\n\
         events {{ worker_connections 5000; }}\nstream {{\n{}{}}}\n",
        server(0),
        server(1)
    );
    peer(nodes, "nginx", &["-c"], ("nginx.conf", config))
}

fn nftables(nodes: &Nodes) -> bool {
    let rules = "table ip t {\n map m { type inet_service : ipv4_addr . inet_service; elements = { \
                 5432 : 10.244.0.7 . 5001, 5433 : 10.244.0.7 . 5002 } }\n chain c { type nat hook prerouting \
                 priority dstnat; ip daddr 203.0.113.1 dnat ip addr . port to tcp dport map @m\n }\n}\n";
    let path = std::env::temp_dir().join(format!("splitter-bench-{}-nft", std::process::id()));
    fs::write(&path, rules).unwrap();
    let mut command = Command::new("nft");
    command.arg("-f").arg(&path);
    nodes.node.adopt(&mut command);
    let done = command.status().is_ok_and(|status| status.success());
    if !done {
        println!("nftables is left out: no nft, or it does not take the rules");
    }
    done
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
