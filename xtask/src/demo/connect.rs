//! A pod that connects to a Service's own address: split by the kernel, once for each connection.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use super::instance::Instance;
use super::interrupt::Interrupt;
use super::l4::serve_tcp;
use super::net::{self, BpfFs, NIC, Network};
use super::report::Align::{Left, Right};
use super::report::{Report, Row};

/// How many connections show a share: whole blocks of 256, in each of which it is exact to one or two.
const CONNECTIONS: u32 = 1024;
/// How far from its target a share of so many may be, in points.
const ALLOWED: f64 = 1.0;
/// How long anything may take that is waited for; far more than it does.
const PATIENCE: Duration = Duration::from_secs(10);
/// The Service's own address, which no interface has.
const OWN: &str = "10.96.0.10:5432";
const ENDPOINTS: [(&str, &[u8; 4]); 2] =
    [("10.244.0.1:5001", b"main"), ("10.244.0.1:5002", b"next")];

/// Everything that runs. What is declared first is dropped first.
struct Stage {
    splitter: Instance,
    dir: tempfile::TempDir,
    pins: PathBuf,
    network: Network,
    cgroup: Cgroup,
    _bpf: BpfFs,
}

/// Shows it, or says in one line why not.
pub(super) fn show(report: &mut Report, interrupt: &Interrupt) -> Result<()> {
    report.heading("Inside the cluster: a pod connects to a Service's own address (in %)")?;
    let make = || Ok((Cgroup::make()?, Network::make()?, BpfFs::mount()?));
    let Some((cgroup, network, bpf)) = net::place(report, make)? else {
        return Ok(());
    };
    let stage = Stage::set(network, bpf, cgroup, interrupt)?;
    let mut kept = stage.ask(1)?.0;
    let mut rows = vec![stage.row(10)?];
    write(&stage.dir, 50)?;
    stage.await_weight(50, interrupt)?;
    rows.push(stage.row(50)?);
    // What was open stays where it is.
    let stayed = kept.iter_mut().all(|it| {
        let mut answer = [0; 4];
        it.write_all(b"ping")
            .and_then(|()| it.read_exact(&mut answer))
            .is_ok()
    });
    rows.push(Row {
        cells: [
            "open since before",
            "1",
            "not moved",
            if stayed { "still there" } else { "gone" },
        ]
        .map(str::to_owned)
        .into(),
        holds: stayed,
    });
    let columns = [
        ("connections of the pod", Left),
        ("number", Right),
        ("stable / canary", Right),
        ("observed", Right),
    ];
    report.table(&columns, &rows)?;
    let map = stage.pins.join("l4_services");
    let map = net::command(
        "bpftool",
        &["map", "dump", "pinned", &map.to_string_lossy()],
    )?;
    report.line("bpftool map dump pinned .../l4_services:")?;
    for line in map.lines().take(8) {
        report.line(line)?;
    }
    stage.splitter.stop()
}

impl Stage {
    fn set(network: Network, bpf: BpfFs, cgroup: Cgroup, interrupt: &Interrupt) -> Result<Self> {
        for (addr, name) in ENDPOINTS {
            let listener = network.node.run(|| Ok(TcpListener::bind(addr)?))?;
            serve_tcp(listener, name);
        }
        let dir = tempfile::Builder::new().prefix("splitter-demo-").tempdir();
        let dir = dir.context("cannot make a directory for the manifests")?;
        write(&dir, 10)?;
        let pins = bpf.path().join("splitter");
        let args = [
            "--http=127.0.0.1:0",
            "--steering=sk-lookup",
            &format!("--interface={NIC}"),
            &format!("--pin-dir={}", pins.display()),
            &format!("--cgroup={}", cgroup.0.display()),
        ];
        let start = || Instance::start(dir.path(), &args, interrupt);
        let splitter = network.node.run(start)?;
        Ok(Stage {
            splitter,
            dir,
            pins: pins.join("v1"),
            network,
            cgroup,
            _bpf: bpf,
        })
    }

    /// Connects so often, as a process of the pod. Gives the connections, and how many the canary has.
    fn ask(&self, times: u32) -> Result<(Vec<TcpStream>, u32)> {
        let own: SocketAddr = OWN.parse()?;
        self.network.pod.run(|| {
            self.cgroup.enter()?;
            let (mut open, mut canary) = (Vec::new(), 0);
            for _ in 0..times {
                let mut stream = TcpStream::connect(own)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                let mut name = [0; 4];
                stream.read_exact(&mut name)?;
                canary += u32::from(&name == ENDPOINTS[1].1);
                if stream.peer_addr()? != own {
                    bail!("the pod sees {} and not {OWN}", stream.peer_addr()?);
                }
                if times == 1 {
                    open.push(stream);
                }
            }
            Ok((open, canary))
        })
    }

