//! Process settings, parsed once. Cluster settings are only Kubernetes objects.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

mod cluster;
mod process;

pub(crate) use cluster::is_name;
pub use cluster::{ClusterSettings, NamespacedName, NamespacedNameError, Source, StatusSettings};
pub use process::{BadDefault, ProcessDefaults};

use crate::dataplane::{BalanceOptions, CpuError, HookMode, Policy, Ranges, XdpKind};
use crate::model::AddressSet;

/// How connections reach the pools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steering {
    /// Plain sockets, no privileges.
    None,
    /// sk_lookup only.
    SkLookup,
    /// XDP (native) and sk_lookup.
    Xdp,
    /// The best that works.
    Auto,
}

impl Steering {
    /// The name in options, logs and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Steering::None => "none",
            Steering::SkLookup => "sk-lookup",
            Steering::Xdp => "xdp",
            Steering::Auto => "auto",
        }
    }
}

/// What one of the two pools has for itself that steering makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolSettings {
    /// Worker threads (`--pools`), default: `--workers`.
    pub workers: usize,
    /// How long things may take (`--pool-timeout`), default: as for all.
    pub timeouts: Timeouts,
    /// How much there may be of things (`--pool-limit`), default: as for all.
    pub limits: Limits,
}

impl PoolSettings {
    /// The defaults, with this many threads.
    pub fn new(workers: usize) -> Self {
        PoolSettings {
            workers,
            timeouts: Timeouts::default(),
            limits: Limits::default(),
        }
    }
}

/// What the kernel programs are told, and where they live. Without effect when `--steering` is
/// `none`, but for the ranges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataplaneSettings {
    /// NICs that lead outside (`--interface`); empty: those of the default routes.
    pub interfaces: Vec<String>,
    /// In the driver (default), or in the kernel's stack where that is asked for (`--xdp-mode`).
    pub xdp: XdpKind,
    /// What is known of the addresses around; the node's own are added from its interfaces.
    pub ranges: Ranges,
    /// How classes are treated.
    pub policy: Policy,
    /// What each pool has for itself: north-south, then east-west.
    pub pools: [PoolSettings; 2],
    /// Where maps are pinned, default [`DataplaneSettings::PIN_DIR`].
    pub pin_dir: PathBuf,
    /// Leave the programs attached when the process ends, default false.
    pub keep_attached: bool,
    /// Whether processes' connections to Services are split (`--connect-hooks`), default [`HookMode::Auto`].
    pub hooks: HookMode,
    /// The cgroup whose processes that is for (`--cgroup`), default: all of the node.
    pub cgroup: Option<PathBuf>,
    /// Whether and how XDP forwards (`--l4-xdp`, `--l4-nat-ports`, `--l4-flow-limit`).
    pub balance: BalanceOptions,
}

impl DataplaneSettings {
    /// The default of `--pin-dir`.
    pub const PIN_DIR: &str = "/sys/fs/bpf/splitter";

    /// The defaults, with pools of `workers` threads.
    pub fn new(workers: usize) -> Self {
        DataplaneSettings {
            interfaces: Vec::new(),
            xdp: XdpKind::Native,
            ranges: Ranges::default(),
            policy: Policy::default(),
            pools: [PoolSettings::new(workers); 2],
            pin_dir: PathBuf::from(Self::PIN_DIR),
            keep_attached: false,
            hooks: HookMode::default(),
            cgroup: None,
            balance: BalanceOptions::default(),
        }
    }
}

/// Log line format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// One JSON object a line.
    Json,
    /// For people.
    Text,
}

/// Where access-log lines go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessLog {
    /// Nowhere.
    Off,
    /// Standard output.
    Stdout,
    /// Appended to a file.
    File(PathBuf),
}

/// What is said for all Ingresses in one place, with the keys of ingress-nginx's ConfigMap
/// (`--defaults`, `--configmap`). Not looked at yet: `translate` says what is wrong with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Defaults {
    /// Namespace of the ConfigMap; empty for a plain file.
    pub namespace: String,
    /// Name of the ConfigMap, or of the file.
    pub name: String,
    /// Where it was read from; empty when it came from the API server.
    pub source: String,
    /// Key and value, as written.
    pub values: BTreeMap<String, String>,
}

