//! A directory of manifests as a source of Objects.

mod read;
mod scan;
mod watch;

use std::collections::BTreeMap;
use std::path::PathBuf;

pub use read::MAX_FILE_BYTES;
pub use scan::{FRESH, MAX_DEPTH, MAX_FILES};
pub use watch::{BURST_LIMIT, ManifestWatcher, POLL, QUIET, WatchError};

use super::objects::{Object, Objects};
use crate::model::{Kind, ObjectRef, Problem, Severity};
use read::FileState;
use scan::Scan;

/// Every `*.yaml`, `*.yml` and `*.json` below a directory (or one file), with the last good state of each file.
///
/// - A file with a document that does not parse keeps the objects it had when it last parsed as a
///   whole; a file that never did gives those of its documents that parse.
/// - A file of zero bytes that had objects is taken for one being written: it keeps them. Delete
///   the file to remove them.
/// - So does one that is the old text cut in the middle of a line; and one that newly ends in the
///   middle of a line, until it has been left alone for [`FRESH`]. To change a large set at once,
///   write a new file and rename it.
/// - What cannot be read, the directory itself included, keeps its last state.
/// - A deleted file's objects are gone.
///
/// Each of these is a Problem until it is over. Of two objects with the same name the first by file
/// path counts.
pub struct Manifests {
    directory: PathBuf,
    files: BTreeMap<String, FileState>,
}

impl Manifests {
    /// A source that has read nothing yet.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Manifests {
            directory: directory.into(),
            files: BTreeMap::new(),
        }
    }

    /// Reads what changed and gives the whole state. Blocks on the disk.
    pub fn reload(&mut self) -> (Objects, Vec<Problem>) {
        let scan = scan::scan(&self.directory);
        self.forget_deleted(&scan);
        let mut problems = self.scan_problems(&scan);
        for (name, (path, stamp)) in &scan.files {
            let state = self.files.entry(name.clone()).or_default();
            state.update(name, path, *stamp);
            problems.extend(state.problems.iter().cloned());
        }
        let objects = self.files.values().flat_map(|file| &file.objects).cloned();
        let (objects, duplicates) = Objects::collect(objects);
        problems.extend(duplicates);
        (objects, problems)
    }

    /// Drops the files that are gone for certain: not those below a directory that cannot be read.
    fn forget_deleted(&mut self, scan: &Scan) {
        self.files.retain(|name, _| {
            let hidden = |(place, _): &(String, _)| {
                let place: &String = place;
                place.is_empty() || name == place || name.starts_with(&format!("{place}/"))
            };
            scan.files.contains_key(name) || scan.faults.iter().any(hidden)
        });
    }

    fn scan_problems(&self, scan: &Scan) -> Vec<Problem> {
        let mut problems = Vec::new();
        for (place, error) in &scan.faults {
            let path = self.directory.join(place).display().to_string();
            problems.push(Problem {
                severity: Severity::Error,
                object: ObjectRef::new(
                    Kind::File,
                    "",
                    if place.is_empty() { &path } else { place },
                ),
                source: place.clone(),
                field: String::new(),
                code: "manifests-unreadable",
                message: format!("cannot read {path}: {error}"),
                effect: "what was read there before stays in use".to_owned(),
            });
        }
        if scan.full {
            problems.push(Problem {
                severity: Severity::Error,
                object: ObjectRef::new(Kind::File, "", &self.directory.display().to_string()),
                source: String::new(),
                field: String::new(),
                code: "too-many-files",
                message: format!("there are more than {MAX_FILES} manifest files"),
                effect: "those after the limit, by path, are left out".to_owned(),
            });
        }
        problems
    }

    /// The objects of a text that is not a file below the directory, such as standard input.
    pub fn from_text(name: &str, text: &str) -> (Objects, Vec<Problem>) {
        let parsed = super::parse_documents(name, text);
        let (objects, duplicates) = Objects::collect(parsed.objects);
        let mut problems = parsed.problems;
        problems.extend(duplicates);
        (objects, problems)
    }
}

/// What one file gave.
type FileObjects = Vec<Object>;
