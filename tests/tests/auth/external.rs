use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};

use splitter::config::{Defaults, Settings};
use splitter_tests::backend::Backend;
use splitter_tests::client::Answer;
use splitter_tests::eventually;
use splitter_tests::instance::Splitter;
use splitter_tests::manifests::Manifests;

use super::{ASKS, basic, users};

/// Lets in who sends this cookie, and tells who it is.
pub(super) fn authenticator() -> Backend {
    Backend::scripted(|conversation| {
        while let Some(request) = conversation.request() {
            let known = request.field("cookie") == Some("session=good");
            let head = match known {
                true => {
                    "202 Accepted\r\nX-Auth-Request-User: ann\r\nX-Auth-Request-Groups: a\r\n\
                     X-Auth-Request-Groups: b\r\nSet-Cookie: session=good; HttpOnly\r\n\
                     Set-Cookie: second=1"
                }
                false => {
                    "401 Unauthorized\r\nWWW-Authenticate: Cookie\r\nWWW-Authenticate: Other\r\n\
                     Set-Cookie: csrf=1"
                }
            };
            conversation.send(format!("HTTP/1.1 {head}\r\nContent-Length: 2\r\n\r\nhi"));
        }
    })
}

fn local(settings: &mut Settings) {
    settings.names.allow_local = true;
}

/// `a.test/` before `backend`, guarded by a service, and `b.test/` guarded by nobody.
pub(super) fn site(
    backend: &Backend,
    service: &Backend,
    path: &str,
    more: &[(&str, &str)],
) -> Splitter {
    let url = format!("http://{}{path}", service.addr());
    let notes = [&[("auth-url", url.as_str())], more].concat();
    let manifests = Manifests::new()
        .ingress("web", "a.test", "/", "Prefix", "app", &notes)
        .main("open", "b.test", "/", "app")
        .service("app", &[backend.addr()])
        .raw(&users())
        .raw(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: headers, namespace: demo}\n\
             data: {X-Key: between us}",
        );
    Splitter::start_with(&manifests, local)
}

pub(super) const GOOD: &str = "Cookie: session=good\r\n";

/// As the documentation of oauth2-proxy has it.
#[test]
fn oauth2_proxy_lets_in_tells_who_it_is_and_signs_in() {
    let (app, service) = (Backend::named("app"), authenticator());
    let splitter = site(
        &app,
        &service,
        "/oauth2/auth",
        &[
            (
                "auth-signin",
                "https://$host/oauth2/start?rd=$escaped_request_uri",
            ),
            (
                "auth-response-headers",
                "X-Auth-Request-User, X-Auth-Request-Groups, X-Missing",
            ),
        ],
    );
    let spoofed = "X-Auth-Request-User: root\r\nX-Missing: root\r\n\
        Connection: X-Auth-Request-User\r\n";
    let fields = [GOOD, spoofed, "Content-Type: a/b\r\nContent-Length: 2\r\n"].concat();
    let mut client = splitter.client();
    client.send(format!(
        "POST /x%20y?q=1 HTTP/1.1\r\nHost: A.test:81\r\n{fields}\r\nhi"
    ));
    let answer = client.answer("POST");
    assert_eq!((answer.status, answer.text().as_str()), (200, "app"));
    let cookies = answer.all("set-cookie");
    assert_eq!(
        cookies,
        ["session=good; HttpOnly", "second=1"],
        "each by itself"
    );
    let seen = app.last();
    assert_eq!(seen.body, b"hi");
    assert_eq!(seen.field("x-auth-request-user"), Some("ann"));
    assert_eq!(seen.all("x-auth-request-groups"), ["a", "b"]);
    assert_eq!(seen.field("x-missing"), None);
    let asked = service.last();
    assert_eq!(asked.line, "GET /oauth2/auth HTTP/1.1");
    for (name, value) in [
        ("host", "127.0.0.1"),
        ("x-original-url", "http://A.test:81/x%20y?q=1"),
        ("x-original-method", "POST"),
        ("x-original-uri", "/x%20y?q=1"),
        ("x-forwarded-uri", "/x%20y?q=1"),
        ("x-forwarded-method", "POST"),
        ("x-forwarded-host", "A.test:81"),
        ("x-forwarded-proto", "http"),
        ("x-forwarded-for", "127.0.0.1"),
        ("x-real-ip", "127.0.0.1"),
        ("x-sent-from", "nginx-ingress-controller"),
        ("x-auth-request-redirect", "/x%20y?q=1"),
        ("cookie", "session=good"),
    ] {
        assert_eq!(asked.field(name), Some(value), "{name}");
    }
    for name in ["content-length", "content-type", "transfer-encoding"] {
        assert_eq!(asked.field(name), None, "{name}");
    }
    assert_eq!(asked.field("x-request-id"), seen.field("x-request-id"));
    let moved = splitter.get("a.test", "/x?q=1");
    assert_eq!(moved.status, 302);
    assert_eq!(
        moved.field("location"),
        Some("https://a.test/oauth2/start?rd=%2Fx%3Fq%3D1")
    );
    assert_eq!(moved.field("set-cookie"), Some("csrf=1"));
    assert_eq!(app.seen().len(), 1);
    assert_eq!(splitter.faults("auth-signin"), 1.0);
}

