use splitter_tests::backend::Backend;
use splitter_tests::client::Answer;
use splitter_tests::instance::Splitter;
use splitter_tests::manifests::Manifests;

use super::{any_size, before, before_with};

const MIB: usize = 1 << 20;

/// Announces `length` bytes and sends them only if `sends`.
fn post(splitter: &Splitter, path: &str, length: usize, sends: bool) -> Answer {
    let mut client = splitter.client();
    client.send(format!(
        "POST {path} HTTP/1.1\r\nHost: a.test\r\nContent-Length: {length}\r\n\r\n"
    ));
    if sends {
        client.send(vec![b'x'; length]);
    }
    client.answer("POST")
}

fn post_chunks(splitter: &Splitter, chunks: &[usize]) -> Answer {
    let mut client = splitter.client();
    client.send("POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n");
    for chunk in chunks {
        client.send(format!("{chunk:x}\r\n{}\r\n", "x".repeat(*chunk)));
    }
    client.send("0\r\n\r\n");
    client.answer("POST")
}

#[test]
fn a_mebibyte_where_nothing_is_written() {
    let backend = Backend::named("main");
    let splitter = before(&backend, &[]);
    assert_eq!(post(&splitter, "/", MIB, true).status, 200);
    assert_eq!(backend.last().body.len(), MIB);
    // Refused by its announcement, before anything comes and before a pod hears of it.
    post(&splitter, "/", MIB + 1, false).assert_own(413);
    assert_eq!(backend.seen().len(), 1);
    assert_eq!(splitter.faults("body-too-large"), 1.0);
}

#[test]
fn what_is_written_holds_for_its_location_alone() {
    let backend = Backend::named("main");
    let splitter = Splitter::start_with(
        &Manifests::new()
            .ingress(
                "k",
                "a.test",
                "/k",
                "Prefix",
                "app",
                &[("proxy-body-size", "1k")],
            )
            .ingress(
                "m",
                "a.test",
                "/m",
                "Prefix",
                "app",
                &[("proxy-body-size", "2M")],
            )
            .ingress(
                "any",
                "a.test",
                "/any",
                "Prefix",
                "app",
                &[("proxy-body-size", "0")],
            )
            .main("main", "a.test", "/", "app")
            .service("app", &[backend.addr()]),
        |settings| settings.limits.max_body_bytes = 100,
    );
    for (path, most) in [
        ("/k", Some(1024)),
        ("/m", Some(2 * MIB)),
        ("/", Some(100)),
        ("/any", None),
    ] {
        let most_sent = most.unwrap_or(3 * MIB);
        assert_eq!(post(&splitter, path, most_sent, true).status, 200, "{path}");
        if let Some(most) = most {
            post(&splitter, path, most + 1, false).assert_own(413);
        }
    }
}

#[test]
fn a_body_that_does_not_say_its_length_is_cut_where_it_grows_too_large() {
    let backend = Backend::named("main");
    let splitter = before(&backend, &[("proxy-body-size", "1000")]);
    assert_eq!(post_chunks(&splitter, &[400, 600]).status, 200);
    assert_eq!(backend.last().body.len(), 1000);
    post_chunks(&splitter, &[400, 601]).assert_own(413);
    post_chunks(&splitter, &[100_000]).assert_own(413);
    assert_eq!(splitter.faults("body-too-large"), 2.0);
    // The pod got no whole request of them.
    assert_eq!(backend.seen().len(), 1);
    assert_eq!(splitter.get("a.test", "/").status, 200);
}

#[test]
fn a_client_that_waits_to_be_asked_is_not_asked() {
    let backend = Backend::named("main");
    let splitter = before(&backend, &[("proxy-body-size", "10")]);
    let mut client = splitter.client();
    client.send(
        "POST / HTTP/1.1\r\nHost: a.test\r\nExpect: 100-continue\r\nContent-Length: 11\r\n\r\n",
    );
    // The first answer is the last: no 100.
    client.answer("POST").assert_own(413);
    assert!(client.is_closed());
}

#[test]
fn a_redirect_takes_no_body_and_minds_none() {
    let backend = Backend::named("main");
    let notes = [
        ("permanent-redirect", "https://b.test/"),
        ("proxy-body-size", "1"),
    ];
    let splitter = before(&backend, &notes);
    assert_eq!(post(&splitter, "/", 100, true).status, 301);
}

#[test]
fn a_bad_size_is_reported_and_counts_as_not_set() {
    for value in ["1mb", "-1", "unlimited", "1.5m"] {
        let backend = Backend::named("main");
        let splitter = before(&backend, &[("proxy-body-size", value)]);
        assert_eq!(post(&splitter, "/", MIB, true).status, 200);
        post(&splitter, "/", MIB + 1, false).assert_own(413);
        assert_eq!(splitter.problems(), ["web: body-size-invalid"], "{value}");
    }
}

#[test]
fn no_limit_at_all_can_be_the_default() {
    let backend = Backend::named("main");
    let splitter = before_with(&backend, &[], any_size);
    assert_eq!(post(&splitter, "/", 3 * MIB, true).status, 200);
}
