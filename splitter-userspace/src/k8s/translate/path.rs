//! Paths of rules.

use std::sync::Arc;

use crate::model::PathKind;

/// What a rule's path and path type come to.
#[derive(Debug, PartialEq)]
pub(super) struct ParsedPath {
    pub path: Arc<str>,
    pub kind: PathKind,
    /// The rule has no path type, which the API server would not take.
    pub assumed: bool,
}

/// Why a rule's path is not usable.
#[derive(Debug, PartialEq)]
pub(super) enum PathError {
    /// The path type is none of the three.
    Kind,
    /// The path is not one.
    Path(&'static str),
}

/// Reads a rule's path by the rules of its type. `ImplementationSpecific` is `Prefix`, may be empty
/// and is held to the first rule only.
pub(super) fn parse(path: Option<&str>, path_type: &str) -> Result<ParsedPath, PathError> {
    let path = path.unwrap_or("");
    let (kind, strict) = match path_type {
        "Exact" => (PathKind::Exact, true),
        "Prefix" => (PathKind::Prefix, true),
        "ImplementationSpecific" | "" => (PathKind::Prefix, false),
        _ => return Err(PathError::Kind),
    };
    if path.is_empty() && !strict {
        return Ok(parsed("/", kind, path_type));
    }
    if !path.starts_with('/') {
        return Err(PathError::Path("a path must begin with /"));
    }
    if strict {
        normal(path).map_err(PathError::Path)?;
    }
    Ok(parsed(path, kind, path_type))
}

fn parsed(path: &str, kind: PathKind, path_type: &str) -> ParsedPath {
    ParsedPath {
        path: path.into(),
        kind,
        assumed: path_type.is_empty(),
    }
}

/// Refuses what no normalized request path can be equal to.
fn normal(path: &str) -> Result<(), &'static str> {
    if path.contains("//") {
        return Err("a path must not contain //");
    }
    if path.split('/').any(|part| part == "." || part == "..") {
        return Err("a path must not contain the elements . and ..");
    }
    if path.contains("%2f") || path.contains("%2F") {
        return Err("a path must not contain an encoded /");
    }
    Ok(())
}