/// As the documentation of Authelia has it.
#[test]
fn authelia_is_asked_with_its_method_and_gets_the_place_to_come_back_to() {
    let (app, service) = (Backend::named("app"), authenticator());
    let splitter = site(
        &app,
        &service,
        "/api/authz/auth-request",
        &[
            ("auth-method", "GET"),
            ("auth-signin", "https://auth.test?rm=$request_method"),
            (
                "auth-response-headers",
                "Remote-User,Remote-Name,Remote-Groups,Remote-Email",
            ),
        ],
    );
    let moved = splitter.get("a.test", "/x?q=1");
    assert_eq!(moved.status, 302);
    assert_eq!(
        moved.field("location"),
        Some("https://auth.test?rm=GET&rd=http://a.test%2Fx%3Fq%3D1")
    );
    let answer = splitter.get_with("a.test", "/", &[GOOD, "Remote-User: root\r\n"].concat());
    assert_eq!(answer.status, 200);
    assert_eq!(app.last().field("remote-user"), None);
}

#[test]
fn a_refusal_is_passed_on_and_what_else_is_said_is_an_error() {
    let app = Backend::named("app");
    for (head, status, name) in [
        ("200 OK", 200, ""),
        ("204 No Content", 200, ""),
        (
            "401 Unauthorized\r\nWWW-Authenticate: A\r\nWWW-Authenticate: B",
            401,
            "auth-unauthorized",
        ),
        ("403 Forbidden", 403, "auth-forbidden"),
        ("302 Found\r\nLocation: /x", 500, "auth-service-answer"),
        ("404 Not Found", 500, "auth-service-answer"),
        ("429 Too Many Requests", 500, "auth-service-answer"),
        ("500 Oops", 500, "auth-service-answer"),
        ("nonsense", 500, "auth-service-unreachable"),
    ] {
        let service = Backend::answering(format!("HTTP/1.1 {head}\r\nContent-Length: 0\r\n\r\n"));
        let pages = [
            ("custom-http-errors", "401,403,500"),
            ("default-backend", "app"),
        ];
        let splitter = site(&app, &service, "/", &pages);
        let before = app.seen().len();
        let answer = splitter.get("a.test", "/");
        assert_eq!(answer.status, status, "{head}: no error page changes it");
        if status != 200 {
            assert_eq!(splitter.faults(name), 1.0, "{head}");
            assert_eq!(app.seen().len(), before, "{head}");
        }
        if status == 401 {
            assert_eq!(answer.all("www-authenticate"), ["A", "B"]);
        }
    }
}

#[test]
fn a_service_that_is_down_or_slow_closes_and_holds_up_nobody() {
    let app = Backend::named("app");
    let down = Backend::named("gone");
    let splitter = site(&app, &down, "/", &[]);
    drop(down);
    assert_eq!(splitter.get("a.test", "/").status, 500);
    assert_eq!(splitter.faults("auth-service-unreachable"), 1.0);
    let slow = Backend::scripted(|conversation| {
        conversation.request();
        conversation.wait_for_close();
    });
    let splitter = site(&app, &slow, "/", &[("splitter.io/auth-url-timeout", "1")]);
    let waiting: Vec<_> = (0..300)
        .map(|_| {
            let mut client = splitter.client();
            client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
            client
        })
        .collect();
    assert_eq!(splitter.get("b.test", "/").status, 200);
    let statuses: Vec<_> = waiting
        .into_iter()
        .map(|mut it| it.answer("GET").status)
        .collect();
    assert!(
        statuses.iter().all(|it| [500, 503].contains(it)),
        "{statuses:?}"
    );
    assert!(statuses.contains(&503), "only so many ask at once");
    assert!(splitter.faults("auth-service-timeout") > 0.0);
    assert!(splitter.faults("auth-service-busy") > 0.0);
    assert_eq!(app.seen().len(), 1);
}

/// Answers with 200 and counts.
pub(super) fn counting(head: &'static str) -> Backend {
    Backend::answering(format!("HTTP/1.1 {head}\r\nContent-Length: 0\r\n\r\n"))
}