/// Keys of [`Defaults`] that are settings of the process: read once, when it starts.
pub const DEFAULT_SETTINGS: [&str; 3] = [
    "proxy-real-ip-cidr",
    "use-forwarded-headers",
    "use-proxy-protocol",
];

/// Which Ingresses are ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassSettings {
    /// Name of our class (`--ingress-class`), default `nginx`.
    pub ingress_class: String,
    /// `spec.controller` values that are ours, default `k8s.io/ingress-nginx` and
    /// `splitter.io/ingress-controller`.
    pub controllers: Vec<String>,
    /// Serve Ingresses that name no class at all (`--watch-ingress-without-class`), default false.
    pub without_class: bool,
    /// Annotation prefix (`--annotations-prefix`), default `nginx.ingress.kubernetes.io`;
    /// `splitter.io` is always accepted too.
    pub annotations_prefix: String,
    /// What holds where an Ingress says nothing (`--defaults`), default nothing. With `--configmap`
    /// it is what that says at the moment.
    pub defaults: Arc<Defaults>,
    /// Do as ingress-nginx does where the default is to keep the effect of an annotation within its
    /// Ingress (`--strict-nginx`), default false: `use-regex` and `rewrite-target` make patterns of
    /// all paths of a host.
    pub strict_nginx: bool,
    /// Pods that TLS is spoken with must always prove who they are (`--upstream-tls-verify`), default
    /// false as in ingress-nginx, where each Ingress says so by `proxy-ssl-verify`.
    pub upstream_tls_verify: bool,
    /// Ingresses may leave TLS to their pods (`--enable-ssl-passthrough`), default false.
    pub ssl_passthrough: bool,
    /// Ports of the node that lead to Services.
    pub l4: L4Settings,
}

/// Which ports of the node lead to Services, by ConfigMaps of ingress-nginx.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct L4Settings {
    /// The ConfigMap of TCP ports (`--tcp-services-configmap`).
    pub tcp_services: Option<NamespacedName>,
    /// The ConfigMap of UDP ports (`--udp-services-configmap`).
    pub udp_services: Option<NamespacedName>,
    /// TCP addresses that the process itself listens on, by the flag that says so.
    pub taken: Vec<(&'static str, SocketAddr)>,
}

impl L4Settings {
    /// The ConfigMaps, each once, and what they are called.
    pub fn config_maps(&self) -> Vec<(&'static str, NamespacedName)> {
        let udp = self.udp_services.clone().map(|it| ("udp-services", it));
        let udp = udp.filter(|(_, it)| self.tcp_services.as_ref() != Some(it));
        let tcp = self.tcp_services.clone().map(|it| ("tcp-services", it));
        tcp.into_iter().chain(udp).collect()
    }
}

impl Default for ClassSettings {
    fn default() -> Self {
        ClassSettings {
            ingress_class: "nginx".to_owned(),
            controllers: vec![
                "k8s.io/ingress-nginx".to_owned(),
                "splitter.io/ingress-controller".to_owned(),
            ],
            without_class: false,
            annotations_prefix: "nginx.ingress.kubernetes.io".to_owned(),
            defaults: Arc::default(),
            strict_nginx: false,
            upstream_tls_verify: false,
            ssl_passthrough: false,
            l4: L4Settings::default(),
        }
    }
}

/// How long things may take. Each is documented with its flag's default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// To connect to an Endpoint, default 5 s.
    pub connect: Duration,
    /// Between two reads from a backend, default 60 s.
    pub read: Duration,
    /// Between two writes to a backend or a client that both make progress, default 60 s.
    pub send: Duration,
    /// For a client to send a whole request head, default 60 s.
    pub header: Duration,
    /// For a client to finish its TLS handshake, default 10 s.
    pub handshake: Duration,
    /// For which an idle client connection is kept, default 75 s.
    pub keep_alive: Duration,
    /// For which an idle connection to an Endpoint is kept, default 60 s.
    pub upstream_idle: Duration,
    /// For which an upgraded connection (WebSocket) is kept without a byte either way, default 1 h.
    pub tunnel: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts {
            connect: Duration::from_secs(5),
            read: Duration::from_secs(60),
            send: Duration::from_secs(60),
            header: Duration::from_secs(60),
            handshake: Duration::from_secs(10),
            keep_alive: Duration::from_secs(75),
            upstream_idle: Duration::from_secs(60),
            tunnel: Duration::from_secs(3600),
        }
    }
}

