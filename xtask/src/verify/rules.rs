//! Which module may name which: data goes one way, and I/O stays out of what is pure.

/// What a module may name beside itself, `std` and crates that no rule mentions.
pub(super) struct Module {
    pub(super) name: &'static str,
    /// Other modules of the library.
    pub(super) modules: Allowed,
}

pub(super) enum Allowed {
    Every,
    Only(&'static [&'static str]),
}

/// The modules of the library. A module without a rule is a finding.
pub(super) const MODULES: &[Module] = &[
    only("model", &[]),
    only("words", &[]),
    only("config", &["dataplane", "model"]),
    only("routing", &["model"]),
    only("auth", &["model"]),
    only("k8s", &["model", "config"]),
    only("names", &["config", "k8s", "model"]),
    only("dataplane", &["model", "routing"]),
    only("telemetry", &["model", "routing", "config", "words"]),
    only("tls", &["model"]),
    only(
        "proxy",
        &[
            "model",
            "routing",
            "telemetry",
            "config",
            "tls",
            "auth",
            "words",
        ],
    ),
    only("admin", &["model", "routing", "telemetry"]),
    only("webhook", &["config", "k8s", "telemetry"]),
    every("cli"),
    every("app"),
];

/// Files of the library's top that are no module.
pub(super) const TOP: &[&str] = &["lib", "main"];

/// Crates that do I/O or belong to one side, and the modules that may name them.
pub(super) const CRATES: &[(&[&str], &[&str])] = &[
    (&["aya", "aya_log"], &["dataplane"]),
    (&["kube", "k8s_openapi"], &["k8s"]),
    (&["notify"], &["k8s"]),
    // In `cli` by the test that reads what is shipped for clusters.
    (&["serde_norway"], &["k8s", "cli"]),
    (
        &["hyper", "hyper_util"],
        &["proxy", "admin", "app", "webhook"],
    ),
    (
        &["http_body", "http_body_util"],
        &["proxy", "admin", "app", "webhook"],
    ),
    (&["socket2"], &["proxy", "dataplane", "app", "webhook"]),
    (&["libc"], &["proxy", "dataplane", "app"]),
    (
        &["tokio"],
        &[
            "k8s",
            "names",
            "dataplane",
            "proxy",
            "admin",
            "app",
            "cli",
            "webhook",
        ],
    ),
    (&["clap", "tracing_subscriber"], &["cli"]),
    (&["hickory_resolver"], &["names"]),
    (&["rustls"], &["tls", "proxy", "webhook"]),
    (&["rustls_native_certs"], &["tls"]),
    (&["tokio_rustls"], &["app", "webhook"]),
    (&["aws_lc_rs"], &["auth", "tls", "webhook"]),
    (&["bcrypt", "jsonwebtoken", "md5", "sha_crypt"], &["auth"]),
    // In `webhook` by a test.
    (&["rcgen"], &["tls", "webhook"]),
    (&["x509_parser"], &["tls"]),
    (&["anyhow"], &["app", "cli", "main"]),
    // Where flows are on the line of the weights is said once, for the kernel too.
    (
        &["splitter_common"],
        &["dataplane", "routing", "proxy", "app", "cli"],
    ),
];

const fn only(name: &'static str, modules: &'static [&'static str]) -> Module {
    Module {
        name,
        modules: Allowed::Only(modules),
    }
}

const fn every(name: &'static str) -> Module {
    Module {
        name,
        modules: Allowed::Every,
    }
}
