//! Section 2 of the contract: the annotations of a canary, one by one.

use super::super::golang::{atoi, parse_bool};
use super::support::{Ing, canary, main, manifest, problems_of, run, show};
use crate::config::ClassSettings;
use crate::k8s::translate;

/// The only Location's line behind `a/ (Prefix): `, and the canary's Problems.
fn split(ingress: Ing) -> (String, Vec<String>) {
    let translation = run(&[main("main").on("a", "/", "m"), ingress.on("a", "/", "c")]);
    let lines = show(&translation.snapshot);
    assert_eq!(lines.len(), 1);
    let line = lines[0].strip_prefix("a/ (Prefix): ").unwrap().to_owned();
    (line, problems_of(&translation, "canary"))
}

fn ok(ingress: Ing) -> String {
    let (line, problems) = split(ingress);
    assert_eq!(problems, [""; 0]);
    line
}

fn plain() -> Ing {
    main("canary")
}

fn on() -> Ing {
    canary("canary")
}

#[test]
fn parse_bool_takes_the_forms_of_go() {
    for text in ["1", "t", "T", "TRUE", "true", "True"] {
        assert_eq!(parse_bool(text), Some(true), "{text}");
    }
    for text in ["0", "f", "F", "FALSE", "false", "False"] {
        assert_eq!(parse_bool(text), Some(false), "{text}");
    }
    for text in ["yes", "on", "True ", " true", "tRUE", "", "y", "2"] {
        assert_eq!(parse_bool(text), None, "{text}");
    }
}

#[test]
fn atoi_takes_the_forms_of_go() {
    let rows = [
        ("5", Some(5)),
        ("+5", Some(5)),
        ("-5", Some(-5)),
        ("007", Some(7)),
        ("-0", Some(0)),
        ("9223372036854775807", Some(i64::MAX)),
        ("9223372036854775808", None),
        ("10%", None),
        ("0.5", None),
        (" 5", None),
        ("5 ", None),
        ("1e2", None),
        ("1_000", None),
        ("0x10", None),
        ("", None),
        ("-", None),
        ("+", None),
        ("٥", None),
    ];
    for (text, expected) in rows {
        assert_eq!(atoi(text), expected, "{text:?}");
    }
}

#[test]
fn canary_true_in_every_form() {
    for text in ["1", "t", "T", "TRUE", "true", "True"] {
        assert_eq!(ok(plain().note("canary", text).weight("10")), "m=90 c=10");
    }
}

#[test]
fn an_invalid_canary_makes_an_ordinary_ingress() {
    for text in ["yes", "on", "True ", ""] {
        let (line, problems) = split(plain().note("canary", text).weight("10"));
        // An ordinary one, so the path is taken: "canary" sorts before "main".
        assert_eq!(line, "c=100");
        assert_eq!(problems, ["metadata.annotations.canary !canary-invalid"]);
    }
}

#[test]
fn a_rule_without_canary_is_reported_and_the_ingress_ordinary() {
    let rows = [
        ("canary-weight", "1", true),
        ("canary-by-header", "x", true),
        ("canary-by-header-value", "x", true),
        ("canary-by-header-pattern", "x", true),
        ("canary-by-cookie", "x", true),
        ("canary-weight", "0", false),
        ("canary-weight", "-1", false),
        ("canary-weight-total", "200", false),
    ];
    for (name, value, reported) in rows {
        for ingress in [plain(), plain().note("canary", "false")] {
            let (line, problems) = split(ingress.note(name, value));
            assert_eq!(line, "c=100");
            let expected = format!("metadata.annotations.{name} !canary-disabled");
            assert_eq!(
                problems,
                if reported { vec![expected] } else { vec![] },
                "{name}"
            );
        }
    }
}

#[test]
fn weights() {
    let weight = |text: &str| split(on().weight(text));
    assert_eq!(weight("0"), ("m=100 c=0".to_owned(), vec![]));
    assert_eq!(weight("1").0, "m=99 c=1");
    assert_eq!(weight("+7").0, "m=93 c=7");
    assert_eq!(weight("100"), ("m=0 c=100".to_owned(), vec![]));
    let reported = |code: &str| vec![format!("metadata.annotations.canary-weight {code}")];
    assert_eq!(
        weight("150"),
        ("m=0 c=100".to_owned(), reported("weight-excess"))
    );
    for text in ["-1", "10%", "0.5", " 5", "1e2", "", "99999999999999999999"] {
        let expected = ("m=100 c=0".to_owned(), reported("!weight-invalid"));
        assert_eq!(weight(text), expected, "{text:?}");
    }
}

