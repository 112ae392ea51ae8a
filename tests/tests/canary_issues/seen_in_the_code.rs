//! Not in any report, but in ingress-nginx's code.

use super::*;

/// There, such a value is dropped and the rule becomes always/never: anyone gets in.
#[test]
fn invalid_header_value_never_becomes_always() {
    for rule in [
        ("canary-by-header-value", "a,b"),
        ("canary-by-header-pattern", "a{2,5}!"),
        ("canary-by-header-pattern", "("),
    ] {
        let (_cast, splitter) = serve(|it| {
            it.main("main", "a.test", "/", "m").canary(
                "canary",
                "a.test",
                "/",
                "c",
                &[("canary-by-header", "X"), rule],
            )
        });
        always(&splitter, "a.test", "/", "X: always\r\n", "M");
        assert!(
            splitter
                .problems()
                .iter()
                .any(|it| it.starts_with("canary: ")),
            "{rule:?} is told"
        );
    }
}

#[test]
fn canary_rule_without_paths_harms_nobody() {
    let (_cast, splitter) = serve(|it| {
        it.main("main", "a.test", "/", "m").raw(
            "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: canary, \
             namespace: demo, annotations: {nginx.ingress.kubernetes.io/canary: \"true\", \
             nginx.ingress.kubernetes.io/canary-weight: \"100\"}}\n\
             spec: {rules: [{host: a.test}]}\n",
        )
    });
    always(&splitter, "a.test", "/", "", "M");
}
