//! The ways to the pod: nobody in between, others, and splitter.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::thread;

use splitter_tests::bpf::{Nodes, Site};
use splitter_tests::{PATIENCE, eventually};

use super::BULK;

/// Where the pod answers: shortly, at length, and by UDP.
const POD: [&str; 3] = ["10.244.0.7:5001", "10.244.0.7:5002", "10.244.0.7:5003"];
/// Where the node is asked for these.
const NODE: [&str; 3] = ["203.0.113.1:5432", "203.0.113.1:5433", "203.0.113.1:5434"];

/// One way to the pod.
pub struct Way {
    pub name: &'static str,
    place: Place,
    /// In the order of what the pod answers.
    pub asked: [&'static str; 3],
    /// Whether it knows UDP.
    pub has_udp: bool,
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
    pub fn nodes(&self) -> &Nodes {
        match &self.place {
            Place::Alone(nodes) => nodes,
            Place::Splitter(site) => &site.nodes,
        }
    }
}

/// The way without anybody first.
pub fn ways() -> Vec<Way> {
    let alone = |name, asked, start: &dyn Fn(&Nodes) -> Option<Option<Peer>>| {
        let nodes = Nodes::new();
        prepare(&nodes);
        let peer = start(&nodes)?;
        let way = Way {
            name,
            place: Place::Alone(nodes),
            asked,
            has_udp: name != "HAProxy",
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
    let [short, long] = [0, 1].map(|n| nodes.pod.run(|| TcpListener::bind(POD[n]).unwrap()));
    let echo = nodes.pod.run(|| UdpSocket::bind(POD[2]).unwrap());
    thread::spawn(move || {
        for mut stream in short.incoming().flatten() {
            let _gone = stream.write_all(b"hi");
        }
    });
    thread::spawn(move || {
        let mut data = [0; 2048];
        while let Ok((length, from)) = echo.recv_from(&mut data) {
            let _gone = echo.send_to(&data[..length], from);
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
                    data: {\"5432\": demo/short:1, \"5433\": demo/long:1}\n\
                    ---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: udp, namespace: demo}\n\
                    data: {\"5434\": demo/echo:1}\n"
        .to_owned();
    for (name, addr) in ["short", "long", "echo"].into_iter().zip(POD) {
        let (ip, port) = addr.split_once(':').unwrap();
        let protocol = if name == "echo" { "UDP" } else { "TCP" };
        text.push_str(&format!(
            "---\napiVersion: v1\nkind: Service\nmetadata: {{name: {name}, namespace: demo}}\n\
             spec: {{clusterIP: None, ports: [{{name: main, port: 1, protocol: {protocol}}}]}}\n\
             ---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\n\
             metadata: {{name: {name}-1, namespace: demo, labels: {{kubernetes.io/service-name: {name}}}}}\n\
             addressType: IPv4\nports: [{{name: main, port: {port}, protocol: {protocol}}}]\nendpoints: [{{addresses: [\"{ip}\"]}}]\n"
        ));
    }
    fs::write(site.dir().join("objects/l4.yaml"), text).unwrap();
    site.start(&format!(
        "--steering xdp --http 0.0.0.0:80 --tcp-services-configmap demo/tcp --udp-services-configmap demo/udp \
         --l4-flow-limit off --l4-xdp={xdp}"
    ));
    if xdp == "true" {
        site.expect_sum("splitter_l4_xdp", &[("state", "on")], 1.0);
    }
    let way = Way {
        name,
        place: Place::Splitter(Box::new(site)),
        asked: NODE,
        has_udp: true,
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
        let udp = if n == 2 { " udp" } else { "" };
        format!(
            "  server {{ listen {}{udp}; proxy_pass {}; }}\n",
            NODE[n], POD[n]
        )
    };
    let config = format!(
        "load_module {module};\ndaemon off;\nmaster_process off;\npid /dev/null;\nerror_log /dev/null;\n\
         events {{ worker_connections 5000; }}\nstream {{\n{}{}{}}}\n",
        server(0),
        server(1),
        server(2)
    );
    peer(nodes, "nginx", &["-c"], ("nginx.conf", config))
}

fn nftables(nodes: &Nodes) -> bool {
    let rules = "table ip t {\n map m { type inet_service : ipv4_addr . inet_service; elements = { \
                 5432 : 10.244.0.7 . 5001, 5433 : 10.244.0.7 . 5002, 5434 : 10.244.0.7 . 5003 } }\n chain c { type nat hook prerouting \
                 priority dstnat; ip daddr 203.0.113.1 meta l4proto { tcp, udp } \
                 dnat ip addr . port to th dport map @m\n }\n}\n";
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
