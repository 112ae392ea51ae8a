use anyhow::Result;

use crate::process::{self, cargo, root};

/// Builds everything for release; without the kernel programs it is an error.
pub(crate) fn run() -> Result<()> {
    let mut build = cargo(&[
        "build",
        "--release",
        "--locked",
        "--package",
        "splitter-userspace",
    ]);
    process::run(build.env("SPLITTER_BPF", "require"))?;
    println!("built {}", root().join("target/release/splitter").display());
    Ok(())
}
