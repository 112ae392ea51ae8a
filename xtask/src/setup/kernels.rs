//! Kernels for the tests that run in an emulated machine. Nothing of them is installed: a package
//! is fetched and unpacked below `target/`.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use super::apt;
use crate::process::{output, root};

/// The series, and the package that depends on its newest kernel.
const KERNELS: [(&str, &str); 2] = [
    ("6.1", "linux-image-cloud-amd64"),
    ("6.12", "linux-image-6.12-cloud-amd64"),
];

/// Fetches and unpacks those that are not there yet.
pub(super) fn fetch() -> Result<()> {
    for (series, meta) in KERNELS {
        let dir = root().join("target/kernels").join(series);
        if has_kernel(&dir) {
            continue;
        }
        println!("setup: kernel {series} is missing: tests run the kernel programs on it");
        let package = match newest(meta, series) {
            Some(package) => package,
            None => {
                apt::update()?;
                newest(meta, series).with_context(|| {
                    format!(
                        "this system has no package {meta} for Linux {series}: unpack one of \
                         Debian 12's (boot/, lib/modules/) into {}",
                        dir.display()
                    )
                })?
            }
        };
        apt::unpack(&package, &dir).with_context(|| format!("cannot get {package}"))?;
        if !has_kernel(&dir) {
            bail!(
                "{package} has no kernel image; unpack one into {}",
                dir.display()
            );
        }
    }
    Ok(())
}

fn has_kernel(dir: &Path) -> bool {
    let entries = fs::read_dir(dir.join("boot"))
        .into_iter()
        .flatten()
        .flatten();
    let mut names = entries.map(|entry| entry.file_name());
    names.any(|name| name.to_string_lossy().starts_with("vmlinuz-"))
}

/// The package with the newest kernel of a series.
fn newest(meta: &str, series: &str) -> Option<String> {
    let text = output("apt-cache", &["depends", meta])?;
    depends(&text, series)
}

/// The kernel that a meta package depends on, if it is of the series.
fn depends(text: &str, series: &str) -> Option<String> {
    let names = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Depends:"));
    let mut names = names.map(str::trim);
    let wanted = format!("linux-image-{series}.");
    names
        .find(|name| name.starts_with(&wanted))
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_of_the_series_is_found() {
        let text =
            "linux-image-6.12-cloud-amd64\n  Depends: linux-image-6.12.117+deb12-cloud-amd64\n";
        let found = Some("linux-image-6.12.117+deb12-cloud-amd64".to_owned());
        assert_eq!(depends(text, "6.12"), found);
        // Not another series, though its name begins alike.
        assert_eq!(depends(text, "6.1"), None);
        assert_eq!(depends("", "6.1"), None);
    }
}