#[test]
fn weight_totals() {
    let total = |weight: &str, total: &str| {
        let (line, problems) = split(on().weight(weight).note("canary-weight-total", total));
        let codes: Vec<_> = problems
            .iter()
            .map(|it| it.rsplit(' ').next().unwrap().to_owned())
            .collect();
        (line, codes.join(" "))
    };
    let rows = [
        ("1000", "1000", "m=0 c=1000", ""),
        ("100", "200", "m=100 c=100", ""),
        ("1", "1000", "m=999 c=1", ""),
        ("5", "100", "m=95 c=5", ""),
        ("5", "10", "m=5 c=5", "weight-total-small"),
        ("1", "1", "m=0 c=1", "weight-total-small"),
        ("5", "0", "m=95 c=5", "!weight-total-invalid"),
        ("5", "-10", "m=95 c=5", "!weight-total-invalid"),
        ("5", "ten", "m=95 c=5", "!weight-total-invalid"),
        ("3", "1000000000", "m=999999997 c=3", ""),
        (
            "2000000001",
            "4000000000",
            "m=500000000 c=500000000",
            "weight-total-large",
        ),
        (
            "9223372036854775807",
            "9223372036854775807",
            "m=0 c=1000000000",
            "weight-total-large",
        ),
    ];
    for (weight, text, line, codes) in rows {
        assert_eq!(
            total(weight, text),
            (line.to_owned(), codes.to_owned()),
            "{weight} {text}"
        );
    }
}

#[test]
fn header_always_never() {
    let line = ok(on().note("canary-by-header", "X-Canary"));
    assert_eq!(line, "m=100 c=0 | 1 header x-canary always/never");
}

#[test]
fn header_names_fold_case_and_underscore_and_are_trimmed() {
    for name in ["X_Canary", "x-CANARY", " X-Canary "] {
        let line = ok(on().note("canary-by-header", name));
        assert_eq!(line, "m=100 c=0 | 1 header x-canary always/never");
    }
    // `.` and `~` may stand in a header's name.
    assert_eq!(
        ok(on().note("canary-by-header", "a.b~c")),
        "m=100 c=0 | 1 header a.b~c always/never"
    );
}

#[test]
fn no_name_of_a_header_is_no_header_rule() {
    for name in ["a b", "a/b", "a:b", "a,b", "a@b", "a\nb", "x=y", "ü", "a!"] {
        let ingress = on().weight("5").note("canary-by-header", name);
        let (line, problems) = split(ingress.note("canary-by-header-value", "v"));
        assert_eq!(line, "m=95 c=5", "{name:?}");
        assert_eq!(
            problems,
            ["metadata.annotations.canary-by-header !header-invalid"]
        );
    }
}

#[test]
fn header_values() {
    let by = || on().note("canary-by-header", "h");
    for (value, shown) in [
        ("DoCanary", "DoCanary"),
        (" a b ", "a b"),
        ("a/b:c~d._-", "a/b:c~d._-"),
    ] {
        let line = ok(by().note("canary-by-header-value", value));
        assert_eq!(line, format!("m=100 c=0 | 1 header h = {shown:?}"));
    }
    // ingress-nginx falls back to always/never for these, which lets anybody in.
    for value in [
        "a,b", "\"a\"", "a@b", "a=b", "a+b", "a;b", "a%b", "é", "a\tb", "a\n",
    ] {
        let (line, problems) = split(by().note("canary-by-header-value", value));
        assert_eq!(line, "m=100 c=0 | 1 header h invalid", "{value:?}");
        assert_eq!(
            problems,
            ["metadata.annotations.canary-by-header-value !header-value-invalid"]
        );
    }
    // An empty value says nothing.
    for value in ["", "  "] {
        let (line, problems) = split(by().note("canary-by-header-value", value));
        assert_eq!(line, "m=100 c=0 | 1 header h always/never");
        assert_eq!(
            problems,
            ["metadata.annotations.canary-by-header-value annotation-empty"]
        );
    }
}

#[test]
fn header_patterns() {
    let by = || on().note("canary-by-header", "h");
    let pattern = "^Do[A-Z][a-z]+y$";
    assert_eq!(
        ok(by().note("canary-by-header-pattern", pattern)),
        format!("m=100 c=0 | 1 header h ~ {pattern:?}")
    );
    // Characters that the annotation does not allow, and what the engine cannot take.
    for pattern in [
        "a b", "a{2,5}", "(?!a)", "(?<n>a)", "a@", "a#", "a%", "a\"", "a'", "a;", "[", "(?=a)",
        "(a)\\1", "a++", "a ",
    ] {
        let (line, problems) = split(by().note("canary-by-header-pattern", pattern));
        assert_eq!(line, "m=100 c=0 | 1 header h invalid", "{pattern:?}");
        assert_eq!(
            problems,
            ["metadata.annotations.canary-by-header-pattern !pattern-invalid"]
        );
    }
}

