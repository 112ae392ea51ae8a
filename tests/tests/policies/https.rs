use splitter_tests::backend::Backend;
use splitter_tests::client::Answer;
use splitter_tests::instance::Splitter;
use splitter_tests::manifests::Manifests;

use super::before;

/// One Ingress with TLS for its host and these annotations, in front of `backend`.
fn with_tls(backend: &Backend, notes: &str, trusted: bool) -> Splitter {
    Splitter::start_with(&manifests(backend, notes), |settings| {
        settings.use_forwarded_headers = trusted;
    })
}

fn manifests(backend: &Backend, notes: &str) -> Manifests {
    Manifests::new()
        .raw(&format!(
            "apiVersion: networking.k8s.io/v1\nkind: Ingress\n\
             metadata: {{name: web, namespace: demo, annotations: {{{notes}}}}}\n\
             spec:\n  tls: [{{hosts: [a.test]}}]\n  rules:\n  - host: a.test\n    http: {{paths: [\
             {{path: /, pathType: Prefix, \
             backend: {{service: {{name: app, port: {{number: 80}}}}}}}}, \
             {{path: /.well-known/acme-challenge/token, pathType: Exact, \
             backend: {{service: {{name: app, port: {{number: 80}}}}}}}}]}}"
        ))
        .service("app", &[backend.addr()])
}

fn by(splitter: &Splitter, scheme: &str, path: &str) -> Answer {
    let field = format!("X-Forwarded-Proto: {scheme}\r\n");
    splitter.get_with("a.test:8080", path, &field)
}

#[test]
fn what_a_trusted_balancer_got_by_http_is_sent_to_https() {
    let backend = Backend::named("main");
    let splitter = with_tls(&backend, "", true);
    for (path, location) in [
        ("/x?q=1", "https://a.test/x?q=1"),
        ("/x/", "https://a.test/x"),
        ("/", "https://a.test"),
    ] {
        let answer = by(&splitter, "http", path);
        assert_eq!(answer.status, 308);
        assert_eq!(answer.field("location"), Some(location));
    }
    assert_eq!(backend.seen().len(), 0);
    for scheme in ["https", "https,http", ""] {
        assert_eq!(by(&splitter, scheme, "/").status, 200, "{scheme:?}");
    }
    let challenge = "/.well-known/acme-challenge/token";
    assert_eq!(by(&splitter, "http", challenge).status, 200);
    // The balancer says nothing, and nobody is known to answer https.
    assert_eq!(splitter.get("a.test", "/").status, 200);
}

#[test]
fn the_host_that_the_balancer_was_asked_for_is_named() {
    let backend = Backend::named("main");
    let splitter = with_tls(&backend, "", true);
    let fields = "X-Forwarded-Proto: http\r\nX-Forwarded-Host: outer.test:81, b.test\r\n";
    let answer = splitter.get_with("a.test", "/x", fields);
    assert_eq!(answer.field("location"), Some("https://outer.test/x"));
}

#[test]
fn what_others_say_of_themselves_is_not_believed() {
    let backend = Backend::named("main");
    let splitter = with_tls(&backend, "", false);
    assert_eq!(by(&splitter, "http", "/").status, 200);
}

#[test]
fn where_https_is_answered_nobody_needs_to_say_so() {
    let backend = Backend::named("main");
    let splitter = Splitter::start_with(&manifests(&backend, ""), |settings| {
        settings.https = vec![([127, 0, 0, 1], 0).into()];
    });
    let answer = splitter.get("a.test", "/x");
    assert_eq!(answer.status, 308);
    assert_eq!(answer.field("location"), Some("https://a.test/x"));
    let challenge = "/.well-known/acme-challenge/token";
    assert_eq!(splitter.get("a.test", challenge).status, 200);
}

#[test]
fn it_can_be_switched_off() {
    let backend = Backend::named("main");
    let off = "nginx.ingress.kubernetes.io/ssl-redirect: \"false\"";
    let splitter = with_tls(&backend, off, true);
    assert_eq!(by(&splitter, "http", "/").status, 200);
}

#[test]
fn forcing_needs_neither_tls_nor_a_balancer() {
    let backend = Backend::named("main");
    let notes = [
        ("force-ssl-redirect", "true"),
        ("preserve-trailing-slash", "true"),
    ];
    let splitter = before(&backend, &notes);
    let answer = splitter.get("a.test:8080", "/x/");
    assert_eq!(answer.status, 308);
    assert_eq!(answer.field("location"), Some("https://a.test/x/"));
    // Not believed, so not http's way around it either.
    assert_eq!(by(&splitter, "https", "/").status, 308);
    assert_eq!(backend.seen().len(), 0);
}
