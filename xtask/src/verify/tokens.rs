//! As much of Rust's lexical grammar as is needed to tell names from comments and literals.

/// A name or a mark of a source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    /// A name, `::`, or one other character; literals are left out.
    pub(super) text: String,
    /// Counted from 1.
    pub(super) line: usize,
}

impl Token {
    /// Whether it is a name or keyword.
    pub(super) fn is_name(&self) -> bool {
        self.text
            .starts_with(|c: char| c.is_alphabetic() || c == '_')
    }
}

/// The tokens of a file.
pub(super) fn tokens(source: &str) -> Vec<Token> {
    let mut lexer = Lexer {
        rest: source,
        line: 1,
        tokens: Vec::new(),
    };
    while lexer.step() {}
    lexer.tokens
}

struct Lexer<'a> {
    rest: &'a str,
    line: usize,
    tokens: Vec<Token>,
}

impl Lexer<'_> {
    /// Takes one token, comment, literal or space; false at the end.
    fn step(&mut self) -> bool {
        let Some(first) = self.rest.chars().next() else {
            return false;
        };
        if self.rest.starts_with("//") {
            self.skip(self.rest.find('\n').unwrap_or(self.rest.len()));
        } else if self.rest.starts_with("/*") {
            self.skip(block_comment(self.rest));
        } else if let Some(length) = string(self.rest).or_else(|| character(self.rest)) {
            self.skip(length);
        } else if let Some(raw) = self.rest.strip_prefix("r#") {
            self.skip(2);
            self.take(name(raw).max(1));
        } else if self.rest.starts_with("::") {
            self.take(2);
        } else if first.is_whitespace() {
            self.skip(first.len_utf8());
        } else {
            self.take(name(self.rest).max(first.len_utf8()));
        }
        true
    }

    fn skip(&mut self, length: usize) {
        let (skipped, rest) = self.rest.split_at(length.min(self.rest.len()));
        self.line += skipped.matches('\n').count();
        self.rest = rest;
    }

    fn take(&mut self, length: usize) {
        let text = self.rest.get(..length).unwrap_or_default().to_owned();
        let line = self.line;
        self.tokens.push(Token { text, line });
        self.skip(length);
    }
}

/// Length of the name, keyword or number that the text begins with.
fn name(text: &str) -> usize {
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_'));
    end.unwrap_or(text.len())
}

/// Length of a block comment; they nest.
fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0usize, 0);
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// Length of a string literal of any kind.
fn string(text: &str) -> Option<usize> {
    let prefix = ["br", "cr", "r", "b", "c", ""]
        .into_iter()
        .find(|prefix| text.starts_with(prefix) && is_quote(&text[prefix.len()..], prefix))?;
    let body = &text[prefix.len()..];
    if prefix.ends_with('r') {
        let hashes = body.len() - body.trim_start_matches('#').len();
        let end = format!("\"{}", "#".repeat(hashes));
        let start = hashes + 1;
        let length = body[start..].find(&end).map(|at| start + at + end.len());
        return Some(prefix.len() + length.unwrap_or(body.len()));
    }
    Some(prefix.len() + quoted(body, '"'))
}

fn is_quote(body: &str, prefix: &str) -> bool {
    if prefix.ends_with('r') {
        body.trim_start_matches('#').starts_with('"')
    } else {
        body.starts_with('"')
    }
}

/// Length of a character literal; none for a lifetime.
fn character(text: &str) -> Option<usize> {
    let prefix = usize::from(text.starts_with("b'"));
    let inside = text.get(prefix..)?.strip_prefix('\'')?;
    let mut chars = inside.chars();
    let is_literal = match chars.next()? {
        '\\' => true,
        _ => chars.next() == Some('\''),
    };
    is_literal.then(|| prefix + quoted(&text[prefix..], '\''))
}

/// Length of a literal in quotes, with escapes.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(source: &str) -> Vec<String> {
        tokens(source).into_iter().map(|token| token.text).collect()
    }

    #[test]
    fn names_and_marks() {
        let expected = [
            "use", "crate", "::", "a", "::", "{", "b", ",", "c_1", "}", ";",
        ];
        assert_eq!(texts("use crate::a::{b, c_1};"), expected);
        assert_eq!(texts("r#mod::x"), ["mod", "::", "x"]);
    }

    #[test]
    fn comments_and_literals_are_left_out() {
        for source in [
            "// tokio::x",
            "/* tokio /* hyper */ kube */",
            "/// [`tokio::x`]",
            r#""tokio\"::x""#,
            r##"r#"tokio"::x"#"##,
            r#"b"tokio""#,
            "c\"tokio\"",
            "br\"tokio\\\"",
            "'\\''",
            "b'\"'",
            "'\"'",
            "'é'",
        ] {
            assert_eq!(texts(&format!("a {source}\n b")), ["a", "b"], "{source}");
        }
    }

    #[test]
    fn lifetimes_are_no_literals() {
        assert_eq!(texts("&'a tokio"), ["&", "'", "a", "tokio"]);
        assert_eq!(texts("<'a,'b>x"), ["<", "'", "a", ",", "'", "b", ">", "x"]);
    }

    #[test]
    fn lines_are_counted_through_everything() {
        let source = "/* 1\n2 */ \"3\n\" r\"\n\" x\n// y\nz";
        let lines: Vec<_> = tokens(source).iter().map(|token| token.line).collect();
        assert_eq!(lines, [4, 6]);
    }

    #[test]
    fn what_does_not_end_ends_with_the_file() {
        for source in ["a /*", "a \"", "a r#\"", "a '\\", "a b'"] {
            assert_eq!(texts(source)[0], "a", "{source}");
        }
    }
}
