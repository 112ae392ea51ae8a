//! Flags that say which Ingresses are ours, shared by every command that reads objects.

use std::sync::Arc;

use clap::Args;
use clap::builder::BoolishValueParser;

use crate::config::{ClassSettings, Defaults, L4Settings, NamespacedName};
use crate::k8s::read_defaults;

/// Which Ingresses are served and under which prefix their annotations are read.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct ClassArgs {
    /// Name of the IngressClass to serve, with or without an IngressClass object.
    #[arg(long, env = "SPLITTER_INGRESS_CLASS", value_name = "NAME",
          default_value = "nginx", value_parser = class_name)]
    pub ingress_class: String,

    /// spec.controller of the IngressClasses to serve; repeatable or comma separated.
    #[arg(long, env = "SPLITTER_CONTROLLER_CLASS", value_name = "CONTROLLER",
          value_delimiter = ',', value_parser = controller,
          default_values_t = ClassSettings::default().controllers)]
    pub controller_class: Vec<String>,

    /// Also serve Ingresses that name no class at all.
    #[arg(long, env = "SPLITTER_WATCH_INGRESS_WITHOUT_CLASS", value_parser = BoolishValueParser::new())]
    pub watch_ingress_without_class: bool,

    /// Prefix of the annotations to read; splitter.io/ is always read as well.
    #[arg(long, env = "SPLITTER_ANNOTATIONS_PREFIX", value_name = "PREFIX",
          default_value = "nginx.ingress.kubernetes.io", value_parser = prefix)]
    pub annotations_prefix: String,

    /// File with what holds where an Ingress says nothing: a ConfigMap of ingress-nginx, or its
    /// keys and values alone. In a cluster --configmap follows the ConfigMap itself.
    #[arg(long, env = "SPLITTER_DEFAULTS", value_name = "FILE", value_parser = defaults)]
    pub defaults: Option<Arc<Defaults>>,
    /// Do as ingress-nginx does with use-regex and rewrite-target: make patterns of all paths of
    /// every host that one Ingress asks it for.
    #[arg(long, env = "SPLITTER_STRICT_NGINX", value_parser = BoolishValueParser::new())]
    pub strict_nginx: bool,

    /// Speak TLS only with pods that prove who they are, whatever proxy-ssl-verify says: Ingresses
    /// with backend-protocol HTTPS need proxy-ssl-secret with a ca.crt, and proxy-ssl-name.
    #[arg(long, env = "SPLITTER_UPSTREAM_TLS_VERIFY", value_parser = BoolishValueParser::new())]
    pub upstream_tls_verify: bool,

    /// Leave the TLS of hosts with ssl-passthrough to their pods: connections go there by the name in
    /// the client's hello, untouched.
    #[arg(long, env = "SPLITTER_ENABLE_SSL_PASSTHROUGH", value_parser = BoolishValueParser::new())]
    pub enable_ssl_passthrough: bool,

    /// ConfigMap of ingress-nginx that opens TCP ports of the node: port to
    /// namespace/service:port[:PROXY[:PROXY]].
    #[arg(
        long,
        env = "SPLITTER_TCP_SERVICES_CONFIGMAP",
        value_name = "NAMESPACE/NAME"
    )]
    pub tcp_services_configmap: Option<NamespacedName>,

    /// The same for UDP ports.
    #[arg(
        long,
        env = "SPLITTER_UDP_SERVICES_CONFIGMAP",
        value_name = "NAMESPACE/NAME"
    )]
    pub udp_services_configmap: Option<NamespacedName>,
}

impl From<ClassArgs> for ClassSettings {
    fn from(args: ClassArgs) -> Self {
        ClassSettings {
            ingress_class: args.ingress_class,
            controllers: args.controller_class,
            without_class: args.watch_ingress_without_class,
            annotations_prefix: args.annotations_prefix,
            defaults: args.defaults.unwrap_or_default(),
            strict_nginx: args.strict_nginx,
            upstream_tls_verify: args.upstream_tls_verify,
            ssl_passthrough: args.enable_ssl_passthrough,
            l4: L4Settings {
                tcp_services: args.tcp_services_configmap,
                udp_services: args.udp_services_configmap,
                taken: Vec::new(),
            },
        }
    }
}

/// A DNS name in lower case, as Kubernetes wants for the names of objects and for prefixes.
fn is_dns_name(text: &str) -> bool {
    let label = |label: &str| {
        let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        !label.is_empty()
            && label.bytes().all(inner)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.len() <= 253 && text.split('.').all(label)
}

fn class_name(text: &str) -> Result<String, String> {
    if is_dns_name(text) {
        return Ok(text.to_owned());
    }
    Err("allowed is a name in lower case with digits, - and ., such as nginx".to_owned())
}

fn prefix(text: &str) -> Result<String, String> {
    let name = text.strip_suffix('/').unwrap_or(text);
    if is_dns_name(name) {
        return Ok(name.to_owned());
    }
    Err("allowed is a DNS name such as nginx.ingress.kubernetes.io".to_owned())
}

fn defaults(path: &str) -> Result<Arc<Defaults>, String> {
    let text = std::fs::read_to_string(path);
    let text = text.map_err(|error| format!("cannot read the file: {error}"))?;
    read_defaults(path, &text).map(Arc::new)
}

fn controller(text: &str) -> Result<String, String> {
    match text.split_once('/') {
        Some((domain, path)) if is_dns_name(domain) && !path.is_empty() && text.len() <= 250 => {
            Ok(text.to_owned())
        }
        _ => Err("allowed is a domain and a path such as example.com/ingress".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        class: ClassArgs,
    }

    fn parse(arguments: &[&str]) -> Result<ClassSettings, String> {
        let all = std::iter::once("x").chain(arguments.iter().copied());
        let command = Command::try_parse_from(all).map_err(|error| error.to_string())?;
        Ok(command.class.into())
    }

    #[test]
    fn the_defaults_are_those_of_the_settings() {
        assert_eq!(parse(&[]).unwrap(), ClassSettings::default());
    }

    #[test]
    fn every_flag_has_its_field() {
        let settings = parse(&[
            "--ingress-class",
            "edge",
            "--controller-class",
            "a.example/x,b.example/y/z",
            "--controller-class=c.example/z",
            "--watch-ingress-without-class",
            "--annotations-prefix",
            "ingress.example.com",
            "--strict-nginx",
            "--tcp-services-configmap=in/tcp",
            "--udp-services-configmap=in/udp",
        ]);
        let expected = ClassSettings {
            ingress_class: "edge".to_owned(),
            controllers: ["a.example/x", "b.example/y/z", "c.example/z"]
                .map(str::to_owned)
                .to_vec(),
            without_class: true,
            annotations_prefix: "ingress.example.com".to_owned(),
            defaults: Arc::default(),
            strict_nginx: true,
            upstream_tls_verify: false,
            ssl_passthrough: false,
            l4: L4Settings {
                tcp_services: Some("in/tcp".parse().unwrap()),
                udp_services: Some("in/udp".parse().unwrap()),
                taken: Vec::new(),
            },
        };
        assert_eq!(settings.unwrap(), expected);
    }

    #[test]
    fn a_bad_value_is_told_what_is_allowed() {
        for arguments in [
            ["--ingress-class", "Nginx"],
            ["--ingress-class", ""],
            ["--controller-class", "nginx"],
            ["--controller-class", "example.com/"],
            ["--annotations-prefix", "http://x"],
            ["--annotations-prefix", "a b"],
        ] {
            let error = parse(&arguments).unwrap_err();
            assert!(error.contains("allowed is"), "{arguments:?}: {error}");
        }
    }
}
