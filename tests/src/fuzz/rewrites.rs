//! Patterns of paths and what they are rewritten to: no path of a client leads out of the target.

use splitter::model::{PathPattern, Rewrite, Template};
use splitter::routing::{Scheme, Wanted, canonical, is_plain, rewrite};

use super::texts;

/// A pattern, a target, a path, a query.
pub fn target(data: &[u8]) {
    let [pattern, target, path, query] = texts(data);
    let Ok(pattern) = PathPattern::new(&[&*pattern]) else {
        return;
    };
    let (to, own) = match target.split_once('?') {
        Some((to, own)) => (to, Some(own)),
        None => (&*target, None),
    };
    let (Ok(to), Ok(own)) = (Template::parse(to), own.map(Template::parse).transpose()) else {
        return;
    };
    let to = Rewrite {
        path: to,
        query: own,
        drop_query: query.is_empty(),
        prefix: None,
    };
    let asked = canonical(&path);
    let matches = pattern.forms().iter().any(|form| form.is_match(&asked));
    if pattern.captures(&asked).is_some() {
        assert!(matches, "groups of what does not match");
    }
    let wanted = Wanted {
        method: "GET",
        scheme: Scheme::Https,
        http_host: "a.test",
        outer_host: None,
        path: &path,
        query: (!query.is_empty()).then_some(&*query),
        pattern: Some(&pattern),
    };
    let Ok(sent) = rewrite(&to, &wanted) else {
        return;
    };
    let sent_path = sent.path();
    assert!(
        sent_path.starts_with('/') && !sent_path.starts_with("//"),
        "{sent}"
    );
    let readings = [sent_path.to_owned(), canonical(sent_path).into_owned()];
    for reading in readings {
        let decoded = reading
            .replace("%2F", "/")
            .replace("%2f", "/")
            .replace("%5C", "/");
        let mut elements = decoded.split('/');
        assert!(
            elements.all(|it| it.split(';').next() != Some("..")),
            "{sent}"
        );
    }
    assert!(
        sent.as_str()
            .bytes()
            .all(|byte| byte.is_ascii_graphic() || byte >= 0x80),
        "{sent}"
    );
    // Whatever comes out is a path that could have come in.
    let _ = is_plain(sent_path);
}
