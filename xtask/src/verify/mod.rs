//! Everything that a change must pass beside the tests. Every check runs, so that one run shows
//! all that is wrong.

mod deny;
mod imports;
mod licences;
mod paths;
mod rules;
mod sizes;
mod sources;
mod spdx;
mod tokens;

use anyhow::{Result, bail};

use crate::process::{cargo, root, run as run_command};
use crate::test::EBPF;

/// The quick ones first.
const CHECKS: [Check; 6] = [
    ("format", format),
    ("imports", imports::check),
    ("file sizes", sizes::check),
    ("licences", licences::check),
    ("advisories and bans", deny::check),
    ("lints", lints),
];

/// A name, and what finds out.
type Check = (&'static str, fn() -> Result<()>);

/// Runs every check.
pub(crate) fn run() -> Result<()> {
    let mut failed = Vec::new();
    for (name, check) in CHECKS {
        println!("verify: {name}");
        if let Err(error) = check() {
            println!("{error:#}");
            failed.push(name);
        }
    }
    if !failed.is_empty() {
        bail!("not in order: {}", failed.join(", "));
    }
    println!("verify: all in order");
    Ok(())
}

fn format() -> Result<()> {
    run_command(&mut cargo(&["fmt", "--all", "--check"]))?;
    if has_ebpf() {
        let ebpf = ["fmt", "--check", "--manifest-path", EBPF];
        run_command(&mut cargo(&ebpf))?;
    }
    Ok(())
}

fn lints() -> Result<()> {
    // The tests on a real API server are built only when they are asked for.
    let cluster = ["--features", "splitter-tests/cluster"];
    let workspace = ["clippy", "--workspace", "--all-targets", "--locked"];
    let workspace = [&workspace[..], &cluster[..]].concat();
    run_command(cargo(&workspace).args(DENY))?;
    if has_ebpf() {
        let ebpf = ["clippy", "--lib", "--locked", "--manifest-path", EBPF];
        run_command(cargo(&ebpf).args(DENY))?;
    }
    Ok(())
}

const DENY: [&str; 3] = ["--", "--deny", "warnings"];

fn has_ebpf() -> bool {
    root().join(EBPF).is_file()
}

/// An error that lists findings, if there are any.
fn findings(found: &[String]) -> Result<()> {
    if found.is_empty() {
        return Ok(());
    }
    bail!("{}", found.join("\n"));
}
