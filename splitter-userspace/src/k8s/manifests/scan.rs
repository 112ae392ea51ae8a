//! Which files below a directory are manifests.

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How many directories deep the scan goes.
pub const MAX_DEPTH: usize = 32;

/// The most manifest files that are read; those after it in path order are left out.
pub const MAX_FILES: usize = 65_536;

/// How long a file must have been left alone to count as finished.
pub const FRESH: Duration = Duration::from_secs(1);

/// Tells whether a file is still the one that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    pub(super) fn of(metadata: &Metadata) -> Stamp {
        Stamp {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// Whether the file has been left alone for [`FRESH`]. A younger one may still be written, and
    /// may change again under the same time stamp. A time in the future is a clock that was set
    /// back, and as good as an old one.
    pub(super) fn is_settled(&self) -> bool {
        let (seconds, nanos) = self.changed;
        let Ok(now) = SystemTime::now().duration_since(UNIX_EPOCH) else {
            return true;
        };
        let age = now.as_millis() as i64 - (seconds * 1_000 + nanos / 1_000_000);
        age.unsigned_abs() >= FRESH.as_millis() as u64
    }

    /// A stamp of a file last changed so long ago.
    #[cfg(test)]
    pub(super) fn aged(age: Duration) -> Stamp {
        let then = (SystemTime::now() - age).duration_since(UNIX_EPOCH);
        let time = (then.unwrap_or_default().as_secs() as i64, 0);
        Stamp {
            device: 1,
            inode: 1,
            size: 1,
            modified: time,
            changed: time,
        }
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }
}

/// What a scan found.
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// Path below the root with `/`, full path and stamp.
    pub files: BTreeMap<String, (PathBuf, Stamp)>,
    /// Paths below the root that could not be looked at, and why. The root itself is the empty
    /// path.
    pub faults: Vec<(String, io::Error)>,
    /// Manifest files were left out because there are more than [`MAX_FILES`].
    pub full: bool,
}

/// Finds the manifests below `root`: names ending in `.yaml`, `.yml` or `.json`. A `root` that is a
/// file is the only manifest, whatever its name.
///
/// Names that begin with a dot are passed over: editors' swap files, and the hidden directories
/// behind a mounted ConfigMap, whose visible links are followed. Each file and directory counts
/// once however many links lead to it, so a loop ends.
pub(super) fn scan(root: &Path) -> Scan {
    let mut walk = Walk::default();
    match (fs::metadata(root), root.file_name()) {
        (Ok(metadata), Some(name)) if metadata.is_file() => {
            let found = (root.to_owned(), Stamp::of(&metadata));
            let name = name.to_string_lossy().into_owned();
            walk.scan.files.insert(name, found);
        }
        (Ok(metadata), _) => {
            walk.seen.insert((metadata.dev(), metadata.ino()));
            walk.directory(root, "", 0);
        }
        (Err(error), _) => walk.fault("", error),
    }
    walk.scan
}

#[derive(Default)]
struct Walk {
    scan: Scan,
    seen: HashSet<(u64, u64)>,
}

impl Walk {
    fn directory(&mut self, path: &Path, relative: &str, depth: usize) {
        match names(path) {
            Ok(names) => {
                for name in names {
                    self.entry(path, relative, &name, depth);
                }
            }
            Err(error) => self.fault(relative, error),
        }
    }

    fn entry(&mut self, parent: &Path, relative: &str, name: &str, depth: usize) {
        let path = parent.join(name);
        let relative = match relative {
            "" => name.to_owned(),
            parent => format!("{parent}/{name}"),
        };
        let metadata = match fs::metadata(&path) {
            Ok(metadata) => metadata,
            Err(_) if is_manifest(name) && name.contains(char::REPLACEMENT_CHARACTER) => {
                return self.fault(&relative, io::Error::other("its name is not UTF-8"));
            }
            // Deleted since the names were read, or a link to nothing.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(error) => return self.fault(&relative, error),
        };
        let wanted = metadata.is_dir() || (metadata.is_file() && is_manifest(name));
        if !wanted || !self.seen.insert((metadata.dev(), metadata.ino())) {
            return;
        }
        if metadata.is_dir() {
            if depth + 1 < MAX_DEPTH {
                self.directory(&path, &relative, depth + 1);
            } else {
                let text = format!("more than {MAX_DEPTH} directories deep");
                self.fault(&relative, io::Error::other(text));
            }
        } else if self.scan.files.len() < MAX_FILES {
            let found = (path, Stamp::of(&metadata));
            self.scan.files.insert(relative, found);
        } else {
            self.scan.full = true;
        }
    }

    fn fault(&mut self, relative: &str, error: io::Error) {
        self.scan.faults.push((relative.to_owned(), error));
    }
}

/// The names in a directory, sorted, so that every scan goes the same way. What is no UTF-8 in them
/// becomes replacement characters.
fn names(path: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(path)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !name.starts_with('.') {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

fn is_manifest(name: &str) -> bool {
    [".yaml", ".yml", ".json"]
        .iter()
        .any(|ending| name.ends_with(ending))
}
