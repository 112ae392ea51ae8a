//! What only the tests on a real API server need.

use std::path::PathBuf;

use anyhow::{Context as _, Result};

use super::apt;
use crate::process::{find, root};

/// Prometheus, which Flagger asks. Unpacked and not installed, as it would be started as a service.
pub(crate) fn prometheus() -> Result<PathBuf> {
    let name = "prometheus";
    if let Some(program) = find(name) {
        return Ok(program);
    }
    let dir = root().join("target/tools/prometheus");
    let program = dir.join("usr/bin").join(name);
    if !program.is_file() {
        println!("setup: {name} is missing: tests ask it what Flagger asks it");
        if !apt::has(&[&["prometheus"]])? {
            anyhow::bail!("this system has no package {name}: put the program into PATH");
        }
        apt::unpack(name, &dir).with_context(|| format!("cannot get {name}"))?;
    }
    Ok(program)
}
