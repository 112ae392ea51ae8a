use std::net::{IpAddr, Ipv4Addr};

use splitter_tests::backend::Backend;
use splitter_tests::client::Client;
use splitter_tests::eventually;
use splitter_tests::instance::Splitter;
use splitter_tests::manifests::Manifests;
use splitter_tests::tls::secret;

use super::{ASKS, BCRYPT, basic, before, users};

#[test]
fn a_name_with_its_password_passes_and_nothing_else() {
    let backend = Backend::named("app");
    let splitter = before(&backend, &ASKS);
    for user in ["ann", "bob", "kim"] {
        let answer = splitter.get_with("a.test", "/", &basic(user, "secret"));
        assert_eq!((answer.status, answer.text().as_str()), (200, "app"));
        assert_eq!(
            backend.last().field("authorization"),
            None,
            "it was for us alone"
        );
    }
    let seen = backend.seen().len();
    for fields in [
        String::new(),
        basic("ann", "Secret"),
        basic("ann", ""),
        basic("bob", "secret "),
        basic("nobody", "secret"),
        basic("", ""),
        "Authorization: Bearer YW5uOnNlY3JldA==\r\n".to_owned(),
        "Authorization: Basic ???\r\n".to_owned(),
        [basic("ann", "secret"), basic("ann", "secret")].concat(),
        "Proxy-Authorization: Basic YW5uOnNlY3JldA==\r\n".to_owned(),
    ] {
        let answer = splitter.get_with("a.test", "/", &fields);
        answer_is_a_challenge(&answer);
    }
    assert_eq!(backend.seen().len(), seen, "who is refused reaches no pod");
    assert_eq!(splitter.faults("basic-credentials-missing"), 5.0);
    assert_eq!(splitter.faults("basic-credentials-wrong"), 5.0);
    let refused = [("status", "401"), ("ingress", "web")];
    splitter.expect_sum("nginx_ingress_controller_requests", &refused, 10.0);
}

#[track_caller]
fn answer_is_a_challenge(answer: &splitter_tests::client::Answer) {
    answer.assert_own(401);
    assert_eq!(
        answer.field("www-authenticate"),
        Some(r#"Basic realm="Shop \"1\"""#)
    );
}

#[test]
fn a_changed_secret_counts_at_once_and_a_missing_one_closes() {
    let backend = Backend::named("app");
    let with = |users: &str| {
        Manifests::new()
            .ingress("web", "a.test", "/", "Prefix", "app", &ASKS)
            .service("app", &[backend.addr()])
            .raw(users)
    };
    let splitter = Splitter::start(&with(&users()));
    let status = |user: &str| {
        let answer = splitter.get_with("a.test", "/", &basic(user, "secret"));
        answer.status
    };
    assert_eq!((status("ann"), status("new")), (200, 401));
    splitter.apply(&with(&secret(
        "users",
        &[("auth", &format!("new:{BCRYPT}"))],
    )));
    eventually("the new user is known", || status("new") == 200);
    assert_eq!(status("ann"), 401, "what was remembered does not count");
    splitter.apply(&with(&secret("users", &[("auth", "junk")])));
    eventually("nobody is known", || status("new") == 401);
    assert_eq!(
        splitter.problems(),
        ["users: users-invalid", "users: users-invalid"]
    );
    splitter.apply(&with(&secret("others", &[("auth", "")])));
    eventually("it is closed", || status("new") == 503);
    splitter.apply(&with(&users()));
    eventually("ann is back", || status("ann") == 200);
}

#[test]
fn what_takes_long_holds_up_nobody_else() {
    const SLOW: &str = "$2y$12$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a";
    let backend = Backend::named("app");
    let manifests = Manifests::new()
        .ingress("web", "a.test", "/", "Prefix", "app", &ASKS)
        .main("open", "b.test", "/", "app")
        .service("app", &[backend.addr()])
        .raw(&secret("users", &[("auth", &format!("ann:{SLOW}"))]));
    let splitter = Splitter::start(&manifests);
    // More than one client may have checked at once, so that the last are refused.
    let mut flood: Vec<_> = (0..12)
        .map(|n| {
            let mut client = splitter.client();
            let fields = basic("ann", &n.to_string());
            client.send(format!("GET / HTTP/1.1\r\nHost: a.test\r\n{fields}\r\n"));
            client
        })
        .collect();
    assert_eq!(splitter.get("b.test", "/").status, 200);
    let other = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
    let mut other = Client::connect_from(other, splitter.http());
    let answer = other.get_with("a.test", "/", &basic("ann", "secret"));
    assert_eq!(answer.status, 401, "another client's turn comes");
    let statuses: Vec<_> = flood.iter_mut().map(|it| it.answer("GET").status).collect();
    let refused = statuses.iter().filter(|status| **status == 429).count();
    assert!(
        statuses.iter().all(|it| [401, 429].contains(it)),
        "{statuses:?}"
    );
    assert!(refused > 0, "{statuses:?}");
    assert_eq!(splitter.faults("basic-too-many-tries"), refused as f64);
}

#[test]
fn secrets_are_in_no_dump() {
    let backend = Backend::named("app");
    let splitter = before(&backend, &ASKS);
    splitter.get_with("a.test", "/", &basic("ann", "secret"));
    for page in ["/config_dump", "/problems"] {
        let dump = splitter.dump(page).to_string();
        assert!(
            !dump.contains("apr1") && !dump.contains("secret\""),
            "{page}"
        );
    }
    let dump = splitter.dump("/config_dump").to_string();
    assert!(dump.contains("\"users\""), "{dump}");
}
