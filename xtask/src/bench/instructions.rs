use anyhow::{Context as _, Result};

use crate::process::{self, cargo, root};

/// Builds what is compared, in a profile of its own, and has the instructions of requests counted under
/// valgrind: the same on every machine that is busy with other things, too.
///
/// # Errors
/// When a count is not what was recorded, or nothing could be counted.
pub(crate) fn run(is_update: bool) -> Result<()> {
    let mut build = cargo(&["build", "--locked", "--profile", "counted"]);
    build
        .args(["--package", "splitter-userspace", "--bin", "splitter"])
        .args(["--package", "splitter-tests"])
        .args(["--bin", "plain", "--bin", "instructions"])
        // No kernel program takes part.
        .env("SPLITTER_BPF", "stub");
    process::run(&mut build)?;
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), Into::into);
    let built = target.join("counted");
    let mut count = std::process::Command::new(built.join("instructions"));
    count
        .args([built.join("splitter"), built.join("plain")])
        .arg(root().join("tests/instructions.txt"))
        .arg(compiler());
    if is_update {
        count.arg("--update");
    }
    process::run(&mut count).context("the instructions of a request")
}

/// The compiler that has built them, in a few words.
fn compiler() -> String {
    let said = process::output("rustc", &["-vV"]).unwrap_or_default();
    let field = |name: &str| {
        let found = said.lines().find_map(|line| line.strip_prefix(name));
        found.unwrap_or("?").to_owned()
    };
    format!(
        "rustc {}, LLVM {}",
        field("release: "),
        field("LLVM version: ")
    )
}