/// How much there may be of things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Client connections of one worker, default 16,384; further ones are closed at once.
    pub max_connections: usize,
    /// TLS handshakes of one worker that are open at once, default 1,024; further ones are closed
    /// at once.
    pub max_handshakes: usize,
    /// Requests that one worker answers at a time, default 16,384; further ones get a 503.
    pub max_requests: usize,
    /// Bytes of a request's head, default 64 KiB; 8 KiB to 1 MiB, as hyper needs at
    /// least 8 KiB.
    pub max_head_bytes: usize,
    /// Header lines of a request, default 100.
    pub max_headers: usize,
    /// Idle connections to one Endpoint that one worker keeps, default 320; more only while they are
    /// needed again and again.
    pub upstream_idle_per_endpoint: usize,
    /// Bytes of a request's body where its Location names no limit (`proxy-body-size`), default
    /// 1 MiB as in ingress-nginx; 0 is no limit.
    pub max_body_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            max_connections: 16_384,
            max_handshakes: 1024,
            max_requests: 16_384,
            max_head_bytes: 64 * 1024,
            max_headers: 100,
            upstream_idle_per_endpoint: 320,
            max_body_bytes: 1024 * 1024,
        }
    }
}

/// What there may be of connections where no HTTP is looked at, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct L4Limits {
    /// Connections of one worker, default 16,384; further ones are reset.
    pub max_connections: usize,
    /// For which a connection is kept without a byte either way, default 10 min as in ingress-nginx.
    pub idle: Duration,
    /// UDP sessions of one worker, default 16,384; datagrams of further ones are dropped.
    pub max_sessions: usize,
    /// For which a UDP session is kept without a datagram either way, default 30 s.
    pub udp_idle: Duration,
}

impl Default for L4Limits {
    fn default() -> Self {
        L4Limits {
            max_connections: 16_384,
            idle: Duration::from_secs(600),
            max_sessions: 16_384,
            udp_idle: Duration::from_secs(30),
        }
    }
}

/// Who this instance is, for ingress-nginx's constant metric labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Namespace of the pod (`--pod-namespace`); empty outside Kubernetes.
    pub pod_namespace: String,
    /// Name of the pod (`--pod-name`); empty outside Kubernetes.
    pub pod_name: String,
}

/// How the address of a client is found when a proxy stands in front.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RealIp {
    /// By X-Forwarded-For, or Forwarded.
    pub forwarded: bool,
    /// By the PROXY header that each connection begins with.
    pub proxy_protocol: bool,
    /// Who is believed.
    pub trusted: AddressSet,
}

/// How the names of ExternalName Services are looked up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameSettings {
    /// DNS servers (`--dns-server`); empty: the system's, from /etc/resolv.conf.
    pub servers: Vec<SocketAddr>,
    /// Names may lead to this node itself, to link-local addresses and to the metadata services of
    /// clouds (`--allow-local-external-names`), default false.
    pub allow_local: bool,
}

