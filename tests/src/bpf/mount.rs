//! A BPF file system for a test.

use std::path::Path;

use tempfile::TempDir;

use super::net::command;

/// A BPF file system of its own, so that tests do not see each other's pins.
pub struct BpfFs(TempDir);

impl BpfFs {
    /// Mounts one.
    ///
    /// # Panics
    /// Without the rights.
    pub fn mount() -> BpfFs {
        let dir = tempfile::Builder::new().prefix("splitter-bpffs").tempdir();
        let dir = dir.unwrap_or_else(|error| panic!("no temporary directory: {error}"));
        command(
            "mount",
            &["-t", "bpf", "bpf", &dir.path().to_string_lossy()],
        );
        BpfFs(dir)
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for BpfFs {
    fn drop(&mut self) {
        command("umount", &["-l", &self.0.path().to_string_lossy()]);
    }
}
