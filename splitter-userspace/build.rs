//! Builds the kernel programs (`splitter-ebpf`) and hands the object to the loader.
//!
//! Two toolchains do: a rustc with the sources of `core` beside it (Debian's rustc-web), or a
//! rustup nightly with rust-src; both with bpf-linker. Where neither is complete, the build goes on
//! with a stub that the loader refuses with the same message as is printed here, so that
//! everything that needs no kernel program can be built anywhere. `SPLITTER_BPF=require` makes it
//! an error instead (tests and releases must use it), `SPLITTER_BPF=stub` does not even try.

#![allow(clippy::print_stdout, reason = "cargo reads the output")]

#[path = "build/btf.rs"]
mod btf;

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{self, Command};

/// What the object starts with when there is none; `dataplane::object` looks for it.
const STUB: &str = "splitter: no kernel programs: ";

const DEBIAN: &str = "apt-get install --no-install-recommends rustc-web rust-web-src llvm-22-dev";
const NIGHTLY: &str = "rustup toolchain install nightly --component rust-src";

fn main() {
    let paths = Paths::from_env();
    paths.watch();
    let mode = env::var("SPLITTER_BPF").unwrap_or_default();
    let result = match mode.as_str() {
        "stub" => Err("the build was told not to (SPLITTER_BPF=stub)".to_owned()),
        "" | "auto" | "require" => build(&paths),
        other => fail(&format!(
            "SPLITTER_BPF={other}: must be auto (the default), require or stub"
        )),
    };
    let written = match result {
        Ok(object) => readable(&object).and_then(|bytes| fs::write(&paths.object, bytes)),
        Err(why) if mode == "require" => fail(&why),
        Err(why) => stub(&paths, &mode, &why),
    };
    if let Err(error) = written {
        fail(&format!("cannot write {}: {error}", paths.object.display()));
    }
}

/// The object, with its texts marked as such.
fn readable(object: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = fs::read(object)?;
    btf::mark_text(&mut bytes).ok_or_else(|| io::Error::other("its type information is broken"))?;
    Ok(bytes)
}

/// Ends the build with a message.
fn fail(why: &str) -> ! {
    for line in why.lines() {
        println!("cargo::error={line}");
    }
    process::exit(1);
}

fn stub(paths: &Paths, mode: &str, why: &str) -> io::Result<()> {
    if mode != "stub" {
        println!("cargo:warning=built without the kernel programs, --steering none only:");
        why.lines()
            .for_each(|line| println!("cargo:warning={line}"));
        // Look again at the next build: a file that does not exist always counts as changed.
        println!("cargo:rerun-if-changed={}.retry", paths.object.display());
    }
    fs::write(&paths.object, format!("{STUB}{why}"))
}

struct Paths {
    /// The crate of the kernel programs.
    source: PathBuf,
    common: PathBuf,
    /// Where the loader includes the object from.
    object: PathBuf,
    /// Target directory of the inner build: shared by all profiles, as it is always the same.
    target: PathBuf,
}

impl Paths {
    fn from_env() -> Self {
        let variable = |name| env::var_os(name).unwrap_or_else(|| fail(&format!("{name} not set")));
        let root = PathBuf::from(variable("CARGO_MANIFEST_DIR")).join("..");
        let out = PathBuf::from(variable("OUT_DIR"));
        let is_target = |dir: &&Path| dir.join("CACHEDIR.TAG").exists();
        let target = out.ancestors().find(is_target).unwrap_or(&out).join("bpf");
        Paths {
            source: root.join("splitter-ebpf"),
            common: root.join("splitter-common"),
            object: out.join("splitter.bpf.o"),
            target,
        }
    }

    /// Only what the kernel programs are made of builds them anew.
    fn watch(&self) {
        for crate_dir in [&self.source, &self.common] {
            for name in ["src", "Cargo.toml"] {
                println!("cargo:rerun-if-changed={}", crate_dir.join(name).display());
            }
        }
        let lock = self.source.join("Cargo.lock");
        println!("cargo:rerun-if-changed={}", lock.display());
        println!("cargo:rerun-if-changed=build.rs");
        println!("cargo:rerun-if-changed=build/btf.rs");
        println!("cargo:rerun-if-env-changed=SPLITTER_BPF");
        println!("cargo:rerun-if-env-changed=SPLITTER_BPF_RUSTC");
    }
}

/// A compiler that can build `core`, and how it is called.
struct Toolchain {
    name: String,
    rustc: PathBuf,
    cargo: PathBuf,
    llvm: String,
}

fn build(paths: &Paths) -> Result<PathBuf, String> {
    let mut missing = Vec::new();
    for found in [debian(), nightly()] {
        let attempt = found.and_then(|toolchain| {
            let linker = linker(&toolchain)?;
            compile(paths, &toolchain, &linker)
        });
        match attempt {
            Ok(object) => return Ok(object),
            Err(why) => missing.push(why),
        }
    }
    Err(missing.join("\n"))
}

/// A stable rustc with the sources of `core` in its sysroot, as Debian packages it.
fn debian() -> Result<Toolchain, String> {
    let rustc = env::var_os("SPLITTER_BPF_RUSTC").map_or("/usr/bin/rustc".into(), PathBuf::from);
    let cargo = env::var_os("CARGO").map_or("cargo".into(), PathBuf::from);
    toolchain("rustc with rust-src", rustc, cargo)
        .map_err(|why| format!("{why}; install: {DEBIAN}"))
}

