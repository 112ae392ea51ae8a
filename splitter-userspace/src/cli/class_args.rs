//! Flags that say which Ingresses are ours, shared by every command that reads objects.

use clap::Args;

use crate::config::ClassSettings;

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
    #[arg(long, env = "SPLITTER_WATCH_INGRESS_WITHOUT_CLASS")]
    pub watch_ingress_without_class: bool,

    /// Prefix of the annotations to read; splitter.io/ is always read as well.
    #[arg(long, env = "SPLITTER_ANNOTATIONS_PREFIX", value_name = "PREFIX",
          default_value = "nginx.ingress.kubernetes.io", value_parser = prefix)]
    pub annotations_prefix: String,
}

impl From<ClassArgs> for ClassSettings {
    fn from(args: ClassArgs) -> Self {
        ClassSettings {
            ingress_class: args.ingress_class,
            controllers: args.controller_class,
            without_class: args.watch_ingress_without_class,
            annotations_prefix: args.annotations_prefix,
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

fn controller(text: &str) -> Result<String, String> {
    match text.split_once('/') {
        Some((domain, path)) if is_dns_name(domain) && !path.is_empty() && text.len() <= 250 => {
            Ok(text.to_owned())
        }
        _ => Err("allowed is a domain and a path such as example.com/ingress".to_owned()),
    }
}
