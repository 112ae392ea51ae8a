//! What a canary can ask for that ingress-nginx does not know.

use std::collections::BTreeSet;

use splitter_tests::backend::Backend;
use splitter_tests::eventually;
use splitter_tests::instance::Splitter;
use splitter_tests::manifests::Manifests;

/// Two Services, `main` and `canary`, each answering with its name.
struct Cast {
    main: Backend,
    canary: Backend,
}

impl Cast {
    fn new() -> Self {
        Cast {
            main: Backend::named("main"),
            canary: Backend::named("canary"),
        }
    }

    fn manifests(&self, rules: &[(&str, &str)]) -> Manifests {
        Manifests::new()
            .main("web", "a.test", "/", "app")
            .canary("web-canary", "a.test", "/", "app-canary", rules)
            .service("app", &[self.main.addr()])
            .service("app-canary", &[self.canary.addr()])
    }

    fn serve(rules: &[(&str, &str)]) -> (Self, Splitter) {
        let cast = Cast::new();
        let splitter = Splitter::start_with(&cast.manifests(rules), |settings| {
            settings.use_forwarded_headers = true;
        });
        (cast, splitter)
    }
}

#[track_caller]
fn asks(splitter: &Splitter, rows: &[(&str, &str, &str)]) {
    for (path, fields, expected) in rows {
        for _ in 0..5 {
            let answer = splitter.get_with("a.test", path, fields);
            assert_eq!(answer.text(), *expected, "{path} {fields:?}");
        }
    }
}

#[test]
fn by_a_parameter_of_the_query() {
    let (_cast, splitter) = Cast::serve(&[("splitter.io/canary-by-query", "beta")]);
    asks(
        &splitter,
        &[
            ("/?beta=always", "", "canary"),
            ("/?x=1&beta=always&y=2", "", "canary"),
            ("/?beta=never", "", "main"),
            ("/?beta=1", "", "main"),
            ("/?Beta=always", "", "main"),
            ("/", "", "main"),
        ],
    );
    let rules = [
        ("splitter.io/canary-by-query", "plan"),
        ("splitter.io/canary-by-query-value", "gold & more"),
    ];
    let (_cast, splitter) = Cast::serve(&rules);
    asks(
        &splitter,
        &[
            ("/?plan=gold+%26+more", "", "canary"),
            ("/?plan=gold", "", "main"),
            ("/?plan=always", "", "main"),
        ],
    );
    assert_eq!(splitter.problems(), [""; 0]);
}

#[test]
fn by_the_value_of_a_cookie() {
    let rules = [
        ("canary-by-cookie", "group"),
        ("splitter.io/canary-by-cookie-value", "beta"),
    ];
    let (_cast, splitter) = Cast::serve(&rules);
    asks(
        &splitter,
        &[
            ("/", "Cookie: group=beta\r\n", "canary"),
            ("/", "Cookie: a=1; Group=beta; b=2\r\n", "canary"),
            ("/", "Cookie: group=betas\r\n", "main"),
            ("/", "Cookie: group=always\r\n", "main"),
        ],
    );
    let rules = [
        ("canary-by-cookie", "group"),
        (
            "splitter.io/canary-by-cookie-pattern",
            "^(beta|qa-[0-9]{2,})$",
        ),
    ];
    let (_cast, splitter) = Cast::serve(&rules);
    asks(
        &splitter,
        &[
            ("/", "Cookie: group=beta\r\n", "canary"),
            ("/", "Cookie: group=qa-12\r\n", "canary"),
            ("/", "Cookie: group=qa-1\r\n", "main"),
            ("/", "Cookie: group=always\r\n", "main"),
        ],
    );
}

#[test]
fn by_the_clients_address() {
    let ranges = "10.1.0.0/16, 2001:db8::/32";
    let (_cast, splitter) = Cast::serve(&[("splitter.io/canary-by-source-range", ranges)]);
    asks(
        &splitter,
        &[
            ("/", "X-Forwarded-For: 10.1.2.3\r\n", "canary"),
            ("/", "X-Forwarded-For: 2001:db8::7\r\n", "canary"),
            ("/", "X-Forwarded-For: 10.2.0.1\r\n", "main"),
            ("/", "", "main"),
        ],
    );
    // Nobody chooses it by saying where he is unless that is believed.
    let cast = Cast::new();
    let rules = [("splitter.io/canary-by-source-range", ranges)];
    let splitter = Splitter::start(&cast.manifests(&rules));
    asks(&splitter, &[("/", "X-Forwarded-For: 10.1.2.3\r\n", "main")]);
    // A list that cannot be read chooses nobody.
    let rules = [("splitter.io/canary-by-source-range", "0.0.0.0/0, x")];
    let (_cast, splitter) = Cast::serve(&rules);
    asks(&splitter, &[("/", "", "main")]);
    let problems = splitter.problems();
    assert!(
        problems.contains(&"web-canary: canary-rule-invalid".to_owned()),
        "{problems:?}"
    );
}

