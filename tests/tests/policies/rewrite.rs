use splitter_tests::backend::Backend;
use splitter_tests::instance::Splitter;
use splitter_tests::manifests::Manifests;

/// One Ingress for this path of `a.test` with these annotations, in front of `backend`.
fn for_path(backend: &Backend, path: &str, annotations: &[(&str, &str)]) -> Splitter {
    let kind = "ImplementationSpecific";
    Splitter::start(
        &Manifests::new()
            .ingress("web", "a.test", path, kind, "app", annotations)
            .service("app", &[backend.addr()]),
    )
}

#[test]
fn pods_see_the_target_with_what_the_groups_matched() {
    let backend = Backend::named("main");
    let splitter = for_path(
        &backend,
        "/something(/|$)(.*)",
        &[
            ("rewrite-target", "/$2"),
            ("x-forwarded-prefix", "/something"),
        ],
    );
    for (path, expected) in [
        ("/something", "/"),
        ("/something/", "/"),
        ("/something/new?q=1&r", "/new?q=1&r"),
        ("/Something/a%20b%2Fc", "/a%20b%2Fc"),
    ] {
        assert_eq!(splitter.get("a.test", path).status, 200, "{path}");
        let seen = backend.last();
        assert_eq!(seen.target(), expected, "{path}");
        assert_eq!(seen.field("x-forwarded-prefix"), Some("/something"));
    }
    assert_eq!(splitter.get("a.test", "/somethingelse").status, 404);
    assert_eq!(splitter.problems(), [""; 0]);
}

#[test]
fn what_would_lead_out_of_the_target_is_refused() {
    let backend = Backend::named("main");
    let splitter = for_path(&backend, "/x(.*)", &[("rewrite-target", "/app/$1")]);
    for path in ["/x../secret", "/x%2e%2e/secret", "/x..%2fsecret"] {
        splitter.get("a.test", path).assert_own(400);
    }
    assert_eq!(splitter.faults("unsendable-path"), 3.0);
    // It could be read as a path outside of the location.
    splitter.get("a.test", "/x/../y").assert_own(400);
    assert_eq!(splitter.faults("ambiguous-path"), 1.0);
    assert_eq!(backend.seen().len(), 0);
}

#[test]
fn a_query_of_the_target_comes_before_the_clients() {
    let backend = Backend::named("main");
    let splitter = for_path(&backend, "/x/(.*)", &[("rewrite-target", "/y?p=$1")]);
    splitter.get("a.test", "/x/z&w?q=1");
    assert_eq!(backend.last().target(), "/y?p=z%26w&q=1");
}

#[test]
fn stable_and_canary_see_the_same() {
    let (stable, canary) = (Backend::named("stable"), Backend::named("canary"));
    let path = "/x/(.*)";
    let splitter = Splitter::start(
        &Manifests::new()
            .ingress(
                "web",
                "a.test",
                path,
                "Prefix",
                "app",
                &[("rewrite-target", "/$1")],
            )
            .canary(
                "next",
                "a.test",
                path,
                "next",
                &[("canary-by-header", "Next")],
            )
            .service("app", &[stable.addr()])
            .service("next", &[canary.addr()]),
    );
    let next = splitter.get_with("a.test", "/x/y", "Next: always\r\n");
    assert_eq!(next.text(), "canary");
    assert_eq!(splitter.get("a.test", "/x/y").text(), "stable");
    assert_eq!(canary.last().target(), "/y");
    assert_eq!(stable.last().target(), "/y");
    assert_eq!(splitter.problems(), [""; 0]);
}

/// A host of two Ingresses, of which one has a pattern.
fn beside(pattern: &Backend, plain: &Backend, strict: bool) -> Splitter {
    let manifests = Manifests::new()
        .ingress(
            "web",
            "a.test",
            "/v[0-9]+",
            "Prefix",
            "web",
            &[("use-regex", "true")],
        )
        .main("api", "a.test", "/api", "api")
        .service("web", &[pattern.addr()])
        .service("api", &[plain.addr()]);
    Splitter::start_with(&manifests, |settings| settings.class.strict_nginx = strict)
}

#[test]
fn a_pattern_is_for_its_own_ingress() {
    let (pattern, plain) = (Backend::named("pattern"), Backend::named("plain"));
    let splitter = beside(&pattern, &plain, false);
    assert_eq!(splitter.get("a.test", "/V12x").text(), "pattern");
    assert_eq!(splitter.get("a.test", "/api/x").text(), "plain");
    for path in ["/API/x", "/apix"] {
        assert_eq!(splitter.get("a.test", path).status, 404, "{path}");
    }
    assert_eq!(splitter.problems(), ["api: regex-leak"]);
}

#[test]
fn strictly_it_is_for_the_whole_host() {
    let (pattern, plain) = (Backend::named("pattern"), Backend::named("plain"));
    let splitter = beside(&pattern, &plain, true);
    for path in ["/API/x", "/apix", "/api"] {
        assert_eq!(splitter.get("a.test", path).text(), "plain", "{path}");
    }
    assert_eq!(splitter.problems(), [""; 0]);
}
