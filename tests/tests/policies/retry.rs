use std::time::Duration;

use splitter::config::Defaults;
use splitter_tests::backend::Backend;
use splitter_tests::client::Answer;
use splitter_tests::instance::Splitter;
use splitter_tests::manifests::Manifests;

/// Closes as soon as it has read a request.
fn closing() -> Backend {
    Backend::scripted(|conversation| {
        conversation.request();
    })
}

/// Never answers.
fn silent() -> Backend {
    Backend::scripted(|conversation| {
        conversation.request();
        conversation.wait_for_close();
    })
}

fn unavailable() -> Backend {
    Backend::answering("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nbusy")
}

fn asked(backends: &[Backend]) -> usize {
    backends.iter().map(|backend| backend.seen().len()).sum()
}

fn service(backends: &[Backend], notes: &[(&str, &str)]) -> Splitter {
    let addrs: Vec<_> = backends.iter().map(Backend::addr).collect();
    Splitter::start(
        &Manifests::new()
            .ingress("web", "a.test", "/", "Prefix", "app", notes)
            .service("app", &addrs),
    )
}

fn post(splitter: &Splitter) -> Answer {
    let mut client = splitter.client();
    client.send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 0\r\n\r\n");
    client.answer("POST")
}

#[test]
fn as_often_as_is_written() {
    for (notes, tries) in [
        (&[][..], 3),
        (&[("proxy-next-upstream-tries", "1")], 1),
        (&[("proxy-next-upstream-tries", "2")], 2),
        (&[("proxy-next-upstream-tries", "0")], 5),
        (&[("proxy-next-upstream-tries", "100")], 5),
        (&[("proxy-next-upstream", "off")], 1),
        (&[("proxy-next-upstream", "error off timeout")], 1),
        (&[("proxy-next-upstream", "http_500 timeout")], 1),
        (&[("proxy-next-upstream", "error")], 3),
    ] {
        let backends: Vec<_> = (0..5).map(|_| closing()).collect();
        let splitter = service(&backends, notes);
        splitter.get("a.test", "/").assert_own(502);
        assert_eq!(asked(&backends), tries, "{notes:?}");
    }
}

#[test]
fn after_a_timeout_only_where_that_is_written() {
    let read = ("proxy-read-timeout", "1");
    for (notes, tries) in [
        (&[read][..], 1),
        (&[read, ("proxy-next-upstream", "error")], 1),
        (&[read, ("proxy-next-upstream", "error timeout")], 2),
    ] {
        let backends = [silent(), silent()];
        let splitter = service(&backends, notes);
        splitter.get("a.test", "/").assert_own(504);
        assert_eq!(asked(&backends), tries, "{notes:?}");
    }
}

#[test]
fn after_a_status_only_where_that_is_written() {
    let backends = [unavailable(), unavailable(), Backend::named("good")];
    let splitter = service(&backends, &[("proxy-next-upstream", "error http_503")]);
    for _ in 0..6 {
        assert_eq!(splitter.get("a.test", "/").text(), "good");
    }
    assert!(asked(&backends[..2]) > 0);
    let splitter = service(&backends, &[("proxy-next-upstream", "error http_502")]);
    let statuses = (0..3).map(|_| splitter.get("a.test", "/").status);
    let mut statuses: Vec<_> = statuses.collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 503, 503]);
}

/// When everybody has answered with it, it is the answer.
#[test]
fn the_last_bad_status_is_passed_on() {
    for count in 1..=4 {
        let backends: Vec<_> = (0..count).map(|_| unavailable()).collect();
        let splitter = service(&backends, &[("proxy-next-upstream", "http_503")]);
        let answer = splitter.get("a.test", "/");
        assert_eq!((answer.status, &*answer.text()), (503, "busy"));
        assert_eq!(asked(&backends), count.min(3));
    }
}

#[test]
fn an_answer_that_is_none_only_where_that_is_written() {
    for (words, tries) in [("error", 1), ("invalid_header", 2)] {
        let backends = [
            Backend::answering("nonsense\r\n\r\n"),
            Backend::answering("nonsense\r\n\r\n"),
        ];
        let splitter = service(&backends, &[("proxy-next-upstream", words)]);
        splitter.get("a.test", "/").assert_own(502);
        assert_eq!(asked(&backends), tries, "{words}");
    }
}

