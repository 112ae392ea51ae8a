//! One manifest file and its last good state.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::FileObjects;
use super::scan::Stamp;
use crate::k8s::parse_documents;
use crate::model::{Kind, ObjectRef, Problem, Severity};

/// The most bytes that are read from one file; a larger one is a Problem.
pub const MAX_FILE_BYTES: u64 = 8 * 1024 * 1024;

/// What is known of one file.
#[derive(Default)]
pub(super) struct FileState {
    /// Its objects in use.
    pub objects: FileObjects,
    /// What is wrong with it now.
    pub problems: Vec<Problem>,
    /// The text that `objects` come from, if all of it was understood.
    good: Option<String>,
    /// Not set while the file has to be read again.
    stamp: Option<Stamp>,
}

impl FileState {
    /// Reads the file if it is not the one that was read last.
    pub(super) fn update(&mut self, name: &str, path: &Path, stamp: Stamp) {
        if self.stamp == Some(stamp) {
            return;
        }
        let settled = stamp.is_settled();
        self.stamp = settled.then_some(stamp);
        match read(path, stamp) {
            Ok(text) => self.take(name, text, settled),
            Err(error) => {
                self.stamp = None;
                let kept = self.kept();
                self.problems = vec![problem(name, "file-unreadable", error.to_string(), kept)];
            }
        }
    }

    fn take(&mut self, name: &str, text: String, settled: bool) {
        if self.good.as_ref() == Some(&text) {
            self.problems.clear();
            return;
        }
        if let Some((code, message)) = self.unfinished(&text, settled) {
            self.problems = vec![problem(name, code, message.to_owned(), self.kept())];
            return;
        }
        let parsed = parse_documents(name, &text);
        self.problems = parsed.problems;
        let whole = self.problems.is_empty();
        if whole || self.good.is_none() {
            self.objects = parsed.objects;
            self.good = whole.then_some(text);
            return;
        }
        for problem in &mut self.problems {
            problem.effect = KEPT.to_owned();
        }
    }

    /// Whether a text looks like the first part of one that is being written. What is cut at the
    /// end of a line cannot be told from what is whole.
    fn unfinished(&self, text: &str, settled: bool) -> Option<(&'static str, &'static str)> {
        if text.is_empty() && !self.objects.is_empty() {
            return Some((
                "file-empty",
                "the file is empty, as if it were being written",
            ));
        }
        let good = self.good.as_deref()?;
        let rest = good.strip_prefix(text).filter(|_| !text.ends_with('\n'));
        if rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['\n', '\r'])) {
            return Some((
                "file-cut",
                "the file is the old one, cut in the middle of a line",
            ));
        }
        // Flow style and JSON end with a bracket, with or without a line end.
        let closed = text.trim_end().ends_with(['}', ']']) || text.ends_with('\n');
        if good.ends_with('\n') && !closed && !settled {
            let message = "the file ends in the middle of a line, as if it were being written";
            return Some(("file-cut", message));
        }
        None
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::time::Duration;

    use super::*;

    fn service(name: &str) -> String {
        format!("apiVersion: v1\nkind: Service\nmetadata:\n  name: {name}\n")
    }

    const OLD: Duration = Duration::from_secs(60);
    const NEW: Duration = Duration::ZERO;

    /// A file with these contents one after the other, each read under a stamp of this age.
    fn after(contents: &[(&str, Duration)]) -> (Vec<String>, Vec<&'static str>) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f.yaml");
        let mut state = FileState::default();
        for (text, age) in contents {
            std::fs::write(&path, text).unwrap();
            state.update("f.yaml", &path, Stamp::aged(*age));
        }
        let names = state
            .objects
            .iter()
            .map(|it| it.object_ref().name.to_string());
        (
            names.collect(),
            state.problems.iter().map(|it| it.code).collect(),
        )
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|it| (*it).to_owned()).collect()
    }

    #[test]
    fn a_file_with_an_old_stamp_is_not_read_again() {
        let found = after(&[(&service("first"), OLD), (&service("second"), OLD)]);
        assert_eq!(found, (names(&["first"]), vec![]));
    }

    #[test]
    fn a_file_with_a_fresh_stamp_is_read_again() {
        let found = after(&[(&service("first"), NEW), (&service("second"), NEW)]);
        assert_eq!(found, (names(&["second"]), vec![]));
    }

    #[test]
    fn the_old_text_cut_in_a_line_is_never_taken_for_whole() {
        let whole = format!("{}---\n{}", service("first"), service("second"));
        let cut = &whole[..whole.len() - 3];
        for age in [NEW, OLD] {
            let found = after(&[(&whole, NEW), (cut, age)]);
            assert_eq!(found, (names(&["first", "second"]), vec!["file-cut"]));
        }
        // Cut between lines it is an edit: the last document was deleted.
        let first = service("first");
        for edited in [first.as_str(), first.trim_end()] {
            assert_eq!(
                after(&[(&whole, NEW), (edited, OLD)]),
                (names(&["first"]), vec![])
            );
        }
    }

    #[test]
    fn an_edit_that_ends_in_a_line_waits_until_the_file_is_left_alone() {
        let (first, second) = (service("first"), service("second"));
        let cut = second.trim_end();
        let found = after(&[(&first, NEW), (cut, NEW)]);
        assert_eq!(found, (names(&["first"]), vec!["file-cut"]));
        assert_eq!(
            after(&[(&first, NEW), (cut, NEW), (cut, OLD)]),
            (names(&["second"]), vec![])
        );
        // Files that never end with a line end are taken at once, and so are closed brackets.
        assert_eq!(
            after(&[(first.trim_end(), NEW), (cut, NEW)]),
            (names(&["second"]), vec![])
        );
        let flow = "{apiVersion: v1, kind: Service, metadata: {name: flow}}";
        assert_eq!(
            after(&[(&first, NEW), (flow, NEW)]),
            (names(&["flow"]), vec![])
        );
    }

    #[test]
    fn the_good_text_again_ends_the_problem() {
        let first = service("first");
        let found = after(&[(&first, NEW), ("{", NEW), (&first, NEW)]);
        assert_eq!(found, (names(&["first"]), vec![]));
    }
}