#[test]
fn rules_come_in_the_order_header_cookie_query_address() {
    let rules = [
        ("canary-by-header", "x"),
        ("canary-by-cookie", "c"),
        ("splitter.io/canary-by-query", "q"),
        ("splitter.io/canary-by-source-range", "127.0.0.0/8"),
    ];
    let (_cast, splitter) = Cast::serve(&rules);
    asks(
        &splitter,
        &[
            ("/", "", "canary"),
            ("/?q=never", "", "main"),
            ("/?q=never", "Cookie: c=always\r\n", "canary"),
            ("/?q=always", "Cookie: c=never\r\n", "main"),
            ("/?q=never", "Cookie: c=never\r\nX: always\r\n", "canary"),
        ],
    );
    for (reason, count) in [
        ("source", 5.0),
        ("query", 5.0),
        ("cookie", 10.0),
        ("header", 5.0),
    ] {
        eventually("requests are counted", || {
            let labels = [("reason", reason)];
            splitter.metrics().sum("splitter_requests_total", &labels) == count
        });
    }
}

/// Who of 400 users gets the canary.
fn chosen(splitter: &Splitter, field: impl Fn(usize) -> String) -> BTreeSet<usize> {
    let mut client = splitter.client();
    (0..400)
        .filter(|user| client.get_with("a.test", "/", &field(*user)).text() == "canary")
        .collect()
}

#[test]
fn a_key_decides_in_place_of_chance_and_keeps_who_has_been_chosen() {
    for (key, field) in [
        (
            "header:X-User",
            (|user| format!("X-User: {user}\r\n")) as fn(usize) -> String,
        ),
        ("cookie:user", |user| {
            format!("Cookie: a=b; user={user}\r\n")
        }),
        ("client-address", |user| {
            format!("X-Forwarded-For: 10.0.{}.{}\r\n", user / 200, user % 200)
        }),
    ] {
        let rules = |weight| {
            [
                ("canary-weight", weight),
                ("splitter.io/canary-hash-by", key),
            ]
        };
        let (cast, splitter) = Cast::serve(&rules("10"));
        let first = chosen(&splitter, field);
        assert!((20..65).contains(&first.len()), "{key}: {}", first.len());
        assert_eq!(chosen(&splitter, field), first, "{key}");
        splitter.apply(&cast.manifests(&rules("30")));
        let mut more = BTreeSet::new();
        eventually("the weight is raised", || {
            // Twice the same: the weight did not change half-way.
            more = chosen(&splitter, field);
            more != first && more == chosen(&splitter, field)
        });
        assert!((85..160).contains(&more.len()), "{key}: {}", more.len());
        assert!(more.is_superset(&first), "{key}");
        assert_eq!(splitter.problems(), [""; 0]);
    }
}

#[test]
fn without_the_key_chance_decides_exactly() {
    let rules = [
        ("canary-weight", "25"),
        ("splitter.io/canary-hash-by", "query:user"),
    ];
    let (_cast, splitter) = Cast::serve(&rules);
    assert_eq!(chosen(&splitter, |_| String::new()).len(), 100);
}

#[test]
fn the_answer_names_the_variant() {
    let rules = [
        ("canary-by-header", "x"),
        ("splitter.io/canary-response-header", "X-Variant"),
    ];
    let (_cast, splitter) = Cast::serve(&rules);
    let named = |fields: &str| {
        let answer = splitter.get_with("a.test", "/", fields);
        let named = answer.field("x-variant").map(str::to_owned);
        (answer.text(), named)
    };
    assert_eq!(named(""), ("main".to_owned(), Some("stable".to_owned())));
    let canary = ("canary".to_owned(), Some("app-canary".to_owned()));
    assert_eq!(named("X: always\r\n"), canary);
    // A pod cannot say that it is another one, and an answer of ours is nobody's.
    let liar = Backend::scripted(|conversation| {
        while conversation.request().is_some() {
            let head = "HTTP/1.1 200 OK\r\nX-Variant: app-canary\r\nContent-Length: 0\r\n\r\n";
            conversation.send(head);
        }
    });
    let notes = [("splitter.io/canary-response-header", "X-Variant")];
    let splitter = Splitter::start(
        &Manifests::new()
            .ingress("web", "a.test", "/", "Prefix", "app", &notes)
            .ingress("none", "b.test", "/", "Prefix", "none", &notes)
            .service("app", &[liar.addr()])
            .service("none", &[]),
    );
    assert_eq!(
        splitter.get("a.test", "/").field("x-variant"),
        Some("stable")
    );
    let own = splitter.get("b.test", "/");
    assert_eq!((own.status, own.field("x-variant")), (503, None));
}