#[test]
fn what_may_have_been_done_only_where_that_is_written() {
    for (words, tries) in [("error", 1), ("error non_idempotent", 2)] {
        let backends = [closing(), closing()];
        let splitter = service(&backends, &[("proxy-next-upstream", words)]);
        post(&splitter).assert_own(502);
        assert_eq!(asked(&backends), tries, "{words}");
    }
}

#[test]
fn not_after_the_time_is_over() {
    let late = || {
        Backend::scripted(|conversation| {
            conversation.request();
            conversation.pause(Duration::from_millis(1_200));
        })
    };
    for (seconds, tries) in [("1", 1), ("0", 3)] {
        let backends = [late(), late(), late()];
        let splitter = service(&backends, &[("proxy-next-upstream-timeout", seconds)]);
        splitter.get("a.test", "/").assert_own(502);
        assert_eq!(asked(&backends), tries, "{seconds}");
    }
}

/// The ConfigMap says it for all, the Ingress for itself.
#[test]
fn defaults_hold_where_the_ingress_says_nothing() {
    for (notes, tries) in [(&[][..], 2), (&[("proxy-next-upstream-tries", "4")], 4)] {
        let backends: Vec<_> = (0..5).map(|_| closing()).collect();
        let addrs: Vec<_> = backends.iter().map(Backend::addr).collect();
        let manifests = Manifests::new()
            .ingress("web", "a.test", "/", "Prefix", "app", notes)
            .service("app", &addrs);
        let splitter = Splitter::start_with(&manifests, |settings| {
            let key = "proxy-next-upstream-tries".to_owned();
            settings.class.defaults = Defaults {
                values: [(key, "2".to_owned())].into(),
                ..Defaults::default()
            }
            .into();
        });
        splitter.get("a.test", "/").assert_own(502);
        assert_eq!(asked(&backends), tries, "{notes:?}");
    }
}

/// However much is tried again, the other side is not asked.
#[test]
fn never_of_the_other_variant() {
    let words = "error timeout invalid_header http_503 http_500 non_idempotent";
    let notes = [("proxy-next-upstream", words)];
    for (forced, bad, good) in [("always", "canary", "app"), ("never", "app", "canary")] {
        let bad_pods = [closing(), unavailable(), closing()];
        let good_pod = Backend::named("good");
        let addrs: Vec<_> = bad_pods.iter().map(Backend::addr).collect();
        let manifests = Manifests::new()
            .ingress("web", "a.test", "/", "Prefix", "app", &notes)
            .canary("c", "a.test", "/", "canary", &[("canary-by-header", "x")])
            .service(bad, &addrs)
            .service(good, &[good_pod.addr()]);
        let splitter = Splitter::start(&manifests);
        for _ in 0..4 {
            let answer = splitter.get_with("a.test", "/", &format!("x: {forced}\r\n"));
            assert!(matches!(answer.status, 502 | 503), "{answer:?}");
        }
        assert_eq!(good_pod.seen().len(), 0);
        assert_eq!(asked(&bad_pods), 12);
    }
}

#[test]
fn bad_words_are_reported_and_count_as_not_set() {
    for (name, value, code) in [
        ("proxy-next-upstream", "http_418", "next-upstream-invalid"),
        (
            "proxy-next-upstream",
            "error,timeout",
            "next-upstream-invalid",
        ),
        ("proxy-next-upstream-tries", "-1", "next-upstream-invalid"),
        ("proxy-next-upstream-tries", "17", "next-upstream-too-many"),
        ("proxy-next-upstream-timeout", "5s", "next-upstream-invalid"),
    ] {
        let backends = [closing(), Backend::named("good")];
        let splitter = service(&backends, &[(name, value)]);
        for _ in 0..2 {
            assert_eq!(splitter.get("a.test", "/").text(), "good");
        }
        assert_eq!(splitter.problems(), [format!("web: {code}")], "{value}");
    }
}
