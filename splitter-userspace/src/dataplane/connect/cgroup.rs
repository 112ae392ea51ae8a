//! Where the hooks are: a directory of the second version of cgroups.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// An open cgroup.
pub struct Cgroup {
    /// Where it is.
    pub path: PathBuf,
    /// It, for the kernel.
    pub dir: File,
}

impl Cgroup {
    /// Opens the one that is named, else the one that every process of the machine is below.
    ///
    /// # Errors
    /// Why there is none, and what to do, in words.
    pub fn open(named: Option<&Path>) -> Result<Cgroup, String> {
        let path = match named {
            Some(path) => path.to_owned(),
            None => root()?,
        };
        if !path.join("cgroup.procs").exists() || !path.join("cgroup.controllers").exists() {
            return Err(format!(
                "{} is no cgroup of version 2; name the mounted hierarchy with --cgroup",
                path.display()
            ));
        }
        let dir = File::open(&path);
        let failed =
            |error: io::Error| format!("cannot open the cgroup {}: {error}", path.display());
        let dir = dir.map_err(failed)?;
        Ok(Cgroup { path, dir })
    }
}

/// The top of the hierarchy. In a container that has a view of its own the top that it sees is itself.
fn root() -> Result<PathBuf, String> {
    let mounts = Path::new("/proc/thread-self/mountinfo");
    let text = fs::read_to_string(mounts)
        .map_err(|error| format!("cannot read {}: {error}", mounts.display()))?;
    let all = mounted(&text);
    let is_top = |path: &&PathBuf| !path.join("cgroup.type").exists();
    match (all.iter().find(is_top), all.first()) {
        (Some(top), _) => Ok(top.clone()),
        (None, Some(part)) => Err(format!(
            "{} is not the top of the cgroups: in a pod, mount the node's /sys/fs/cgroup and name it \
             with --cgroup",
            part.display()
        )),
        (None, None) => Err(
            "no cgroups of version 2 are mounted; `mount -t cgroup2 none DIR` and --cgroup DIR"
                .to_owned(),
        ),
    }
}

/// Where the second version is mounted.
fn mounted(mountinfo: &str) -> Vec<PathBuf> {
    let lines = mountinfo.lines().filter_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        let point = mount.split(' ').nth(4)?;
        (kind.split(' ').next() == Some("cgroup2")).then(|| PathBuf::from(point))
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_of_version_2_are_found_among_others() {
        let text = "\
25 22 0:22 / /sys/fs/cgroup rw,nosuid - tmpfs tmpfs rw
26 25 0:23 / /sys/fs/cgroup/cpu rw shared:9 - cgroup cgroup rw,cpu
27 25 0:24 / /sys/fs/cgroup/unified rw,nosuid - cgroup2 cgroup2 rw
28 22 0:24 / /host/cgroup ro - cgroup2 cgroup2 rw
";
        let all = mounted(text);
        let all: Vec<_> = all.iter().map(|it| it.to_string_lossy()).collect();
        assert_eq!(all, ["/sys/fs/cgroup/unified", "/host/cgroup"]);
    }

    #[test]
    fn a_directory_that_is_no_cgroup_is_named_with_the_remedy() {
        let why = Cgroup::open(Some(Path::new("/proc"))).err();
        assert!(why.is_some_and(|why| why.contains("/proc") && why.contains("--cgroup")));
    }
}
