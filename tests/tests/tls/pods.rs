//! TLS towards pods: `backend-protocol: HTTPS`.

use splitter_tests::backend::Backend;
use splitter_tests::eventually;
use splitter_tests::instance::Splitter;
use splitter_tests::manifests::Manifests;
use splitter_tests::tls::{Authority, secret};
use splitter_tests::tls_backend::TlsBackend;

use super::noise;

const HTTPS: (&str, &str) = ("backend-protocol", "HTTPS");
const SECRET: (&str, &str) = ("proxy-ssl-secret", "demo/pods");
const VERIFY: (&str, &str) = ("proxy-ssl-verify", "on");
const NAME: (&str, &str) = ("proxy-ssl-name", "pods.test");
const SNI: (&str, &str) = ("proxy-ssl-server-name", "on");

fn manifests(backend: &TlsBackend, notes: &[(&str, &str)]) -> Manifests {
    Manifests::new()
        .ingress("web", "a.test", "/", "Prefix", "app", notes)
        .service("app", &[backend.addr()])
}

/// A splitter with one Location before `backend`, and the Secret `pods` with these entries.
fn before(backend: &TlsBackend, notes: &[(&str, &str)], entries: &[(&str, &str)]) -> Splitter {
    Splitter::start(&manifests(backend, notes).raw(&secret("pods", entries)))
}

fn pods() -> (Authority, TlsBackend) {
    let authority = Authority::new("pods");
    let backend = TlsBackend::new(&authority.issue(&["pods.test"]));
    (authority, backend)
}

#[test]
fn pods_are_spoken_to_over_tls_on_kept_connections() {
    let (_, backend) = pods();
    let splitter = Splitter::start(&manifests(&backend, &[HTTPS]));
    let mut client = splitter.client();
    for path in ["/a", "/b", "/c"] {
        assert_eq!(client.get("a.test", path).text(), path);
    }
    let body = noise(1, 1_000_000);
    client.send(format!(
        "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: {}\r\n\r\n",
        body.len()
    ));
    client.send(&body);
    assert!(client.answer("POST").body == body);
    assert_eq!(backend.connections(), 1);
    assert_eq!(splitter.problems(), Vec::<String>::new());
}

#[test]
fn bytes_that_nobody_asked_for_are_no_answer() {
    let (_, backend) = pods();
    let splitter = Splitter::start(&manifests(&backend, &[HTTPS]));
    let mut client = splitter.client();
    for _ in 0..3 {
        assert!(client.get("a.test", "/more").text().ends_with("xxx"));
        assert_eq!(client.get("a.test", "/own").text(), "/own");
    }
}

#[test]
fn pods_are_told_a_name_only_if_they_are_to_be() {
    for (notes, name) in [
        (&[HTTPS][..], None),
        (&[HTTPS, NAME], None),
        (&[HTTPS, NAME, SNI], Some("pods.test")),
        (&[HTTPS, SNI], None),
    ] {
        let (_, backend) = pods();
        let splitter = Splitter::start(&manifests(&backend, notes));
        assert_eq!(splitter.get("a.test", "/").status, 200, "{notes:?}");
        assert_eq!(backend.last().name.as_deref(), name, "{notes:?}");
    }
}

#[test]
fn a_pod_that_does_not_prove_who_it_is_gets_no_request() {
    let pods = Authority::new("pods");
    let strangers = Authority::new("strangers");
    let good = pods.issue(&["pods.test"]);
    let old = pods.issue_with(&["pods.test"], |params| {
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(2021, 1, 1);
    });
    for (what, pair, status) in [
        ("good", good, 200),
        ("expired", old, 502),
        ("another name", pods.issue(&["other.test"]), 502),
        ("another authority", strangers.issue(&["pods.test"]), 502),
    ] {
        let backend = TlsBackend::new(&pair);
        let notes = [HTTPS, SECRET, VERIFY, NAME];
        let splitter = before(&backend, &notes, &[("ca.crt", pods.pem())]);
        let answer = splitter.get("a.test", "/");
        assert_eq!(answer.status, status, "{what}");
        let refused = usize::from(status == 502);
        assert_eq!(splitter.faults("upstream-tls"), refused as f64, "{what}");
        assert_eq!(backend.asked().len(), 1 - refused, "{what}");
        // Without the question nobody minds.
        let splitter = before(&backend, &[HTTPS, SECRET], &[("ca.crt", pods.pem())]);
        assert_eq!(splitter.get("a.test", "/").status, 200, "{what}");
    }
}

