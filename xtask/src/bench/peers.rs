use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use super::table;
use crate::process::{self, cargo, root};

/// What is run unless something else is asked for: the proxies that are to be beaten, at every kind of
/// request. Takes some 50 minutes.
const USUAL: &[&str] = &[
    "-p",
    "splitter,splitter-unlogged,hyper,nginx,haproxy,haproxy-splice,envoy",
    "-w",
    "keepalive,keepalive-rate,close,close-rate,large,post,tls,tls-new,h2,h2c",
    "-r",
    "5",
];

/// The same for what grows with routes, and for changes under load; these take minutes each.
const GROWTH: &[&str] = &[
    "-p",
    "splitter,hyper,nginx,haproxy,envoy",
    "-w",
    "routes,reload",
    "-r",
    "2",
];

/// Runs splitter's release build beside other proxies, in a copy of the bench below `target`.
pub(super) fn run(bench: Option<&Path>, args: &[String]) -> Result<()> {
    let Some(bench) = bench else {
        bail!(
            "--peers needs --peer-bench DIR or SPLITTER_PEER_BENCH: the folder of the peer bench"
        );
    };
    for part in ["run.sh", "proxies"] {
        if !bench.join(part).exists() {
            bail!("{} is no peer bench: it has no {part}", bench.display());
        }
    }
    let build = [
        "build",
        "--release",
        "--locked",
        "--package",
        "splitter-userspace",
    ];
    process::run(&mut cargo(&build))?;
    let copy = root().join("target/peer-bench");
    copy_dir(bench, &copy)
        .with_context(|| format!("cannot copy {} to {}", bench.display(), copy.display()))?;
    for name in ["splitter.sh", "splitter-unlogged.sh"] {
        let ours = copy.join("proxies").join(name);
        fs::copy(root().join("xtask/bench").join(name), ours).context("cannot add splitter")?;
    }
    baseline(&copy)?;

    // Results of an earlier run would be shown among those of this one.
    for results in ["results.jsonl", "results.md"] {
        let _ = fs::remove_file(copy.join(results));
    }
    process::run(bench_run(&copy).args(["--check", "-p", "splitter"]))?;
    if !args.is_empty() {
        process::run(bench_run(&copy).args(args))?;
        println!("{}", fs::read_to_string(copy.join("results.md"))?);
        return Ok(());
    }
    process::run(bench_run(&copy).args(USUAL))?;
    process::run(bench_run(&copy).args(GROWTH))?;
    resumption(&copy)?;
    publish(&copy.join("results.jsonl"))
}

/// Prints what resumed TLS sessions cost.
fn resumption(copy: &Path) -> Result<()> {
    let script = "resumption.py";
    fs::copy(root().join("xtask/bench").join(script), copy.join(script))
        .context("cannot add resumption.py")?;
    let mut run = Command::new("python3");
    run.args([script, "splitter,hyper,nginx,haproxy,envoy"]);
    process::run(in_bench(&mut run, copy))
}

/// Makes the tables of what a run has left.
///
/// # Errors
/// When that cannot be read, or the tables cannot be written.
pub(super) fn publish(results: &Path) -> Result<()> {
    let text = fs::read_to_string(results)
        .with_context(|| format!("cannot read {}", results.display()))?;
    table::publish(&text, &root().join("docs/performance.md"))
}

fn bench_run(copy: &Path) -> Command {
    let mut run = Command::new("./run.sh");
    in_bench(&mut run, copy);
    run
}

/// Has a command run in the bench, with what it needs to know.
fn in_bench<'a>(run: &'a mut Command, copy: &Path) -> &'a mut Command {
    run.current_dir(copy)
        .env("TOOLS", copy.join(".tools"))
        .env("SPLITTER", root().join("target/release/splitter"))
}

/// Builds the plain hyper proxy, if the bench has one: what our own structure is measured against.
fn baseline(copy: &Path) -> Result<()> {
    let manifest = copy.join("rust/Cargo.toml");
    if !copy.join("rust/hyper-proxy").is_dir() {
        return Ok(());
    }
    let mut build = cargo(&[
        "build",
        "--release",
        "--package",
        "hyper-proxy",
        "--manifest-path",
    ]);
    build
        .arg(manifest)
        .env("CARGO_TARGET_DIR", copy.join(".tools/rust-target"));
    process::run(&mut build)
}

/// Copies files and folders whose names do not begin with a dot. What is there already and not in
/// `from`, such as programs built by an earlier run, stays.
fn copy_dir(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        if name.as_encoded_bytes().starts_with(b".") {
            continue;
        }
        let (from, to) = (entry.path(), to.join(name));
        if fs::metadata(&from)?.is_dir() {
            copy_dir(&from, &to)?;
        } else {
            // A file that may only be read cannot be written over.
            match fs::remove_file(&to) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e),
                _ => fs::copy(&from, &to)?,
            };
        }
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn a_copy_replaces_what_is_old_and_keeps_what_was_built() {
        let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let [from, to] = dirs.each_ref().map(tempfile::TempDir::path);
        fs::create_dir_all(from.join("proxies")).unwrap();
        fs::write(from.join("proxies/a.sh"), "new").unwrap();
        fs::create_dir_all(from.join(".tools")).unwrap();
        fs::write(from.join(".tools/x"), "theirs").unwrap();
        fs::create_dir_all(to.join("proxies")).unwrap();
        fs::write(to.join("proxies/a.sh"), "old").unwrap();
        fs::create_dir_all(to.join(".tools")).unwrap();
        fs::write(to.join(".tools/x"), "ours").unwrap();
        copy_dir(from, to).unwrap();
        let read = |name: &str| fs::read_to_string(to.join(name)).unwrap();
        assert_eq!(read("proxies/a.sh"), "new");
        assert_eq!(read(".tools/x"), "ours");
    }

    #[test]
    fn a_folder_that_is_no_bench_is_refused_before_anything_is_built() {
        let dir = tempfile::tempdir().unwrap();
        let error = run(Some(dir.path()), &[]).unwrap_err().to_string();
        assert!(error.contains("run.sh"), "{error}");
        let error = run(None, &[]).unwrap_err().to_string();
        assert!(error.contains("SPLITTER_PEER_BENCH"), "{error}");
    }
}