fn nightly() -> Result<Toolchain, String> {
    let find = |tool: &str| {
        let path = output(Command::new("rustup").args(["which", "--toolchain", "nightly", tool]))?;
        Ok(PathBuf::from(path.trim()))
    };
    let found = find("rustc").and_then(|rustc| Ok((rustc, find("cargo")?)));
    found
        .and_then(|(rustc, cargo)| toolchain("rustup's nightly", rustc, cargo))
        .map_err(|why| format!("{why}; install: {NIGHTLY}"))
}

fn toolchain(name: &str, rustc: PathBuf, cargo: PathBuf) -> Result<Toolchain, String> {
    let sysroot = output(Command::new(&rustc).args(["--print", "sysroot"]))?;
    let core = Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library/core");
    if !core.is_dir() {
        return Err(format!(
            "{} has no sources of core beside it",
            rustc.display()
        ));
    }
    let version = output(Command::new(&rustc).arg("-vV"))?;
    let mut lines = version.lines();
    let llvm = lines
        .find_map(|line| line.strip_prefix("LLVM version: "))
        .unwrap_or_default();
    Ok(Toolchain {
        name: format!("{name} ({})", rustc.display()),
        llvm: llvm.split('.').next().unwrap_or_default().to_owned(),
        rustc,
        cargo,
    })
}

/// bpf-linker, whose LLVM must be of the same major version as the compiler's.
fn linker(toolchain: &Toolchain) -> Result<PathBuf, String> {
    let major = &toolchain.llvm;
    let install = format!(
        "LLVM_PREFIX=/usr/lib/llvm-{major} cargo install bpf-linker --version 0.13.0 \
         --no-default-features --features llvm-{major}"
    );
    let home = env::var_os("CARGO_HOME").map(|home| Path::new(&home).join("bin"));
    let path = env::var_os("PATH").unwrap_or_default();
    let dirs = env::split_paths(&path).chain(home);
    let mut files = dirs.map(|dir| dir.join("bpf-linker"));
    let found = files.find(|file| file.is_file());
    let linker = found.ok_or_else(|| format!("bpf-linker is not in PATH; install: {install}"))?;
    match llvm_of(&linker) {
        Some(other) if other != *major => Err(format!(
            "{} uses LLVM {other}, but {} has LLVM {major}; install: {install}",
            linker.display(),
            toolchain.name,
        )),
        _ => Ok(linker),
    }
}

/// Major version of the libLLVM.so that a program is linked to; none when it has its own.
fn llvm_of(program: &Path) -> Option<String> {
    const NAME: &[u8] = b"libLLVM.so.";
    let bytes = fs::read(program).ok()?;
    let at = bytes
        .windows(NAME.len())
        .position(|window| window == NAME)?;
    let digits = bytes[at + NAME.len()..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit());
    Some(digits.map(|digit| char::from(*digit)).collect())
}

fn compile(paths: &Paths, toolchain: &Toolchain, linker: &Path) -> Result<PathBuf, String> {
    let target = "bpfel-unknown-none";
    let mut command = Command::new(&toolchain.cargo);
    clean(&mut command);
    command
        .current_dir(&paths.source)
        .args(["build", "--release", "--locked", "--bin", "splitter-ebpf"])
        .args(["-Z", "build-std=core", "--target", target, "--target-dir"])
        .arg(&paths.target)
        .env("RUSTC", &toolchain.rustc)
        .env("RUSTC_BOOTSTRAP", "1")
        .env("CARGO_ENCODED_RUSTFLAGS", flags(linker));
    output(&mut command).map_err(|why| {
        format!(
            "building the kernel programs with {} failed:\n{why}",
            toolchain.name
        )
    })?;
    Ok(paths.target.join(target).join("release/splitter-ebpf"))
}

/// Debug information becomes BTF; CPU level 3 (kernel 5.1) has 32-bit registers and jumps.
fn flags(linker: &Path) -> OsString {
    let mut flags = OsString::from("-Clinker=");
    flags.push(linker);
    for flag in ["-Clink-arg=--btf", "-Cdebuginfo=2", "-Ctarget-cpu=v3"] {
        flags.push("\x1f");
        flags.push(flag);
    }
    flags
}

/// Takes away what cargo sets for this build and what would steer the inner one: compiler,
/// wrappers (clippy, sccache), flags, profiles, toolchain, locks of its target directory.
fn clean(command: &mut Command) {
    const KEPT: [&str; 5] = [
        "CARGO_HOME",
        "CARGO_NET_OFFLINE",
        "CARGO_TERM_COLOR",
        "CARGO_BUILD_JOBS",
        "CARGO_HTTP_PROXY",
    ];
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        let ours = text.starts_with("CARGO")
            && !KEPT.contains(&text.as_ref())
            && !text.starts_with("CARGO_REGISTR");
        let others = [
            "RUSTC",
            "RUSTFLAGS",
            "RUSTDOC",
            "RUSTUP_TOOLCHAIN",
            "MAKEFLAGS",
            "TARGET",
        ];
        if ours || others.iter().any(|prefix| text.starts_with(prefix)) {
            command.env_remove(&name);
        }
    }
}

/// Runs a program and gives what it printed.
fn output(command: &mut Command) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .map_err(|error| format!("cannot run {program}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<_> = errors
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    // The end says what went wrong; cargo prints its progress before.
    let tail = lines[lines.len().saturating_sub(20)..].join("\n");
    Err(format!("{program}: {}\n{tail}", output.status))
}
