//! What is changed in answers: `proxy-redirect-from`, `proxy-cookie-domain`, `proxy-cookie-path`,
//! `custom-headers`.

use splitter::config::Defaults;
use splitter_tests::backend::Backend;
use splitter_tests::client::Answer;
use splitter_tests::instance::Splitter;
use splitter_tests::manifests::Manifests;

use super::before;

/// A pod that answers with these fields.
fn pod(fields: &'static str) -> Backend {
    Backend::scripted(move |conversation| {
        while conversation.request().is_some() {
            conversation.send(format!(
                "HTTP/1.1 302 Found\r\nContent-Length: 0\r\n{fields}\r\n"
            ));
        }
    })
}

fn all(answer: &Answer, name: &str) -> Vec<String> {
    answer.all(name).into_iter().map(str::to_owned).collect()
}

#[test]
fn redirects_of_the_pod_lead_elsewhere() {
    let notes = [
        ("proxy-redirect-from", "http://inner.test/app/"),
        ("proxy-redirect-to", "https://a.test/"),
    ];
    for (fields, name, expected) in [
        (
            "Location: http://inner.test/app/x?y\r\n",
            "location",
            "https://a.test/x?y",
        ),
        (
            "Location: http://inner.test/\r\n",
            "location",
            "http://inner.test/",
        ),
        ("Location: /app/x\r\n", "location", "/app/x"),
        (
            "Refresh: 1; url=http://inner.test/app/x\r\n",
            "refresh",
            "1; url=https://a.test/x",
        ),
    ] {
        let backend = pod(fields);
        let splitter = before(&backend, &notes);
        let answer = splitter.get("a.test", "/");
        assert_eq!(all(&answer, name), [expected]);
        assert_eq!(splitter.problems(), [""; 0]);
    }
}

#[test]
fn cookies_of_the_pod_are_for_other_hosts_and_paths() {
    let backend = pod(
        "Set-Cookie: a=1; Domain=inner.test; Path=/app/x; Secure\r\n\
         Set-Cookie: b=2; path=/app/\r\nSet-Cookie: c=3\r\n",
    );
    let notes = [
        ("proxy-cookie-domain", "inner.test a.test"),
        ("proxy-cookie-path", "/app/ /"),
        ("affinity", "cookie"),
    ];
    let splitter = before(&backend, &notes);
    let cookies = all(&splitter.get("a.test", "/"), "set-cookie");
    let changed = ["a=1; Domain=a.test; Path=/x; Secure", "b=2; path=/", "c=3"];
    assert_eq!(cookies[..3], changed);
    // Ours is none of the pod's.
    assert!(cookies[3].starts_with("INGRESSCOOKIE="), "{cookies:?}");
    assert_eq!(splitter.problems(), [""; 0]);
}

/// As nginx has it: a pattern stands for the whole value, its groups and what the client asked for
/// can stand in what it becomes.
#[test]
fn patterns_and_variables_are_filled_in() {
    let backend = pod(
        "Location: http://Inner.test:8080/app/x?y\r\nSet-Cookie: a=1; Domain=.x.Inner.test; Path=/APP/x\r\n\
         Set-Cookie: b=2; Path=/other\r\n",
    );
    let notes = [
        (
            "proxy-redirect-from",
            "~*^http://inner\\.test(:[0-9]+)?/app/(.*)$",
        ),
        ("proxy-redirect-to", "$scheme://$http_host/$2"),
        ("proxy-cookie-domain", "~inner\\.test$ $host"),
        ("proxy-cookie-path", "~*^/app(/.*)$ ${is_args}/new$1"),
    ];
    let splitter = before(&backend, &notes);
    let answer = splitter.client().get("A.test:81", "/?q=1;2");
    assert_eq!(all(&answer, "location"), ["http://A.test:81/x?y"]);
    let cookies = all(&answer, "set-cookie");
    let changed = ["a=1; Domain=a.test; Path=?/new/x", "b=2; Path=/other"];
    assert_eq!(cookies, changed);
    assert_eq!(splitter.problems(), [""; 0]);
}

#[test]
fn a_client_cannot_write_an_attribute() {
    let backend = pod("Set-Cookie: a=1; Path=/app\r\nLocation: http://inner/\r\n");
    let notes = [
        ("proxy-cookie-path", "/app $request_uri"),
        ("proxy-redirect-from", "http://inner/"),
        ("proxy-redirect-to", "https://$http_host/"),
    ];
    let splitter = before(&backend, &notes);
    let answer = splitter.get("a.test", "/x;Domain=evil.test");
    assert_eq!(all(&answer, "set-cookie"), ["a=1; Path=/app"]);
    let answer = splitter.get("a.test", "/x");
    assert_eq!(all(&answer, "set-cookie"), ["a=1; Path=/x"]);
    assert_eq!(all(&answer, "location"), ["https://a.test/"]);
}

