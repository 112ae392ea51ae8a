//! Ingresses in a few words, and Snapshots in a few lines.

use std::fmt::Write as _;

use crate::config::ClassSettings;
use crate::k8s::{Manifests, Objects, Translation, translate};
use crate::model::{Problem, Rule, Severity, Snapshot, Test, ValueTest};

/// An Ingress to be written as YAML.
#[derive(Clone)]
pub struct Ing {
    name: String,
    namespace: String,
    created: Option<String>,
    class: Option<String>,
    annotations: Vec<(String, String)>,
    rules: Vec<String>,
    default_backend: Option<String>,
    tls: Option<String>,
}

/// A main Ingress of class nginx without rules.
pub fn main(name: &str) -> Ing {
    Ing {
        name: name.to_owned(),
        namespace: "ns".to_owned(),
        created: None,
        class: Some("nginx".to_owned()),
        annotations: Vec::new(),
        rules: Vec::new(),
        default_backend: None,
        tls: None,
    }
}

/// A canary without rules.
pub fn canary(name: &str) -> Ing {
    main(name).note("canary", "true")
}

impl Ing {
    pub fn ns(mut self, namespace: &str) -> Self {
        self.namespace = namespace.to_owned();
        self
    }

    /// Made `second` seconds after the hour.
    pub fn at(mut self, second: u32) -> Self {
        self.created = Some(format!("2026-01-01T00:00:{second:02}Z"));
        self
    }

    pub fn class(mut self, class: Option<&str>) -> Self {
        self.class = class.map(str::to_owned);
        self
    }

    /// An annotation under ingress-nginx's prefix.
    pub fn note(self, name: &str, value: &str) -> Self {
        self.raw_note(&format!("nginx.ingress.kubernetes.io/{name}"), value)
    }

    pub fn raw_note(mut self, key: &str, value: &str) -> Self {
        self.annotations.push((key.to_owned(), value.to_owned()));
        self
    }

    pub fn weight(self, weight: &str) -> Self {
        self.note("canary-weight", weight)
    }

    /// A rule with one path of type Prefix. No host: any.
    pub fn on(self, host: &str, path: &str, service: &str) -> Self {
        self.path(host, path, "Prefix", service)
    }

    pub fn path(self, host: &str, path: &str, path_type: &str, service: &str) -> Self {
        let backend = format!("{{service: {{name: {service}, port: {{number: 80}}}}}}");
        self.backend(host, path, path_type, &backend)
    }

    pub fn backend(mut self, host: &str, path: &str, path_type: &str, backend: &str) -> Self {
        self.rules.push(format!(
            "{{host: {host:?}, http: {{paths: [{{path: {path:?}, pathType: {path_type:?}, backend: {backend}}}]}}}}"
        ));
        self
    }

    /// A rule without http.
    pub fn bare(mut self, host: &str) -> Self {
        self.rules.push(format!("{{host: {host:?}}}"));
        self
    }

    /// TLS for a host; for all of them without one.
    pub fn tls(mut self, host: &str) -> Self {
        let hosts = match host {
            "" => String::new(),
            host => format!("hosts: [{host:?}]"),
        };
        self.tls = Some(format!("[{{{hosts}}}]"));
        self
    }

    /// The same with a certificate.
    pub fn tls_of(mut self, host: &str, secret: &str) -> Self {
        self.tls = Some(format!("[{{hosts: [{host:?}], secretName: {secret}}}]"));
        self
    }

    pub fn default_to(mut self, service: &str) -> Self {
        self.default_backend = Some(service.to_owned());
        self
    }

    pub fn yaml(&self) -> String {
        let mut text = String::new();
        let (name, namespace) = (&self.name, &self.namespace);
        writeln!(text, "apiVersion: networking.k8s.io/v1\nkind: Ingress").unwrap();
        writeln!(text, "metadata:\n  name: {name}\n  namespace: {namespace}").unwrap();
        if let Some(created) = &self.created {
            writeln!(text, "  creationTimestamp: {created:?}").unwrap();
        }
        writeln!(text, "  annotations:").unwrap();
        for (key, value) in &self.annotations {
            writeln!(text, "    {key}: {}", serde_json::to_string(value).unwrap()).unwrap();
        }
        writeln!(text, "spec:").unwrap();
        if let Some(class) = &self.class {
            writeln!(text, "  ingressClassName: {class:?}").unwrap();
        }
        if let Some(service) = &self.default_backend {
            let port = "{number: 80}";
            writeln!(
                text,
                "  defaultBackend: {{service: {{name: {service}, port: {port}}}}}"
            )
            .unwrap();
        }
        if let Some(tls) = &self.tls {
            writeln!(text, "  tls: {tls}").unwrap();
        }
        writeln!(text, "  rules:").unwrap();
        for rule in &self.rules {
            writeln!(text, "  - {rule}").unwrap();
        }
        text
    }
}

