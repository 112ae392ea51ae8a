use super::*;

fn canary_with(rules: &[(&str, &str)]) -> (Cast, Splitter) {
    serve(|it| {
        it.main("main", "a.test", "/", "m")
            .canary("canary", "a.test", "/", "c", rules)
    })
}

/// The state in use says for each Location which canaries take part, and the Problems say of
/// the others why not.
#[test]
fn row_45_what_is_attached_can_be_seen() {
    let (_cast, splitter) = serve(|it| {
        it.main("main", "a.test", "/", "m")
            .canary("seen", "a.test", "/", "c", &[("canary-weight", "30")])
            .canary("stray", "a.test", "/elsewhere", "d", ALL)
    });
    let dump = splitter.dump("/config_dump");
    let weights = dump["weights"].to_string();
    assert!(weights.contains("a.test/"), "{weights}");
    assert!(
        weights.contains("\"name\":\"c\"") && weights.contains("30"),
        "{weights}"
    );
    assert!(!weights.contains("\"name\":\"d\""), "{weights}");
    assert_eq!(splitter.problems(), ["stray: canary-stray"]);
}

#[test]
fn row_48_several_values_are_several_canaries_or_a_pattern() {
    let (_cast, splitter) = serve(|it| {
        let rule = |value| {
            [
                ("canary-by-header", "X-Country"),
                ("canary-by-header-value", value),
            ]
        };
        it.main("main", "a.test", "/", "m")
            .canary("canary-c", "a.test", "/", "c", &rule("de"))
            .canary("canary-d", "a.test", "/", "d", &rule("fr"))
    });
    always(&splitter, "a.test", "/", "X-Country: de\r\n", "C");
    always(&splitter, "a.test", "/", "X-Country: fr\r\n", "D");
    always(&splitter, "a.test", "/", "X-Country: it\r\n", "M");
    let (_cast, splitter) = canary_with(&[
        ("canary-by-header", "X-Country"),
        ("canary-by-header-pattern", "^(de|fr)$"),
    ]);
    for (country, by) in [("de", "C"), ("fr", "C"), ("it", "M"), ("dex", "M")] {
        let field = format!("X-Country: {country}\r\n");
        always(&splitter, "a.test", "/", &field, by);
    }
}

#[test]
fn row_51_cookie_name_may_have_hyphens() {
    let (_cast, splitter) = canary_with(&[("canary-by-cookie", "Canary-By-Cookie")]);
    always(
        &splitter,
        "a.test",
        "/",
        "Cookie: Canary-By-Cookie=always\r\n",
        "C",
    );
    always(
        &splitter,
        "a.test",
        "/",
        "Cookie: x=y; Canary-By-Cookie=always; z=1\r\n",
        "C",
    );
    always(
        &splitter,
        "a.test",
        "/",
        "Cookie: Canary-By-Cookie=never\r\n",
        "M",
    );
    always(&splitter, "a.test", "/", "Cookie: Other=always\r\n", "M");
}

/// What a header rule means with and without a value.
#[test]
fn row_53_always_and_never_count_without_a_value_only() {
    let plain = [("canary-by-header", "X"), ("canary-weight", "100")];
    let (_cast, splitter) = canary_with(&plain);
    always(&splitter, "a.test", "/", "X: always\r\n", "C");
    always(&splitter, "a.test", "/", "X: never\r\n", "M");
    always(&splitter, "a.test", "/", "X: other\r\n", "C");
    let with_value = [
        ("canary-by-header", "X"),
        ("canary-by-header-value", "yes"),
        ("canary-weight", "0"),
    ];
    let (_cast, splitter) = canary_with(&with_value);
    always(&splitter, "a.test", "/", "X: yes\r\n", "C");
    for other in ["always", "never", "Yes", "yes, yes"] {
        always(&splitter, "a.test", "/", &format!("X: {other}\r\n"), "M");
    }
}

#[test]
fn row_54_unknown_canary_annotation_is_told() {
    let (_cast, splitter) = canary_with(&[("canary-header", "X")]);
    always(&splitter, "a.test", "/", "X: always\r\n", "M");
    assert!(
        splitter
            .problems()
            .contains(&"canary: annotation-unknown".to_owned()),
        "{:?}",
        splitter.problems()
    );
}
