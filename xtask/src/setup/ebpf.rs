//! The compiler and linker of the kernel programs. There are two ways: a stable rustc with the
//! sources of `core` beside it, as Debian packages it, or rustup's nightly with rust-src. Either
//! needs bpf-linker, whose LLVM must be of the compiler's major version.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use super::apt::{self, OneOf};
use crate::process::{cargo, find, output, run};

/// The one that is known to work with the pinned aya.
const LINKER_VERSION: &str = "0.13.0";

/// The versions of LLVM that it can be built for, and their packages.
const LLVM: &[(&str, OneOf)] = &[
    ("21", &["llvm-21-dev"]),
    ("22", &["llvm-22-dev"]),
    ("23", &["llvm-23-dev"]),
];

/// Debian's compiler, which lives beside rustup's.
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";

/// What is missing for the Debian way.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// A compiler with sources.
    Compiler,
    /// bpf-linker for this major version of LLVM.
    Linker(String),
}

/// Which of the two ways is complete, as a person would name it.
pub(super) fn ready() -> Result<String, Missing> {
    let debian = compiler(Path::new(DEBIAN_RUSTC));
    let nightly = nightly_rustc().and_then(|rustc| compiler(&rustc));
    let linker = find("bpf-linker");
    let linker_llvm = linker.as_ref().and_then(|file| linked_llvm(file));
    choose(debian, nightly, linker.is_some(), linker_llvm.as_deref())
}

/// `debian` and `nightly` are the LLVM versions of usable compilers; `linked` is the LLVM that
/// bpf-linker loads, none when it brings its own.
fn choose(
    debian: Option<String>,
    nightly: Option<String>,
    has_linker: bool,
    linked: Option<&str>,
) -> Result<String, Missing> {
    let fits = |llvm: &str| has_linker && linked.is_none_or(|linked| linked == llvm);
    let ways = [
        ("rustc with rust-src", &debian),
        ("rustup's nightly", &nightly),
    ];
    for (name, llvm) in ways {
        if let Some(llvm) = llvm
            && fits(llvm)
        {
            return Ok(format!("{name} (LLVM {llvm})"));
        }
    }
    match debian.or(nightly) {
        Some(llvm) => Err(Missing::Linker(llvm)),
        None => Err(Missing::Compiler),
    }
}

/// Major version of the LLVM of a compiler that has the sources of `core`.
fn compiler(rustc: &Path) -> Option<String> {
    let sysroot = output(rustc, &["--print", "sysroot"])?;
    let core = Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library/core");
    let version = output(rustc, &["-vV"])?;
    core.is_dir().then(|| llvm_major(&version)).flatten()
}

fn llvm_major(version: &str) -> Option<String> {
    let line = version
        .lines()
        .find_map(|l| l.strip_prefix("LLVM version: "))?;
    line.split('.').next().map(str::to_owned)
}

fn nightly_rustc() -> Option<PathBuf> {
    let path = output("rustup", &["which", "--toolchain", "nightly", "rustc"])?;
    Some(PathBuf::from(path.trim()))
}

/// Major version of the libLLVM.so that a program loads.
fn linked_llvm(program: &Path) -> Option<String> {
    const NAME: &[u8] = b"libLLVM.so.";
    let bytes = fs::read(program).ok()?;
    let at = bytes.windows(NAME.len()).position(|w| w == NAME)?;
    let rest = bytes.get(at + NAME.len()..)?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit());
    Some(digits.map(|digit| char::from(*digit)).collect())
}

/// Installs what is missing, by Debian's packages where there are any.
pub(super) fn install(missing: &Missing) -> Result<String> {
    println!("setup: the compiler or linker of the kernel programs is missing: {missing:?}");
    if *missing == Missing::Compiler {
        install_compiler()?;
    }
    let llvm = match ready() {
        Ok(ready) => return Ok(ready),
        Err(Missing::Linker(llvm)) => llvm,
        Err(Missing::Compiler) => bail!(
            "no compiler for the kernel programs after setup\n{}",
            by_hand()
        ),
    };
    install_linker(&llvm)?;
    ready().map_err(|missing| anyhow::anyhow!("still missing: {missing:?}\n{}", by_hand()))
}

fn install_compiler() -> Result<()> {
    const PACKAGES: &[OneOf] = &[&["rustc-web"], &["rust-web-src"]];
    if apt::has(PACKAGES)? {
        return apt::install(PACKAGES);
    }
    if find("rustup").is_none() {
        bail!(
            "cannot install a compiler for the kernel programs here\n{}",
            by_hand()
        );
    }
    let mut add = Command::new("rustup");
    add.args(["toolchain", "install", "nightly", "--profile", "minimal"]);
    run(add.args(["--component", "rust-src"]))
}

/// Builds bpf-linker with the compiler that runs us, against the LLVM of the other one.
fn install_linker(llvm: &str) -> Result<()> {
    let Some((_, packages)) = LLVM.iter().find(|(major, _)| *major == llvm) else {
        bail!(
            "bpf-linker {LINKER_VERSION} does not know LLVM {llvm}\n{}",
            by_hand()
        );
    };
    let prefix = format!("/usr/lib/llvm-{llvm}");
    if !Path::new(&prefix).join("bin/llvm-config").exists() {
        apt::install(&[packages, &["g++"]])
            .with_context(|| format!("bpf-linker needs LLVM {llvm}\n{}", by_hand()))?;
    }
    let feature = format!("llvm-{llvm}");
    let mut install = cargo(&["install", "bpf-linker", "--force"]);
    install.args(["--version", LINKER_VERSION]);
    install.args(["--no-default-features", "--features", &feature]);
    run(install.env("LLVM_PREFIX", &prefix)).with_context(by_hand)
}

fn by_hand() -> String {
    format!(
        "one of these two ways, by hand:\n\
         Debian: apt-get install --no-install-recommends rustc-web rust-web-src llvm-22-dev && \
         LLVM_PREFIX=/usr/lib/llvm-22 cargo install bpf-linker --version {LINKER_VERSION} \
         --no-default-features --features llvm-22\n\
         elsewhere: rustup toolchain install nightly --component rust-src, and bpf-linker \
         {LINKER_VERSION} of the same LLVM from its release page, in PATH"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(llvm: &str) -> Option<String> {
        Some(llvm.to_owned())
    }

    #[test]
    fn a_way_is_complete_when_its_linker_has_the_same_llvm() {
        let debian = "rustc with rust-src (LLVM 22)";
        assert_eq!(
            choose(some("22"), None, true, Some("22")).as_deref(),
            Ok(debian)
        );
        assert_eq!(choose(some("22"), None, true, None).as_deref(), Ok(debian));
        let nightly = "rustup's nightly (LLVM 23)";
        assert_eq!(
            choose(some("22"), some("23"), true, Some("23")).as_deref(),
            Ok(nightly)
        );
    }

    #[test]
    fn what_is_missing_is_named() {
        let linker = Err(Missing::Linker("22".to_owned()));
        assert_eq!(choose(some("22"), None, false, None), linker);
        assert_eq!(choose(some("22"), None, true, Some("19")), linker);
        assert_eq!(choose(None, None, true, Some("22")), Err(Missing::Compiler));
    }

    #[test]
    fn the_version_of_llvm_is_read() {
        assert_eq!(
            llvm_major("rustc 1.96.0\nLLVM version: 22.1.8\n"),
            some("22")
        );
        assert_eq!(llvm_major("rustc 1.96.0\n"), None);
    }
}
