//! Connections and datagrams that nobody reads: ports of the node, split by weight.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use super::instance::Instance;
use super::interrupt::Interrupt;
use super::report::Align::{Left, Right};
use super::report::{Report, Row};

/// How many connections show a share.
const CONNECTIONS: u32 = 1000;
/// How far from its target a share of so many may be, in points: six deviations at the middle. Exact it is
/// over all 65,536 ports of a client, of which these are a few.
const ALLOWED: u32 = 10;
/// How long anything may take that is waited for; far more than it does.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) const STABLE: &[u8; 4] = b"main";
pub(super) const CANARY: &[u8; 4] = b"next";

/// Everything that runs; splitter is dropped before its backends.
struct Stage {
    splitter: Instance,
    dir: tempfile::TempDir,
    /// The ports of the node: of TCP, of UDP.
    ports: [u16; 2],
    /// Stable and canary: of TCP, of UDP.
    backends: [[SocketAddr; 2]; 2],
}

/// Shows a TCP and a UDP service with a canary of 10 %, and a change of the weight.
pub(super) fn show(report: &mut Report, interrupt: &Interrupt) -> Result<()> {
    let stage = Stage::set(interrupt)?;
    report
        .heading("TCP and UDP: ports of the node that lead to Services (stable / canary, in %)")?;
    let columns = [
        ("Service", Left),
        ("connections", Right),
        ("target", Right),
        ("observed", Right),
    ];
    let mut kept = Vec::new();
    for _ in 0..20 {
        kept.push(stage.connect()?);
    }
    let mut rows = vec![stage.tcp(10, interrupt)?, stage.udp(10, interrupt)?];
    stage.write(50)?;
    await_weight(stage.splitter.admin(), 50, interrupt)?;
    rows.push(stage.tcp(50, interrupt)?);
    rows.push(stayed(&mut kept));
    report.table(&columns, &rows)?;
    // Or the instance would wait for them before it ends.
    drop(kept);
    report.line(
        "splitter.io/split on a Service says it; tcp-services and udp-services open the ports",
    )?;
    stage.splitter.stop()
}

/// A connection, and who answered it.
pub(super) type Kept = (TcpStream, [u8; 4]);

/// Whether connections that were open before a change are still where they were.
pub(super) fn stayed(kept: &mut [Kept]) -> Row {
    let there = kept.iter_mut().filter_map(|it| still(it).ok());
    let there = there.filter(|it| *it).count();
    Row {
        cells: vec![
            "open since before the change".to_owned(),
            kept.len().to_string(),
            "none moved".to_owned(),
            format!("{there} of {} still there", kept.len()),
        ],
        holds: there == kept.len(),
    }
}

/// Whether a connection has its backend still: it sends back what it gets.
fn still((stream, _): &mut Kept) -> Result<bool> {
    stream.write_all(b"ping")?;
    let mut answer = [0; 4];
    stream.read_exact(&mut answer)?;
    Ok(&answer == b"ping")
}

impl Stage {
    fn set(interrupt: &Interrupt) -> Result<Self> {
        let backends = [
            [tcp_backend(STABLE)?, tcp_backend(CANARY)?],
            [udp_backend(STABLE)?, udp_backend(CANARY)?],
        ];
        let dir = tempfile::Builder::new()
            .prefix("splitter-demo-")
            .tempdir()
            .context("cannot make a directory for the manifests")?;
        // Free at the moment, which is as much as can be known.
        let tcp = TcpListener::bind("[::]:0")?.local_addr()?.port();
        let udp = UdpSocket::bind("[::]:0")?.local_addr()?.port();
        let ports = [tcp, udp];
        write(&dir, ports, backends, 10)?;
        let args = [
            "--http=127.0.0.1:0",
            "--steering=none",
            "--tcp-services-configmap=demo/tcp",
            "--udp-services-configmap=demo/udp",
        ];
        let splitter = Instance::start(dir.path(), &args, interrupt)?;
        Ok(Stage {
            splitter,
            dir,
            ports,
            backends,
        })
    }

    fn write(&self, weight: u32) -> Result<()> {
        write(&self.dir, self.ports, self.backends, weight)
    }

    fn connect(&self) -> Result<Kept> {
        let [port, _] = self.ports;
        connect(([127, 0, 0, 1], port).into())
    }

    fn tcp(&self, weight: u32, interrupt: &Interrupt) -> Result<Row> {
        row("service/demo/db (TCP)", weight, interrupt, || {
            Ok(self.connect()?.1)
        })
    }

    fn udp(&self, weight: u32, interrupt: &Interrupt) -> Result<Row> {
        let [_, port] = self.ports;
        row("service/demo/dns (UDP)", weight, interrupt, || {
            ask(([127, 0, 0, 1], port).into())
        })
    }
}

/// Connects, and hears who answers.
pub(super) fn connect(to: SocketAddr) -> Result<Kept> {
    let mut stream = TcpStream::connect(to)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut name = [0; 4];
    stream.read_exact(&mut name)?;
    Ok((stream, name))
}

