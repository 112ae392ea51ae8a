use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::process::{find, output, run};

/// Packages of which one is enough, the best first: names differ between Debian and Ubuntu.
pub(super) type OneOf = &'static [&'static str];

/// Installs one package of each group, as root or through sudo. The package lists are fetched only
/// when the ones at hand do not do.
pub(super) fn install(groups: &[OneOf]) -> Result<()> {
    let firsts: Vec<&str> = groups
        .iter()
        .filter_map(|group| group.first().copied())
        .collect();
    let by_hand = format!(
        "apt-get install --no-install-recommends {}",
        firsts.join(" ")
    );
    if find("apt-get").is_none() {
        bail!(
            "this is not Debian or Ubuntu: install the like of {firsts:?} by your own means (there: {by_hand})"
        );
    }
    let mut fetched = false;
    let packages = match choose(groups, knows) {
        Some(packages) => packages,
        None => {
            update()?;
            fetched = true;
            choose(groups, knows)
                .with_context(|| format!("this system has no package for some of {groups:?}"))?
        }
    };
    if run(&mut install_command(&packages)?).is_ok() {
        return Ok(());
    }
    if !fetched {
        update()?;
    }
    run(&mut install_command(&packages)?)
        .with_context(|| format!("cannot install; try it by hand: {by_hand}"))
}

/// Fetches a package and unpacks it into `dir`. Nothing is installed.
pub(super) fn unpack(package: &str, dir: &Path) -> Result<()> {
    fs::create_dir_all(dir)?;
    let download = || {
        let mut download = Command::new("apt-get");
        run(download.args(["download", package]).current_dir(dir))
    };
    // The lists at hand may name a version that is no more.
    download().or_else(|_| update().and_then(|()| download()))?;
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "deb") {
            run(Command::new("dpkg-deb").arg("-x").arg(&path).arg(dir))?;
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

/// Whether all of these can be installed here.
pub(super) fn has(groups: &[OneOf]) -> Result<bool> {
    if find("apt-get").is_none() {
        return Ok(false);
    }
    if choose(groups, knows).is_none() {
        update()?;
    }
    Ok(choose(groups, knows).is_some())
}

/// The first known package of each group; none when a group has none.
fn choose(groups: &[OneOf], knows: impl Fn(&str) -> bool) -> Option<Vec<&'static str>> {
    let first = |group: &OneOf| group.iter().copied().find(|package| knows(package));
    groups.iter().map(first).collect()
}

/// Whether the package lists at hand have a package.
fn knows(package: &str) -> bool {
    output("apt-cache", &["policy", package]).is_some_and(|policy| has_candidate(&policy))
}

fn has_candidate(policy: &str) -> bool {
    let candidate = policy
        .lines()
        .find_map(|line| line.trim().strip_prefix("Candidate:"));
    candidate.is_some_and(|version| version.trim() != "(none)")
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_without_a_candidate_is_not_known() {
        assert!(has_candidate(
            "ip:\n  Installed: (none)\n  Candidate: 6.1.0-3\n"
        ));
        assert!(!has_candidate(
            "rustup:\n  Installed: (none)\n  Candidate: (none)\n"
        ));
        assert!(!has_candidate(""));
    }

    #[test]
    fn the_first_known_of_each_group_is_taken() {
        let groups: [OneOf; 2] = [&["bpftool", "linux-tools-generic"], &["gcc"]];
        let all = choose(&groups, |_| true);
        assert_eq!(all, Some(vec!["bpftool", "gcc"]));
        let ubuntu = choose(&groups, |package| package != "bpftool");
        assert_eq!(ubuntu, Some(vec!["linux-tools-generic", "gcc"]));
        assert_eq!(choose(&groups, |package| package != "gcc"), None);
    }
}