fn asked(notes: &[(&str, &str)], head: &'static str, fields: [&str; 3]) -> usize {
    let (app, service) = (Backend::named("app"), counting(head));
    let splitter = site(&app, &service, "/", notes);
    for fields in fields {
        splitter.get_with("a.test", "/", fields);
    }
    service.seen().len()
}

#[test]
fn answers_are_remembered_by_what_the_key_names() {
    let key = (
        "auth-cache-key",
        "$remote_user$http_authorization$cookie_session",
    );
    let (ann, bob) = (basic("ann", "a"), basic("bob", "b"));
    assert_eq!(asked(&[], "200 OK", [&ann, &ann, &ann]), 3);
    assert_eq!(asked(&[key], "200 OK", [&ann, &ann, &ann]), 1);
    assert_eq!(asked(&[key], "401 No", [&ann, &ann, &ann]), 1);
    assert_eq!(asked(&[key], "200 OK", [&ann, &bob, &ann]), 2);
    assert_eq!(
        asked(&[key], "200 OK", ["", "", ""]),
        3,
        "nothing is no key"
    );
    assert_eq!(
        asked(&[key], "403 No", [&ann, &ann, &ann]),
        3,
        "not by default"
    );
    let set = "200 OK\r\nSet-Cookie: a=b";
    assert_eq!(
        asked(&[key], set, [&ann, &ann, &ann]),
        3,
        "a cookie is for one"
    );
    let private = "200 OK\r\nCache-Control: no-store";
    assert_eq!(asked(&[key], private, [&ann, &ann, &ann]), 3);
    let only = [key, ("auth-cache-duration", "401 5m")];
    assert_eq!(asked(&only, "200 OK", [&ann, &ann, &ann]), 3);
    let short = [key, ("auth-cache-duration", "200 0s")];
    assert_eq!(asked(&short, "200 OK", [&ann, &ann, &ann]), 3);
}

#[test]
fn what_is_remembered_is_forgotten_when_somebody_else_is_asked() {
    let (app, yes, no) = (
        Backend::named("app"),
        counting("200 OK"),
        counting("403 Forbidden"),
    );
    let asking = |service: &Backend| {
        let url = format!("http://{}/", service.addr());
        let notes = [
            ("auth-url", &*url),
            ("auth-cache-key", "$http_authorization"),
        ];
        Manifests::new()
            .ingress("web", "a.test", "/", "Prefix", "app", &notes)
            .service("app", &[app.addr()])
    };
    let splitter = Splitter::start_with(&asking(&yes), local);
    let ann = basic("ann", "a");
    let status = || splitter.get_with("a.test", "/", &ann).status;
    assert_eq!((status(), status()), (200, 200));
    assert_eq!(yes.seen().len(), 1);
    splitter.apply(&asking(&no));
    eventually("the other one decides", || status() == 403);
}

#[test]
fn what_cannot_be_asked_for_lets_nobody_in() {
    let (app, service) = (Backend::named("app"), counting("200 OK"));
    let splitter = site(&app, &service, "/?a=$escaped_request_uri", &[]);
    let long = format!("/{}", "=".repeat(25_000));
    assert_eq!(splitter.get("a.test", &long).status, 414);
    assert_eq!(splitter.faults("auth-target-too-long"), 1.0);
    assert_eq!((app.seen().len(), service.seen().len()), (0, 0));
}

#[test]
fn headers_of_a_config_map_are_sent_and_shown_to_nobody_else() {
    let (app, service) = (Backend::named("app"), counting("200 OK"));
    let notes = [
        ("auth-proxy-set-headers", "demo/headers"),
        ("auth-request-redirect", "https://a.test/back"),
        ("auth-method", "HEAD"),
    ];
    let splitter = site(&app, &service, "/?u=$request_uri", &notes);
    let answer = splitter.get_with(
        "a.test",
        "/x",
        "X-Key: mine\r\nX-Forwarded-Prefix: /evil\r\n",
    );
    assert_eq!(answer.status, 200);
    let asked = service.last();
    assert_eq!(asked.line, "HEAD /?u=/x HTTP/1.1");
    assert_eq!(asked.field("x-key"), Some("between us"));
    assert_eq!(
        asked.field("x-auth-request-redirect"),
        Some("https://a.test/back")
    );
    assert_eq!(asked.field("x-forwarded-prefix"), None);
    assert_eq!(app.last().field("x-key"), Some("mine"));
    assert!(
        !splitter
            .dump("/config_dump")
            .to_string()
            .contains("between us")
    );
}

