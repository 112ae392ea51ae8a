use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};

/// A text with variables in it, as annotations hand it to nginx: `$1` to `$9`, `$host`, `${host}`
/// and so on. Equal when the text is.
#[derive(Clone)]
pub struct Template {
    text: Arc<str>,
    pieces: Arc<[Piece]>,
}

/// One part of a [`Template`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// As it stands.
    Text(Box<str>),
    /// What a group of the Location's path pattern matched, 1 to 9; empty where there is none.
    Capture(u8),
    /// Something of the request.
    Variable(Variable),
}

/// The variables of nginx that are filled in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variable {
    /// `http` or `https`.
    Scheme,
    /// The host in lower case, without port.
    Host,
    /// The host as the client wrote it, port and all.
    HttpHost,
    /// Path and query as they came.
    RequestUri,
    /// The path in its canonical spelling.
    Uri,
    /// The query, without `?`.
    Args,
    /// `?` if there is a query, else nothing.
    IsArgs,
    /// Path and query as they came, escaped so that they can be the value of a parameter.
    EscapedRequestUri,
    /// The method.
    RequestMethod,
}

/// By name, without `$`.
const VARIABLES: [(&str, Variable); 12] = [
    ("args", Variable::Args),
    ("best_http_host", Variable::HttpHost),
    ("escaped_request_uri", Variable::EscapedRequestUri),
    ("host", Variable::Host),
    ("http_host", Variable::HttpHost),
    ("is_args", Variable::IsArgs),
    ("pass_access_scheme", Variable::Scheme),
    ("query_string", Variable::Args),
    ("request_method", Variable::RequestMethod),
    ("request_uri", Variable::RequestUri),
    ("scheme", Variable::Scheme),
    ("uri", Variable::Uri),
];

/// Why a text is no template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// A `$` that begins nothing.
    #[error("a $ without a name behind it")]
    Lone,
    /// A variable of nginx, or of nobody, that is not filled in here.
    #[error("the variable ${0} is not supported")]
    Unknown(String),
}

impl Template {
    /// Reads a text with variables.
    ///
    /// # Errors
    /// When a `$` begins no variable that is known here.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('$') {
            if !before.is_empty() {
                pieces.push(Piece::Text(before.into()));
            }
            let (piece, after) = variable(after)?;
            pieces.push(piece);
            rest = after;
        }
        if !rest.is_empty() {
            pieces.push(Piece::Text(rest.into()));
        }
        Ok(Template {
            text: text.into(),
            pieces: pieces.into(),
        })
    }

    /// Its parts in order.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// The text it was made of.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether any part is what a path pattern matched.
    pub fn has_captures(&self) -> bool {
        let capture = |piece: &Piece| matches!(piece, Piece::Capture(_));
        self.pieces.iter().any(capture)
    }
}

/// The variable that stands behind a `$`, and what follows it.
fn variable(after: &str) -> Result<(Piece, &str), TemplateError> {
    let (name, rest) = match after.strip_prefix('{') {
        Some(braced) => braced.split_once('}').ok_or(TemplateError::Lone)?,
        None => after.split_at(name_length(after)),
    };
    match name.as_bytes() {
        [] => return Err(TemplateError::Lone),
        [digit @ b'1'..=b'9'] => return Ok((Piece::Capture(digit - b'0'), rest)),
        _ => {}
    }
    let known = VARIABLES.iter().find(|(known, _)| *known == name);
    match known {
        Some((_, variable)) => Ok((Piece::Variable(*variable), rest)),
        None => Err(TemplateError::Unknown(name.to_owned())),
    }
}

/// nginx takes one digit as a name of its own, whatever follows it.
fn name_length(text: &str) -> usize {
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return 1;
    }
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.find(|c| !is_name(c)).unwrap_or(text.len())
}

impl PartialEq for Template {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Template {}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Template({:?})", self.text)
    }
}

impl Serialize for Template {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn names_digits_and_braces_are_read_as_nginx_reads_them() {
        let template = Template::parse("/a$1b${2}/$host$request_uri").unwrap();
        assert_eq!(
            template.pieces(),
            [
                Piece::Text("/a".into()),
                Piece::Capture(1),
                Piece::Text("b".into()),
                Piece::Capture(2),
                Piece::Text("/".into()),
                Piece::Variable(Variable::Host),
                Piece::Variable(Variable::RequestUri),
            ]
        );
        let twelve = Template::parse("$12").unwrap();
        assert_eq!(
            twelve.pieces(),
            [Piece::Capture(1), Piece::Text("2".into())]
        );
        assert!(template.has_captures());
        assert!(!Template::parse("$host").unwrap().has_captures());
        assert!(Template::parse("").unwrap().pieces().is_empty());
    }

    #[test]
    fn what_is_not_filled_in_is_an_error() {
        for lone in ["$", "a$/", "${host", "${}"] {
            assert_eq!(Template::parse(lone), Err(TemplateError::Lone), "{lone}");
        }
        for (text, name) in [
            ("$remote_addr", "remote_addr"),
            ("$0", "0"),
            ("${12}", "12"),
        ] {
            let unknown = TemplateError::Unknown(name.to_owned());
            assert_eq!(Template::parse(text), Err(unknown), "{text}");
        }
    }

    #[test]
    fn the_table_is_sorted_and_every_name_is_one() {
        assert!(VARIABLES.is_sorted_by_key(|(name, _)| name));
        for (name, variable) in VARIABLES {
            let read = Template::parse(&format!("${name}")).unwrap();
            assert_eq!(read.pieces(), [Piece::Variable(variable)]);
        }
    }
}
