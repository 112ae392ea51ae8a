use std::fmt;
use std::sync::Arc;

use regex::bytes::{Captures, Regex, RegexBuilder};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Hir, HirKind, Look};

mod direct;

use direct::{Direct, Spans};

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
    literal: Box<[u8]>,
    rest: Rest,
}

/// How it is found out whether a path that begins with the literal matches.
enum Rest {
    /// The literal is all there is.
    Nothing,
    Direct(Direct),
    Regex(Regex),
}

/// What the groups of a pattern matched in a path.
#[derive(Debug)]
pub struct Groups<'p>(By<'p>);

#[derive(Debug)]
enum By<'p> {
    Direct(&'p str, Spans),
    Regex(Captures<'p>),
}

impl<'p> Groups<'p> {
    /// What a group matched, by its number from 1 on; none where it took no part.
    pub fn get(&self, number: usize) -> Option<&'p [u8]> {
        match &self.0 {
            By::Direct(path, spans) => path.as_bytes().get(spans.get(number)?),
            By::Regex(captures) => Some(captures.get(number)?.as_bytes()),
        }
    }
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
    pub fn captures<'p>(&self, path: &'p str) -> Option<Groups<'p>> {
        self.0.iter().find_map(|form| form.captures(path))
    }
}

impl Form {
    fn new(text: &str) -> Result<Self, regex::Error> {
        let literal = literal(text);
        let rest = if *literal == *text.as_bytes() {
            Rest::Nothing
        } else if let Some(direct) = Direct::new(text) {
            Rest::Direct(direct)
        } else {
            let mut regex = RegexBuilder::new(&format!("^{text}"));
            let regex = regex.unicode(false).case_insensitive(true);
            Rest::Regex(regex.size_limit(PathPattern::SIZE_LIMIT).build()?)
        };
        Ok(Form {
            text: text.into(),
            literal,
            rest,
        })
    }

    /// As written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it matches the beginning of a canonical path.
    pub fn is_match(&self, path: &str) -> bool {
        let path = path.as_bytes();
        match &self.rest {
            Rest::Nothing => self.begins(path),
            Rest::Direct(direct) => direct.find(path).is_some(),
            Rest::Regex(regex) => self.begins(path) && regex.is_match(path),
        }
    }

    fn begins(&self, path: &[u8]) -> bool {
        let start = path.get(..self.literal.len());
        start.is_some_and(|it| it.eq_ignore_ascii_case(&self.literal))
    }

    /// None also where the text has no groups because it is a literal.
    fn captures<'p>(&self, path: &'p str) -> Option<Groups<'p>> {
        let by = match &self.rest {
            Rest::Nothing => return None,
            Rest::Direct(direct) => By::Direct(path, direct.find(path.as_bytes())?),
            Rest::Regex(regex) => By::Regex(regex.captures(path.as_bytes())?),
        };
        Some(Groups(by))
    }
}

/// What every match of `^text` begins with, in any case; empty when the parser cannot say.
fn literal(text: &str) -> Box<[u8]> {
    let parsed = ParserBuilder::new()
        .unicode(false)
        .utf8(false)
        .build()
        .parse(&format!("^{text}"));
    let Ok(hir) = parsed else {
        return Box::default();
    };
    // A pattern with alternatives is not a concatenation, unless each of them begins like this.
    let HirKind::Concat(parts) = hir.kind() else {
        return Box::default();
    };
    match parts.iter().map(Hir::kind).collect::<Vec<_>>()[..] {
        [HirKind::Look(Look::Start), HirKind::Literal(literal), ..] => literal.0.clone(),
        _ => Box::default(),
    }
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
            // Repetitions of repetitions, and a class that begins with its own end.
            ("/fo+*bar", "/fbar", true),
            ("/fo+??bar", "/fbar", true),
            ("/foo[](]|/bar", "/x/bar", true),
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
            ("/fo+", "/f"),
            ("/fo+?*", "/f"),
            ("/fo{2}", "/f"),
            (r"/v1\.0", "/v1.0"),
            ("/a|/b", ""),
            ("/a[](]|/b", ""),
            (r"/a\|b", "/a|b"),
            ("(?i)/a", "/"),
        ] {
            assert_eq!(*literal(text), *expected.as_bytes(), "{text}");
        }
    }

    #[test]
    fn groups_are_those_of_the_text_that_matches() {
        let pattern = PathPattern::new(&["/a/(.*)", "/b/(.*)"]).unwrap();
        let group = |path| {
            let groups = pattern.captures(path)?;
            groups.get(1)
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
            text in r"/[a-c]{0,3}[(]?[\[\]a-c|.*?+(\\]{0,6}[\])]?",
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
