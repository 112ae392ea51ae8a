//! Process settings, parsed once. Cluster settings are only Kubernetes objects.

use std::net::SocketAddr;
use std::path::PathBuf;

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
        }
    }
}

/// Settings of `splitter run`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Manifest directory.
    pub manifests: PathBuf,
    /// Cleartext HTTP listeners, default `0.0.0.0:80`.
    pub http: Vec<SocketAddr>,
    /// Admin listener, default `0.0.0.0:10254`.
    pub admin: SocketAddr,
    /// How connections reach the pools.
    pub steering: Steering,
    /// Which Ingresses are ours.
    pub class: ClassSettings,
    /// Worker threads of a pool, default: the CPUs this process may use.
    pub workers: usize,
    /// Log line format.
    pub log_format: LogFormat,
    /// Where access-log lines go.
    pub access_log: AccessLog,
    /// Trust X-Forwarded-* and X-Request-ID of clients (`--use-forwarded-headers`), default false.
    pub use_forwarded_headers: bool,
}
