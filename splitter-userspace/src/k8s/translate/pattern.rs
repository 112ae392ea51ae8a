//! Patterns in ingress-nginx's dialect (PCRE) for a linear-time engine.

use std::collections::HashMap;

use crate::model::{PathPattern, Pattern};

/// The patterns compiled so far: the same text stands on many Ingresses, and compiling is dear.
#[derive(Default)]
pub(super) struct Patterns(HashMap<String, Result<Pattern, String>>);

impl Patterns {
    /// As [`compile`], once for each text.
    pub(super) fn get(&mut self, text: &str) -> Result<Pattern, String> {
        if let Some(known) = self.0.get(text) {
            return known.clone();
        }
        let compiled = compile(text);
        self.0.insert(text.to_owned(), compiled.clone());
        compiled
    }
}

/// Compiles a pattern, or says why it cannot be used.
///
/// Both dialects agree on nearly everything that the annotation's characters allow; what the engine
/// does not know is an error of its own, and what it would silently read otherwise is refused here.
pub(super) fn compile(text: &str) -> Result<Pattern, String> {
    if let Some(difference) = difference(text) {
        return Err(difference.to_owned());
    }
    Pattern::new(text).map_err(shown)
}

/// Compiles the texts of a path, or says why one cannot be used.
pub(super) fn compile_path(texts: &[&str]) -> Result<PathPattern, String> {
    for text in texts {
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("blanks and letters other than those of ASCII must be encoded".to_owned());
        }
        if let Some(difference) = difference(text) {
            return Err(difference.to_owned());
        }
    }
    PathPattern::new(texts).map_err(shown)
}

fn shown(error: regex::Error) -> String {
    match error {
        regex::Error::Syntax(text) => last_line(&text),
        regex::Error::CompiledTooBig(limit) => {
            format!("the compiled pattern takes more than {limit} bytes")
        }
        other => other.to_string(),
    }
}

/// The engine draws a picture of the pattern over several lines; the last one says what is wrong.
fn last_line(text: &str) -> String {
    let line = text.lines().next_back().unwrap_or(text);
    line.trim_start_matches("error: ").to_owned()
}

/// A construct that means one thing in PCRE and another in the engine.
fn difference(text: &str) -> Option<&'static str> {
    if text.contains("\\b{") {
        return Some("\\b followed by { is not supported");
    }
    let mut scan = Scan::default();
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let found = match byte {
            b'\\' => {
                scan.atom();
                rest = after.get(1..).unwrap_or(&[]);
                continue;
            }
            _ if scan.class.is_some() => scan.in_class(byte, after),
            _ => scan.outside(byte, after),
        };
        if found.is_some() {
            return found;
        }
        rest = after;
    }
    None
}

/// Where in a pattern the scan is.
#[derive(Default)]
struct Scan {
    /// Inside `[…]`: the number of characters since the bracket, a leading `^` left out.
    class: Option<usize>,
    /// Inside `[:…:]` in a class.
    named: bool,
    /// What came last is a repetition.
    repeated: bool,
}

impl Scan {
    fn atom(&mut self) {
        self.repeated = false;
        if let Some(length) = &mut self.class {
            *length += 1;
        }
    }

    fn outside(&mut self, byte: u8, after: &[u8]) -> Option<&'static str> {
        match byte {
            b'+' | b'*' if self.repeated => {
                return Some("a repetition of a repetition (such as ++) is not supported");
            }
            // After a repetition it makes that one lazy.
            b'+' | b'*' | b'?' | b'}' => self.repeated = true,
            b'(' if after.first() == Some(&b'?') => {
                self.repeated = false;
                return flags(after);
            }
            b'[' => self.class = Some(0),
            _ => self.repeated = false,
        }
        None
    }

    fn in_class(&mut self, byte: u8, after: &[u8]) -> Option<&'static str> {
        let length = self.class.unwrap_or(0);
        self.class = Some(length + 1);
        match (byte, after.first()) {
            // A bracket straight after it is a literal, as it is at the start.
            (b'^', _) if length == 0 => self.class = Some(0),
            (b']', _) if self.named => self.named = false,
            (b']', _) if length > 0 => {
                self.class = None;
                self.repeated = false;
            }
            (b'[', Some(b':')) => self.named = true,
            (b'[', _) => return Some("a [ inside […] must be written \\["),
            (b'&', Some(b'&')) | (b'-', Some(b'-')) | (b'~', Some(b'~')) => {
                return Some("&&, -- and ~~ inside […] must have a \\ before each character");
            }
            _ => {}
        }
        None
    }
}

/// `(?R)` is recursion there and a line-end flag here; `(?u)` is no flag there.
fn flags(after: &[u8]) -> Option<&'static str> {
    let mut letters = after
        .iter()
        .skip(1)
        .take_while(|b| b.is_ascii_alphabetic() || **b == b'-');
    letters
        .any(|b| matches!(b, b'R' | b'u'))
        .then_some("the flags R and u are not supported")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn takes_what_both_dialects_read_alike() {
        for text in [
            "^Do[A-Z][a-z]+y$",
            "gz|sz",
            "[]a]+",
            "[^]a]?",
            "[[:alpha:]_-]{3}",
            "a+?b??",
            r"\+\+[\[&]\d\w",
            "(?i)abc(?:x|y)",
            "",
        ] {
            assert!(compile(text).is_ok(), "{text:?}: {:?}", compile(text).err());
        }
    }

    #[test]
    fn is_not_anchored_and_minds_the_case() {
        let pattern = compile("gz|sz").unwrap();
        assert!(pattern.is_match(b"xxgzxx"));
        assert!(!pattern.is_match(b"GZ"));
    }

    #[test]
    fn refuses_what_would_mean_something_else() {
        for text in [
            "a++",
            "a?+",
            "a{2}+",
            "a**",
            "a+?+",
            "[[a]]",
            "[a&&b]",
            "[a--b]",
            "[a~~b]",
            "(?R)",
            "(?iu)x",
            r"\b{start}x",
        ] {
            assert!(difference(text).is_some(), "{text:?}");
            assert!(compile(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn says_in_one_line_what_the_engine_cannot_do() {
        for text in [
            "(?=x)",
            "(a)\\1",
            "[",
            "(",
            "*",
            "a{2",
            r"\p{Greek}",
            "(?:a{1000}){1000}",
        ] {
            let message = compile(text).unwrap_err();
            assert!(
                !message.is_empty() && !message.contains('\n'),
                "{text:?}: {message}"
            );
        }
    }
}
