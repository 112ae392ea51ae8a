//! Cookies of clients, and those of pods that are changed on their way.

use http::header::COOKIE;
use http::{HeaderMap, HeaderValue};
use splitter::model::{
    Affinity, AffinityMode, AnswerEdits, CookieTest, Pattern, Replace, SessionCookie, Side, Sought,
    Template, Test,
};
use splitter::routing::{Scheme, Shown, Wanted, answer, ask, held, value};

use super::parts;

/// A Cookie in two lines, and a Set-Cookie.
pub fn target(data: &[u8]) {
    let [first, second, set] = parts(data);
    let mut headers = HeaderMap::new();
    for line in [first, second] {
        if let Ok(line) = HeaderValue::from_bytes(line) {
            headers.append(COOKIE, line);
        }
    }
    let affinity = affinity();
    if let Some(found) = held(&affinity, &headers) {
        // What is read names a Variant that there is, and is written as it was read.
        assert!(found.variant < affinity.sides.len());
        let written = value(&affinity, found).expect("a cookie for what a cookie named");
        let lines = [first, second].map(String::from_utf8_lossy);
        assert!(
            lines.iter().any(|line| line.contains(&written)),
            "{written}"
        );
    }
    for name in ["a", "session", "", "="] {
        for test in [
            CookieTest::AlwaysNever,
            CookieTest::Value("b".into()),
            CookieTest::Pattern(Pattern::new("^b+$").expect("a pattern")),
        ] {
            ask(
                &Test::Cookie {
                    name: name.into(),
                    test,
                },
                &Shown::of(&headers),
            );
        }
    }
    changed(set);
}

/// A cookie of a pod keeps its name, value and number of attributes, whatever its client asks for.
fn changed(set: &[u8]) {
    let text = |text: &str| Template::parse(text).expect("a template");
    let replace = |from: &str, to: &str| {
        Some(Replace {
            from: Sought::Text(text(from)),
            to: text(to),
        })
    };
    let pattern = Pattern::new("^/app(.*)$").expect("a pattern");
    let plain = AnswerEdits {
        redirect: replace("http://inner/", "https://outer/"),
        cookie_domain: replace("inner", "outer"),
        cookie_path: replace("/app/", "/"),
    };
    let filled = AnswerEdits {
        redirect: replace("http://$host/", "https://outer/$request_uri"),
        cookie_domain: replace("inner", "$host"),
        cookie_path: Some(Replace {
            from: Sought::Pattern(pattern),
            to: text("/x$1$request_uri"),
        }),
    };
    let asked = String::from_utf8_lossy(set);
    let wanted = Wanted {
        scheme: Scheme::Https,
        method: "GET",
        http_host: "inner",
        outer_host: None,
        path: &asked,
        query: Some(&asked),
        pattern: None,
    };
    for edits in [plain, filled] {
        if let Some(other) = answer::cookie(&edits, &wanted, set) {
            let attributes = |text: &[u8]| text.split(|byte| *byte == b';').count();
            assert_eq!(attributes(&other), attributes(set));
            let own = |text: &[u8]| text.split(|byte| *byte == b';').next().map(<[u8]>::to_vec);
            assert_eq!(own(&other), own(set));
        }
        for change in [answer::location, answer::refresh] {
            if let Some(other) = change(&edits, &wanted, set) {
                assert!(String::from_utf8_lossy(&other).contains("https://outer/"));
            }
        }
    }
}

/// Two sticky Variants, and a cookie `session`.
fn affinity() -> Affinity {
    Affinity {
        mode: AffinityMode::Persistent,
        cookie: std::sync::Arc::new(SessionCookie {
            name: "session".into(),
            path: None,
            domain: None,
            expires: None,
            max_age: None,
            same_site: None,
            conditional_none: false,
            secure: false,
            change_on_failure: false,
        }),
        path: "/".into(),
        sides: [0, 0x0123_4567_89ab_cdef]
            .map(|tag| Side { tag, sticky: true })
            .into(),
    }
}
