//! etcd, kube-apiserver and kube-controller-manager for one test run.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    SanType,
};
use serde_json::Value;
use tempfile::TempDir;

use super::api::Api;
use super::base64;

/// For a program to be ready. Far more than it needs, as machines are shared.
const PATIENCE: Duration = Duration::from_secs(120);

const ETCD: u16 = 2379;
const API: u16 = 6443;

/// What the tests need. Those that look after nodes would find none.
const CONTROLLERS: [&str; 6] = [
    "deployment-controller",
    "endpointslice-controller",
    "garbage-collector-controller",
    "namespace-controller",
    "replicaset-controller",
    "serviceaccount-controller",
];

/// What the controllers make first, so that they work once it is there.
const MADE_FIRST: &str = "/api/v1/namespaces/default/serviceaccounts/default";

/// Who asked for what is noted, for what service accounts ask.
const AUDIT: &str = "apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  userGroups: [\"system:serviceaccounts\"]
- level: None
";

/// Who may do everything.
const ADMIN_TOKEN: &str = "admin-of-the-tests";

/// A running control plane; ends when dropped, or with this process.
pub struct ControlPlane {
    dir: TempDir,
    etcd: Program,
    api_server: Program,
    /// Started once the API server answers: they give up on one that does not.
    controllers: Option<Program>,
    ca: String,
}

/// One program of it.
struct Program {
    child: Child,
    log: PathBuf,
}

impl ControlPlane {
    /// Starts one and waits until it works.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// The same with further controllers.
    pub fn start_with(further: &[&str]) -> Self {
        let dir = TempDir::new().expect("a temporary directory");
        let ca = certificates(dir.path());
        let etcd = etcd(dir.path());
        let api_server = api_server(dir.path());
        let kubeconfig = dir.path().join("controllers.yaml");
        fs::write(&kubeconfig, kubeconfig_text(&ca, ADMIN_TOKEN)).expect("a file");
        let mut plane = ControlPlane {
            dir,
            etcd,
            api_server,
            controllers: None,
            ca,
        };
        plane.await_answer("/readyz");
        plane.controllers = Some(controllers(plane.dir.path(), &kubeconfig, further));
        plane.await_answer(MADE_FIRST);
        plane
    }

    /// The certificate of who signed the server's.
    pub fn ca(&self) -> &str {
        &self.ca
    }

    /// A kubeconfig file for who may do everything.
    pub fn admin_kubeconfig(&self) -> PathBuf {
        self.kubeconfig("admin", ADMIN_TOKEN)
    }

    /// A client that may do everything.
    pub fn admin(&self) -> Api {
        Api::new(&kubeconfig_text(&self.ca, ADMIN_TOKEN))
    }

    /// A kubeconfig file for who has `token`.
    pub fn kubeconfig(&self, name: &str, token: &str) -> PathBuf {
        let path = self.dir.path().join(format!("{name}.yaml"));
        fs::write(&path, kubeconfig_text(&self.ca, token)).expect("a file");
        path
    }

    /// Ends the API server as a crash does. Its data stays.
    pub fn stop_api(&mut self) {
        self.api_server.kill();
    }

    /// Starts it again and waits until it works.
    pub fn start_api(&mut self) {
        self.api_server = api_server(self.dir.path());
        self.await_answer("/readyz");
        self.await_answer(MADE_FIRST);
    }

    /// What was asked for by a user and allowed: verb and resource, with its subresource.
    pub fn used_by(&self, user: &str) -> BTreeSet<(String, String)> {
        let text = fs::read_to_string(self.dir.path().join("audit.log")).expect("the audit log");
        let text_of = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut used = BTreeSet::new();
        // The last line may be half written.
        let events = text
            .lines()
            .map_while(|line| serde_json::from_str::<Value>(line).ok());
        for event in events {
            let allowed = &event["annotations"]["authorization.k8s.io/decision"];
            if event["user"]["username"] != user || allowed != "allow" {
                continue;
            }
            let mut resource = text_of(&event["objectRef"]["resource"]);
            if let Some(sub) = event["objectRef"]["subresource"].as_str() {
                resource = format!("{resource}/{sub}");
            }
            used.insert((text_of(&event["verb"]), resource));
        }
        used
    }

    fn await_answer(&mut self, path: &str) {
        let admin = self.admin();
        let began = Instant::now();
        while admin.get(path).is_err() {
            for program in self.programs() {
                program.check();
            }
            assert!(
                began.elapsed() < PATIENCE,
                "the control plane is not ready within {PATIENCE:?}:\n{}",
                self.api_server.tail()
            );
            std::thread::park_timeout(Duration::from_millis(50));
        }
    }
}

impl ControlPlane {
    /// In the order in which they end.
    fn programs(&mut self) -> impl Iterator<Item = &mut Program> {
        let others = [&mut self.api_server, &mut self.etcd];
        self.controllers.iter_mut().chain(others)
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        for program in self.programs() {
            program.kill();
        }
    }
}

impl Program {
    fn start(mut command: Command, log: PathBuf) -> Self {
        let file = File::create(&log).expect("a log file");
        let child = command
            // Ends with us, whatever becomes of us.
            .env("CONTROLPLANE_END_WITH_STDIN", "1")
            .stdin(Stdio::piped())
            .stdout(file.try_clone().expect("a second handle"))
            .stderr(file)
            .spawn();
        let child = child.unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
        Program { child, log }
    }

    fn check(&mut self) {
        if let Ok(Some(status)) = self.child.try_wait() {
            panic!("{status}:\n{}", self.tail());
        }
    }