#[test]
fn pods_are_shown_our_certificate() {
    let (servers, people) = (Authority::new("servers"), Authority::new("people"));
    let backend = TlsBackend::asking(&servers.issue(&["pods.test"]), &people);
    let (own, strange) = (people.person("us"), Authority::new("others").person("us"));
    let nobody = Splitter::start(&manifests(&backend, &[HTTPS]));
    assert_eq!(nobody.get("a.test", "/").status, 502);
    for (pair, status) in [(&own, 200), (&strange, 502)] {
        let entries = [
            ("ca.crt", servers.pem()),
            ("tls.crt", &*pair.chain),
            ("tls.key", &*pair.key),
        ];
        let splitter = before(&backend, &[HTTPS, SECRET, VERIFY, NAME], &entries);
        assert_eq!(splitter.get("a.test", "/").status, status);
    }
    assert_eq!(backend.asked().len(), 1);
    assert_eq!(backend.last().certificate, Some(own.der()));
}

#[test]
fn what_cannot_be_read_is_answered_503_and_never_sent_in_clear() {
    let (authority, backend) = pods();
    let person = authority.person("us");
    let ca = ("ca.crt", authority.pem());
    let bad = ("ca.crt", "none");
    let lone = ("tls.crt", &*person.chain);
    let other = Authority::new("x").person("x").key;
    let mismatch = ("tls.key", &*other);
    let elsewhere = ("proxy-ssl-secret", "other/pods");
    let missing = ("proxy-ssl-secret", "demo/none");
    let nonsense = ("proxy-ssl-verify", "true");
    let bad_name = ("proxy-ssl-name", "a b");
    for (notes, entries) in [
        (&[HTTPS, missing][..], &[ca][..]),
        (&[HTTPS, elsewhere], &[ca]),
        (&[HTTPS, VERIFY, NAME], &[ca]),
        (&[HTTPS, SECRET, VERIFY], &[ca]),
        (&[HTTPS, SECRET, VERIFY, NAME], &[lone]),
        (&[HTTPS, SECRET, VERIFY, NAME], &[bad]),
        (&[HTTPS, SECRET, nonsense, NAME], &[ca]),
        (&[HTTPS, SECRET, VERIFY, bad_name], &[ca]),
        (&[HTTPS, SECRET], &[lone]),
        (&[HTTPS, SECRET], &[ca, lone, mismatch]),
    ] {
        let splitter = before(&backend, notes, entries);
        assert_eq!(splitter.get("a.test", "/").status, 503, "{notes:?}");
        let problems = splitter.problems();
        let told = |it: &String| it.ends_with(": upstream-tls-invalid");
        assert!(
            problems.len() == 1 && problems.iter().all(told),
            "{problems:?}"
        );
    }
    assert_eq!(backend.connections(), 0);
}

#[test]
fn kept_connections_are_for_whom_they_were_opened() {
    let (authority, backend) = pods();
    let strangers = Authority::new("strangers");
    let verified = |secret: &'static str| [HTTPS, VERIFY, NAME, ("proxy-ssl-secret", secret)];
    let splitter = Splitter::start(
        &Manifests::new()
            .ingress("any", "any.test", "/", "Prefix", "app", &[HTTPS])
            .ingress("same", "same.test", "/", "Prefix", "app", &[HTTPS])
            .ingress("a", "a.test", "/", "Prefix", "app", &verified("demo/a"))
            .ingress("b", "b.test", "/", "Prefix", "app", &verified("demo/b"))
            .ingress("clear", "clear.test", "/", "Prefix", "app", &[])
            .service("app", &[backend.addr()])
            .raw(&secret("a", &[("ca.crt", authority.pem())]))
            .raw(&secret("b", &[("ca.crt", strangers.pem())])),
    );
    // One client, so that it is one worker.
    let mut client = splitter.client();
    let mut on = |host: &str, status: u16| {
        assert_eq!(client.get(host, "/").status, status, "{host}");
        backend.last().connection
    };
    let any = on("any.test", 200);
    assert_eq!(on("same.test", 200), any);
    let verified = on("a.test", 200);
    assert_ne!(verified, any);
    on("b.test", 502);
    // It does not understand us, and nothing else may come of that.
    on("clear.test", 502);
    assert_eq!(on("any.test", 200), any);
    assert_eq!(on("a.test", 200), verified);
}

