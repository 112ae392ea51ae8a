//! What goes into the guest: programs, their libraries, modules.

use crate::bpf::net::output;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where a program is.
pub(super) fn program(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let dirs = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    let mut files = dirs.map(|dir| dir.join(name));
    let found = files.find(|file| file.is_file());
    found.unwrap_or_else(|| panic!("{name} is missing; run: cargo xtask setup"))
}

/// The libraries that programs load, the loader among them.
pub(super) fn libraries<'a>(programs: impl Iterator<Item = &'a Path>) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for program in programs {
        let output = output(Command::new("ldd").arg(program));
        let output = output.unwrap_or_else(|error| panic!("ldd: {error}"));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let words = text.split_whitespace().filter(|word| word.starts_with('/'));
        found.extend(words.map(PathBuf::from));
    }
    found
}

/// A file's content.
pub(super) fn read(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A program without what only a debugger needs: the guest unpacks it into its memory.
pub(super) fn stripped(path: &Path) -> Vec<u8> {
    let out = tempfile::NamedTempFile::new().unwrap_or_else(|error| panic!("{error}"));
    let mut strip = Command::new("strip");
    match output(strip.arg("-o").arg(out.path()).arg(path)) {
        Ok(strip) if strip.status.success() => read(out.path()),
        _ => read(path),
    }
}

/// A kernel module, unpacked if it is packed.
pub(super) fn module(path: &Path) -> Vec<u8> {
    if path.is_file() {
        return read(path);
    }
    let packed = format!("{}.xz", path.display());
    let output = output(Command::new("xz").args(["-dc", &packed]));
    match output {
        Ok(output) if output.status.success() => output.stdout,
        _ => panic!("{packed} is missing or cannot be unpacked by xz; run: cargo xtask setup"),
    }
}
