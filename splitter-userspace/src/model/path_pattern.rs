use std::fmt;
use std::sync::Arc;

use regex::bytes::{Captures, Regex, RegexBuilder};

/// The compiled path of a Location of the kind [`Regex`](super::PathKind::Regex): anchored at the
/// start, without regard to case, open at the end. Equal when the texts are.
///
/// It is asked about paths in their canonical spelling, so it sees what must be encoded in a path
/// encoded (`%20`).
#[derive(Clone)]
pub struct PathPattern(Arc<[Form]>);

/// One text of a pattern.
pub struct Form {
    text: Box<str>,
    /// What every match begins with, in any case.
    literal: Box<str>,
    /// None when the literal is all there is.
    regex: Option<Regex>,
}

impl PathPattern {
    /// The most memory that one compiled text may take, in bytes.
    pub const SIZE_LIMIT: usize = 256 * 1024;

    /// Compiles the texts; whichever of them matches does.
    ///
    /// # Errors
    /// When the linear-time engine cannot take one: wrong syntax, look-around, back-references, or
    /// larger than [`Self::SIZE_LIMIT`].
    pub fn new(texts: &[&str]) -> Result<Self, regex::Error> {
        let forms: Result<Vec<Form>, regex::Error> =
            texts.iter().map(|text| Form::new(text)).collect();
        forms.map(|forms| PathPattern(forms.into()))
    }

    /// Its texts.
    pub fn forms(&self) -> &[Form] {
        &self.0
    }

    /// The groups of the first text that matches.
    pub fn captures<'p>(&self, path: &'p str) -> Option<Captures<'p>> {
        let mut regexes = self.0.iter().filter_map(|form| form.regex.as_ref());
        regexes.find_map(|regex| regex.captures(path.as_bytes()))
    }
}

impl Form {
    fn new(text: &str) -> Result<Self, regex::Error> {
        let literal = literal(text);
        let regex = if literal.len() == text.len() {
            None
        } else {
            Some(
                RegexBuilder::new(&format!("^{text}"))
                    .unicode(false)
                    .case_insensitive(true)
                    .size_limit(PathPattern::SIZE_LIMIT)
                    .build()?,
            )
        };
        Ok(Form {
            text: text.into(),
            literal: literal.into(),
            regex,
        })
    }

    /// As written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it matches the beginning of a canonical path.
    pub fn is_match(&self, path: &str) -> bool {
        let start = path.as_bytes().get(..self.literal.len());
        let begins = start.is_some_and(|it| it.eq_ignore_ascii_case(self.literal.as_bytes()));
        begins
            && self
                .regex
                .as_ref()
                .is_none_or(|it| it.is_match(path.as_bytes()))
    }
}

/// The longest beginning of a pattern that stands for itself in every match.
fn literal(text: &str) -> &str {
    if has_alternatives(text) {
        // `^` holds for the first alternative only.
        return "";
    }
    let is_meta = |c: char| r"\.+*?()|[]{}^$".contains(c);
    let Some(end) = text.find(is_meta) else {
        return text;
    };
    let (literal, rest) = text.split_at(end);
    if rest.starts_with(['*', '?', '{']) {
        // The last character need not be there.
        let mut letters = literal.chars();
        letters.next_back();
        return letters.as_str();
    }
    literal
}

/// Whether a pattern may have a `|` outside of all groups.
fn has_alternatives(text: &str) -> bool {
    let (mut depth, mut escaped, mut class) = (0usize, false, false);
    for c in text.chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ']' => class = false,
            _ if class => {}
            '[' => class = true,
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            '|' if depth == 0 => return true,
            _ => {}
        }
    }
    false
}

impl PartialEq for PathPattern {
    fn eq(&self, other: &Self) -> bool {
        let texts = |pattern: &Self| pattern.0.iter().map(|form| form.text.clone()).collect();
        let (one, two): (Vec<_>, Vec<_>) = (texts(self), texts(other));
        Arc::ptr_eq(&self.0, &other.0) || one == two
    }
}

impl Eq for PathPattern {}

impl fmt::Debug for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts = self.0.iter().map(|form| &form.text);
        f.debug_list().entries(texts).finish()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    fn matches(text: &str, path: &str) -> bool {
        PathPattern::new(&[text]).unwrap().forms()[0].is_match(path)
    }

    #[test]
    fn it_begins_at_the_start_and_minds_no_case() {
        for (text, path, expected) in [
            ("/foo", "/foo", true),
            ("/foo", "/FOObar", true),
            ("/foo", "/x/foo", false),
            ("/foo", "/fo", false),
            ("/foo(/|$)(.*)", "/foo", true),
            ("/foo(/|$)(.*)", "/foobar", false),
            ("/foo(/|$)(.*)", "/Foo/bar", true),
            ("/v[0-9]+/x", "/v12/X", true),
            ("/v[0-9]+/x", "/v/x", false),
            ("/fo*bar", "/fbar", true),
            ("/fo?bar", "/fbar", true),
            ("/fo{0}bar", "/fbar", true),
            ("/fo+bar", "/fbar", false),
            ("/a.b", "/axb", true),
            (r"/a\.b", "/axb", false),
            (r"/a\.b", "/a.b", true),
            ("/", "/anything", true),
            ("/x$", "/x/y", false),
            // Nobody sees to it that the second alternative is anchored.
            ("/foo|/bar", "/x/bar", true),
            ("/(foo|bar)", "/x/bar", false),
            ("/[|]x", "/|x", true),
        ] {
            assert_eq!(matches(text, path), expected, "{text} {path}");
        }
    }

    #[test]
    fn the_literal_is_a_part_of_every_match() {
        for (text, expected) in [
            ("/foo", "/foo"),
            ("/foo(/|$)(.*)", "/foo"),
            ("/foo/?(.*)", "/foo"),
            ("/fo*", "/f"),
            ("/fo+", "/fo"),
            ("/fo{2}", "/f"),
            (r"/v1\.0", "/v1"),
            ("/a|/b", ""),
            (r"/a\|b", "/a"),
            ("(?i)/a", ""),
        ] {
            assert_eq!(literal(text), expected, "{text}");
        }
    }

    #[test]
    fn groups_are_those_of_the_text_that_matches() {
        let pattern = PathPattern::new(&["/a/(.*)", "/b/(.*)"]).unwrap();
        let group = |path| {
            let captures = pattern.captures(path)?;
            Some(captures.get(1)?.as_bytes())
        };
        assert_eq!(group("/b/x/y"), Some(&b"x/y"[..]));
        assert_eq!(group("/c"), None);
        assert!(PathPattern::new(&["/a"]).unwrap().captures("/a").is_none());
    }

    #[test]
    fn what_cannot_be_compiled_is_an_error() {
        for text in ["/(", "/(?!api)", r"/(a)\1", "/(a{999}){999}"] {
            assert!(PathPattern::new(&[text]).is_err(), "{text}");
        }
    }

    proptest::proptest! {
        /// The shortcut by the literal changes nothing.
        #[test]
        fn the_literal_decides_nothing_by_itself(
            text in "/[a-c]{0,3}[(]?[a-c|.*?+]{0,4}[)]?",
            path in "/[a-cA-C/]{0,6}",
        ) {
            let plain = RegexBuilder::new(&format!("^{text}"))
                .unicode(false)
                .case_insensitive(true)
                .build();
            if let (Ok(plain), Ok(pattern)) = (plain, PathPattern::new(&[&text])) {
                let found = pattern.forms()[0].is_match(&path);
                proptest::prop_assert_eq!(found, plain.is_match(path.as_bytes()));
            }
        }
    }
}
