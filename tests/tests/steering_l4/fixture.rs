//! A node, a client outside, Endpoints on a pod of the node and on another host, and a Service with a canary.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd as _, OwnedFd};
use std::thread;

use splitter::dataplane::interfaces;
use splitter_tests::PATIENCE;
use splitter_tests::bpf::{Namespace, Site, run};

/// What clients ask: TCP.
pub const ASKED: &str = "203.0.113.1:5432";
/// The same by IPv6.
pub const ASKED6: &str = "[2001:db8::1]:5432";
/// UDP.
pub const NAMES: &str = "203.0.113.1:5300";
/// The same by IPv6.
pub const NAMES6: &str = "[2001:db8::1]:5300";

/// Endpoints in the pod of the node.
pub const HERE: [&str; 2] = ["10.244.0.7:5001", "[fd00:244::7]:5001"];
/// Another one there.
pub const HERE_TOO: [&str; 2] = ["10.244.0.7:5002", "[fd00:244::7]:5002"];
/// Endpoints on another host.
pub const THERE: [&str; 2] = ["203.0.113.50:5003", "[2001:db8::50]:5003"];
/// Another one there.
pub const THERE_TOO: [&str; 2] = ["203.0.113.50:5004", "[2001:db8::50]:5004"];

/// Endpoints of the Service and of its canary, and the canary's part.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    pub db: Vec<&'static str>,
    pub next: Vec<&'static str>,
    pub weight: &'static str,
}

/// All of it.
pub struct Place {
    pub site: Site,
    _wire: OwnedFd,
}

impl Place {
    /// With the splitter running.
    pub fn new(objects: &Objects) -> Place {
        let mut place = Place::stopped(objects);
        place.start("");
        place
    }

    /// Not started yet.
    pub fn stopped(objects: &Objects) -> Place {
        let site = Site::new(env!("CARGO_BIN_EXE_splitter-here"));
        let nodes = &site.nodes;
        nodes.whole_checksums();
        nodes.node.run(|| {
            for family in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
                fs::write(format!("/proc/sys/net/{family}"), "1").unwrap();
            }
        });
        nodes.out.ip("addr add 203.0.113.50/24 dev wire");
        nodes
            .out
            .ip("addr add 2001:db8::50/64 dev wire nodad preferred_lft 0");
        // A veth takes what XDP sends back only where its peer has a program, too.
        let wire = nodes.out.run(|| {
            let all = interfaces().unwrap();
            let wire = all.iter().find(|it| it.name == "wire").unwrap().index;
            run::attach_xdp(run::pass_program().unwrap().as_fd(), wire).unwrap()
        });
        for (addr, name) in HERE
            .iter()
            .map(|it| (it, "here"))
            .chain(HERE_TOO.iter().map(|it| (it, "here-too")))
        {
            serve(&nodes.pod, addr, name);
        }
        for (addr, name) in THERE
            .iter()
            .map(|it| (it, "there"))
            .chain(THERE_TOO.iter().map(|it| (it, "there-too")))
        {
            serve(&nodes.out, addr, name);
        }
        let place = Place { site, _wire: wire };
        place.write(objects);
        // What the node does not know yet it leaves to user space, which would find it out.
        place.site.nodes.node.run(|| {
            for addr in THERE.iter().chain(&["203.0.113.2:9", "[2001:db8::2]:9"]) {
                let _refused = TcpStream::connect(addr);
            }
        });
        place
    }

    /// What every instance is told.
    pub fn args(more: &str) -> String {
        let args = format!(
            "--steering xdp --http 0.0.0.0:80 --tcp-services-configmap demo/tcp \
             --udp-services-configmap demo/udp {more}"
        );
        args.trim_end().to_owned()
    }

    pub fn start(&mut self, more: &str) {
        self.site.start(&Place::args(more));
        self.is_forwarding();
    }

    /// Waits until XDP forwards.
    pub fn is_forwarding(&self) {
        self.site
            .expect_sum("splitter_l4_xdp", &[("state", "on")], 1.0);
    }

    /// Writes the objects.
    pub fn write(&self, objects: &Objects) {
        let mut text = String::new();
        for (name, data) in [
            ("tcp", "\"5432\": demo/db:5432"),
            ("udp", "\"5300\": demo/db:53"),
        ] {
            writeln!(text, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: demo}}\ndata:\n  {data}").unwrap();
        }
        let note = match objects.weight {
            "" => String::new(),
            weight => format!("splitter.io/split: \"next={weight}\""),
        };
        service(&mut text, "db", &note, &objects.db);
        service(&mut text, "next", "", &objects.next);
        let dir = self.site.dir();
        fs::write(dir.join("l4.next"), text).unwrap();
        fs::rename(dir.join("l4.next"), dir.join("objects/l4.yaml")).unwrap();
    }

    /// Who answers a client outside at an address, and whom that has seen.
    pub fn ask(&self, asked: &str) -> (String, IpAddr) {
        self.try_ask(asked).unwrap()
    }

    /// The same where nobody may.
    pub fn try_ask(&self, asked: &str) -> io::Result<(String, IpAddr)> {
        self.site
            .nodes
            .out
            .run(|| try_hear(&mut Self::try_connect(asked)?))
    }

    /// A connection of the calling thread's namespace.
    pub fn connect(asked: &str) -> TcpStream {
        Self::try_connect(asked).unwrap()
    }

    fn try_connect(asked: &str) -> io::Result<TcpStream> {
        let stream = TcpStream::connect_timeout(&asked.parse().unwrap(), PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(stream)
    }

    /// How many packets left XDP for a reason.
    pub fn reason(&self, reason: &str) -> f64 {
        self.site
            .metrics()
            .sum("splitter_l4_xdp_packets_total", &[("reason", reason)])
    }
}

