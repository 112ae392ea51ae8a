//! `load-balance` and `upstream-hash-by…`: how an Endpoint is chosen. Read from a main Ingress, and
//! from a canary for its own side.

use std::num::NonZeroU16;

use http::HeaderName;

use crate::k8s::translate::View;
use crate::k8s::translate::annotations::Annotation;
use crate::k8s::translate::canary::given;
use crate::k8s::translate::golang::{atoi, parse_bool};
use crate::k8s::translate::report::Problems;
use crate::model::{Balance, HashBy, HashPart};

/// Endpoints of a subset when no annotation says how many, as in ingress-nginx.
const SUBSET: u16 = 3;

/// The most Endpoints of a subset.
const SUBSET_MAX: u16 = 64;

/// The most pieces of a key.
const PIECES_MAX: usize = 32;

/// What the Ingress says; none when it says nothing.
pub(in crate::k8s::translate) fn read(view: &View<'_>, problems: &mut Problems) -> Option<Balance> {
    let subset = subset(view, problems);
    let hash = given(view, "upstream-hash-by", problems);
    let algorithm = given(view, "load-balance", problems);
    if let Some(annotation) = hash {
        match pieces(annotation.value.trim()) {
            Ok(pieces) => {
                let pieces = pieces.into();
                return Some(Balance::Hash(HashBy { pieces, subset }));
            }
            Err(why) => {
                let effect = "requests go to the pods in turn";
                invalid(view, annotation, &why, effect, problems);
                return Some(Balance::RoundRobin);
            }
        }
    }
    let annotation = algorithm?;
    match annotation.value.trim() {
        "round_robin" => Some(Balance::RoundRobin),
        "ewma" => Some(Balance::Ewma),
        _ => {
            let message = format!("{:?} is neither round_robin nor ewma", annotation.value);
            let effect = "requests go to the pods in turn";
            invalid(view, annotation, &message, effect, problems);
            Some(Balance::RoundRobin)
        }
    }
}

fn subset(view: &View<'_>, problems: &mut Problems) -> Option<NonZeroU16> {
    let size = size(view, problems);
    let annotation = given(view, "upstream-hash-by-subset", problems)?;
    match parse_bool(annotation.value.trim()) {
        Some(true) => NonZeroU16::new(size),
        Some(false) => None,
        None => {
            let message = format!("{:?} is neither true nor false", annotation.value);
            let effect = "each key has one pod";
            invalid(view, annotation, &message, effect, problems);
            None
        }
    }
}

fn size(view: &View<'_>, problems: &mut Problems) -> u16 {
    let Some(annotation) = given(view, "upstream-hash-by-subset-size", problems) else {
        return SUBSET;
    };
    let size = atoi(annotation.value.trim()).and_then(|size| u16::try_from(size).ok());
    if let Some(size) = size.filter(|size| (1..=SUBSET_MAX).contains(size)) {
        return size;
    }
    let message = format!("{:?} is no number from 1 to {SUBSET_MAX}", annotation.value);
    let effect = format!("a subset has {SUBSET} pods");
    invalid(view, annotation, &message, &effect, problems);
    SUBSET
}

/// Reads text with variables, `$name` or `${name}`, as nginx does.
pub(super) fn pieces(text: &str) -> Result<Vec<HashPart>, String> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        if !before.is_empty() {
            pieces.push(HashPart::Text(before.into()));
        }
        let (name, left) = name(after).ok_or("a $ must be followed by a name or by {name}")?;
        pieces.push(
            variable(name)
                .ok_or_else(|| format!("the variable ${name} is not supported in a hash key"))?,
        );
        rest = left;
    }
    if !rest.is_empty() {
        pieces.push(HashPart::Text(rest.into()));
    }
    if pieces
        .iter()
        .all(|piece| matches!(piece, HashPart::Text(_)))
    {
        return Err("there is no variable in it, so all requests would be alike".to_owned());
    }
    match pieces.len() > PIECES_MAX {
        true => Err(format!("it has more than {PIECES_MAX} parts")),
        false => Ok(pieces),
    }
}

/// The name behind a `$`, and what follows it.
fn name(text: &str) -> Option<(&str, &str)> {
    if let Some(braced) = text.strip_prefix('{') {
        let (name, rest) = braced.split_once('}')?;
        return (!name.is_empty()).then_some((name, rest));
    }
    let is_end = |c: char| !c.is_ascii_alphanumeric() && c != '_';
    let end = text.find(is_end).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

fn variable(name: &str) -> Option<HashPart> {
    Some(match name {
        "request_uri" => HashPart::RequestUri,
        "uri" | "document_uri" => HashPart::Uri,
        "args" | "query_string" => HashPart::Query,
        "host" => HashPart::Host,
        "remote_addr" | "binary_remote_addr" | "the_real_ip" => HashPart::Address,
        "request_method" => HashPart::Method,
        _ => match name.split_once('_')? {
            ("http", name) => {
                let name = name.replace('_', "-");
                HashPart::Header(HeaderName::from_bytes(name.as_bytes()).ok()?)
            }
            ("cookie", name) if !name.is_empty() => HashPart::Cookie(name.into()),
            ("arg", name) if !name.is_empty() => HashPart::Argument(name.into()),
            _ => return None,
        },
    })
}

fn invalid(
    view: &View<'_>,
    annotation: Annotation<'_>,
    message: &str,
    effect: &str,
    problems: &mut Problems,
) {
    let field = annotation.field();
    problems.error(&view.subject, field, "balance-invalid", message, effect);
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn shown(text: &str) -> Result<String, String> {
        let pieces = pieces(text)?;
        let texts = pieces
            .iter()
            .map(|piece| serde_json::to_value(piece).unwrap());
        let texts: Vec<String> = texts.map(|it| it.as_str().unwrap().to_owned()).collect();
        Ok(texts.join("|"))
    }

    #[test]
    fn keys_of_nginx_are_read() {
        for (text, expected) in [
            ("$request_uri", "$request_uri"),
            ("$binary_remote_addr", "$remote_addr"),
            ("${host}$uri", "$host|$uri"),
            ("$http_X_User_Id", "$http_x_user_id"),
            ("$cookie_sid-$arg_id", "$cookie_sid|-|$arg_id"),
            ("a${request_method}b$args", "a|$request_method|b|$args"),
            ("$host/$query_string", "$host|/|$args"),
        ] {
            assert_eq!(shown(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_a_key_is_refused() {
        for text in [
            "", "text", "$", "$$", "${", "${}", "${host", "$nope", "$http_", "$cookie_",
        ] {
            assert!(shown(text).is_err(), "{text}");
        }
        assert!(shown(&"$host".repeat(32)).is_ok());
        assert!(shown(&"$host".repeat(33)).is_err());
    }
}
