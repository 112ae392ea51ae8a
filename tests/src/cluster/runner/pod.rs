//! One pod from its process's start to its end.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::super::api::{Api, path_of};
use super::network::{Bridge, Network};
use super::probe::Probe;
use super::process::{Account, Process};
use super::volumes::{Mount, Volumes};
use super::{Seen, status};

/// For a probe to be answered.
const PROBE: Duration = Duration::from_secs(1);

/// A pod that was started.
pub struct Pod {
    object: Value,
    program: PathBuf,
    ip: IpAddr,
    node: IpAddr,
    process: Process,
    account: Option<Account>,
    mounts: Vec<Mount>,
    /// Of volumes that end with it.
    _own: TempDir,
    probes: Probes,
    /// What the process prints.
    log: PathBuf,
    restarts: u32,
    /// What was told last.
    told: Option<bool>,
    /// When a process that was asked to end is ended.
    deadline: Option<Instant>,
    /// Outlives the process.
    network: Option<Network>,
}

/// Those of its container that run a program.
struct Probes {
    readiness: Option<Probe>,
    liveness: Option<Probe>,
}

impl Probes {
    fn of(object: &Value) -> Self {
        let probe = |name| Probe::of(container(object), name);
        Probes {
            readiness: probe("readinessProbe"),
            liveness: probe("livenessProbe"),
        }
    }
}

impl Pod {
    /// Starts the process; none when what it needs is not there yet.
    pub fn begin(
        object: &Value,
        program: &Path,
        (bridge, volumes): (&Bridge, &Volumes),
        used: &[IpAddr],
        api: &Api,
        ca: &str,
    ) -> Option<Self> {
        let own = object["spec"]["serviceAccountName"].as_str();
        let account = match own.filter(|name| *name != "default") {
            Some(name) => Some(Account::new(namespace(object), name, api, ca)?),
            None => None,
        };
        let (network, ip) = match object["spec"]["hostNetwork"] == true {
            true => (None, bridge.address()),
            false => {
                let (network, ip) = bridge.connect(used);
                (Some(network), ip)
            }
        };
        let node = bridge.address();
        let log = bridge.logs().join(name(object));
        let own = TempDir::new().expect("a temporary directory");
        let mounts = volumes.of(object, own.path());
        let namespace = network.as_ref().map(|it| &it.namespace);
        let shared = account.as_ref().map(|it| (it, &*mounts));
        let process = Process::start(program, object, namespace, shared, (ip, node), &log);
        Some(Pod {
            object: object.clone(),
            program: program.to_owned(),
            ip,
            node,
            process,
            account,
            mounts,
            _own: own,
            probes: Probes::of(object),
            log,
            restarts: 0,
            told: None,
            deadline: None,
            network,
        })
    }

    pub fn ip(&self) -> IpAddr {
        self.ip
    }

    pub fn seen(&self) -> Seen {
        Seen {
            name: format!("{}/{}", namespace(&self.object), name(&self.object)),
            ip: self.ip,
            log: self.log.clone(),
            network: self
                .network
                .as_ref()
                .map(|it| it.namespace.name().to_owned()),
        }
    }

    /// Asks the process to end, within the time that is left to it.
    pub fn terminate(&mut self, object: &Value) {
        if self.deadline.is_some() {
            return;
        }
        let seconds = object["metadata"]["deletionGracePeriodSeconds"].as_u64();
        self.deadline = Some(Instant::now() + Duration::from_secs(seconds.unwrap_or(0)));
        self.process.terminate();
    }

    /// Probes it, writes what has changed, starts it again if it ended. False when it is over.
    pub fn look(&mut self, api: &Api) -> bool {
        let ended = self.process.has_ended();
        if let Some(deadline) = self.deadline {
            if !ended && Instant::now() < deadline {
                self.tell(api, false);
                return true;
            }
            self.process.kill();
            let uid = &self.object["metadata"]["uid"];
            let options = json!({"gracePeriodSeconds": 0, "preconditions": {"uid": uid}});
            // When the API server is away it is asked again: the pod is still listed then.
            return api
                .delete_with(&self.path(), &options)
                .is_err_and(|it| it.code == 0);
        }
        self.ask();
        let failed = self.probes.liveness.as_ref().is_some_and(Probe::has_failed);
        if failed {
            self.process.kill();
        }
        if ended || failed {
            self.probes = Probes::of(&self.object);
            self.restarts += 1;
            self.told = None;
            let network = self.network.as_ref().map(|it| &it.namespace);
            let account = self.account.as_ref().map(|it| (it, &*self.mounts));
            let addresses = (self.ip, self.node);
            let (program, object, log) = (&self.program, &self.object, &self.log);
            self.process = Process::start(program, object, network, account, addresses, log);
        }
        self.tell(api, self.is_ready());
        true
    }

    /// Has the probes asked that run a program.
    fn ask(&mut self) {
        let (process, program) = (&self.process, &self.program);
        let Probes {
            readiness,
            liveness,
        } = &mut self.probes;
        for probe in [readiness, liveness].into_iter().flatten() {
            // The first word is the program of the image, wherever that has it.
            probe.look(|command| process.beside(program, command.get(1..).unwrap_or_default()));
        }
    }

    fn tell(&mut self, api: &Api, ready: bool) {
        if self.told == Some(ready) {
            return;
        }
        let running = status::Running {
            ip: self.ip,
            node: self.node,
            ready,
            restarts: self.restarts,
        };
        let status = status::pod(&self.object, &running);
        if api
            .merge(&format!("{}/status", self.path()), &status)
            .is_ok()
        {
            self.told = Some(ready);
        }
    }

    fn path(&self) -> String {
        path_of(&named(&self.object))
    }

    /// By its probe, or by its first port.
    fn is_ready(&self) -> bool {
        if let Some(probe) = &self.probes.readiness {
            return probe.is_good();
        }
        let container = container(&self.object);
        let get = &container["readinessProbe"]["httpGet"];
        if let Some(port) = port(&get["port"]) {
            let path = get["path"].as_str().unwrap_or("/");
            return probe(SocketAddr::new(self.ip, port), path);
        }
        let first = port(&container["ports"][0]["containerPort"]);
        first.is_none_or(|port| {
            let addr = SocketAddr::new(self.ip, port);
            TcpStream::connect_timeout(&addr, PROBE).is_ok()
        })
    }
}

fn port(value: &Value) -> Option<u16> {
    value.as_u64().and_then(|port| port.try_into().ok())
}

fn probe(addr: SocketAddr, path: &str) -> bool {
    let answer = || -> std::io::Result<Vec<u8>> {
        let mut stream = TcpStream::connect_timeout(&addr, PROBE)?;
        stream.set_read_timeout(Some(PROBE))?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: {addr}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes())?;
        let mut start = vec![0; 12];
        stream.read_exact(&mut start)?;
        Ok(start)
    };
    answer().is_ok_and(|start| matches!(start.get(9), Some(b'2' | b'3')))
}

/// The first container.
pub fn container(object: &Value) -> &Value {
    &object["spec"]["containers"][0]
}

pub fn namespace(object: &Value) -> &str {
    object["metadata"]["namespace"].as_str().unwrap_or("")
}

pub fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or("")
}

/// The kind and the name of a pod, which lists leave out.
pub fn named(object: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {
        "namespace": namespace(object), "name": name(object),
    }})
}
