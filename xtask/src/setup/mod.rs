//! Installs what building and testing need on Debian and Ubuntu, and says what to do elsewhere.

mod apt;
mod ebpf;

use anyhow::{Result, bail};

use crate::process::{cargo, find, output, run as run_command};

/// A program that must be there, and the Debian package that has it.
struct Tool {
    program: &'static str,
    package: &'static str,
    why: &'static str,
}

const TOOLS: &[Tool] = &[
    Tool {
        program: "cc",
        package: "gcc",
        why: "links every program",
    },
    Tool {
        program: "bpftool",
        package: "bpftool",
        why: "tests read and write the maps with it",
    },
    Tool {
        program: "ip",
        package: "iproute2",
        why: "tests make network namespaces with it",
    },
    Tool {
        program: "ethtool",
        package: "ethtool",
        why: "tests switch checksum offload off with it",
    },
];

/// Installs what is missing. Quick, and without the network, when nothing is.
pub(crate) fn run() -> Result<()> {
    tools()?;
    cargo_parts()?;
    let ready = ebpf::ready().or_else(|missing| ebpf::install(&missing))?;
    println!("setup: everything is there; kernel programs with {ready}");
    Ok(())
}

fn missing_tools() -> Vec<&'static Tool> {
    let missing = |tool: &&Tool| find(tool.program).is_none();
    TOOLS.iter().filter(missing).collect()
}

fn tools() -> Result<()> {
    let missing = missing_tools();
    if missing.is_empty() {
        return Ok(());
    }
    for tool in &missing {
        println!("setup: {} is missing: {}", tool.program, tool.why);
    }
    let packages: Vec<&str> = missing.iter().map(|tool| tool.package).collect();
    apt::install(&packages)?;
    if let Some(tool) = missing_tools().first() {
        bail!(
            "{} was installed but {} is not found",
            tool.package,
            tool.program
        );
    }
    Ok(())
}

/// `cargo fmt` and `cargo clippy`, which `verify` uses.
fn cargo_parts() -> Result<()> {
    let parts = [
        ("fmt", "rustfmt", "rustfmt-web"),
        ("clippy", "clippy", "rust-web-clippy"),
    ];
    for (command, component, package) in parts {
        let works = || {
            cargo(&[command, "--version"])
                .output()
                .is_ok_and(|out| out.status.success())
        };
        if works() {
            continue;
        }
        println!("setup: cargo {command} is missing");
        if output("rustup", &["--version"]).is_some() {
            let mut add = std::process::Command::new("rustup");
            run_command(add.args(["component", "add", component]))?;
        } else {
            apt::install(&[package])?;
        }
        if !works() {
            bail!("cargo {command} still does not work; install {component} beside this cargo");
        }
    }
    Ok(())
}
