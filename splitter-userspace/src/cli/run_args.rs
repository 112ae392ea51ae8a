use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use clap::{ArgAction, Args, ValueEnum};
use ipnet::IpNet;

use super::class_args::ClassArgs;
use super::cluster_args::ClusterArgs;
use super::limit_args::{LimitArgs, TimeoutArgs};
use super::named::MAX_WORKERS;
use super::pool_args::General;
use super::steer_args::SteerArgs;
use super::tls_args::TlsArgs;
use super::values;
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

    /// How long things may take.
    #[command(flatten)]
    pub timeouts: TimeoutArgs,

    /// How much there may be of things.
    #[command(flatten)]
    pub limits: LimitArgs,

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
                    secrets: args.tls.default_ssl_certificate.iter().cloned().collect(),
                    ..args.cluster.into()
                })),
            },
            http: args.http,
            https,
            default_certificate: args.tls.default_ssl_certificate,
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
            drain_timeout: args.drain_timeout,
            timeouts: general.timeouts,
            limits: general.limits,
            identity: Identity {
                pod_namespace: args.pod_namespace,
                pod_name: args.pod_name,
            },
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
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::sync::Arc;

    use clap::Parser;

    use super::*;
    use crate::config::{DataplaneSettings, Limits, NamespacedName, PoolSettings, Timeouts};

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        run: RunArgs,
    }

    fn settings(args: &[&str]) -> Result<Settings, SettingsError> {
        let line = ["splitter", "--manifests=m"].iter().chain(args);
        Line::try_parse_from(line).unwrap().run.try_into()
    }

    #[test]
    fn nothing_said_is_every_default() {
        let all = settings(&[]).unwrap();
        assert_eq!(all.source, Source::Manifests("m".into()));
        assert_eq!(all.http, ["0.0.0.0:80".parse().unwrap()]);
        assert_eq!(all.https, ["0.0.0.0:443".parse().unwrap()]);
        assert_eq!(all.default_certificate, None);
        assert_eq!(all.hsts.as_deref(), Some(Settings::HSTS));
        assert_eq!(all.admin, "0.0.0.0:10254".parse().unwrap());
        assert_eq!(all.steering, Steering::Auto);
        assert_eq!(all.dataplane, DataplaneSettings::new(usable_cpus()));
        assert_eq!(all.class, ClassSettings::default());
        assert_eq!(all.workers, usable_cpus());
        assert_eq!(all.log_format, LogFormat::Text);
        assert_eq!(all.access_log, AccessLog::Stdout);
        assert!(!all.use_forwarded_headers && !all.use_proxy_protocol);
        assert!(all.proxy_real_ip.is_all());
        assert_eq!(all.drain_timeout, Duration::from_secs(30));
        assert_eq!(all.timeouts, Timeouts::default());
        assert_eq!(all.limits, Limits::default());
        assert_eq!(all.identity, Identity::default());
    }

    #[test]
    fn every_flag_sets_its_field() {
        let all = settings(&[
            "--http=127.0.0.1:1,127.0.0.1:2",
            "--http=[::1]:3",
            "--https=127.0.0.1:5,[::1]:6",
            "--default-ssl-certificate=ingress/wildcard",
            "--hsts=max-age=60",
            "--admin=127.0.0.1:4",
            "--steering=sk-lookup",
            "--interface=eth0",
            "--ingress-class=own",
            "--controller-class=own.example/a",
            "--watch-ingress-without-class",
            "--annotations-prefix=own.example",
            "--workers=3",
            "--log-format=json",
            "--access-log=/a",
            "--use-forwarded-headers",
            "--use-proxy-protocol",
            "--proxy-real-ip-cidr=10.0.0.0/8,2001:db8::1",
            "--dns-server=127.0.0.1:53",
            "--allow-local-external-names",
            "--drain-timeout=1s",
            "--connect-timeout=2s",
            "--read-timeout=3s",
            "--send-timeout=4s",
            "--header-timeout=5s",
            "--handshake-timeout=13s",
            "--keep-alive-timeout=6s",
            "--upstream-idle-timeout=7s",
            "--tunnel-timeout=12s",
            "--max-connections=8",
            "--max-handshakes=14",
            "--max-requests=13",
            "--max-head-bytes=9000",
            "--max-headers=10",
            "--upstream-idle-per-endpoint=11",
            "--max-body-bytes=14",
            "--pod-namespace=ns",
            "--pod-name=pod",
        ])
        .unwrap();
        let timeouts = Timeouts {
            connect: Duration::from_secs(2),
            read: Duration::from_secs(3),
            send: Duration::from_secs(4),
            header: Duration::from_secs(5),
            handshake: Duration::from_secs(13),
            keep_alive: Duration::from_secs(6),
            upstream_idle: Duration::from_secs(7),
            tunnel: Duration::from_secs(12),
        };
        let limits = Limits {
            max_connections: 8,
            max_handshakes: 14,
            max_requests: 13,
            max_head_bytes: 9_000,
            max_headers: 10,
            upstream_idle_per_endpoint: 11,
            max_body_bytes: 14,
        };
        let pool = PoolSettings {
            workers: 3,
            timeouts,
            limits,
        };
        let expected = Settings {
            source: Source::Manifests("m".into()),
            http: ["127.0.0.1:1", "127.0.0.1:2", "[::1]:3"]
                .map(|addr| addr.parse().unwrap())
                .to_vec(),
            https: ["127.0.0.1:5", "[::1]:6"]
                .map(|addr| addr.parse().unwrap())
                .to_vec(),
            default_certificate: Some(NamespacedName {
                namespace: "ingress".to_owned(),
                name: "wildcard".to_owned(),
            }),
            hsts: Some("max-age=60".to_owned()),
            admin: "127.0.0.1:4".parse().unwrap(),
            steering: Steering::SkLookup,
            dataplane: DataplaneSettings {
                interfaces: vec!["eth0".to_owned()],
                pools: [pool; 2],
                ..DataplaneSettings::new(3)
            },
            class: ClassSettings {
                ingress_class: "own".to_owned(),
                controllers: vec!["own.example/a".to_owned()],
                without_class: true,
                annotations_prefix: "own.example".to_owned(),
                defaults: Arc::default(),
                strict_nginx: false,
            },
            workers: 3,
            log_format: LogFormat::Json,
            access_log: AccessLog::File("/a".into()),
            use_forwarded_headers: true,
            names: NameSettings {
                servers: vec!["127.0.0.1:53".parse().unwrap()],
                allow_local: true,
            },
            use_proxy_protocol: true,
            proxy_real_ip: "10.0.0.0/8,2001:db8::1/128".parse().unwrap(),
            drain_timeout: Duration::from_secs(1),
            timeouts,
            limits,
            identity: Identity {
                pod_namespace: "ns".to_owned(),
                pod_name: "pod".to_owned(),
            },
        };
        assert_eq!(all, expected);
    }

    #[test]
    fn https_is_on_or_off_and_has_its_own_addresses() {
        assert_eq!(settings(&["--https=off"]).unwrap().https, []);
        let both = settings(&["--https=off,127.0.0.1:5"]);
        assert_eq!(both, Err(SettingsError::HttpsOffAndOn));
        let addr = "127.0.0.1:5".parse().unwrap();
        for args in [
            &["--https=127.0.0.1:5,127.0.0.1:5"][..],
            &["--https=127.0.0.1:5", "--http=127.0.0.1:5"],
        ] {
            assert_eq!(settings(args), Err(SettingsError::DuplicateHttps(addr)));
        }
        let admin = settings(&["--https=127.0.0.1:5", "--admin=127.0.0.1:5"]);
        assert_eq!(admin, Err(SettingsError::AdminIsHttp(addr)));
    }

    #[test]
    fn without_manifests_the_cluster_says_what_to_do() {
        let line = [
            "splitter",
            "--kubeconfig=/k",
            "--default-ssl-certificate=a/b",
        ];
        let run = Line::try_parse_from(line).unwrap().run;
        let all: Settings = run.try_into().unwrap();
        let Source::Cluster(cluster) = all.source else {
            panic!("{:?}", all.source)
        };
        assert_eq!(cluster.kubeconfig, Some("/k".into()));
        // Nobody else would have it read.
        assert_eq!(cluster.secrets, ["a/b".parse().unwrap()]);
    }

    #[test]
    fn any_free_port_may_be_asked_for_everywhere() {
        let all = settings(&["--http=127.0.0.1:0", "--admin=127.0.0.1:0"]);
        assert!(all.is_ok(), "{all:?}");
    }

    #[test]
    fn defaults_have_one_source() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let defaults = format!("--defaults={}", file.path().display());
        for other in ["--manifests=m", defaults.as_str()] {
            let line = ["splitter", "--configmap=in/nginx", other];
            let error = Line::try_parse_from(line).unwrap_err().to_string();
            assert!(error.contains("cannot be used with"), "{error}");
        }
    }

    #[test]
    fn settings_of_the_process_come_from_the_defaults_too() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let with = |text: &str, more: &[&str]| {
            std::fs::write(file.path(), text).unwrap();
            let flag = format!("--defaults={}", file.path().display());
            let args: Vec<&str> = [flag.as_str()]
                .into_iter()
                .chain(more.iter().copied())
                .collect();
            settings(&args)
        };
        let text = "use-forwarded-headers: true\nuse-proxy-protocol: \"true\"\nproxy-real-ip-cidr: 10.0.0.0/8\n";
        let all = with(text, &[]).unwrap();
        assert!(all.use_forwarded_headers && all.use_proxy_protocol);
        assert_eq!(all.proxy_real_ip.to_string(), "10.0.0.0/8");
        let all = with(text, &["--proxy-real-ip-cidr=192.0.2.1"]).unwrap();
        assert_eq!(all.proxy_real_ip.to_string(), "192.0.2.1/32");
        for text in [
            "use-forwarded-headers: perhaps",
            "proxy-real-ip-cidr: office",
        ] {
            let error = with(text, &[]).unwrap_err().to_string();
            assert!(
                error.contains("--defaults") && error.contains("may be"),
                "{error}"
            );
        }
    }
}
