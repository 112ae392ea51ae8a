//! Installs what building and testing need on Debian and Ubuntu, and says what to do elsewhere.

mod apt;
pub(crate) mod cluster;
mod ebpf;
pub(crate) mod go;
mod kernels;

use anyhow::{Result, bail};

use self::apt::OneOf;
use crate::process::{cargo, find, output, run as run_command};

/// A program that must be there, and the packages that have it.
struct Tool {
    program: &'static str,
    packages: OneOf,
    why: &'static str,
}

const TOOLS: &[Tool] = &[
    Tool {
        program: "cc",
        packages: &["gcc"],
        why: "links every program",
    },
    Tool {
        program: "bpftool",
        packages: &["bpftool", "linux-tools-generic"],
        why: "tests read and write the maps with it",
    },
    Tool {
        program: "ip",
        packages: &["iproute2"],
        why: "tests make network namespaces with it",
    },
    Tool {
        program: "openssl",
        packages: &["openssl"],
        why: "tests and the demo speak TLS with it",
    },
    Tool {
        program: "ethtool",
        packages: &["ethtool"],
        why: "tests switch checksum offload off with it",
    },
    Tool {
        program: "qemu-system-x86_64",
        packages: &["qemu-system-x86"],
        why: "tests run the kernel programs on other kernels in it",
    },
    Tool {
        program: "busybox",
        packages: &["busybox-static"],
        why: "those tests need a system around them",
    },
    Tool {
        program: "xz",
        packages: &["xz-utils"],
        why: "modules of those kernels are packed with it",
    },
    Tool {
        program: "valgrind",
        packages: &["valgrind"],
        why: "counts the instructions that a request takes",
    },
    Tool {
        program: "redis-check-rdb",
        packages: &["redis-tools"],
        why: "Redis itself, by another name: tests split what is sent to it",
    },
    Tool {
        program: "dnsmasq",
        packages: &["dnsmasq-base"],
        why: "tests split what this DNS server is asked",
    },
];

/// Installs what is missing. Quick, and without the network, when nothing is.
pub(crate) fn run() -> Result<()> {
    tools()?;
    cargo_parts()?;
    kernels::fetch()?;
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
    let packages: Vec<OneOf> = missing.iter().map(|tool| tool.packages).collect();
    apt::install(&packages)?;
    if let Some(tool) = missing_tools().first() {
        bail!(
            "{:?} was installed but {} is not found",
            tool.packages,
            tool.program
        );
    }
    Ok(())
}

/// `cargo fmt` and `cargo clippy`, which `verify` uses.
fn cargo_parts() -> Result<()> {
    let parts: [(&str, &str, OneOf); 2] = [
        ("fmt", "rustfmt", &["rustfmt-web", "rustfmt"]),
        ("clippy", "clippy", &["rust-web-clippy", "rust-clippy"]),
    ];
    for (command, component, packages) in parts {
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
            apt::install(&[packages])?;
        }
        if !works() {
            bail!("cargo {command} still does not work; install {component} beside this cargo");
        }
    }
    Ok(())
}