/// Settings of `splitter run`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Where the objects come from.
    pub source: Source,
    /// Cleartext HTTP listeners, default `0.0.0.0:80`.
    pub http: Vec<SocketAddr>,
    /// HTTPS listeners, default `0.0.0.0:443`; may be none.
    pub https: Vec<SocketAddr>,
    /// The Secret with the certificate for hosts without one (`--default-ssl-certificate`).
    pub default_certificate: Option<NamespacedName>,
    /// The Secret that the keys of session tickets follow from (`--tls-ticket-secret`), so that nodes
    /// resume each other's sessions; none: this process's own.
    pub ticket_secret: Option<NamespacedName>,
    /// The Strict-Transport-Security of every answer of a Location over TLS (`--hsts`), default
    /// [`Settings::HSTS`]; none: what the backend says.
    pub hsts: Option<String>,
    /// Admin listener, default `0.0.0.0:10254`.
    pub admin: SocketAddr,
    /// How connections reach the pools.
    pub steering: Steering,
    /// What the kernel programs are told, where steering uses them.
    pub dataplane: DataplaneSettings,
    /// Which Ingresses are ours.
    pub class: ClassSettings,
    /// Worker threads of the one pool that there is without steering, default: the CPUs this
    /// process may use.
    pub workers: usize,
    /// Log line format.
    pub log_format: LogFormat,
    /// Where access-log lines go.
    pub access_log: AccessLog,
    /// Trust X-Forwarded-* and X-Request-ID of clients (`--use-forwarded-headers`), default false.
    pub use_forwarded_headers: bool,
    /// Where the names of ExternalName Services are looked up.
    pub names: NameSettings,
    /// Connections begin with a PROXY header, version 1 or 2 (`--use-proxy-protocol`), default
    /// false.
    pub use_proxy_protocol: bool,
    /// Peers that are believed whom they speak for, by either of these (`--proxy-real-ip-cidr`),
    /// default everybody, as in ingress-nginx.
    pub proxy_real_ip: AddressSet,
    /// How long everything goes on after the signal to stop, but not ready any more, so that
    /// balancers notice, default none.
    pub shutdown_delay: Duration,
    /// How long open requests may go on then, default 30 s.
    pub drain_timeout: Duration,
    /// How long things may take.
    pub timeouts: Timeouts,
    /// How much there may be of things.
    pub limits: Limits,
    /// The same for connections where no HTTP is looked at.
    pub l4: L4Limits,
    /// Who this instance is.
    pub identity: Identity,
    /// How it takes the place of another instance, and makes room for the next.
    pub hand_over: HandOver,
    /// A Unix socket that answers as the admin listener does, for this instance alone
    /// (`--probe-socket`), default none.
    pub probe_socket: Option<PathBuf>,
    /// Where the API server asks about Ingresses before they are written, default nowhere.
    pub webhook: Option<WebhookSettings>,
}

/// The validating admission webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookSettings {
    /// Where it listens (`--webhook`).
    pub addr: SocketAddr,
    /// Its certificate chain (`--webhook-certificate`).
    pub certificate: PathBuf,
    /// The key for that (`--webhook-key`).
    pub key: PathBuf,
}

/// How an instance takes the place of another one on the same node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HandOver {
    /// A Unix socket on which a running instance is asked for its listening sockets, and on which
    /// this one gives its own then (`--take-over`), default none: another instance is in the way.
    pub path: Option<PathBuf>,
    /// What an instance does when its successor serves and its own requests are finished.
    pub after: AfterHandOver,
}

/// What is done after everything has been handed over (`--after-hand-over`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AfterHandOver {
    /// End.
    #[default]
    Exit,
    /// Wait for the signal to stop: who ends by himself is started again by some supervisors, and
    /// would take over from his successor.
    Wait,
}

impl Settings {
    /// The TCP addresses that the process itself listens on, by the flag that says so; those whose port
    /// the kernel chooses are not known beforehand.
    pub fn taken(&self) -> Vec<(&'static str, SocketAddr)> {
        let http = self.http.iter().map(|addr| ("--http", *addr));
        let https = self.https.iter().map(|addr| ("--https", *addr));
        let webhook = self.webhook.iter().map(|it| ("--webhook", it.addr));
        let all = http.chain(https).chain([("--admin", self.admin)]);
        all.chain(webhook)
            .filter(|(_, it)| it.port() != 0)
            .collect()
    }

    /// The default of `--hsts`, as ingress-nginx's.
    pub const HSTS: &str = "max-age=31536000; includeSubDomains";
}

/// Settings that are each valid but do not go together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// The same address twice.
    #[error("--http {0} is given more than once; give each address once")]
    DuplicateHttp(SocketAddr),
    /// The same address twice.
    #[error(
        "--https {0} is given more than once, or is an --http address too; give each address once"
    )]
    DuplicateHttps(SocketAddr),
    /// Neither off nor on.
    #[error("--https off is given beside an address; give one of them")]
    HttpsOffAndOn,
    /// One address for two things.
    #[error("--admin {0} is also an --http or --https address; give them different ports")]
    AdminIsHttp(SocketAddr),
    /// A setting of the defaults that cannot be read.
    #[error("--defaults: {0}")]
    Default(#[from] BadDefault),
    /// CPUs that cannot be had.
    #[error("--cpu-isolation: {0}")]
    Cpus(#[from] CpuError),
    /// Two values for one thing.
    #[error("--{flag} {name} is given twice, as {first} and as {second}; give each {what} once")]
    Twice {
        /// The flag, without dashes.
        flag: &'static str,
        /// What was named.
        name: String,
        /// What it was given.
        first: String,
        /// What it was given then.
        second: String,
        /// What the name is one of.
        what: &'static str,
    },
}