#[test]
fn everybody_is_asked_where_the_config_map_says_so() {
    let (app, service) = (Backend::named("app"), authenticator());
    let url = format!("http://{}/auth", service.addr());
    let manifests = Manifests::new()
        .main("web", "a.test", "/", "app")
        .main(
            "solver",
            "a.test",
            "/.well-known/acme-challenge/token",
            "app",
        )
        .ingress(
            "out",
            "b.test",
            "/",
            "Prefix",
            "app",
            &[("enable-global-auth", "false")],
        )
        .ingress(
            "half",
            "c.test",
            "/",
            "Prefix",
            "app",
            &[
                ("enable-global-auth", "false"),
                ("auth-signin", "https://x/"),
            ],
        )
        .ingress(
            "own",
            "d.test",
            "/",
            "Prefix",
            "app",
            &[("auth-method", "POST")],
        )
        .service("app", &[app.addr()]);
    let start = |url: &str| {
        let mut defaults = Defaults::default();
        let values = [
            ("global-auth-url", url),
            ("global-auth-signin", "https://login.test/"),
            ("global-auth-response-headers", "X-Auth-Request-User"),
        ];
        let values = values.map(|(key, value)| (key.to_owned(), value.to_owned()));
        defaults.values = values.into_iter().collect();
        Splitter::start_with(&manifests, |settings| {
            local(settings);
            settings.class.defaults = Arc::new(defaults);
        })
    };
    let splitter = start(&url);
    let moved = splitter.get("a.test", "/");
    assert_eq!(
        moved.field("location"),
        Some("https://login.test/?rd=http://a.test%2F")
    );
    assert_eq!(splitter.get_with("a.test", "/", GOOD).status, 200);
    assert_eq!(app.last().field("x-auth-request-user"), Some("ann"));
    assert_eq!(splitter.get("b.test", "/").status, 200);
    // Who is meant to sign in, and asked by nobody, is not let in.
    assert_eq!(splitter.get("c.test", "/").status, 503);
    assert_eq!(splitter.get("d.test", "/").status, 302);
    let mut told = splitter.problems();
    told.sort();
    assert_eq!(told, ["half: auth-invalid", "own: auth-unused"]);
    let challenge = splitter.get("a.test", "/.well-known/acme-challenge/token");
    assert_eq!(challenge.status, 200, "an authority must reach it");
    let broken = start("auth.test/no-scheme");
    assert_eq!(broken.get("a.test", "/").status, 503, "not open");
    assert_eq!(broken.get("b.test", "/").status, 200);
}

#[test]
fn a_wrong_password_leads_to_the_place_to_sign_in_as_well() {
    let (app, service) = (Backend::named("app"), authenticator());
    let notes = [&ASKS[..], &[("auth-signin", "https://login.test/")]].concat();
    let splitter = site(&app, &service, "/", &notes);
    let both = [basic("ann", "secret"), GOOD.to_owned()].concat();
    let status = |fields: &str| splitter.get_with("a.test", "/", fields).status;
    assert_eq!(status(&both), 200);
    assert_eq!(status(&basic("ann", "x")), 302);
    assert_eq!(service.seen().len(), 1, "the first refusal answers");
    assert_eq!(status(&basic("ann", "secret")), 302);
}

#[test]
fn one_of_several_is_enough_where_it_says_so() {
    let (app, service) = (Backend::named("app"), authenticator());
    let notes = [&ASKS[..], &[("satisfy", "any")]].concat();
    let splitter = site(&app, &service, "/", &notes);
    let get = |fields: &str| -> Answer { splitter.get_with("a.test", "/", fields) };
    assert_eq!(get(&basic("ann", "secret")).status, 200);
    assert_eq!(service.seen().len(), 0);
    assert_eq!(get(GOOD).status, 200);
    let refused = get("");
    assert_eq!(refused.status, 401);
    assert_eq!(refused.all("www-authenticate").len(), 3, "each tells how");
}

#[test]
fn a_client_that_leaves_takes_the_question_with_it() {
    let app = Backend::named("app");
    let (sender, ended) = channel();
    let sender: Arc<Mutex<Sender<()>>> = Arc::new(Mutex::new(sender));
    let service = Backend::scripted(move |conversation| {
        conversation.request();
        conversation.wait_for_close();
        let _ = sender.lock().unwrap().send(());
    });
    let splitter = site(&app, &service, "/", &[]);
    let mut client = splitter.client();
    client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
    eventually("the service is asked", || !service.seen().is_empty());
    drop(client);
    ended.recv_timeout(splitter_tests::PATIENCE).unwrap();
    assert_eq!(app.seen().len(), 0);
}
