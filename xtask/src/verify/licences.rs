use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::{findings, sources, spdx};
use crate::process::{cargo, root, shown};
use crate::test::EBPF;

/// Every crate that we build on has a licence of the list in .cargo/deny.toml. Works without network
/// once the crates are here.
pub(super) fn check() -> Result<()> {
    let allowed = allow_list(&sources::read(&root().join(".cargo/deny.toml"))?)?;
    let mut found = Vec::new();
    for manifest in ["Cargo.toml", EBPF] {
        if root().join(manifest).is_file() {
            found.extend(violations(&metadata(manifest)?, &allowed));
        }
    }
    findings(&found)
}

/// What cargo knows of all crates of a workspace on this platform.
fn metadata(manifest: &str) -> Result<Value> {
    let host = host()?;
    let mut command = cargo(&["metadata", "--format-version", "1", "--locked"]);
    command.args(["--manifest-path", manifest, "--filter-platform", &host]);
    let output = command.output()?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        bail!("{}: {}", shown(&command), errors.trim());
    }
    serde_json::from_slice(&output.stdout).context("cargo metadata did not print JSON")
}

/// The platform we run on, as cargo names it.
fn host() -> Result<String> {
    let output = cargo(&["-vV"]).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("cargo -vV names no host")
}

/// The strings of `allow` below `[licenses]`.
fn allow_list(deny: &str) -> Result<Vec<String>> {
    let (_, section) = deny
        .split_once("[licenses]")
        .context(".cargo/deny.toml has no [licenses]")?;
    let (_, list) = section
        .split_once("allow = [")
        .context("[licenses] has no allow list")?;
    let (list, _) = list
        .split_once(']')
        .context("the allow list does not end")?;
    let names = list.split('"').skip(1).step_by(2);
    Ok(names.map(str::to_owned).collect())
}

/// The crates whose licence is not allowed, is missing or cannot be read.
fn violations(metadata: &Value, allowed: &[String]) -> Vec<String> {
    let packages = metadata["packages"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    if packages.is_empty() {
        return vec!["cargo metadata names no packages".to_owned()];
    }
    packages
        .iter()
        .filter_map(|package| violation(package, allowed))
        .collect()
}

fn violation(package: &Value, allowed: &[String]) -> Option<String> {
    // Our own crates: what they are licensed under is ours to say.
    if package["source"].is_null() {
        return None;
    }
    let name = package["name"].as_str().unwrap_or("?");
    let version = package["version"].as_str().unwrap_or("?");
    let Some(licence) = package["license"].as_str() else {
        return Some(format!(
            "{name} {version}: names no licence in its manifest"
        ));
    };
    match spdx::is_allowed(licence, allowed) {
        Ok(true) => None,
        Ok(false) => Some(format!(
            "{name} {version}: {licence} is not allowed in .cargo/deny.toml"
        )),
        Err(error) => Some(format!("{name} {version}: {error}")),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_list_is_read() {
        let deny = "[bans]\nallow = [\"x\"]\n[licenses]\n# why\nallow = [\n  \"MIT\",\n  \"A WITH B\",\n]\n[sources]\n";
        assert_eq!(allow_list(deny).unwrap(), ["MIT", "A WITH B"]);
        assert!(allow_list("[licenses]\n").is_err());
        assert!(allow_list("").is_err());
    }

    #[test]
    fn a_licence_that_is_not_allowed_or_missing_is_found() {
        let package = |name: &str, licence: Value| json!({"name": name, "version": "1.0.0", "source": "registry", "license": licence});
        let mut own = package("own", json!("GPL-3.0-only"));
        own["source"] = Value::Null;
        let metadata = json!({"packages": [
            own,
            package("good", json!("MIT OR GPL-3.0-only")),
            package("bad", json!("GPL-3.0-only")),
            package("none", Value::Null),
            package("odd", json!("MIT OR OR")),
        ]});
        let found = violations(&metadata, &["MIT".to_owned()]);
        let names: Vec<_> = found.iter().map(|f| f.split(' ').next().unwrap()).collect();
        assert_eq!(names, ["bad", "none", "odd"]);
    }

    #[test]
    fn no_packages_is_a_finding() {
        assert_eq!(violations(&json!({}), &[]).len(), 1);
    }
}
