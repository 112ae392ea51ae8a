//! A client outside asks for a TCP and a UDP service of the node: forwarded by XDP, by weight.

use std::fs;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use super::instance::Instance;
use super::interrupt::Interrupt;
use super::l4::{
    CANARY, Kept, STABLE, ask, await_weight, connect, metrics, row, serve_tcp, serve_udp, stayed,
    write,
};
use super::net::{self, BpfFs, NIC, NODE, Network, POD};
use super::report::Align::{Left, Right};
use super::report::{Report, Row};

/// The ports of the node: of TCP, of UDP.
const PORTS: [u16; 2] = [5432, 5300];
/// Those of both backends, which are on the pod.
const BACKENDS: [(u16, &[u8; 4]); 2] = [(5001, STABLE), (5002, CANARY)];
/// How long anything may take that is waited for; far more than it does.
const PATIENCE: Duration = Duration::from_secs(10);

/// Everything that runs. What is declared first is dropped first.
struct Stage {
    splitter: Instance,
    dir: tempfile::TempDir,
    pins: PathBuf,
    network: Network,
    _bpf: BpfFs,
}

/// Shows it, or says in one line why not.
pub(super) fn show(report: &mut Report, interrupt: &Interrupt) -> Result<()> {
    report.heading("On the NIC: XDP forwards a TCP and a UDP service (stable / canary, in %)")?;
    let make = || Ok((Network::make()?, BpfFs::mount()?));
    let Some((network, bpf)) = net::place(report, make)? else {
        return Ok(());
    };
    let stage = Stage::set(network, bpf, interrupt)?;
    stage.await_forwarding(interrupt)?;
    let mut kept = stage.open(20)?;
    let mut rows = vec![stage.tcp(10, interrupt)?, stage.udp(10, interrupt)?];
    stage.write(50)?;
    let admin = stage.splitter.admin();
    stage
        .network
        .node
        .run(|| await_weight(admin, 50, interrupt))?;
    rows.push(stage.tcp(50, interrupt)?);
    rows.push(stayed(&mut kept));
    let [xdp, user_space] = stage.carried()?;
    rows.push(Row {
        cells: vec![
            "forwarded / left to user space".to_owned(),
            xdp.to_string(),
            "all / 0".to_owned(),
            format!("{xdp} / {user_space}"),
        ],
        holds: xdp > 0 && user_space == 0,
    });
    let columns = [
        ("Service", Left),
        ("flows", Right),
        ("target", Right),
        ("observed", Right),
    ];
    report.table(&columns, &rows)?;
    stage.show_flow(report)?;
    drop(kept);
    stage.splitter.stop()
}

impl Stage {
    fn set(network: Network, bpf: BpfFs, interrupt: &Interrupt) -> Result<Self> {
        // A veth leaves checksums to a NIC that is not there.
        network
            .out
            .run(|| net::command("ethtool", &["-K", "wire", "tx", "off"]))?;
        network
            .node
            .run(|| Ok(fs::write("/proc/sys/net/ipv4/ip_forward", "1")?))?;
        for (port, name) in BACKENDS {
            let sockets = || {
                Ok((
                    TcpListener::bind((POD, port))?,
                    UdpSocket::bind((POD, port))?,
                ))
            };
            let (tcp, udp) = network.pod.run(sockets)?;
            serve_tcp(tcp, name);
            serve_udp(udp, name);
        }
        let dir = tempfile::Builder::new().prefix("splitter-demo-").tempdir();
        let dir = dir.context("cannot make a directory for the manifests")?;
        write(&dir, PORTS, backends()?, 10)?;
        let pins = bpf.path().join("splitter");
        let args = [
            "--http=127.0.0.1:0",
            "--steering=xdp",
            &format!("--interface={NIC}"),
            "--pod-cidr=10.244.0.0/24",
            &format!("--pin-dir={}", pins.display()),
            "--tcp-services-configmap=demo/tcp",
            "--udp-services-configmap=demo/udp",
        ];
        let start = || Instance::start(dir.path(), &args, interrupt);
        let splitter = network.node.run(start)?;
        Ok(Stage {
            splitter,
            dir,
            pins: pins.join("v1"),
            network,
            _bpf: bpf,
        })
    }

    fn write(&self, weight: u32) -> Result<()> {
        write(&self.dir, PORTS, backends()?, weight)
    }

    fn open(&self, count: usize) -> Result<Vec<Kept>> {
        let to = at(NODE, PORTS[0])?;
        self.network
            .out
            .run(|| (0..count).map(|_| connect(to)).collect())
    }

    fn tcp(&self, weight: u32, interrupt: &Interrupt) -> Result<Row> {
        let to = at(NODE, PORTS[0])?;
        let name = "service/demo/db (TCP)";
        self.network
            .out
            .run(|| row(name, weight, interrupt, || Ok(connect(to)?.1)))
    }

    fn udp(&self, weight: u32, interrupt: &Interrupt) -> Result<Row> {
        let to = at(NODE, PORTS[1])?;
        let name = "service/demo/dns (UDP)";
        self.network
            .out
            .run(|| row(name, weight, interrupt, || ask(to)))
    }

    fn metrics(&self) -> Result<String> {
        let admin = self.splitter.admin();
        self.network.node.run(|| metrics(admin))
    }

    fn await_forwarding(&self, interrupt: &Interrupt) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            interrupt.check()?;
            if sum(&self.metrics()?, "splitter_l4_xdp{", "state=\"on\"") == 1 {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(10));
        }
        bail!("XDP does not forward after {PATIENCE:?}")
    }

    /// Flows that XDP has forwarded, and packets of others that it has left to user space.
    fn carried(&self) -> Result<[u64; 2]> {
        let page = self.metrics()?;
        let of = |reason: &str| {
            let label = format!("reason=\"{reason}\"");
            sum(&page, "splitter_l4_xdp_packets_total{", &label)
        };
        let left = [
            "no-flow",
            "gone",
            "no-endpoint",
            "no-way",
            "no-port",
            "too-many",
            "no-room",
        ];
        Ok([of("new"), left.iter().map(|it| of(it)).sum()])
    }

    fn show_flow(&self, report: &mut Report) -> Result<()> {
        let map = self.pins.join("l4_flows");
        let args = ["map", "dump", "pinned", &map.to_string_lossy()];
        let map = net::command("bpftool", &args)?;
        report.line("bpftool map dump pinned .../l4_flows:")?;
        for line in map.lines().take(16) {
            report.line(line)?;
        }
        Ok(())
    }
}

fn at(ip: &str, port: u16) -> Result<SocketAddr> {
    Ok(SocketAddr::new(ip.parse()?, port))
}

/// Stable and canary: of TCP, of UDP.
fn backends() -> Result<[[SocketAddr; 2]; 2]> {
    let [stable, canary] = BACKENDS;
    let both = [at(POD, stable.0)?, at(POD, canary.0)?];
    Ok([both, both])
}

/// The sum of the series that begin and are labelled so.
fn sum(page: &str, family: &str, label: &str) -> u64 {
    let lines = page.lines();
    let lines = lines.filter(|line| line.starts_with(family) && line.contains(label));
    let values = lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
    values.sum()
}
