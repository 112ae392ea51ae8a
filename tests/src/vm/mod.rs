//! Running a test binary on another kernel, in an emulated machine.
//!
//! Nothing of the host is used but its programs: the machine has its own kernel and a file system
//! in memory with the test binary, the few programs that the tests call, and their libraries.

mod cpio;
mod files;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::bpf::net::output;
use cpio::Archive;

/// Kernel modules that the tests need where they are not built in, in the order of loading.
const MODULES: [&str; 4] = [
    "drivers/net/veth.ko",
    "net/llc/llc.ko",
    "net/802/stp.ko",
    "net/bridge/bridge.ko",
];

/// Programs that the tests call; `busybox` stands for the rest.
const PROGRAMS: [&str; 3] = ["ip", "bpftool", "busybox"];

/// What the machine says at the end when all went well.
const PASSED: &str = "the guest has passed";

/// Longest time for one kernel; an emulated machine is slow, and a busy host makes it slower.
const DEADLINE: &str = "1500";

/// What is there of one series of kernels, e.g. `6.1`.
struct Kernel {
    image: PathBuf,
    modules: PathBuf,
}

/// Runs tests of the calling test binary on a kernel of `series`; gives what they printed.
///
/// # Panics
/// With the guest's output when a test fails there, or when a piece is missing, with the command
/// that gets it.
pub fn run(series: &str, filters: &[&str]) -> String {
    let kernel = kernel(series);
    let dir = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    let image = dir.path().join("initrd");
    let archive = archive(&kernel, filters);
    fs::write(&image, archive.finish()).unwrap_or_else(|error| panic!("{error}"));
    let mut guest = Command::new("timeout");
    guest
        .args([DEADLINE, "qemu-system-x86_64"])
        // One CPU: with two, the emulator can run code that the other one is just patching, and the
        // guest's kernel falls over its own breakpoint.
        .args(["-accel", "tcg", "-cpu", "max", "-smp", "1", "-m", "2048"])
        .args([
            "-nographic",
            "-no-reboot",
            "-nodefaults",
            "-serial",
            "stdio",
        ])
        .arg("-kernel")
        .arg(&kernel.image)
        .arg("-initrd")
        .arg(&image)
        .args(["-append", "console=ttyS0 quiet panic=-1 loglevel=3"]);
    let output = output(&mut guest).unwrap_or_else(|error| {
        panic!("cannot run qemu-system-x86_64 ({error}); run: cargo xtask setup")
    });
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        text.contains(PASSED),
        "the tests fail on {}: {}\n{text}",
        kernel.image.display(),
        output.status,
    );
    text
}

/// The kernel that `cargo xtask setup` has unpacked.
fn kernel(series: &str) -> Kernel {
    let dir = root().join("target/kernels").join(series);
    let find = |dir: PathBuf, prefix: &str| {
        let entries = fs::read_dir(&dir).into_iter().flatten().flatten();
        let mut paths = entries.map(|entry| entry.path());
        let named = |path: &PathBuf| {
            let name = path.file_name().map(|name| name.to_string_lossy());
            name.is_some_and(|name| name.starts_with(prefix))
        };
        let missing = || {
            panic!(
                "no kernel {series} in {}; run: cargo xtask setup",
                dir.display()
            )
        };
        paths.find(named).unwrap_or_else(missing)
    };
    Kernel {
        image: find(dir.join("boot"), "vmlinuz-"),
        modules: find(dir.join("lib/modules"), series).join("kernel"),
    }
}

fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// The guest's file system.
fn archive(kernel: &Kernel, filters: &[&str]) -> Archive {
    let mut archive = Archive::default();
    for dir in ["proc", "sys", "dev", "run", "tmp", "etc", "bin", "modules"] {
        archive.directory(dir);
    }
    let own = std::env::current_exe().unwrap_or_else(|error| panic!("{error}"));
    let mut programs = vec![("test".to_owned(), own)];
    for name in PROGRAMS {
        programs.push((format!("bin/{name}"), files::program(name)));
    }
    for library in files::libraries(programs.iter().map(|(_, path)| path.as_path())) {
        let name = library.to_string_lossy();
        archive.file(name.trim_start_matches('/'), 0o755, files::read(&library));
    }
    for (name, path) in &programs {
        archive.file(name, 0o755, files::stripped(path));
    }
    for (place, module) in MODULES.iter().enumerate() {
        let bytes = files::module(&kernel.modules.join(module));
        archive.file(&format!("modules/{place}.ko"), 0o644, bytes);
    }
    archive.file("init", 0o755, init(filters).into_bytes());
    archive
}

/// What the guest does: it prepares itself, runs the tests and ends.
fn init(filters: &[&str]) -> String {
    format!(
        "#!/bin/busybox sh\n\
         /bin/busybox --install -s /bin\n\
         export PATH=/bin HOME=/tmp RUST_BACKTRACE=0 SPLITTER_TEST_CASES=4\n\
         mount -t proc proc /proc\n\
         mount -t sysfs sysfs /sys\n\
         mount -t devtmpfs devtmpfs /dev\n\
         mount -t tmpfs tmpfs /tmp\n\
         mount -t tmpfs tmpfs /run\n\
         mount -t bpf bpf /sys/fs/bpf\n\
         mount -t cgroup2 none /sys/fs/cgroup\n\
         for module in /modules/*; do insmod $module; done\n\
         echo \"kernel $(uname -r)\"\n\
         /test --test-threads=2 --nocapture {} && echo '{PASSED}'\n\
         poweroff -f\n",
        filters.join(" ")
    )
}
