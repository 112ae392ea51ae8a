use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// The Service that everybody uses.
pub(super) const STABLE: &str = "web";
/// The Service of its next version.
pub(super) const CANARY: &str = "web-next";
/// What ingress-nginx's metrics call the canary.
pub(super) const CANARY_LABEL: &str = "demo-web-next-80";
/// [`CANARY_LABEL`] as it is written in a query.
pub(super) const CANARY_TITLE: &str = "canary=\"demo-web-next-80\"";
/// The host that has canaries.
pub(super) const HOST: &str = "shop.example";
/// Another host on the same Service, without one.
pub(super) const OTHER_HOST: &str = "partner.example";

/// Percent of `HOST/` that go to the canary, to begin with.
pub(super) const WEIGHT: u32 = 20;
/// Percent of `HOST/api`.
pub(super) const API_WEIGHT: u32 = 5;
/// Percent of `HOST/` after the change.
pub(super) const NEW_WEIGHT: u32 = 50;

/// The manifests of the demo, in a directory that goes with this value.
pub(super) struct Manifests {
    dir: tempfile::TempDir,
}

impl Manifests {
    pub(super) fn write(stable: SocketAddr, canary: SocketAddr) -> Result<Self> {
        let dir = tempfile::Builder::new()
            .prefix("splitter-demo-")
            .tempdir()
            .context("cannot make a directory for the manifests")?;
        let manifests = Manifests { dir };
        let services = [service(STABLE, stable), service(CANARY, canary)].concat();
        manifests.put("services.yaml", &services)?;
        let main = [
            main("shop", HOST, &["/", "/api", "/beta"]),
            main("partner", OTHER_HOST, &["/"]),
        ];
        manifests.put("ingress.yaml", &main.concat())?;
        manifests.set_weight(WEIGHT)?;
        manifests.put(
            "canary-api.yaml",
            &canary_ingress("api-next", "/api", API_WEIGHT, ""),
        )?;
        let testers = annotations(&[
            ("canary-by-header", "X-Group"),
            ("canary-by-header-value", "testers"),
        ]);
        manifests.put(
            "canary-beta.yaml",
            &canary_ingress("beta-next", "/beta", 0, &testers),
        )?;
        Ok(manifests)
    }

    /// Writes the file of the canary of `HOST/`.
    pub(super) fn set_weight(&self, weight: u32) -> Result<()> {
        let rules = annotations(&[
            ("canary-by-header", "X-Canary"),
            ("canary-by-cookie", "canary"),
        ]);
        self.put(
            "canary.yaml",
            &canary_ingress("shop-next", "/", weight, &rules),
        )
    }

    pub(super) fn dir(&self) -> &Path {
        self.dir.path()
    }

    fn put(&self, name: &str, text: &str) -> Result<()> {
        let file: PathBuf = self.dir().join(name);
        std::fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))
    }
}

pub(super) fn service(name: &str, endpoint: SocketAddr) -> String {
    let (ip, port) = (endpoint.ip(), endpoint.port());
    format!(
        "---
apiVersion: v1
kind: Service
metadata: {{name: {name}, namespace: demo}}
spec:
  ports: [{{name: http, port: 80}}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: {name}-1
  namespace: demo
  labels: {{kubernetes.io/service-name: {name}}}
addressType: IPv4
ports: [{{name: http, port: {port}}}]
endpoints: [{{addresses: [\"{ip}\"]}}]
"
    )
}

/// An Ingress for all paths of a host, with access controls of these full names.
pub(super) fn guarded(name: &str, host: &str, guards: &[(&str, &str)]) -> String {
    let line = |(name, value): &(&str, &str)| format!("    {name}: \"{value}\"\n");
    let guards: String = guards.iter().map(line).collect();
    ingress(name, &guards, host, &["/"], STABLE)
}

fn main(name: &str, host: &str, paths: &[&str]) -> String {
    ingress(name, "", host, paths, STABLE)
}

fn canary_ingress(name: &str, path: &str, weight: u32, rules: &str) -> String {
    let weight = weight.to_string();
    let canary = annotations(&[("canary", "true"), ("canary-weight", &weight)]);
    ingress(name, &(canary + rules), HOST, &[path], CANARY)
}

fn annotations(all: &[(&str, &str)]) -> String {
    let line = |(name, value): &(&str, &str)| {
        format!("    nginx.ingress.kubernetes.io/{name}: \"{value}\"\n")
    };
    all.iter().map(line).collect()
}

fn ingress(name: &str, annotations: &str, host: &str, paths: &[&str], service: &str) -> String {
    let mut text = format!(
        "---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: {name}
  namespace: demo
  annotations:
{annotations}spec:
  ingressClassName: nginx
  rules:
  - host: {host}
    http:
      paths:
"
    );
    for path in paths {
        text.push_str(&format!(
            "      - path: {path}
        pathType: Prefix
        backend: {{service: {{name: {service}, port: {{number: 80}}}}}}
"
        ));
    }
    text
}
