//! The Kubernetes that tests run against: built from Go modules, or somebody's own.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::process::{self, find, root};

/// Names a program that was built before.
pub(crate) const VARIABLE: &str = "SPLITTER_CONTROL_PLANE";

/// The Go program, and the module whose version it says it has.
const SOURCE: &str = "tests/cluster/controlplane";
const KUBERNETES: &str = "k8s.io/kubernetes ";

/// The path of the program, built if need be.
pub(crate) fn program() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os(VARIABLE).map(PathBuf::from) {
        if !path.is_file() {
            bail!("{VARIABLE} is {}, which is no file", path.display());
        }
        return Ok(path);
    }
    build()
}

/// Go does what is left to do: nothing, mostly.
fn build() -> Result<PathBuf> {
    let Some(go) = find_go() else {
        bail!(
            "there is no go in PATH or /usr/local/go/bin; install Go 1.26 or later, or give \
             {VARIABLE} the path of a program built from {SOURCE}"
        );
    };
    let source = root().join(SOURCE);
    let program = root().join("target/cluster/controlplane");
    let modules = fs::read_to_string(source.join("go.mod"))
        .with_context(|| format!("cannot read {SOURCE}/go.mod"))?;
    let version = version(&modules).context("go.mod requires no k8s.io/kubernetes")?;
    println!("building the control plane of the tests, a quarter of an hour the first time");
    let mut build = Command::new(go);
    build
        .current_dir(source)
        .args(["build", "-mod=readonly", "-ldflags"])
        .arg(link_flags(version))
        .arg("-o")
        .arg(&program)
        .arg(".");
    process::run(&mut build)?;
    Ok(program)
}

fn find_go() -> Option<PathBuf> {
    let usual = PathBuf::from("/usr/local/go/bin/go");
    find("go").or_else(|| usual.is_file().then_some(usual))
}

/// The version of Kubernetes that is required, such as `1.36.3`.
fn version(modules: &str) -> Option<&str> {
    let mut lines = modules.lines().map(str::trim);
    let version = lines.find_map(|line| line.strip_prefix(KUBERNETES))?;
    version.strip_prefix('v')
}

/// Clients ask the server for its version, which a build has to be told.
fn link_flags(version: &str) -> String {
    let place = "k8s.io/component-base/version";
    let mut parts = version.split('.');
    let (major, minor) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
    format!(
        "-s -w -X {place}.gitVersion=v{version} -X {place}.gitMajor={major} \
         -X {place}.gitMinor={minor}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_required_one() {
        let modules = "require (\n\tk8s.io/kubernetes v1.36.3\n)\n";
        assert_eq!(version(modules), Some("1.36.3"));
        assert_eq!(version("module x\n"), None);
        assert!(link_flags("1.36.3").ends_with("gitMinor=36"));
    }
}