#[test]
fn what_says_nothing_changes_nothing() {
    for notes in [
        &[
            ("proxy-redirect-from", "off"),
            ("proxy-redirect-to", "http://b/"),
        ][..],
        &[
            ("proxy-redirect-from", "default"),
            ("proxy-redirect-to", "http://b/"),
        ],
        &[("proxy-redirect-to", "off"), ("proxy-cookie-path", "off")],
        &[("proxy-cookie-domain", "off")],
    ] {
        let backend = pod("Location: http://inner/\r\nSet-Cookie: a=1; Path=/\r\n");
        let splitter = before(&backend, notes);
        let answer = splitter.get("a.test", "/");
        assert_eq!(all(&answer, "location"), ["http://inner/"]);
        assert_eq!(all(&answer, "set-cookie"), ["a=1; Path=/"]);
        assert_eq!(splitter.problems(), [""; 0], "{notes:?}");
    }
}

#[test]
fn what_cannot_be_read_is_reported_and_changes_nothing() {
    for (notes, code) in [
        (
            &[("proxy-redirect-from", "http://inner/")][..],
            "incomplete",
        ),
        (&[("proxy-redirect-to", "http://b/")], "incomplete"),
        (
            &[
                ("proxy-redirect-from", "~^(http"),
                ("proxy-redirect-to", "x"),
            ],
            "invalid",
        ),
        (
            &[
                ("proxy-redirect-from", "http:"),
                ("proxy-redirect-to", "a b"),
            ],
            "invalid",
        ),
        (
            &[
                ("proxy-redirect-from", "http:"),
                ("proxy-redirect-to", "$1"),
            ],
            "invalid",
        ),
        (&[("proxy-cookie-path", "/")], "invalid"),
        (&[("proxy-cookie-path", "/ /x /y")], "invalid"),
        (&[("proxy-cookie-path", "/ /;HttpOnly")], "invalid"),
        (&[("proxy-cookie-domain", "~inner( a")], "invalid"),
        (&[("proxy-cookie-domain", "inner $remote_addr")], "invalid"),
        (&[("proxy-cookie-path", "/$1 /")], "invalid"),
    ] {
        let backend = pod("Location: http://inner/\r\nSet-Cookie: a=1; Path=/\r\n");
        let splitter = before(&backend, notes);
        let answer = splitter.get("a.test", "/");
        assert_eq!(all(&answer, "location"), ["http://inner/"]);
        assert_eq!(all(&answer, "set-cookie"), ["a=1; Path=/"]);
        let expected = format!("web: answer-edit-{code}");
        assert_eq!(splitter.problems(), [expected], "{notes:?}");
    }
}

/// An Ingress that names the ConfigMap `fields` of another namespace, with these lines.
fn with_headers(backend: &Backend, lines: &str, allowed: &str) -> Splitter {
    let notes = [
        ("custom-headers", "shared/fields"),
        ("proxy-body-size", "1k"),
    ];
    let map = format!(
        "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: fields, namespace: shared}}\n\
         data: {{{lines}}}\n"
    );
    let manifests = Manifests::new()
        .ingress("web", "a.test", "/", "Prefix", "app", &notes)
        .service("app", &[backend.addr()])
        .raw(&map);
    Splitter::start_with(&manifests, |settings| {
        let key = "global-allowed-response-headers".to_owned();
        settings.class.defaults = Defaults {
            values: [(key, allowed.to_owned())].into(),
            ..Defaults::default()
        }
        .into();
    })
}

#[test]
fn every_answer_has_the_fields_of_the_config_map() {
    let backend = pod("X-Frame-Options: ALLOW\r\nX-Frame-Options: TWICE\r\n");
    let lines = "X-Frame-Options: DENY, x-own: \"a; b\"";
    let splitter = with_headers(&backend, lines, "X-Own, x-frame-options");
    let mut client = splitter.client();
    let answer = client.get("a.test", "/");
    assert_eq!(answer.status, 302);
    assert_eq!(all(&answer, "x-frame-options"), ["DENY"]);
    assert_eq!(all(&answer, "x-own"), ["a; b"]);
    // The proxy's own too.
    client.send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 99999999\r\n\r\n");
    let refusal = client.answer("POST");
    assert_eq!(refusal.status, 413);
    assert_eq!(all(&refusal, "x-own"), ["a; b"]);
    assert_eq!(splitter.problems(), [""; 0]);
}

#[test]
fn fields_that_cannot_be_set_close_the_ingress() {
    let backend = pod("");
    for (lines, allowed) in [
        ("X-Own: a", ""),
        ("X-Own: a, X-Other: b", "X-Own"),
        ("\"x own\": a", "x own"),
        ("X-Own: \"a\\nb\"", "X-Own"),
        ("Content-Length: \"0\"", "Content-Length"),
        ("x-own: a, X-Own: b", "X-Own"),
    ] {
        let splitter = with_headers(&backend, lines, allowed);
        assert_eq!(splitter.get("a.test", "/").status, 503, "{lines}");
        assert_eq!(
            splitter.problems(),
            ["web: custom-headers-invalid"],
            "{lines}"
        );
    }
    let missing = before(&backend, &[("custom-headers", "nobody")]);
    assert_eq!(missing.get("a.test", "/").status, 503);
    assert_eq!(missing.problems(), ["web: custom-headers-invalid"]);
    assert_eq!(backend.connections(), 0);
}