#[test]
fn a_value_beats_a_pattern() {
    let both = |value: &str, pattern: &str| {
        let ingress = on().note("canary-by-header", "h");
        let ingress = ingress.note("canary-by-header-value", value);
        split(ingress.note("canary-by-header-pattern", pattern))
    };
    let unused = "metadata.annotations.canary-by-header-pattern pattern-unused".to_owned();
    let invalid = "metadata.annotations.canary-by-header-value !header-value-invalid".to_owned();
    let value = "m=100 c=0 | 1 header h = \"v\"".to_owned();
    assert_eq!(both("v", "p"), (value.clone(), vec![unused.clone()]));
    assert_eq!(both("v", "[").0, value);
    // The invalid value does not hand over to the pattern: nobody asked for both.
    let (line, problems) = both("v,w", "p");
    assert_eq!(line, "m=100 c=0 | 1 header h invalid");
    assert_eq!(problems, [unused, invalid]);
    // An empty value is none.
    assert_eq!(both("", "p").0, "m=100 c=0 | 1 header h ~ \"p\"");
}

#[test]
fn value_or_pattern_without_a_header_have_no_effect() {
    for name in ["canary-by-header-value", "canary-by-header-pattern"] {
        let (line, problems) = split(on().weight("5").note(name, "v"));
        assert_eq!(line, "m=95 c=5");
        assert_eq!(
            problems,
            [format!("metadata.annotations.{name} header-missing")]
        );
    }
}

#[test]
fn cookies() {
    for (name, shown) in [
        ("Canary-By-Cookie", "Canary-By-Cookie"),
        (" users_from ", "users_from"),
    ] {
        let line = ok(on().note("canary-by-cookie", name));
        assert_eq!(line, format!("m=100 c=0 | 1 cookie {shown}"));
    }
    for name in ["a,b", "a=b", "a;b", "é"] {
        let (line, problems) = split(on().weight("5").note("canary-by-cookie", name));
        assert_eq!(line, "m=95 c=5");
        assert_eq!(
            problems,
            ["metadata.annotations.canary-by-cookie !cookie-invalid"]
        );
    }
    let (line, problems) = split(on().weight("5").note("canary-by-cookie", ""));
    assert_eq!(line, "m=95 c=5");
    assert_eq!(
        problems,
        ["metadata.annotations.canary-by-cookie annotation-empty"]
    );
}

#[test]
fn everything_together() {
    let ingress = on()
        .weight("30")
        .note("canary-by-cookie", "k")
        .note("canary-by-header", "h")
        .note("canary-by-header-value", "v");
    assert_eq!(ok(ingress), "m=70 c=30 | 1 header h = \"v\" | 1 cookie k");
}

#[test]
fn nothing_at_all_is_reported() {
    let (line, problems) = split(on());
    assert_eq!(line, "m=100 c=0");
    assert_eq!(problems, ["metadata.annotations canary-without-rule"]);
}

#[test]
fn unknown_canary_annotations_suggest_the_right_one() {
    let translation = run(&[
        main("main").on("a", "/", "m"),
        on().note("canary-header", "x").on("a", "/", "c"),
    ]);
    let message = &translation
        .problems
        .iter()
        .find(|it| it.code == "annotation-unknown")
        .unwrap()
        .message;
    assert!(
        message.contains("did you mean canary-by-header?"),
        "{message}"
    );
}

#[test]
fn own_prefix_is_read_and_wins() {
    let own = |ingress: Ing, name: &str, value: &str| {
        ingress.raw_note(&format!("splitter.io/{name}"), value)
    };
    let ingress = own(own(plain(), "canary", "true"), "canary-weight", "25");
    assert_eq!(ok(ingress.clone()), "m=75 c=25");
    let (line, problems) = split(ingress.clone().weight("50"));
    assert_eq!(line, "m=75 c=25");
    assert_eq!(
        problems,
        ["metadata.annotations.canary-weight annotation-contradiction"]
    );
    assert_eq!(ok(ingress.weight("25")), "m=75 c=25");
}

#[test]
fn another_prefix_takes_the_place_of_ingress_nginxs() {
    let objects = manifest(&[
        main("main").on("a", "/", "m"),
        plain()
            .raw_note("ex.org/canary", "true")
            .raw_note("ex.org/canary-weight", "40")
            .note("canary-weight", "10")
            .on("a", "/", "c"),
    ]);
    for prefix in ["ex.org", "ex.org/"] {
        let settings = ClassSettings {
            annotations_prefix: prefix.to_owned(),
            ..ClassSettings::default()
        };
        let translation = translate(&objects, &settings);
        assert_eq!(show(&translation.snapshot), ["a/ (Prefix): m=60 c=40"]);
        assert_eq!(*translation.problems, []);
    }
}
