use super::*;

#[test]
fn row_23_canary_without_host_is_used() {
    let (_cast, splitter) = serve(|it| {
        it.main("main", "", "/", "m")
            .canary("canary", "", "/", "c", ALL)
    });
    always(&splitter, "any.test", "/", "", "C");
}

#[test]
fn row_24_canary_without_host_and_without_main_harms_nobody() {
    let (_cast, splitter) = serve(|it| {
        it.canary("canary", "", "/", "c", ALL)
            .main("main", "a.test", "/", "m")
    });
    always(&splitter, "any.test", "/", "", "404");
    always(&splitter, "a.test", "/", "", "M");
    assert_eq!(splitter.problems(), ["canary: canary-stray"]);
}

#[test]
fn row_25_canary_of_another_path_type_is_reported_and_does_not_leak() {
    let (_cast, splitter) = serve(|it| {
        it.main("main", "h.test", "/", "m")
            .main("other", "other.test", "/", "m")
            .ingress(
                "canary",
                "h.test",
                "/products",
                "Exact",
                "c",
                &[
                    ("canary", "true"),
                    ("canary-by-header", "X"),
                    ("canary-by-header-pattern", "AAAA|BBBB"),
                ],
            )
    });
    for (host, path) in [
        ("h.test", "/products"),
        ("h.test", "/"),
        ("other.test", "/products"),
    ] {
        always(&splitter, host, path, "X: AAAA\r\n", "M");
    }
    assert_eq!(splitter.problems(), ["canary: canary-stray"]);
}

#[test]
fn row_26_rewrite_of_a_canary_has_no_effect() {
    let (cast, splitter) = serve(|it| {
        it.main("main", "a.test", "/input", "m").canary(
            "canary",
            "a.test",
            "/input",
            "c",
            &[("canary-weight", "100"), ("rewrite-target", "/ingest")],
        )
    });
    always(&splitter, "a.test", "/input", "", "C");
    assert_eq!(cast.c.last().target(), "/input");
    assert!(
        splitter
            .problems()
            .iter()
            .any(|it| it.starts_with("canary: ")),
        "it is told"
    );
}

#[test]
fn row_27_class_decides_before_any_other_annotation() {
    let (_cast, splitter) = serve(|it| {
        it.main("main", "a.test", "/", "m").raw(
            "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: canary, \
             namespace: demo, annotations: {kubernetes.io/ingress.class: other, \
             nginx.ingress.kubernetes.io/canary: \"true\", \
             nginx.ingress.kubernetes.io/canary-weight: \"100\"}}\n\
             spec: {rules: [{host: a.test, http: {paths: [{path: /, pathType: Prefix, \
             backend: {service: {name: c, port: {number: 80}}}}]}}]}\n",
        )
    });
    always(&splitter, "a.test", "/", "", "M");
}

#[test]
fn row_29_service_upstream_of_main_does_not_end_its_canary() {
    let (_cast, splitter) = serve(|it| {
        it.ingress(
            "main",
            "a.test",
            "/",
            "Prefix",
            "m",
            &[("service-upstream", "true")],
        )
        .canary("canary", "a.test", "/", "c", &[("canary-weight", "50")])
    });
    assert_eq!(share(&splitter, "a.test", 100, "C"), 50);
    assert_eq!(share(&splitter, "a.test", 100, "M"), 50);
    assert!(
        splitter
            .problems()
            .iter()
            .any(|it| it.starts_with("main: ")),
        "what is not supported is told"
    );
}

#[test]
fn row_30_canary_of_another_namespace_is_attached() {
    let cast = Cast::new();
    let splitter = Splitter::start(
        &Manifests::new()
            .namespace("ns1")
            .service("m", &[cast.m.addr()])
            .main("main", "a.test", "/", "m")
            .namespace("ns2")
            .service("c", &[cast.c.addr()])
            .canary("canary", "a.test", "/", "c", ALL),
    );
    always(&splitter, "a.test", "/", "", "C");
}

#[test]
fn row_31_canary_alone_is_404() {
    let (cast, splitter) = serve(|it| it.canary("canary", "a.test", "/", "c", ALL));
    always(&splitter, "a.test", "/", "", "404");
    always(&splitter, "", "/", "", "404");
    assert_eq!(cast.c.connections(), 0);
}

/// Names outside the cluster are not resolved (yet), which is reported; the canary works.
#[test]
fn row_32_canary_of_an_external_main_works_by_header() {
    let cast = Cast::new();
    let splitter = Splitter::start(
        &cast
            .services()
            .main("main", "a.test", "/", "outside")
            .canary("canary", "a.test", "/", "c", &[("canary-by-header", "X")])
            .raw(
                "apiVersion: v1\nkind: Service\nmetadata: {name: outside, namespace: demo}\n\
                 spec: {type: ExternalName, externalName: example.test, \
                 ports: [{port: 80}]}\n",
            ),
    );
    always(&splitter, "a.test", "/", "X: always\r\n", "C");
    always(&splitter, "a.test", "/", "", "503");
    assert!(
        splitter
            .problems()
            .iter()
            .any(|it| it.contains("external-name"))
    );
}

/// Guards are not supported yet, so nobody passes; least of all to one side only.
#[test]
fn row_33_guard_of_main_guards_both_sides() {
    let (cast, splitter) = serve(|it| {
        it.ingress(
            "main",
            "a.test",
            "/",
            "Prefix",
            "m",
            &[("auth-snippet", "deny all;")],
        )
        .canary("canary", "a.test", "/", "c", &[("canary-by-header", "X")])
    });
    always(&splitter, "a.test", "/", "", "503");
    always(&splitter, "a.test", "/", "X: always\r\n", "503");
    assert_eq!(cast.m.connections() + cast.c.connections(), 0);
}
