//! Manifests written as short as a test can read them.

use std::fmt::Write as _;
use std::net::SocketAddr;

/// Builds the YAML of a small cluster in namespace `demo`.
#[derive(Clone, Debug)]
pub struct Manifests {
    text: String,
    namespace: String,
    created: String,
    tls: String,
}

impl Default for Manifests {
    fn default() -> Self {
        Manifests {
            text: String::new(),
            namespace: "demo".to_owned(),
            created: String::new(),
            tls: String::new(),
        }
    }
}

impl Manifests {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts what follows into this namespace.
    pub fn namespace(mut self, name: &str) -> Self {
        name.clone_into(&mut self.namespace);
        self
    }

    /// Has the Ingresses that follow be created in this second of a minute long ago.
    pub fn created(mut self, second: u32) -> Self {
        self.created = format!(", creationTimestamp: \"2020-01-01T00:00:{second:02}Z\"");
        self
    }

    /// Has the Ingresses that follow name this Secret for `hosts` in `spec.tls`; without a name,
    /// none of them has a `spec.tls`.
    pub fn tls(mut self, secret: &str, hosts: &[&str]) -> Self {
        self.tls = match secret {
            "" => String::new(),
            secret => format!("  tls: [{{hosts: {hosts:?}, secretName: {secret}}}]\n"),
        };
        self
    }

    /// An ordinary Ingress `name`: `host` and `path` (Prefix) to `service`, port 80.
    pub fn main(self, name: &str, host: &str, path: &str, service: &str) -> Self {
        self.ingress(name, host, path, "Prefix", service, &[])
    }

    /// A canary Ingress; `annotations` without ingress-nginx's prefix, e.g. `("canary-weight", "10")`,
    /// and with any other.
    pub fn canary(
        self,
        name: &str,
        host: &str,
        path: &str,
        service: &str,
        annotations: &[(&str, &str)],
    ) -> Self {
        let all = [&[("canary", "true")], annotations].concat();
        self.ingress(name, host, path, "Prefix", service, &all)
    }

    /// Any Ingress with one rule and one path. An empty host is none.
    pub fn ingress(
        mut self,
        name: &str,
        host: &str,
        path: &str,
        path_type: &str,
        service: &str,
        annotations: &[(&str, &str)],
    ) -> Self {
        let mut notes = String::new();
        for (key, value) in annotations {
            let prefix = match key.contains('/') {
                true => "",
                false => "nginx.ingress.kubernetes.io/",
            };
            write!(notes, "{prefix}{key}: {value:?}, ").unwrap();
        }
        let host = match host {
            "" => String::new(),
            host => format!("host: {host:?}, "),
        };
        let (namespace, created, tls) = (&self.namespace, &self.created, &self.tls);
        write!(
            self.text,
            "---\napiVersion: networking.k8s.io/v1\nkind: Ingress\n\
             metadata: {{name: {name}, namespace: {namespace}{created}, \
             annotations: {{{notes}}}}}\n\
             spec:\n{tls}  rules:\n  - {{{host}http: {{paths: [{{path: {path:?}, \
             pathType: {path_type}, backend: {{service: {{name: {service}, \
             port: {{number: 80}}}}}}}}]}}}}\n"
        )
        .unwrap();
        self
    }

    /// A Service with port 80 and these endpoints, all ready.
    pub fn service(mut self, name: &str, endpoints: &[SocketAddr]) -> Self {
        let namespace = &self.namespace;
        write!(
            self.text,
            "---\napiVersion: v1\nkind: Service\nmetadata: {{name: {name}, namespace: {namespace}}}\n\
             spec: {{ports: [{{name: http, port: 80}}]}}\n"
        )
        .unwrap();
        for (index, endpoint) in endpoints.iter().enumerate() {
            self = self.endpoint(name, index, *endpoint, "ready: true");
        }
        self
    }

    /// One more endpoint of a Service, with these conditions (e.g. `ready: false, serving: true,
    /// terminating: true`).
    pub fn endpoint(
        mut self,
        service: &str,
        index: usize,
        endpoint: SocketAddr,
        conditions: &str,
    ) -> Self {
        let family = if endpoint.is_ipv4() { "IPv4" } else { "IPv6" };
        let (ip, port) = (endpoint.ip(), endpoint.port());
        let namespace = &self.namespace;
        write!(
            self.text,
            "---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\n\
             metadata: {{name: {service}-{index}, namespace: {namespace}, \
             labels: {{kubernetes.io/service-name: {service}}}}}\n\
             addressType: {family}\nports: [{{name: http, port: {port}}}]\n\
             endpoints: [{{addresses: [\"{ip}\"], conditions: {{{conditions}}}}}]\n"
        )
        .unwrap();
        self
    }

    /// Any other YAML document.
    pub fn raw(mut self, yaml: &str) -> Self {
        self.text.push_str("---\n");
        self.text.push_str(yaml);
        self.text.push('\n');
        self
    }

    /// The text.
    pub fn yaml(&self) -> &str {
        &self.text
    }
}
