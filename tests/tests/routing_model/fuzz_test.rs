//! Nothing that a peer can send makes the request path panic or find what is not there.

use http::{HeaderMap, HeaderValue, header};
use proptest::prelude::*;
use splitter::model::{CookieTest, HeaderTest, Pattern, Test};
use splitter::routing::{Found, Router, ask, canonical, is_plain, normalize};

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
        let snapshot = Snapshot { hosts: vec![empty], ..Snapshot::default() };
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
            ask(&Test::Header { name: header::COOKIE, test }, &headers);
        }
        for name in ["a", "", "=", ";"] {
            ask(&Test::Cookie { name: name.into(), test: CookieTest::AlwaysNever }, &headers);
        }
    }
}
