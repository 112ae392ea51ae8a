//! One manifest file and its last good state.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use super::FileObjects;
use super::scan::Stamp;
use crate::k8s::parse_documents;
use crate::model::{Kind, ObjectRef, Problem, Severity};

/// The most bytes that are read from one file; a larger one is a Problem.
pub const MAX_FILE_BYTES: u64 = 8 * 1024 * 1024;

/// A file whose time is younger than this when it is read may change again under the same time
/// stamp, so it is read once more at the next reload. In seconds.
const FRESH: i64 = 2;

/// What is known of one file.
#[derive(Default)]
pub(super) struct FileState {
    /// Its objects in use.
    pub objects: FileObjects,
    /// What is wrong with it now.
    pub problems: Vec<Problem>,
    /// The whole file parsed once, and `objects` is what it then held.
    good: bool,
    /// Not set while the file has to be read again.
    stamp: Option<Stamp>,
}

impl FileState {
    /// Reads the file if it is not the one that was read last.
    pub(super) fn update(&mut self, name: &str, path: &Path, stamp: Stamp) {
        if self.stamp == Some(stamp) {
            return;
        }
        let settled = now() - stamp.changed_at() >= FRESH;
        self.stamp = settled.then_some(stamp);
        match read(path, stamp) {
            Ok(text) => self.take(name, &text),
            Err(error) => {
                self.stamp = None;
                let kept = self.kept();
                self.problems = vec![problem(name, "file-unreadable", error.to_string(), kept)];
            }
        }
    }

    fn take(&mut self, name: &str, text: &str) {
        if text.is_empty() && !self.objects.is_empty() {
            let message = "the file is empty, as if it were being written".to_owned();
            self.problems = vec![problem(name, "file-empty", message, self.kept())];
            return;
        }
        let parsed = parse_documents(name, text);
        self.problems = parsed.problems;
        let whole = self.problems.is_empty();
        if whole || !self.good {
            self.objects = parsed.objects;
            self.good = whole;
            return;
        }
        for problem in &mut self.problems {
            problem.effect = KEPT.to_owned();
        }
    }

    fn kept(&self) -> &'static str {
        if self.objects.is_empty() {
            "it is left out"
        } else {
            KEPT
        }
    }
}

const KEPT: &str = "the objects that the file last held stay in use";

fn read(path: &Path, stamp: Stamp) -> io::Result<String> {
    if stamp.size() > MAX_FILE_BYTES {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    let limit = MAX_FILE_BYTES + 1;
    File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(too_large());
    }
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is not UTF-8 text"))
}

fn too_large() -> io::Error {
    io::Error::other(format!("it is larger than {MAX_FILE_BYTES} bytes"))
}

fn problem(name: &str, code: &'static str, message: String, effect: &str) -> Problem {
    Problem {
        severity: Severity::Error,
        object: ObjectRef::new(Kind::File, "", name),
        source: name.to_owned(),
        field: String::new(),
        code,
        message,
        effect: effect.to_owned(),
    }
}

/// Whole seconds since 1970; only compared with file times, so a wrong clock costs a read.
fn now() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs() as i64)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    fn service(name: &str) -> String {
        format!("{{apiVersion: v1, kind: Service, metadata: {{name: {name}}}}}")
    }

    /// The name of the only object after each content was written under one and the same stamp.
    fn names(age: i64) -> Vec<String> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f.yaml");
        let stamp = Stamp::at(now() - age);
        let mut state = FileState::default();
        let mut names = Vec::new();
        for name in ["first", "second"] {
            std::fs::write(&path, service(name)).unwrap();
            state.update("f.yaml", &path, stamp);
            names.push(state.objects[0].object_ref().name.to_string());
        }
        names
    }

    #[test]
    fn a_file_with_an_old_stamp_is_not_read_again() {
        assert_eq!(names(60), ["first", "first"]);
    }

    #[test]
    fn a_file_with_a_fresh_stamp_is_read_again() {
        assert_eq!(names(0), ["first", "second"]);
    }
}