    fn tail(&self) -> String {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(30)..].join("\n")
    }

    fn kill(&mut self) {
        // Both fail only for one that has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program with all three, or one of one's own by its variable.
fn program(variable: &str, name: &str) -> Command {
    if let Some(path) = std::env::var_os(variable) {
        return Command::new(path);
    }
    let path = std::env::var_os("SPLITTER_CONTROL_PLANE").expect(
        "SPLITTER_CONTROL_PLANE names the control plane program: run `cargo xtask test --cluster`",
    );
    let mut command = Command::new(path);
    command.arg(name);
    command
}

fn etcd(dir: &Path) -> Program {
    let (client, peer) = (url(ETCD), url(ETCD + 1));
    let own = std::env::var_os("ETCD").is_some();
    let mut command = program("ETCD", "etcd");
    let data = dir.join("etcd").display().to_string();
    if own {
        command
            .args(["--data-dir", &data, "--unsafe-no-fsync"])
            .args(["--listen-client-urls", &client])
            .args(["--advertise-client-urls", &client])
            .args(["--listen-peer-urls", &peer])
            .args(["--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &format!("default={peer}")]);
    } else {
        command.args(["-dir", &data, "-client", &client, "-peer", &peer]);
    }
    Program::start(command, dir.join("etcd.log"))
}

fn api_server(dir: &Path) -> Program {
    let file = |name: &str| dir.join(name).display().to_string();
    let mut command = program("KUBE_APISERVER", "kube-apiserver");
    for (flag, value) in [
        ("etcd-servers", url(ETCD)),
        ("bind-address", Ipv4Addr::LOCALHOST.to_string()),
        ("advertise-address", Ipv4Addr::LOCALHOST.to_string()),
        ("secure-port", API.to_string()),
        ("endpoint-reconciler-type", "none".to_owned()),
        ("tls-cert-file", file("server.crt")),
        ("tls-private-key-file", file("server.key")),
        ("client-ca-file", file("ca.crt")),
        ("token-auth-file", file("tokens.csv")),
        ("authorization-mode", "RBAC".to_owned()),
        ("service-cluster-ip-range", "10.96.0.0/16".to_owned()),
        (
            "service-account-issuer",
            "https://kubernetes.default.svc".to_owned(),
        ),
        ("service-account-key-file", file("accounts.pub")),
        ("service-account-signing-key-file", file("accounts.key")),
        ("audit-policy-file", file("audit.yaml")),
        ("audit-log-path", file("audit.log")),
        ("audit-log-mode", "blocking".to_owned()),
        ("shutdown-delay-duration", "0s".to_owned()),
        ("profiling", "false".to_owned()),
    ] {
        command.arg(format!("--{flag}={value}"));
    }
    Program::start(command, dir.join("api.log"))
}

fn controllers(dir: &Path, kubeconfig: &Path, further: &[&str]) -> Program {
    let mut command = program("KUBE_CONTROLLER_MANAGER", "kube-controller-manager");
    let kubeconfig = kubeconfig.display();
    for flag in [
        "kubeconfig",
        "authentication-kubeconfig",
        "authorization-kubeconfig",
    ] {
        command.arg(format!("--{flag}={kubeconfig}"));
    }
    let key = dir.join("accounts.key");
    command
        .arg(format!(
            "--service-account-private-key-file={}",
            key.display()
        ))
        .arg(format!("--root-ca-file={}", dir.join("ca.crt").display()))
        .args(["--bind-address=127.0.0.1", "--leader-elect=false"])
        .args(["--use-service-account-credentials=false"])
        .arg(format!(
            "--controllers={}",
            [&CONTROLLERS[..], further].concat().join(",")
        ));
    Program::start(command, dir.join("controllers.log"))
}

/// Where the API server is.
pub fn address() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, API))
}

fn url(port: u16) -> String {
    format!("http://127.0.0.1:{port}")
}

/// Writes a CA, the server's certificate, the key of service accounts and the administrator's token.
/// Gives the CA.
fn certificates(dir: &Path) -> String {
    let put = |name: &str, text: &str| fs::write(dir.join(name), text).expect("a file");
    let ca_key = KeyPair::generate().expect("a key");
    let mut ca = CertificateParams::default();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    ca.distinguished_name.push(DnType::CommonName, "tests");
    let ca_text = ca.self_signed(&ca_key).expect("a certificate").pem();

    let key = KeyPair::generate().expect("a key");
    let mut server = CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
    let address = SanType::IpAddress(Ipv4Addr::LOCALHOST.into());
    server.subject_alt_names.push(address);
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let issuer = Issuer::from_params(&ca, &ca_key);
    let server = server.signed_by(&key, &issuer).expect("a certificate");

    put("ca.crt", &ca_text);
    put("server.crt", &server.pem());
    put("server.key", &key.serialize_pem());
    let accounts = KeyPair::generate().expect("a key");
    put("accounts.key", &accounts.serialize_pem());
    put("accounts.pub", &accounts.public_key_pem());
    put("audit.yaml", AUDIT);
    put(
        "tokens.csv",
        &format!("{ADMIN_TOKEN},admin,admin,system:masters\n"),
    );
    ca_text
}

fn kubeconfig_text(ca: &str, token: &str) -> String {
    let ca = base64(ca);
    format!(
        "apiVersion: v1
kind: Config
current-context: tests
clusters: [{{name: tests, cluster: {{server: \"https://127.0.0.1:{API}\", certificate-authority-data: {ca}}}}}]
contexts: [{{name: tests, context: {{cluster: tests, user: tests}}}}]
users: [{{name: tests, user: {{token: \"{token}\"}}}}]
"
    )
}