    fn row(&self, weight: u32) -> Result<Row> {
        let (_, canary) = self.ask(CONNECTIONS)?;
        let share = f64::from(canary) * 100.0 / f64::from(CONNECTIONS);
        Ok(Row {
            cells: vec![
                format!("{OWN}, and that is what it sees"),
                CONNECTIONS.to_string(),
                format!("{} / {weight}", 100 - weight),
                format!("{:.1} / {share:.1}", 100.0 - share),
            ],
            holds: (share - f64::from(weight)).abs() <= ALLOWED,
        })
    }

    /// Waits until the weight of the manifests is in force.
    fn await_weight(&self, weight: u32, interrupt: &Interrupt) -> Result<()> {
        let wanted = format!("variant=\"next\"}} {weight}");
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            interrupt.check()?;
            let page = self.network.node.run(|| {
                let mut stream = TcpStream::connect(self.splitter.admin())?;
                stream.write_all(
                    b"GET /metrics HTTP/1.1\r\nHost: demo\r\nConnection: close\r\n\r\n",
                )?;
                let mut page = String::new();
                stream.read_to_string(&mut page)?;
                Ok(page)
            })?;
            let found = |line: &str| {
                line.starts_with("splitter_l4_variant_weight") && line.ends_with(&wanted)
            };
            if page.lines().any(found) {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(10));
        }
        bail!("the weight {weight} is not in force after {PATIENCE:?}")
    }
}

fn write(dir: &tempfile::TempDir, weight: u32) -> Result<()> {
    let split = format!("splitter.io/split: next={weight}");
    let mut text = String::new();
    let services = [
        ("db", split.as_str(), ", clusterIP: 10.96.0.10"),
        ("next", "", ""),
    ];
    for ((name, notes, own), (endpoint, _)) in services.into_iter().zip(ENDPOINTS) {
        let endpoint: SocketAddr = endpoint.parse()?;
        let (ip, port) = (endpoint.ip(), endpoint.port());
        text.push_str(&format!(
            "---\napiVersion: v1\nkind: Service\n\
             metadata: {{name: {name}, namespace: demo, annotations: {{{notes}}}}}\n\
             spec: {{ports: [{{name: sql, port: 5432}}]{own}}}\n\
             ---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\n\
             metadata: {{name: {name}-1, namespace: demo, labels: {{kubernetes.io/service-name: {name}}}}}\n\
             addressType: IPv4\nports: [{{name: sql, port: {port}}}]\n\
             endpoints: [{{addresses: [\"{ip}\"]}}]\n"
        ));
    }
    fs::write(dir.path().join("services.yaml"), text).context("cannot write the manifests")
}

/// A cgroup for the pod's process, so that the hooks concern nobody else; gone on drop.
struct Cgroup(PathBuf);

impl Cgroup {
    fn make() -> Result<Self> {
        let mounts = fs::read_to_string("/proc/self/mountinfo")?;
        let mounted = mounts.lines().find_map(|line| {
            let (mount, kind) = line.split_once(" - ")?;
            kind.starts_with("cgroup2 ")
                .then(|| mount.split(' ').nth(4))?
        });
        let mounted = mounted.context("no cgroups of version 2 are mounted")?;
        let own = fs::read_to_string("/proc/self/cgroup")?;
        let own = own.lines().find_map(|line| line.strip_prefix("0::/"));
        let path = PathBuf::from(mounted).join(own.unwrap_or_default());
        let path = path.join(format!("splitter-demo-{}", process::id()));
        fs::create_dir(&path).with_context(|| format!("cannot make {}", path.display()))?;
        let cgroup = Cgroup(path);
        // So that a single thread can be in it.
        fs::write(cgroup.0.join("cgroup.type"), "threaded").context("cannot prepare the cgroup")?;
        Ok(cgroup)
    }

    /// Moves the calling thread into it.
    fn enter(&self) -> Result<()> {
        fs::write(self.0.join("cgroup.threads"), "0").context("cannot enter the cgroup")
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        // A thread that has ended is taken out a little later.
        while fs::remove_dir(&self.0).is_err() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(10));
        }
    }
}
