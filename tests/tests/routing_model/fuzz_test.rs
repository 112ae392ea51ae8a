//! Nothing that a peer can send makes the request path panic or find what is not there.

use http::{HeaderMap, HeaderValue, header};
use proptest::prelude::*;
use splitter::model::{
    Affinity, AffinityMode, CookieTest, HeaderTest, Pattern, SessionCookie, Side, Test,
};
use splitter::routing::{
    Answer, Found, Held, Router, Shown, ask, canonical, held, is_plain, normalize, value,
};

use splitter::model::{Host, HostPattern, LocationId, Snapshot};

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        prop::collection::vec(any::<u8>(), 0..64)
            .prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
        "[a-z./%;:@\\\\\\[\\]0-9A-F]{0,64}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5_000))]

    #[test]
    fn hosts(text in any_text()) {
        if let Some(host) = normalize(&text) {
            let again = normalize(&host);
            prop_assert_eq!(again.as_deref(), Some(&*host));
            prop_assert!(!host.ends_with('.') && !host.contains('@'));
            let lower = host.bytes().all(|byte| !byte.is_ascii_uppercase());
            prop_assert!(lower);
        }
    }

    #[test]
    fn paths(text in any_text()) {
        let once = canonical(&text);
        prop_assert_eq!(canonical(&once), &*once);
        prop_assert!(once.is_ascii());
        if is_plain(&text) {
            prop_assert_eq!(once, &*text);
        }
    }

    #[test]
    fn requests(host in any_text(), path in any_text()) {
        let empty = Host { pattern: HostPattern::Any, aliases: Vec::new(), locations: vec![LocationId(7)] };
        let snapshot = Snapshot { hosts: vec![empty].into(), ..Snapshot::default() };
        let found = Router::build(&snapshot).find(&host, &path);
        prop_assert!(matches!(found, Found::NoPath(0) | Found::Ambiguous), "{:?}", found);
    }

    #[test]
    fn headers(lines in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..48), 0..4)) {
        let mut headers = HeaderMap::new();
        for line in lines {
            if let Ok(value) = HeaderValue::from_bytes(&line) {
                headers.append(header::COOKIE, value);
            }
        }
        for test in [
            HeaderTest::AlwaysNever,
            HeaderTest::Value("a".into()),
            HeaderTest::Pattern(Pattern::new("[^a]+b|\\xff").unwrap()),
            HeaderTest::Invalid,
        ] {
            ask(&Test::Header { name: header::COOKIE, test }, &Shown::of(&headers));
        }
        for name in ["a", "", "=", ";"] {
            ask(&Test::Cookie { name: name.into(), test: CookieTest::AlwaysNever }, &Shown::of(&headers));
        }
    }

    #[test]
    fn queries(query in prop_oneof![any_text(), "[ab=&%+0-9A-Fa-f]{0,40}"]) {
        let headers = HeaderMap::new();
        let shown = Shown { query: &query, ..Shown::of(&headers) };
        for (name, test) in [
            ("a", HeaderTest::AlwaysNever),
            ("", HeaderTest::Value("a".into())),
            ("b", HeaderTest::Pattern(Pattern::new("[^a]+b|\\xff").unwrap())),
        ] {
            ask(&Test::Query { name: name.into(), test }, &shown);
        }
        // A value that is encoded in full is found again.
        let encoded: String = query.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let whole = format!("x=1&b={encoded}&b=2");
        let shown = Shown { query: &whole, ..Shown::of(&headers) };
        let test = HeaderTest::Value(query.as_str().into());
        let answer = ask(&Test::Query { name: "b".into(), test }, &shown);
        prop_assert_eq!(answer, Answer::Canary);
    }

    #[test]
    fn session_cookies(
        tag in any::<u64>(), key in any::<u64>(), junk in "[ -~]{0,40}",
        mangled in prop::collection::vec((0..32usize, any::<u8>()), 0..3),
    ) {
        let affinity = affinity(tag);
        let it = Held { variant: 0, key };
        let text = value(&affinity, it).unwrap();
        prop_assert_eq!(text.len(), 32);
        let mut sent = text.clone().into_bytes();
        for (at, byte) in mangled {
            sent[at] = byte;
        }
        let same = sent == text.as_bytes();
        let line = [format!("r={junk}; r=").as_bytes(), &sent].concat();
        let mut headers = HeaderMap::new();
        if let Ok(sent) = HeaderValue::from_bytes(&line) {
            headers.insert(header::COOKIE, sent);
            let found = held(&affinity, &headers);
            if same && !junk.contains("r=") {
                prop_assert_eq!(found, Some(it));
            }
            // Whatever is read names a Variant that there is, and is read as it would be written.
            if let Some(found) = found {
                let written = value(&affinity, found).unwrap();
                prop_assert!(String::from_utf8_lossy(&line).contains(&written));
            }
        }
    }
}

/// One sticky Variant with this tag, and a cookie `r`.
fn affinity(tag: u64) -> Affinity {
    Affinity {
        mode: AffinityMode::Balanced,
        cookie: std::sync::Arc::new(SessionCookie {
            name: "r".into(),
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
        sides: vec![Side { tag, sticky: true }],
    }
}