#[test]
fn a_new_secret_counts_from_the_next_request_on() {
    let (servers, people) = (Authority::new("servers"), Authority::new("people"));
    let backend = TlsBackend::asking(&servers.issue(&["pods.test"]), &people);
    let state = |ca: &str, certificate: &str, key: &str| {
        let entries = [("ca.crt", ca), ("tls.crt", certificate), ("tls.key", key)];
        manifests(&backend, &[HTTPS, SECRET, VERIFY, NAME]).raw(&secret("pods", &entries))
    };
    let mut own = people.person("us");
    let splitter = Splitter::start(&state(servers.pem(), &own.chain, &own.key));
    let mut client = splitter.client();
    assert_eq!(client.get("a.test", "/").status, 200);
    for _ in 0..2 {
        own = people.person("us");
        splitter.apply(&state(servers.pem(), &own.chain, &own.key));
        eventually("the new certificate is shown", || {
            assert_eq!(client.get("a.test", "/").status, 200);
            backend.last().certificate == Some(own.der())
        });
    }
    // What turns bad stays as it was, and is reported.
    splitter.apply(&state("none", &own.chain, &own.key));
    eventually("it is reported", || {
        splitter.problems() == ["pods: upstream-tls-invalid"]
    });
    assert_eq!(client.get("a.test", "/").status, 200);
    let strangers = Authority::new("strangers");
    splitter.apply(&state(strangers.pem(), &own.chain, &own.key));
    eventually("pods are not trusted any more", || {
        client.get("a.test", "/").status == 502
    });
    splitter.apply(&manifests(&backend, &[HTTPS, SECRET, VERIFY, NAME]));
    eventually("nobody is asked without the Secret", || {
        client.get("a.test", "/").status == 503
    });
}

#[test]
fn another_pod_is_asked_after_one_without_tls() {
    let (_, backend) = pods();
    let clear = Backend::named("clear");
    let addrs = [clear.addr(), backend.addr()];
    let start = |notes: &[(&str, &str)]| {
        Splitter::start(
            &Manifests::new()
                .ingress("web", "a.test", "/", "Prefix", "app", notes)
                .ingress("clear", "clear.test", "/", "Prefix", "clear", &[])
                .service("app", &addrs)
                .service("clear", &[clear.addr()]),
        )
    };
    let splitter = start(&[HTTPS]);
    for _ in 0..6 {
        let mut client = splitter.client();
        client.send("POST /x HTTP/1.1\r\nHost: a.test\r\nContent-Length: 4\r\n\r\nbody");
        assert_eq!(client.answer("POST").text(), "body");
    }
    assert_eq!(splitter.faults("upstream-tls"), 0.0);
    // That it has no TLS does not matter to others.
    assert_eq!(splitter.get("clear.test", "/").text(), "clear");
    assert!(
        clear
            .seen()
            .iter()
            .all(|seen| seen.field("host") == Some("clear.test"))
    );

    let splitter = start(&[HTTPS, ("proxy-next-upstream", "off")]);
    let statuses: Vec<_> = (0..6).map(|_| splitter.get("a.test", "/").status).collect();
    let refused = statuses.iter().filter(|it| **it == 502).count();
    assert!(refused > 0 && statuses.contains(&200), "{statuses:?}");
    assert_eq!(splitter.faults("upstream-tls"), refused as f64);
}

#[test]
fn the_time_to_connect_is_for_the_handshake_too() {
    let silent = Backend::scripted(|conversation| conversation.wait_for_close());
    let splitter = Splitter::start(
        &Manifests::new()
            .ingress(
                "web",
                "a.test",
                "/",
                "Prefix",
                "app",
                &[HTTPS, ("proxy-connect-timeout", "1")],
            )
            .service("app", &[silent.addr()]),
    );
    assert_eq!(splitter.get("a.test", "/").status, 504);
    assert_eq!(splitter.faults("connect-timeout"), 1.0);
}