/// What an Endpoint says first: its name, and the address that it sees.
pub fn hear(stream: &mut TcpStream) -> (String, IpAddr) {
    try_hear(stream).unwrap()
}

fn try_hear(stream: &mut TcpStream) -> io::Result<(String, IpAddr)> {
    let mut line = Vec::new();
    let mut byte = [0];
    loop {
        stream.read_exact(&mut byte)?;
        if byte == *b"\n" {
            return Ok(said(&line));
        }
        line.extend(byte);
    }
}

/// Asks by UDP from a socket.
pub fn ask_udp(socket: &UdpSocket, asked: &str, text: &[u8]) -> (String, IpAddr) {
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.send_to(text, asked).unwrap();
    let mut answer = vec![0; 8192];
    let (size, from) = socket.recv_from(&mut answer).unwrap();
    assert_eq!(from, asked.parse().unwrap(), "who was asked answers");
    said(&answer[..size])
}

fn said(line: &[u8]) -> (String, IpAddr) {
    let line = String::from_utf8_lossy(line);
    let (name, peer) = line.split_once(' ').unwrap_or_else(|| panic!("{line:?}"));
    (name.to_owned(), peer.trim().parse().unwrap())
}

/// Sends back what it gets, TCP and UDP, after it has said who it is and whom it sees.
fn serve(at: &Namespace, addr: &str, name: &'static str) {
    let (listener, socket) = at.run(|| {
        (
            TcpListener::bind(addr).unwrap(),
            UdpSocket::bind(addr).unwrap(),
        )
    });
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let peer = stream.peer_addr().unwrap().ip();
                let _gone = stream.write_all(format!("{name} {peer}\n").as_bytes());
                let mut other = stream.try_clone().unwrap();
                let _gone = std::io::copy(&mut stream, &mut other);
            });
        }
    });
    thread::spawn(move || {
        let mut text = vec![0; 8192];
        while let Ok((size, peer)) = socket.recv_from(&mut text) {
            // As long as the question.
            let mut answer = format!("{name} {}\n", peer.ip()).into_bytes();
            answer.resize(answer.len().max(size), b' ');
            let _gone = socket.send_to(&answer, peer);
        }
    });
}

fn service(text: &mut String, name: &str, note: &str, endpoints: &[&str]) {
    writeln!(
        text,
        "---\napiVersion: v1\nkind: Service\n\
         metadata: {{name: {name}, namespace: demo, annotations: {{{note}}}}}\n\
         spec:\n  clusterIP: None\n  ports:\n  - {{name: sql, port: 5432}}\n  - {{name: dns, port: 53, protocol: UDP}}"
    )
    .unwrap();
    for (number, endpoint) in endpoints.iter().enumerate() {
        let addr: SocketAddr = endpoint.parse().unwrap();
        let family = if addr.is_ipv4() { "IPv4" } else { "IPv6" };
        let port = addr.port();
        writeln!(
            text,
            "---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\n\
             metadata: {{name: {name}-{number}, namespace: demo, labels: {{kubernetes.io/service-name: {name}}}}}\n\
             addressType: {family}\n\
             ports:\n- {{name: sql, port: {port}}}\n- {{name: dns, port: {port}, protocol: UDP}}\n\
             endpoints: [{{addresses: [\"{}\"]}}]",
            addr.ip()
        )
        .unwrap();
    }
}

impl Place {
    /// Writes objects, and waits until their weight is in force.
    pub fn follow(&self, objects: &Objects) {
        self.write(objects);
        let labels = [("variant", "next"), ("service", "db"), ("protocol", "TCP")];
        let weight = objects.weight.parse().unwrap();
        self.site
            .expect_sum("splitter_l4_variant_weight", &labels, weight);
    }
}
