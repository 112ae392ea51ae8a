//! Servers that say who they are, and the objects that lead to them.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;

use splitter::config::{L4Settings, Settings};
use splitter_tests::instance::Splitter;
use splitter_tests::manifests::Manifests;
use splitter_tests::{PATIENCE, eventually};

/// Says its name at once, then sends back what it gets until that ends.
pub struct Named {
    pub addr: SocketAddr,
    /// How many connections it has had.
    pub accepted: Arc<AtomicUsize>,
    stop: Option<JoinHandle<()>>,
}

impl Named {
    pub fn start(name: &'static str) -> Self {
        Self::at(name, "127.0.0.1:0")
    }

    pub fn at(name: &'static str, addr: &str) -> Self {
        let listener = TcpListener::bind(addr).unwrap();
        let addr = listener.local_addr().unwrap();
        let accepted = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&accepted);
        let stop = std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                if count.fetch_add(1, Ordering::SeqCst) == usize::MAX / 2 {
                    return;
                }
                std::thread::spawn(move || {
                    let _ = stream.write_all(name.as_bytes());
                    let mut other = stream.try_clone().unwrap();
                    let _ = std::io::copy(&mut stream, &mut other);
                    let _ = other.shutdown(Shutdown::Write);
                });
            }
        });
        Named {
            addr,
            accepted,
            stop: Some(stop),
        }
    }

    pub fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        // The next connection is the last.
        self.accepted.store(usize::MAX / 2, Ordering::SeqCst);
        let _ = TcpStream::connect(self.addr);
        if let Some(stop) = self.stop.take() {
            let _ = stop.join();
        }
    }
}

/// The objects: a Service `db` with a canary `next`, and ports of the node.
#[derive(Clone, Default)]
pub struct Site {
    pub ports: Vec<(u16, &'static str)>,
    pub split: Option<String>,
    pub db: Vec<SocketAddr>,
    pub next: Vec<SocketAddr>,
}

impl Site {
    pub fn new(ports: &[u16]) -> Self {
        Site {
            ports: ports.iter().map(|port| (*port, "")).collect(),
            ..Site::default()
        }
    }

    pub fn split(mut self, weight: &str) -> Self {
        self.split = Some(format!("next={weight}"));
        self
    }

    pub fn db(mut self, endpoints: &[SocketAddr]) -> Self {
        self.db = endpoints.to_vec();
        self
    }

    pub fn next(mut self, endpoints: &[SocketAddr]) -> Self {
        self.next = endpoints.to_vec();
        self
    }

    pub fn yaml(&self) -> Manifests {
        let mut text =
            "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: tcp, namespace: demo}\ndata:\n"
                .to_owned();
        if self.ports.is_empty() {
            text.push_str("  {}\n");
        }
        for (port, proxy) in &self.ports {
            writeln!(text, "  \"{port}\": \"demo/db:5432{proxy}\"").unwrap();
        }
        let split = self
            .split
            .iter()
            .map(|it| format!("splitter.io/split: {it:?}"));
        let notes: String = split.collect();
        for (name, notes, endpoints) in [("db", notes.as_str(), &self.db), ("next", "", &self.next)]
        {
            writeln!(
                text,
                "---\napiVersion: v1\nkind: Service\n\
                 metadata: {{name: {name}, namespace: demo, annotations: {{{notes}}}}}\n\
                 spec: {{ports: [{{name: sql, port: 5432}}]}}"
            )
            .unwrap();
            for (index, endpoint) in endpoints.iter().enumerate() {
                let (ip, port) = (endpoint.ip(), endpoint.port());
                let family = if endpoint.is_ipv4() { "IPv4" } else { "IPv6" };
                writeln!(
                    text,
                    "---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\n\
                     metadata: {{name: {name}-{index}, namespace: demo, labels: {{kubernetes.io/service-name: {name}}}}}\n\
                     addressType: {family}\nports: [{{name: sql, port: {port}}}]\n\
                     endpoints: [{{addresses: [\"{ip}\"]}}]"
                )
                .unwrap();
            }
        }
        Manifests::new().raw(&text)
    }

    pub fn start(&self) -> Splitter {
        self.start_with(|_| {})
    }

    pub fn start_with(&self, change: impl FnOnce(&mut Settings)) -> Splitter {
        Splitter::start_with(&self.yaml(), |settings| {
            settings.class.l4 = L4Settings {
                tcp_services: Some("demo/tcp".parse().unwrap()),
                ..L4Settings::default()
            };
            settings.workers = 2;
            change(settings);
        })
    }
}

/// Ports that nobody has at the moment.
pub fn free_ports<const N: usize>() -> [u16; N] {
    let held = [(); N].map(|()| TcpListener::bind("[::]:0").unwrap());
    held.map(|it| it.local_addr().unwrap().port())
}

/// A connection to a port of the node by IPv4 loopback, once it is open.
pub fn connect(port: u16) -> TcpStream {
    connect_to(IpAddr::from([127, 0, 0, 1]), port)
}

pub fn connect_to(ip: IpAddr, port: u16) -> TcpStream {
    let mut stream = None;
    eventually("the port is open", || {
        stream = TcpStream::connect((ip, port)).ok();
        stream.is_some()
    });
    let stream = stream.unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// The next `N` bytes as text.
pub fn read<const N: usize>(stream: &mut TcpStream) -> String {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Whether what comes next is a reset.
pub fn is_reset(stream: &mut TcpStream) -> bool {
    let mut byte = [0; 1];
    let read = stream.read(&mut byte);
    read.is_err_and(|it| it.kind() == std::io::ErrorKind::ConnectionReset)
}

/// Connections given to a Variant of `db`.
pub fn given(splitter: &Splitter, variant: &str) -> u64 {
    let labels = [("service", "db"), ("variant", variant)];
    splitter
        .metrics()
        .sum("splitter_l4_connections_total", &labels) as u64
}