/// A Service on port 80 (http) with one slice of one ready endpoint.
pub fn service(namespace: &str, name: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Service\n\
         metadata: {{name: {name}, namespace: {namespace}}}\n\
         spec: {{ports: [{{name: http, port: 80}}]}}\n---\n\
         apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\n\
         metadata: {{name: {name}-1, namespace: {namespace}, \
         labels: {{kubernetes.io/service-name: {name}}}}}\n\
         addressType: IPv4\nports: [{{name: http, port: 8080}}]\n\
         endpoints: [{{addresses: [10.0.0.1]}}]\n"
    )
}

/// Objects from YAML that must have no fault of its own.
pub fn objects(yaml: &str) -> Objects {
    let (objects, problems) = Manifests::from_text("test", yaml);
    assert_eq!(problems, [], "in:\n{yaml}");
    objects
}

/// The Ingresses with the Services m, m2, c, c2, c3 in the namespaces ns and other.
pub fn manifest(ingresses: &[Ing]) -> Objects {
    let mut documents: Vec<String> = ingresses.iter().map(Ing::yaml).collect();
    for namespace in ["ns", "other"] {
        for name in ["m", "m2", "c", "c2", "c3"] {
            documents.push(service(namespace, name));
        }
    }
    objects(&documents.join("---\n"))
}

/// The whole way with the default settings.
pub fn run(ingresses: &[Ing]) -> Translation {
    translate(&manifest(ingresses), &ClassSettings::default())
}

/// The Locations alone, which must be without any Problem.
pub fn clean(ingresses: &[Ing]) -> Vec<String> {
    let translation = run(ingresses);
    assert_eq!(
        codes(&translation.problems),
        [""; 0],
        "{:#?}",
        translation.problems
    );
    show(&translation.snapshot)
}

/// One line a Location: `host path type: Service=weight … | rule …`.
pub fn show(snapshot: &Snapshot) -> Vec<String> {
    let locations = snapshot.locations.iter().map(|location| {
        let variants = location.split.variants.iter().map(|variant| {
            let backend = snapshot.backend(variant.backend).unwrap();
            let fault = match backend.fault {
                Some(fault) => format!("!{fault:?}"),
                None => String::new(),
            };
            format!("{}{fault}={}", backend.key.service, variant.weight)
        });
        let variants: Vec<_> = variants.collect();
        let rules = location.split.rules.iter().map(show_rule);
        let rules: String = rules.map(|rule| format!(" | {rule}")).collect();
        format!("{}: {}{rules}", location.key, variants.join(" "))
    });
    locations.collect()
}

fn show_rule(rule: &Rule) -> String {
    let variant = rule.variant;
    match &rule.test {
        Test::Header { name, test } => format!("{variant} header {name} {}", show_test(test)),
        Test::Cookie {
            name,
            test: ValueTest::AlwaysNever,
        } => format!("{variant} cookie {name}"),
        Test::Cookie { name, test } => format!("{variant} cookie {name} {}", show_test(test)),
        Test::Query { name, test } => format!("{variant} query {name} {}", show_test(test)),
        Test::Source(set) => format!("{variant} source {set}"),
    }
}

fn show_test(test: &ValueTest) -> String {
    match test {
        ValueTest::AlwaysNever => "always/never".to_owned(),
        ValueTest::Value(value) => format!("= {value:?}"),
        ValueTest::Pattern(pattern) => format!("~ {:?}", pattern.as_str()),
        ValueTest::Invalid => "invalid".to_owned(),
    }
}

/// The codes, errors with `!`.
pub fn codes(problems: &[Problem]) -> Vec<String> {
    let mark = |severity| if severity == Severity::Error { "!" } else { "" };
    problems
        .iter()
        .map(|it| format!("{}{}", mark(it.severity), it.code))
        .collect()
}

/// The Problems of one object by name, as `field code`, errors with `!`.
pub fn problems_of(translation: &Translation, name: &str) -> Vec<String> {
    let of = translation
        .problems
        .iter()
        .filter(|it| &*it.object.name == name);
    of.map(|it| {
        let mark = if it.severity == Severity::Error {
            "!"
        } else {
            ""
        };
        format!(
            "{} {mark}{}",
            it.field.replace("nginx.ingress.kubernetes.io/", ""),
            it.code
        )
    })
    .collect()
}
