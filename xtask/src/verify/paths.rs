//! The paths that a file names, in `use` and elsewhere, in macros too.

use super::tokens::{Token, tokens};

/// A path with two or more segments, or one in a `use`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NamedPath {
    pub(super) segments: Vec<String>,
    /// How many modules inside the file it stands in.
    pub(super) inside: usize,
    pub(super) line: usize,
}

/// Every path of a source file.
pub(super) fn paths(source: &str) -> Vec<NamedPath> {
    let tokens = tokens(source);
    let mut reader = Reader {
        tokens: &tokens,
        at: 0,
        braces: 0,
        modules: Vec::new(),
        paths: Vec::new(),
    };
    while reader.step() {}
    reader.paths
}

struct Reader<'a> {
    tokens: &'a [Token],
    at: usize,
    braces: usize,
    /// The depth of braces in which each open `mod name {` stands.
    modules: Vec<usize>,
    paths: Vec<NamedPath>,
}

impl Reader<'_> {
    fn text(&self, at: usize) -> &str {
        self.tokens.get(at).map_or("", |token| &token.text)
    }

    fn is_name(&self, at: usize) -> bool {
        self.tokens.get(at).is_some_and(Token::is_name)
    }

    fn step(&mut self) -> bool {
        match self.text(self.at) {
            "" => return false,
            "use" => {
                self.at += 1;
                self.tree(Vec::new());
            }
            "extern" if self.text(self.at + 1) == "crate" => {
                self.push(vec![self.text(self.at + 2).to_owned()], self.at);
                self.at += 3;
            }
            "mod" if self.text(self.at + 2) == "{" => {
                self.modules.push(self.braces);
                self.at += 2;
            }
            "{" => {
                self.braces += 1;
                self.at += 1;
            }
            "}" => {
                self.braces = self.braces.saturating_sub(1);
                if self.modules.last() == Some(&self.braces) {
                    self.modules.pop();
                }
                self.at += 1;
            }
            _ if self.is_name(self.at) => self.expression(),
            _ => self.at += 1,
        }
        true
    }

    /// `a::b::c` outside of a `use`; a single name says nothing.
    fn expression(&mut self) {
        let start = self.at;
        let mut segments = vec![self.text(self.at).to_owned()];
        self.at += 1;
        while self.text(self.at) == "::" && self.is_name(self.at + 1) {
            segments.push(self.text(self.at + 1).to_owned());
            self.at += 2;
        }
        // The rest of `<T as Trait>::Item` or `a::<T>::b` is no path of its own.
        let is_rest = start > 0 && self.text(start - 1) == "::" && !self.is_leading(start - 1);
        if segments.len() > 1 && !is_rest {
            self.push(segments, start);
        }
    }

    /// Whether the `::` at this place begins a path.
    fn is_leading(&self, at: usize) -> bool {
        at == 0 || !(self.is_name(at - 1) || [">", "}"].contains(&self.text(at - 1)))
    }

    /// A tree of `use` after what it stands behind.
    fn tree(&mut self, mut before: Vec<String>) {
        let start = self.at;
        loop {
            match self.text(self.at) {
                "::" => self.at += 1,
                "{" => {
                    self.at += 1;
                    while !["}", ""].contains(&self.text(self.at)) {
                        self.tree(before.clone());
                        if self.text(self.at) == "," {
                            self.at += 1;
                        }
                    }
                    self.at += 1;
                    return;
                }
                "as" => self.at += 2,
                "*" => self.at += 1,
                _ if self.is_name(self.at) => {
                    before.push(self.text(self.at).to_owned());
                    self.at += 1;
                }
                _ => break,
            }
        }
        if self.at == start {
            // Not a tree (a macro's `$name`): go on behind it.
            self.at += 1;
        }
        if !before.is_empty() {
            self.push(before, start);
        }
    }

    fn push(&mut self, segments: Vec<String>, at: usize) {
        self.paths.push(NamedPath {
            segments,
            inside: self.modules.len(),
            line: self.tokens.get(at).map_or(0, |token| token.line),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(source: &str) -> Vec<String> {
        let paths = paths(source);
        paths.iter().map(|path| path.segments.join("::")).collect()
    }

    #[test]
    fn trees_are_taken_apart() {
        assert_eq!(named("use a::b;"), ["a::b"]);
        assert_eq!(named("pub use a as b;"), ["a"]);
        assert_eq!(named("use a::*;"), ["a"]);
        assert_eq!(
            named("use crate::{a, b::{self, c as d}, e::*,};x::y"),
            [
                "crate::a",
                "crate::b::self",
                "crate::b::c",
                "crate::e",
                "x::y"
            ]
        );
        assert_eq!(named("use {a, ::b::c};"), ["a", "b::c"]);
        assert_eq!(named("extern crate a;"), ["a"]);
    }

    #[test]
    fn paths_in_code_and_macros_are_found() {
        assert_eq!(
            named("fn f() -> a::B { c::d::<e::F>() }"),
            ["a::B", "c::d", "e::F"]
        );
        assert_eq!(named("x!(a::b, $crate::c::d)"), ["a::b", "crate::c::d"]);
        assert_eq!(named("::a::b()"), ["a::b"]);
        assert_eq!(named("#[a::b]"), ["a::b"]);
        assert_eq!(named("pub(in crate::a) b: C"), ["crate::a"]);
    }

    #[test]
    fn what_follows_a_type_is_no_path_of_its_own() {
        assert_eq!(named("<T as a::B>::c::d(); e.f()"), ["a::B"]);
        assert_eq!(named("a::b::<T>::c::d()"), ["a::b"]);
    }

    #[test]
    fn depth_in_modules_is_known() {
        let paths = paths("mod a; mod b { fn f() { c::d } mod e { g::h } } i::j");
        let depths: Vec<_> = paths.iter().map(|path| path.inside).collect();
        assert_eq!(depths, [1, 2, 0]);
    }
}
