//! What tests run against and is built from Go modules: Kubernetes, or somebody's own, and the
//! controllers that bring versions out.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::process::{self, root};
use crate::setup;

/// Names a program that was built before.
pub(crate) const VARIABLE: &str = "SPLITTER_CONTROL_PLANE";

/// The Go program, and a module that has Kubernetes' version with 0 for 1.
const SOURCE: &str = "tests/cluster/controlplane";
const STAGING: &str = "k8s.io/component-base v0.";

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

/// kubectl: the one in PATH, else one that is built.
pub(crate) fn kubectl() -> Result<PathBuf> {
    match process::find("kubectl") {
        Some(path) => Ok(path),
        None => build_ours("tests/cluster/kubectl", "kubectl"),
    }
}

/// The path of the control plane, built if need be.
fn build() -> Result<PathBuf> {
    println!("building the control plane of the tests, some ten minutes the first time");
    build_ours(SOURCE, "controlplane")
}

/// Argo Rollouts and Flagger, with the kinds that they need, and oauth2-proxy: variables of the tests
/// and their values.
pub(crate) fn delivery() -> Result<Vec<(&'static str, PathBuf)>> {
    let mut variables = Vec::new();
    for (names, folder, module, command, kinds) in [
        (
            ["SPLITTER_ARGO_ROLLOUTS", "SPLITTER_ARGO_ROLLOUTS_CRDS"],
            "tests/delivery/argo-rollouts",
            "github.com/argoproj/argo-rollouts",
            "cmd/rollouts-controller",
            "manifests/crds",
        ),
        (
            ["SPLITTER_FLAGGER", "SPLITTER_FLAGGER_CRDS"],
            "tests/delivery/flagger",
            "github.com/fluxcd/flagger",
            "cmd/flagger",
            "artifacts/flagger/crd.yaml",
        ),
    ] {
        let package = format!("{module}/{command}");
        let (go, program) = build_theirs(folder, &package)?;
        let list = ["list", "-m", "-f", "{{.Dir}}", module];
        let list = Command::new(&go)
            .args(list)
            .current_dir(root().join(folder))
            .output()?;
        let source = PathBuf::from(String::from_utf8(list.stdout)?.trim());
        variables.extend(names.into_iter().zip([program, source.join(kinds)]));
    }
    let package = "github.com/oauth2-proxy/oauth2-proxy/v7";
    let (_, program) = build_theirs("tests/delivery/oauth2-proxy", package)?;
    variables.push(("SPLITTER_OAUTH2_PROXY", program));
    Ok(variables)
}

/// Builds a package of somebody else's module as it is: the Go that did, and the program.
fn build_theirs(folder: &str, package: &str) -> Result<(PathBuf, PathBuf)> {
    let (go, _) = go(folder)?;
    let name = folder.rsplit('/').next().unwrap_or(folder);
    let program = root().join("target/cluster").join(name);
    go_build(&go, folder, "-s -w", &program, package)?;
    Ok((go, program))
}

/// Builds a Go program of ours that says it has Kubernetes' version.
fn build_ours(folder: &str, name: &str) -> Result<PathBuf> {
    let program = root().join("target/cluster").join(name);
    let (go, modules) = go(folder)?;
    let version = version(&modules).with_context(|| format!("go.mod requires no {STAGING}…"))?;
    go_build(&go, folder, &link_flags(&version), &program, ".")?;
    Ok(program)
}

/// The Go that a module asks for, and its go.mod.
fn go(folder: &str) -> Result<(PathBuf, String)> {
    let path = root().join(folder).join("go.mod");
    let modules =
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut lines = modules.lines();
    let toolchain = lines.find_map(|line| line.strip_prefix("toolchain go"));
    let go = setup::go::ready(toolchain.context("go.mod names no toolchain")?)?;
    Ok((go, modules))
}

/// How often a build is tried. It fetches some hundred modules, and keeps those that it has.
const TRIES: usize = 3;

/// Go does what is left to do: nothing, mostly.
fn go_build(go: &Path, folder: &str, link: &str, program: &Path, package: &str) -> Result<()> {
    let build = || process::run(&mut go_command(go, folder, link, program, package));
    let mut result = build();
    for _ in 1..TRIES {
        if let Err(error) = &result {
            println!("{error:#}; once more, in case a module could not be fetched");
            result = build();
        }
    }
    result
}

fn go_command(go: &Path, folder: &str, link: &str, program: &Path, package: &str) -> Command {
    let mut build = Command::new(go);
    build
        .current_dir(root().join(folder))
        .env("GOTOOLCHAIN", "local")
        // Nothing of it is C, and nobody debugs it.
        .env("CGO_ENABLED", "0")
        .args(["build", "-mod=readonly", "-gcflags=all=-dwarf=false"])
        .args(["-ldflags", link])
        .arg("-o")
        .arg(program)
        .arg(package);
    build
}

/// The version of Kubernetes that is required, such as `1.36.3`.
fn version(modules: &str) -> Option<String> {
    let mut lines = modules.lines().map(str::trim);
    let version = lines.find_map(|line| line.strip_prefix(STAGING))?;
    Some(format!("1.{version}"))
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
        let modules = "require (\n\tk8s.io/component-base v0.36.3\n)\n";
        assert_eq!(version(modules).as_deref(), Some("1.36.3"));
        assert_eq!(version("module x\n"), None);
        assert!(link_flags("1.36.3").ends_with("gitMinor=36"));
    }
}
