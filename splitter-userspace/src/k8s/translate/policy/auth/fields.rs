//! Headers that a guard may set for pods, and ways to claims.

use std::sync::Arc;

use http::HeaderName;
use http::header;

use crate::model::ClaimPath;

/// What says how a message is framed or routed, or what only we may say otherwise.
const RESERVED: [HeaderName; 14] = [
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    header::COOKIE,
    header::EXPECT,
    header::FORWARDED,
    header::HOST,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("proxy"),
];

/// The beginnings of names of fields that are ours.
const OURS: [&str; 4] = ["x-forwarded-", "x-real-ip", "x-request-id", "ssl-client-"];

/// A header that a guard may set.
///
/// # Errors
/// Why it may not.
pub(super) fn settable(text: &str) -> Result<HeaderName, String> {
    let name = HeaderName::from_bytes(text.as_bytes());
    let name = name.map_err(|_| format!("{text:?} is no name of a header"))?;
    if name.as_str().contains('_') {
        return Err(format!("{name}: pods cannot tell _ from -"));
    }
    let ours = OURS.iter().any(|start| name.as_str().starts_with(start));
    match ours || RESERVED.contains(&name) {
        true => Err(format!("{name} cannot be set by it")),
        false => Ok(name),
    }
}

/// The way to a claim: names with dots between; `\.` is a dot in a name.
pub(super) fn claim(text: &str) -> Result<ClaimPath, String> {
    let mut names = vec![String::new()];
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        let last = names.last_mut().ok_or("no name")?;
        match c {
            '.' => names.push(String::new()),
            '\\' => match chars.next() {
                Some(escaped @ ('.' | '\\')) => last.push(escaped),
                _ => return Err(format!("{text:?}: only . and \\ can follow a \\")),
            },
            c => last.push(c),
        }
    }
    if names.iter().any(String::is_empty) {
        return Err(format!("{text:?} is no claim: a name is missing"));
    }
    let names: Arc<[Arc<str>]> = names.into_iter().map(Into::into).collect();
    Ok(ClaimPath {
        text: text.into(),
        names,
    })
}

/// The parts of a list, without blanks and without empty ones.
pub(super) fn parts(text: &str, by: impl Fn(char) -> bool) -> impl Iterator<Item = &str> {
    text.split(by).map(str::trim).filter(|it| !it.is_empty())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn claims_are_names_with_dots_between() {
        let names = |text: &str| claim(text).map(|it| it.names.join("|"));
        assert_eq!(names("sub").unwrap(), "sub");
        assert_eq!(names("realm_access.roles").unwrap(), "realm_access|roles");
        assert_eq!(
            names(r"https://a\.test/role").unwrap(),
            "https://a.test/role"
        );
        assert_eq!(names(r"a\\.b").unwrap(), r"a\|b");
        for bad in ["", ".", "a.", ".a", "a..b", r"a\", r"a\b"] {
            assert!(claim(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_routes_or_is_ours_cannot_be_set() {
        for good in [
            "X-User",
            "remote-groups",
            "Authorization",
            "x-auth-request-email",
        ] {
            assert!(settable(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "a b",
            "X_User",
            "Host",
            "content-length",
            "Transfer-Encoding",
            "X-Forwarded-For",
            "x-real-ip",
            "ssl-client-verify",
            "Connection",
            "cookie",
        ] {
            assert!(settable(bad).is_err(), "{bad}");
        }
    }
}
