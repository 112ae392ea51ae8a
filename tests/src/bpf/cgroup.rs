//! A cgroup for threads of a test, so that hooks concern nobody else.

use std::fs;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::eventually;

/// A cgroup (version 2) below the one that this process is in; gone on drop.
pub struct Cgroup(PathBuf);

impl Cgroup {
    /// Makes one.
    ///
    /// # Panics
    /// Without the rights, or where none are mounted.
    pub fn new() -> Cgroup {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let own = fs::read_to_string("/proc/self/cgroup").unwrap();
        let own = own.lines().find_map(|line| line.strip_prefix("0::/"));
        let own = own.expect("cgroups of version 2 are mounted");
        let path = mounted().join(own);
        let path = path.join(format!("splitter-{}-{count}", process::id()));
        fs::create_dir(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let cgroup = Cgroup(path);
        // So that single threads can be in it.
        cgroup.write("cgroup.type", "threaded");
        cgroup
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Moves the calling thread into it: sockets that it makes from now on belong there.
    ///
    /// # Panics
    /// Without the rights.
    pub fn enter(&self) {
        self.write("cgroup.threads", "0");
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.0.join(file);
        fs::write(&path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}

impl Default for Cgroup {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // A thread that has ended is taken out a little later.
        eventually("the cgroup is empty", || fs::remove_dir(&self.0).is_ok());
    }
}

/// Where the hierarchy is mounted.
fn mounted() -> PathBuf {
    let text = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let found = text.lines().find_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        kind.starts_with("cgroup2 ")
            .then(|| mount.split(' ').nth(4))?
    });
    PathBuf::from(found.expect("cgroups of version 2 are mounted"))
}
