//! Manifest text to objects. One bad document never hides the others.

use serde_norway::Value;

use super::bounded;
use super::decode::{self, Fault};
use super::objects::Object;
use crate::model::{Kind, ObjectRef, Problem, Severity};

/// The most documents read from one file; the rest is left out with a Problem.
pub const MAX_DOCUMENTS: usize = 65_536;

/// What a manifest file holds.
#[derive(Clone, Debug, Default)]
pub struct Parsed {
    /// In the order of the file.
    pub objects: Vec<Object>,
    /// One for each document (or list item) that is not an object. Empty when the whole file was
    /// understood.
    pub problems: Vec<Problem>,
}

/// Reads every object in `text`, which is YAML or JSON. `file` names it in Problems and sources.
///
/// Documents end at a line `---` or `...`, as for kubectl, before any YAML is parsed. Lists are
/// unfolded. Kinds that routing does not read are left out with a debug line.
pub fn parse_documents(file: &str, text: &str) -> Parsed {
    let mut parsed = Parsed::default();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (index, document) in split(text).enumerate() {
        let source = format!("{file}#{}", index + 1);
        if index == MAX_DOCUMENTS {
            let fault = Fault::new(
                "too-many-documents",
                format!("the file has more than {MAX_DOCUMENTS} documents"),
            );
            parsed.problems.push(problem(file, &source, fault));
            break;
        }
        parse_document(file, &source, &document, &mut parsed);
    }
    parsed
}

fn parse_document(file: &str, source: &str, document: &Document<'_>, parsed: &mut Parsed) {
    match value(document) {
        Ok(Value::Null) => {}
        Ok(value) => decode::decode(value, document, source, &mut |result| match result {
            Ok(object) => parsed.objects.push(object),
            Err(fault) => parsed.problems.push(problem(file, source, fault)),
        }),
        Err(fault) => parsed.problems.push(problem(file, source, fault)),
    }
}

fn value(document: &Document<'_>) -> Result<Value, Fault> {
    // JSON is YAML, but not all of it for a YAML parser (tabs, surrogate pairs), and JSON's is faster.
    if document.text.trim_start().starts_with('{')
        && let Ok(value) = serde_json::from_str(document.text)
    {
        return Ok(value);
    }
    bounded::parse(document.text)
        .map_err(|error| Fault::new("yaml-invalid", document.describe(&error)))
}

fn problem(file: &str, source: &str, fault: Fault) -> Problem {
    Problem {
        severity: Severity::Error,
        object: fault
            .object
            .unwrap_or_else(|| ObjectRef::new(Kind::File, "", file)),
        source: source.to_owned(),
        field: fault.field,
        code: fault.code,
        message: fault.message,
        effect: "it is left out".to_owned(),
    }
}

/// One document and where in its file it starts.
pub(super) struct Document<'a> {
    /// Its text.
    pub text: &'a str,
    /// The lines before it in the file.
    pub line: usize,
}

impl Document<'_> {
    /// The error's text with the lines of the file instead of those of the document.
    pub(super) fn describe(&self, error: &serde_norway::Error) -> String {
        const MARK: &str = " at line ";
        let text = error.to_string();
        let mut pieces = text.split(MARK);
        let mut shifted = pieces.next().unwrap_or("").to_owned();
        for piece in pieces {
            let digits = piece.bytes().take_while(u8::is_ascii_digit).count();
            let (number, rest) = piece.split_at(digits);
            shifted.push_str(MARK);
            match number.parse::<usize>() {
                Ok(line) => shifted.push_str(&(line + self.line).to_string()),
                Err(_) => shifted.push_str(number),
            }
            shifted.push_str(rest);
        }
        shifted
    }
}

/// Splits a file into its documents; those with nothing but blank lines, comments and directives
/// are left out and not counted.
fn split(text: &str) -> impl Iterator<Item = Document<'_>> {
    let mut rest = text;
    let mut line = 0;
    std::iter::from_fn(move || {
        while !rest.is_empty() {
            let (document, lines, after) = take(rest);
            let start = line;
            (rest, line) = (after, line + lines);
            if !is_blank(document) {
                return Some(Document {
                    text: document,
                    line: start,
                });
            }
        }
        None
    })
}

/// The text up to the next separator, the lines used up, and what follows. What stands on the
/// separator's own line (`--- {a: b}`) belongs to what follows.
fn take(text: &str) -> (&str, usize, &str) {
    let mut end = 0;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        if is_separator(line) {
            let content = line[SEPARATOR_LENGTH..].trim_start();
            if is_blank(content) {
                return (&text[..end], number + 1, &text[end + line.len()..]);
            }
            let skip = line.len() - content.len();
            return (&text[..end], number, &text[end + skip..]);
        }
        end += line.len();
    }
    (text, 0, "")
}

/// `---` begins a document, `...` ends one.
const SEPARATOR_LENGTH: usize = 3;

fn is_separator(line: &str) -> bool {
    let rest = line
        .strip_prefix("---")
        .or_else(|| line.strip_prefix("..."));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace))
}

fn is_blank(text: &str) -> bool {
    text.lines().all(|line| {
        let line = line.trim();
        line.is_empty() || line.starts_with('#') || line.starts_with('%')
    })
}

#[cfg(test)]
#[path = "documents_tests.rs"]
mod tests;
