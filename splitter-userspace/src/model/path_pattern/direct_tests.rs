#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;
use regex::bytes::{Regex, RegexBuilder};

use super::*;

/// What people write behind the beginning of a path.
const SHAPES: [&str; 26] = [
    "",
    "$",
    "/",
    "/?$",
    "/?",
    "(.*)",
    "(.+)",
    "/(.*)",
    "/(.*)$",
    "/?(.*)",
    "(/?)(.*)",
    "(/.*)?",
    "(/|$)",
    "(/|$)(.*)",
    "(/|$)(.*)$",
    "($|/)(.*)",
    "(?:/|$)(.*)",
    "(/(.*))?",
    "(/(.*)|$)",
    "(/(.*)|)",
    "(a|b)(/|$)(.*)",
    "(a|ab)(bb|b)?/(.*)",
    "(?P<n>/)?(.+)",
    ".b/(.*)",
    r"\.b(/|$)(.*)",
    r"\-a()?(.*)",
];

/// What matters in a path: what the patterns ask for, in any case, and what ends lines or is not ASCII.
const PATHS: &str = "/[aAbB]{0,3}[aAbB/.\n%é-]{0,7}";

fn engine(text: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(&format!("^{text}"))
        .unicode(false)
        .case_insensitive(true)
        .build()
}

/// Every group of the engine, and of the steps.
type Found = Option<Vec<Option<Range<usize>>>>;

fn both(text: &str, path: &[u8]) -> Option<(Found, Found)> {
    let direct = Direct::new(text)?;
    let engine = engine(text).unwrap();
    let numbers = 1..engine.captures_len();
    let groups = engine.captures(path);
    let slow = groups.map(|groups| {
        let range = |number| Some(groups.get(number)?.range());
        numbers.clone().map(range).collect()
    });
    let spans = direct.find(path);
    let fast = spans.map(|spans| numbers.map(|number| spans.get(number)).collect());
    Some((slow, fast))
}

#[test]
fn the_usual_shapes_need_no_engine() {
    for shape in SHAPES {
        let text = format!("/app-v1{shape}");
        assert!(Direct::new(&text).is_some(), "{text}");
        assert!(Direct::new(&format!("(/app/){shape}")).is_some(), "{shape}");
    }
}

#[test]
fn all_else_is_left_to_the_engine() {
    for text in [
        "/a|/b",
        "/a*",
        "/[ab]",
        "/(.*)/b",
        "/(.*)(/|$)",
        "/(.*)?b",
        "/(.*?)",
        "/a??",
        "/a{2}",
        "/(?i)a",
        "/(?-i:a)",
        r"/\d",
        r"/a\b",
        r"/\x41",
        r"/\n",
        "/é",
        "(/)(a)(b)(c)(d)",
        "/a?a?a?a?a?",
        "(a|b|c|d|e|f)",
        "/(",
        "",
    ] {
        assert!(Direct::new(text).is_none(), "{text}");
    }
}

#[test]
fn groups_are_where_they_should_be() {
    for (text, path, expected) in [
        ("/a(/|$)(.*)", "/A/x/y", Some([Some("/"), Some("x/y")])),
        ("/a(/|$)(.*)", "/a", Some([Some(""), Some("")])),
        ("/a(/|$)(.*)", "/ab", None),
        ("/a(/|$)(.*)", "/a/x\ny", Some([Some("/"), Some("x")])),
        ("/a(/(.*))?", "/a", Some([None, None])),
        ("/a(/(.*))?", "/ab", Some([None, None])),
        ("/a(/(.*))?", "/a/b", Some([Some("/b"), Some("b")])),
        ("/(a|ab)(c)?$", "/abc", Some([Some("ab"), Some("c")])),
        ("/(a)?(ab)", "/ab", Some([None, Some("ab")])),
    ] {
        let spans = Direct::new(text).unwrap().find(path.as_bytes());
        let group = |spans: &Spans, number| spans.get(number).and_then(|it| path.get(it));
        let found = spans.map(|spans| [1, 2].map(|number| group(&spans, number)));
        assert_eq!(found, expected, "{text} {path}");
        assert_eq!(spans.and_then(|it| it.get(0)), None);
    }
}

/// Any pattern of the parts that steps can do, and of some that they cannot.
fn texts() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "a", "b", "B", "/", ".", r"\.", "$", "", ".*", ".+", "a?", "/?", ".*$", "-", "b*", "%",
    ]);
    leaf.prop_map(str::to_owned)
        .prop_recursive(3, 12, 4, |part| {
            let parts = || prop::collection::vec(part.clone(), 1..4);
            prop_oneof![
                parts().prop_map(|parts| parts.concat()),
                parts().prop_map(|parts| format!("({})", parts.concat())),
                parts().prop_map(|parts| format!("({})", parts.join("|"))),
                parts().prop_map(|parts| format!("(?:{})?", parts.join("|"))),
                parts().prop_map(|parts| format!("({})?", parts.concat())),
            ]
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    /// Steps and engine find the same in the usual shapes.
    #[test]
    fn usual_shapes_find_what_the_engine_finds(
        literal in "/[abAB.-]{0,3}",
        shape in prop::sample::select(SHAPES.to_vec()),
        in_group in any::<bool>(),
        path in PATHS,
    ) {
        let text = match in_group {
            true => format!("({literal}/){shape}"),
            false => format!("{literal}{shape}"),
        };
        let (slow, fast) = both(&text, path.as_bytes()).unwrap();
        prop_assert_eq!(slow, fast);
    }

    /// And in any pattern for which there are steps, whatever the bytes.
    #[test]
    fn steps_find_what_the_engine_finds(
        text in texts(),
        path in PATHS,
        more in prop::collection::vec(prop::sample::select(b"aAbB/.-%\n\r\x00\x80\xff".to_vec()), 0..6),
    ) {
        let path = [path.as_bytes(), &more].concat();
        for text in [format!("/{text}"), text] {
            if let Some((slow, fast)) = both(&text, &path) {
                prop_assert_eq!(slow, fast, "{}", text);
            }
        }
    }
}
