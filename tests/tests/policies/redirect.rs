use splitter_tests::backend::Backend;

use super::before;

#[test]
fn sends_every_client_elsewhere() {
    for (annotations, status) in [
        (&[("permanent-redirect", "https://b.test/x")][..], 301),
        (&[("temporal-redirect", "https://b.test/x")], 302),
        (
            &[
                ("permanent-redirect", "https://b.test/x"),
                ("permanent-redirect-code", "308"),
            ],
            308,
        ),
        (
            &[
                ("permanent-redirect", "https://c.test/"),
                ("temporal-redirect", "https://b.test/x"),
                ("temporal-redirect-code", "307"),
            ],
            307,
        ),
    ] {
        let backend = Backend::named("main");
        let splitter = before(&backend, annotations);
        let answer = splitter.get("a.test", "/any?q=1");
        assert_eq!(answer.status, status, "{annotations:?}");
        assert_eq!(answer.field("location"), Some("https://b.test/x"));
        assert_eq!(backend.seen().len(), 0, "{annotations:?}");
        assert_eq!(splitter.faults("redirect"), 1.0);
    }
}

#[test]
fn a_bad_code_or_target_is_reported_and_takes_the_safe_side() {
    let backend = Backend::named("main");
    let splitter = before(
        &backend,
        &[
            ("permanent-redirect", "https://b.test/"),
            ("permanent-redirect-code", "200"),
        ],
    );
    assert_eq!(splitter.get("a.test", "/").status, 301);
    assert_eq!(splitter.problems().len(), 1, "{:?}", splitter.problems());

    let splitter = before(&backend, &[("temporal-redirect", "no url")]);
    assert_eq!(splitter.get("a.test", "/").status, 200);
    assert_eq!(splitter.problems().len(), 1, "{:?}", splitter.problems());
}

#[test]
fn variables_of_the_request_are_filled_in() {
    let backend = Backend::named("main");
    let splitter = before(
        &backend,
        &[("temporal-redirect", "$scheme://new.${host}$request_uri")],
    );
    let answer = splitter.get("A.test:80", "/x%20y?q=%0a");
    assert_eq!(answer.status, 302);
    assert_eq!(
        answer.field("location"),
        Some("http://new.a.test/x%20y?q=%0a")
    );

    let splitter = before(&backend, &[("permanent-redirect", "https://$remote_addr/")]);
    assert_eq!(splitter.get("a.test", "/").status, 200);
    assert_eq!(splitter.problems(), ["web: redirect-invalid"]);
}
