//! Go, for the Kubernetes that tests run against. One that is too old, or Debian's, fetches the one
//! that is wanted as a module, as newer ones do by themselves. Nothing is installed.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use super::apt;
use crate::process::{find, output, root, run};

/// The package that depends on Debian's Go.
const META: &str = "golang-go";

/// A Go of at least this version, such as `1.26.8`.
pub(crate) fn ready(wanted: &str) -> Result<PathBuf> {
    let usual = PathBuf::from("/usr/local/go/bin/go");
    let present = find("go").or_else(|| usual.is_file().then_some(usual));
    if let Some(go) = &present
        && is_enough(go, wanted)
    {
        return Ok(go.clone());
    }
    println!("setup: Go {wanted} is missing: the Kubernetes of the tests is built with it");
    let go = match present {
        Some(go) => go,
        None => debians().with_context(|| {
            format!("there is no Go: install Go {wanted} or later by your own means")
        })?,
    };
    let go = fetch(&go, wanted)?;
    if !is_enough(&go, wanted) {
        bail!("{} is no Go {wanted}", go.display());
    }
    Ok(go)
}

/// Whether a Go is as new as this, by itself: it must not fetch another one to say so.
fn is_enough(go: &Path, wanted: &str) -> bool {
    let mut version = Command::new(go);
    version
        .args(["env", "GOVERSION"])
        .env("GOTOOLCHAIN", "local");
    let version = version.current_dir(std::env::temp_dir()).output();
    let version = version.ok().filter(|it| it.status.success());
    version.is_some_and(|it| {
        let text = String::from_utf8_lossy(&it.stdout).into_owned();
        let numbers = text.trim().strip_prefix("go").and_then(numbers);
        numbers >= Some(numbers_of(wanted))
    })
}

/// The numbers of a version; a pre-release counts as what it leads to.
fn numbers(version: &str) -> Option<[u32; 3]> {
    let mut parts = version.split('.').map(|part| {
        let digits = part.find(|it: char| !it.is_ascii_digit());
        part.get(..digits.unwrap_or(part.len()))?.parse().ok()
    });
    let mut next = || parts.next().unwrap_or(Some(0));
    Some([next()?, next()?, next()?])
}

fn numbers_of(version: &str) -> [u32; 3] {
    numbers(version).unwrap_or([u32::MAX; 3])
}

/// Debian's Go, unpacked below `target/`.
fn debians() -> Result<PathBuf> {
    let dir = root().join("target/tools/go");
    if let Some(go) = below(&dir) {
        return Ok(go);
    }
    let package = match newest() {
        Some(package) => package,
        None => {
            apt::update()?;
            newest().with_context(|| format!("this system has no package {META}"))?
        }
    };
    apt::unpack(&package, &dir)?;
    below(&dir).with_context(|| format!("{package} has no usr/lib/go-…/bin/go"))
}

fn newest() -> Option<String> {
    depends(&output("apt-cache", &["depends", META])?)
}

/// The package with the program itself, such as `golang-1.19-go`.
fn depends(text: &str) -> Option<String> {
    let lines = text.lines().map(str::trim);
    let mut names = lines.filter_map(|line| line.strip_prefix("Depends:"));
    let is_go = |name: &&str| name.starts_with("golang-") && name.ends_with("-go");
    names.by_ref().map(str::trim).find(is_go).map(str::to_owned)
}

fn below(dir: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(dir.join("usr/lib")).ok()?.flatten();
    let mut programs = entries.map(|entry| entry.path().join("bin/go"));
    programs.find(|program| program.is_file())
}

/// Has a Go fetch another one, which is a module with a checksum like any other.
fn fetch(go: &Path, wanted: &str) -> Result<PathBuf> {
    let arch = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => bail!("no Go is known for {other}; install Go {wanted} or later"),
    };
    let module = format!("golang.org/toolchain@v0.0.1-go{wanted}.linux-{arch}");
    let mut home = Command::new(go);
    // Unpacked, it does not know where it is.
    if let Some(goroot) = go.parent().and_then(Path::parent) {
        home.env("GOROOT", goroot);
    }
    let cache = home.args(["env", "GOMODCACHE"]).output()?;
    let cache = PathBuf::from(String::from_utf8(cache.stdout)?.trim());
    let dir = cache.join(&module);
    if !dir.join("bin/go").is_file() {
        let mut download = Command::new(go);
        if let Some(goroot) = go.parent().and_then(Path::parent) {
            download.env("GOROOT", goroot);
        }
        // Outside of every module, so that none has a say in it.
        let outside = std::env::temp_dir();
        run(download
            .args(["mod", "download", &module])
            .env("GOTOOLCHAIN", "local")
            .current_dir(outside))?;
    }
    for programs in ["bin".to_owned(), format!("pkg/tool/linux_{arch}")] {
        make_programs(&dir.join(programs))?;
    }
    Ok(dir.join("bin/go"))
}

/// Files of modules are not executable.
fn make_programs(dir: &Path) -> Result<()> {
    let entries = fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))?;
    for entry in entries {
        let path = entry?.path();
        let mode = fs::metadata(&path)?.permissions().mode();
        if mode & 0o100 == 0 {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode | 0o555))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_number() {
        assert_eq!(numbers("1.26.8"), Some([1, 26, 8]));
        assert_eq!(numbers("1.19"), Some([1, 19, 0]));
        assert_eq!(numbers("1.27rc1"), Some([1, 27, 0]));
        assert_eq!(numbers("devel"), None);
        assert!(numbers("1.26.10") > numbers("1.26.8"));
        assert!(numbers("devel") < Some(numbers_of("1.26.8")));
    }

    #[test]
    fn the_package_with_the_program_is_found() {
        let text = "golang-go\n  Depends: golang-1.19-go\n  Depends: golang-src\n";
        assert_eq!(depends(text).as_deref(), Some("golang-1.19-go"));
        assert_eq!(depends(""), None);
    }
}
