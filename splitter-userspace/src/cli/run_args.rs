use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use clap::{ArgAction, Args, ValueEnum};
use ipnet::IpNet;

use super::class_args::ClassArgs;
use super::cluster_args::ClusterArgs;
use super::hand_over_args::HandOverArgs;
use super::l4_args::L4Args;
use super::limit_args::{LimitArgs, TimeoutArgs};
use super::named::MAX_WORKERS;
use super::pool_args::General;
use super::steer_args::SteerArgs;
use super::tls_args::TlsArgs;
use super::values;
use super::webhook_args::WebhookArgs;
use crate::config::{
    AccessLog, ClassSettings, ClusterSettings, Identity, LogFormat, NameSettings, ProcessDefaults,
    Settings, SettingsError, Source, Steering,
};

/// Flags of `splitter run`. Each is also an environment variable; a list there is separated by
/// commas.
#[derive(Args, Clone, Debug)]
pub struct RunArgs {
    /// Directory whose YAML files, at any depth, are the configuration; watched for changes
    /// [default: the Kubernetes API is]
    #[arg(long, env = "SPLITTER_MANIFESTS", value_name = "DIR")]
    pub manifests: Option<PathBuf>,

    /// What is read from the Kubernetes API, and written there.
    #[command(flatten)]
    pub cluster: ClusterArgs,

    /// Address for cleartext HTTP; repeatable
    #[arg(
        long,
        env = "SPLITTER_HTTP",
        value_name = "ADDR",
        default_value = "0.0.0.0:80",
        value_delimiter = ',',
        value_parser = values::listen
    )]
    pub http: Vec<SocketAddr>,

    /// What is spoken over TLS.
    #[command(flatten)]
    pub tls: TlsArgs,

    /// Address for health, metrics and dumps
    #[arg(
        long,
        env = "SPLITTER_ADMIN",
        value_name = "ADDR",
        default_value = "0.0.0.0:10254",
        value_parser = values::listen
    )]
    pub admin: SocketAddr,

    /// How connections reach the pools
    #[arg(
        long,
        env = "SPLITTER_STEERING",
        value_enum,
        default_value_t = SteeringArg::Auto
    )]
    pub steering: SteeringArg,

    /// What the kernel programs are told.
    #[command(flatten)]
    pub dataplane: SteerArgs,

    /// Which Ingresses are ours.
    #[command(flatten)]
    pub class: ClassArgs,

    /// Worker threads of a pool [default: the CPUs this process may use]
    #[arg(long, env = "SPLITTER_WORKERS", value_name = "N", value_parser = values::number(1..=MAX_WORKERS))]
    pub workers: Option<usize>,

    /// Format of log lines and of the access log
    #[arg(
        long,
        env = "SPLITTER_LOG_FORMAT",
        value_enum,
        default_value_t = LogFormatArg::Text
    )]
    pub log_format: LogFormatArg,

    /// Where the access log goes: off, stdout, or the path of a file
    #[arg(
        long,
        env = "SPLITTER_ACCESS_LOG",
        value_name = "off|stdout|PATH",
        default_value = "stdout",
        value_parser = values::access_log
    )]
    pub access_log: AccessLog,

    /// Trust X-Forwarded-* and X-Request-ID of clients
    #[arg(
        long,
        env = "SPLITTER_USE_FORWARDED_HEADERS",
        action = ArgAction::Set,
        num_args = 0..=1,
        require_equals = true,
        default_value_t = false,
        default_missing_value = "true"
    )]
    pub use_forwarded_headers: bool,

    /// Connections begin with a PROXY header, version 1 or 2; others are closed
    #[arg(
        long,
        env = "SPLITTER_USE_PROXY_PROTOCOL",
        action = ArgAction::Set,
        num_args = 0..=1,
        require_equals = true,
        default_value_t = false,
        default_missing_value = "true"
    )]
    pub use_proxy_protocol: bool,

    /// Who is believed, by --use-forwarded-headers or --use-proxy-protocol, whom he speaks for; repeatable
    #[arg(
        long,
        env = "SPLITTER_PROXY_REAL_IP_CIDR",
        value_name = "CIDR",
        value_delimiter = ',',
        default_values = ["0.0.0.0/0", "::/0"],
        value_parser = values::range
    )]
    pub proxy_real_ip_cidr: Vec<IpNet>,

    /// DNS server for the names of ExternalName Services; repeatable [default: the system's]
    #[arg(
        long,
        env = "SPLITTER_DNS_SERVER",
        value_name = "ADDR",
        value_delimiter = ',',
        value_parser = values::listen
    )]
    pub dns_server: Vec<SocketAddr>,

    /// Let ExternalName Services lead to this node itself and to clouds' metadata services
    #[arg(
        long,
        env = "SPLITTER_ALLOW_LOCAL_EXTERNAL_NAMES",
        action = ArgAction::Set,
        num_args = 0..=1,
        require_equals = true,
        default_value_t = false,
        default_missing_value = "true"
    )]
    pub allow_local_external_names: bool,

    /// How long open requests may go on after the signal to stop
    #[arg(
        long,
        env = "SPLITTER_DRAIN_TIMEOUT",
        value_name = "TIME",
        default_value = "30s",
        value_parser = values::duration
    )]
    pub drain_timeout: Duration,

    /// How long to go on, but not ready any more, after the signal to stop, so that balancers notice
    #[arg(
        long,
        env = "SPLITTER_SHUTDOWN_DELAY",
        value_name = "TIME",
        default_value = "0s",
        value_parser = values::duration_or_none
    )]
    pub shutdown_delay: Duration,

    /// How instances follow one another.
    #[command(flatten)]
    pub hand_over: HandOverArgs,

    /// Unix socket that answers as --admin does, for this instance alone: see splitter probe
    #[arg(long, env = "SPLITTER_PROBE_SOCKET", value_name = "PATH")]
    pub probe_socket: Option<PathBuf>,

    /// Where the API server asks about Ingresses.
    #[command(flatten)]
    pub webhook: WebhookArgs,

    /// How long things may take.
    #[command(flatten)]
    pub timeouts: TimeoutArgs,

    /// How much there may be of things.
    #[command(flatten)]
    pub limits: LimitArgs,

    /// The same where no HTTP is looked at.
    #[command(flatten)]
    pub l4: L4Args,

    /// Namespace of this pod, a label of ingress-nginx's metrics
    #[arg(
        long,
        env = "SPLITTER_POD_NAMESPACE",
        value_name = "NAME",
        default_value = ""
    )]
    pub pod_namespace: String,

    /// Name of this pod, a label of ingress-nginx's metrics
    #[arg(
        long,
        env = "SPLITTER_POD_NAME",
        value_name = "NAME",
        default_value = ""
    )]
    pub pod_name: String,
}

