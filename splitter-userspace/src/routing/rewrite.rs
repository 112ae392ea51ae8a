//! What the pods are asked for in place of the client's path.

use http::uri::PathAndQuery;

use super::path::canonical;
use super::wanted::Wanted;
use crate::model::Rewrite;

/// The new path cannot be sent: it leads out of where it should be, or is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsendable;

/// The path and query that a rewrite makes of a request, as nginx does: the pattern's groups are
/// put into the target, the client's query follows a query of the target's own.
///
/// The path comes out in its canonical spelling, so that it has no byte that could be read as
/// anything but a path; several slashes at its start are one.
///
/// # Errors
/// When it has an element `..` in any reading, or is longer than a request's target can be (64 KiB).
pub fn rewrite(rewrite: &Rewrite, wanted: &Wanted<'_>) -> Result<PathAndQuery, Unsendable> {
    let filled = wanted.fill(&rewrite.path);
    let path = canonical(&filled);
    let path = path.trim_start_matches('/');
    if climbs(path) {
        return Err(Unsendable);
    }
    let own = rewrite.query.as_ref().map(|it| wanted.fill_query(it));
    let clients = wanted.query.filter(|_| !rewrite.drop_query);
    let queries = || own.as_deref().into_iter().chain(clients);
    // To the byte, so that it becomes the request's own without another allocation.
    let length: usize = queries().map(|query| 1 + query.len()).sum();
    let mut target = String::with_capacity(1 + path.len() + length);
    target.push('/');
    target.push_str(path);
    let mut separator = '?';
    for query in queries() {
        target.push(separator);
        target.push_str(query);
        separator = '&';
    }
    PathAndQuery::try_from(target).map_err(|_| Unsendable)
}

/// Whether any common reading of a canonical path has an element `..`.
fn climbs(path: &str) -> bool {
    if !path.contains("..") {
        return false;
    }
    let path = path.replace("%2F", "/").replace("%5C", "/");
    let mut elements = path.split('/');
    elements.any(|element| element.split(';').next() == Some(".."))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use crate::model::{PathPattern, Template};
    use crate::routing::Scheme;

    fn target(text: &str) -> Rewrite {
        let template = |text| Template::parse(text).unwrap();
        let (path, query) = match text.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (text, None),
        };
        Rewrite {
            path: template(path),
            query: query.filter(|it| !it.is_empty()).map(template),
            drop_query: query == Some(""),
            prefix: None,
        }
    }

    fn run(pattern: &str, to: &str, path: &str, query: Option<&str>) -> Option<String> {
        let pattern = PathPattern::new(&[pattern]).unwrap();
        let wanted = Wanted {
            scheme: Scheme::Https,
            method: "GET",
            http_host: "a.test",
            outer_host: None,
            path,
            query,
            pattern: Some(&pattern),
        };
        let sent = rewrite(&target(to), &wanted);
        sent.ok().map(|sent| sent.to_string())
    }

    #[test]
    fn groups_go_into_the_target() {
        for (pattern, to, path, expected) in [
            ("/foo", "/", "/foo/bar", "/"),
            ("/foo(/|$)(.*)", "/$2", "/foo", "/"),
            ("/foo(/|$)(.*)", "/$2", "/Foo/bar/x", "/bar/x"),
            ("/foo/?(.*)", "/app/$1", "/foo/x/", "/app/x/"),
            ("/(a)(b)?", "/$2$1/$3", "/a", "/a/"),
            ("/x(.*)", "$1", "/x", "/"),
            ("/x(.*)", "/$host/$1", "/x/y", "/a.test//y"),
            ("/x(.*)", "/$1", "/x//evil.test/y", "/evil.test/y"),
            ("/x/(.*)", "/$1", "/x/a%20b%2fc%41", "/a%20b%2FcA"),
        ] {
            let sent = run(pattern, to, path, None);
            assert_eq!(sent.as_deref(), Some(expected), "{pattern} {to} {path}");
        }
    }

    #[test]
    fn queries_are_put_together() {
        for (to, query, expected) in [
            ("/$1", Some("q=1"), "/y?q=1"),
            ("/$1?", Some("q=1"), "/y"),
            ("/z?p=$1", Some("q=1"), "/z?p=y&q=1"),
            ("/z?p=$1", None, "/z?p=y"),
            ("/$1", Some(""), "/y?"),
        ] {
            let sent = run("/x/(.*)", to, "/x/y", query);
            assert_eq!(sent.as_deref(), Some(expected), "{to} {query:?}");
        }
        let sent = run("/x/(.*)", "/?p=$1", "/x/a&b+c=d", None);
        assert_eq!(sent.as_deref(), Some("/?p=a%26b%2Bc=d"));
    }

    #[test]
    fn nothing_leads_out_of_the_target() {
        for path in [
            "/x../etc",
            "/x%2e./etc",
            "/x/..%2Fetc",
            "/x/a/%5C../etc",
            "/x..;/etc",
        ] {
            assert_eq!(run("/x(.*)", "/app/$1", path, None), None, "{path}");
        }
        let sent = run("/x(.*)", "/app$1", "/x/a..b/...", None);
        assert_eq!(sent.as_deref(), Some("/app/a..b/..."));
    }

    #[test]
    fn a_target_that_is_too_long_is_none() {
        let path = format!("/x/{}", "y".repeat(40_000));
        assert_eq!(run("/x/(.*)", "/$1/$1", &path, None), None);
        assert!(run("/x/(.*)", "/$1", &path, None).is_some());
    }

    proptest::proptest! {
        /// Whatever is asked, what is sent is a plain target below the root.
        #[test]
        fn what_is_sent_is_a_target(path in "/[ -~é]{0,20}", query in "[ -~]{0,9}") {
            if let Some(sent) = run("/(.?)(.*)", "/app/$2$1?a=$1", &path, Some(&query)) {
                let path = sent.split('?').next().unwrap();
                proptest::prop_assert!(path.starts_with("/app/"));
                proptest::prop_assert!(sent.bytes().all(|byte| byte > b' ' && byte < 127));
                proptest::prop_assert!(path.split('/').all(|element| element != ".."));
            }
        }
    }
}
