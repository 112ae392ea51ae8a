use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::process::{find, output, run};

/// Installs Debian packages, as root or through sudo. The package lists are fetched only when the
/// ones at hand do not do.
pub(super) fn install(packages: &[&str]) -> Result<()> {
    let by_hand = format!(
        "apt-get install --no-install-recommends {}",
        packages.join(" ")
    );
    if find("apt-get").is_none() {
        bail!(
            "this is not Debian or Ubuntu: install what the packages {} hold with your own \
             package manager (there: {by_hand})",
            packages.join(", ")
        );
    }
    if run(&mut install_command(packages)?).is_ok() {
        return Ok(());
    }
    run(&mut apt_get(&["update"])?)?;
    run(&mut install_command(packages)?)
        .with_context(|| format!("cannot install; try it by hand: {by_hand}"))
}

/// Whether the package lists at hand know a package.
pub(super) fn knows(package: &str) -> bool {
    let policy = output("apt-cache", &["policy", package]).unwrap_or_default();
    policy
        .lines()
        .any(|line| line.trim().starts_with("Candidate:") && !line.contains("(none)"))
}

/// Fetches the package lists.
pub(super) fn update() -> Result<()> {
    run(&mut apt_get(&["update"])?)
}

fn install_command(packages: &[&str]) -> Result<Command> {
    let mut args = vec!["install", "--yes", "--no-install-recommends"];
    args.extend(packages);
    apt_get(&args)
}

fn apt_get(args: &[&str]) -> Result<Command> {
    let is_root = output("id", &["-u"]).is_some_and(|id| id.trim() == "0");
    let mut command = if is_root {
        Command::new("apt-get")
    } else if find("sudo").is_some() {
        let mut sudo = Command::new("sudo");
        sudo.arg("apt-get");
        sudo
    } else {
        bail!(
            "not root and no sudo; run as root: apt-get {}",
            args.join(" ")
        );
    };
    command.env("DEBIAN_FRONTEND", "noninteractive").args(args);
    Ok(command)
}