/// Values of `--steering`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SteeringArg {
    /// Plain sockets, no privileges
    None,
    /// sk_lookup
    SkLookup,
    /// XDP on the NIC and sk_lookup
    Xdp,
    /// The best that works here
    Auto,
}

/// Values of `--log-format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormatArg {
    /// One JSON object a line
    Json,
    /// For people; the access log as ingress-nginx writes it, with more at the end
    Text,
}

impl TryFrom<RunArgs> for Settings {
    type Error = SettingsError;

    fn try_from(args: RunArgs) -> Result<Self, SettingsError> {
        for (index, addr) in args.http.iter().enumerate() {
            if args.http[..index].contains(addr) {
                return Err(SettingsError::DuplicateHttp(*addr));
            }
            // Port 0 is any free port, another one each time.
            if *addr == args.admin && addr.port() != 0 {
                return Err(SettingsError::AdminIsHttp(*addr));
            }
        }
        let https = args.tls.listeners(&args.http, args.admin)?;
        let class = ClassSettings::from(args.class);
        let general = General {
            workers: args.workers,
            usable_cpus: usable_cpus(),
            timeouts: args.timeouts.into(),
            limits: args.limits.into(),
        };
        let mut settings = Settings {
            source: match args.manifests {
                Some(directory) => Source::Manifests(directory),
                None => Source::Cluster(Box::new(ClusterSettings {
                    secrets: [
                        &args.tls.default_ssl_certificate,
                        &args.tls.tls_ticket_secret,
                    ]
                    .into_iter()
                    .flatten()
                    .cloned()
                    .collect(),
                    config_maps: class.l4.config_maps(),
                    ..args.cluster.into()
                })),
            },
            http: args.http,
            https,
            default_certificate: args.tls.default_ssl_certificate,
            ticket_secret: args.tls.tls_ticket_secret,
            hsts: args.tls.hsts,
            admin: args.admin,
            steering: args.steering.into(),
            dataplane: args.dataplane.settings(&general)?,
            workers: general.workers.unwrap_or(general.usable_cpus),
            log_format: args.log_format.into(),
            access_log: args.access_log,
            use_forwarded_headers: args.use_forwarded_headers,
            names: NameSettings {
                servers: args.dns_server,
                allow_local: args.allow_local_external_names,
            },
            use_proxy_protocol: args.use_proxy_protocol,
            proxy_real_ip: args.proxy_real_ip_cidr.into_iter().collect(),
            class,
            shutdown_delay: args.shutdown_delay,
            drain_timeout: args.drain_timeout,
            timeouts: general.timeouts,
            limits: general.limits,
            l4: args.l4.into(),
            identity: Identity {
                pod_namespace: args.pod_namespace,
                pod_name: args.pod_name,
            },
            hand_over: args.hand_over.into(),
            probe_socket: args.probe_socket,
            webhook: args.webhook.into(),
        };
        let (process, bad) = ProcessDefaults::read(&settings.class.defaults);
        if let Some(bad) = bad.into_iter().next() {
            return Err(bad.into());
        }
        settings.add(&process);
        Ok(settings)
    }
}

impl From<SteeringArg> for Steering {
    fn from(arg: SteeringArg) -> Self {
        match arg {
            SteeringArg::None => Steering::None,
            SteeringArg::SkLookup => Steering::SkLookup,
            SteeringArg::Xdp => Steering::Xdp,
            SteeringArg::Auto => Steering::Auto,
        }
    }
}

impl From<LogFormatArg> for LogFormat {
    fn from(arg: LogFormatArg) -> Self {
        match arg {
            LogFormatArg::Json => LogFormat::Json,
            LogFormatArg::Text => LogFormat::Text,
        }
    }
}

/// The CPUs this process may use, by affinity and cgroup; at least 1.
fn usable_cpus() -> usize {
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    cpus.min(MAX_WORKERS)
}

#[cfg(test)]
#[path = "run_args_tests.rs"]
mod tests;