/// Sends a datagram, and hears who answers.
pub(super) fn ask(to: SocketAddr) -> Result<[u8; 4]> {
    let socket = UdpSocket::bind(("0.0.0.0", 0))?;
    socket.connect(to)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.send(b"?")?;
    let mut name = [0; 4];
    socket.recv(&mut name)?;
    Ok(name)
}

/// An instance's metrics.
pub(super) fn metrics(admin: SocketAddr) -> Result<String> {
    let mut stream = TcpStream::connect(admin)?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: demo\r\nConnection: close\r\n\r\n")?;
    let mut page = String::new();
    stream.read_to_string(&mut page)?;
    Ok(page)
}

/// Waits until the weight of the manifests is in force, as the instance says.
pub(super) fn await_weight(admin: SocketAddr, weight: u32, interrupt: &Interrupt) -> Result<()> {
    let wanted = format!("port=\"5432\",protocol=\"TCP\",variant=\"next\"}} {weight}");
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        interrupt.check()?;
        let page = metrics(admin)?;
        let found =
            |line: &str| line.starts_with("splitter_l4_variant_weight") && line.ends_with(&wanted);
        if page.lines().any(found) {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(10));
    }
    bail!("the weight {weight} is not in force after {PATIENCE:?}")
}

pub(super) fn row(
    service: &str,
    weight: u32,
    interrupt: &Interrupt,
    ask: impl Fn() -> Result<[u8; 4]>,
) -> Result<Row> {
    let mut canary = 0;
    for _ in 0..CONNECTIONS {
        interrupt.check()?;
        match &ask()? {
            STABLE => {}
            CANARY => canary += 1,
            other => bail!("{service} was answered by {other:?}"),
        }
    }
    let share = f64::from(canary) * 100.0 / f64::from(CONNECTIONS);
    Ok(Row {
        cells: vec![
            service.to_owned(),
            CONNECTIONS.to_string(),
            format!("{} / {weight}", 100 - weight),
            format!("{:.1} / {share:.1}", 100.0 - share),
        ],
        holds: (share - f64::from(weight)).abs() <= f64::from(ALLOWED),
    })
}

pub(super) fn write(
    dir: &tempfile::TempDir,
    [tcp, udp]: [u16; 2],
    [tcp_backends, udp_backends]: [[SocketAddr; 2]; 2],
    weight: u32,
) -> Result<()> {
    let mut text = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: tcp, namespace: demo}}\n\
         data: {{\"{tcp}\": \"demo/db:5432\"}}\n\
         ---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: udp, namespace: demo}}\n\
         data: {{\"{udp}\": \"demo/dns:53\"}}\n"
    );
    let split = |canary: &str| format!("splitter.io/split: {canary}={weight}");
    let [db, db_next] = tcp_backends;
    let [dns, dns_next] = udp_backends;
    for (name, notes, port, protocol, endpoint) in [
        ("db", split("next"), 5432, "TCP", db),
        ("next", String::new(), 5432, "TCP", db_next),
        ("dns", split("dns-next"), 53, "UDP", dns),
        ("dns-next", String::new(), 53, "UDP", dns_next),
    ] {
        let (ip, target) = (endpoint.ip(), endpoint.port());
        text.push_str(&format!(
            "---\napiVersion: v1\nkind: Service\n\
             metadata: {{name: {name}, namespace: demo, annotations: {{{notes}}}}}\n\
             spec: {{ports: [{{name: main, port: {port}, protocol: {protocol}}}]}}\n\
             ---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\n\
             metadata: {{name: {name}-1, namespace: demo, labels: {{kubernetes.io/service-name: {name}}}}}\n\
             addressType: IPv4\nports: [{{name: main, port: {target}, protocol: {protocol}}}]\n\
             endpoints: [{{addresses: [\"{ip}\"]}}]\n"
        ));
    }
    std::fs::write(dir.path().join("l4.yaml"), text).context("cannot write the manifests")
}

/// Says its name, then sends back what it gets. Ends with this program, as does the other.
fn tcp_backend(name: &'static [u8; 4]) -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").context("cannot start a backend")?;
    let addr = listener.local_addr()?;
    serve_tcp(listener, name);
    Ok(addr)
}

/// Says a name on each connection, then sends back what it gets.
pub(super) fn serve_tcp(listener: TcpListener, name: &'static [u8; 4]) {
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let mut writer = stream.try_clone()?;
                writer.write_all(name)?;
                std::io::copy(&mut &stream, &mut writer)
            });
        }
    });
}

/// Answers each datagram with its name.
fn udp_backend(name: &'static [u8; 4]) -> Result<SocketAddr> {
    let socket = UdpSocket::bind("127.0.0.1:0").context("cannot start a backend")?;
    let addr = socket.local_addr()?;
    serve_udp(socket, name);
    Ok(addr)
}

/// Answers each datagram with a name.
pub(super) fn serve_udp(socket: UdpSocket, name: &'static [u8; 4]) {
    thread::spawn(move || {
        let mut data = [0; 1500];
        while let Ok((_, from)) = socket.recv_from(&mut data) {
            // A lost answer is missed by whoever waits for it.
            let _ = socket.send_to(name, from);
        }
    });
}
