//! The session cookie itself.

use splitter_tests::backend::Backend;
use splitter_tests::instance::Splitter;
use splitter_tests::manifests::Manifests;

use super::before;

/// The cookie that a new client gets for these annotations beside `affinity: cookie`.
fn cookie(annotations: &[(&str, &str)], path: &str, fields: &str) -> String {
    let backend = Backend::named("main");
    let all = [&[("affinity", "cookie")], annotations].concat();
    let splitter = Splitter::start_with(
        &Manifests::new()
            .ingress("web", "a.test", path, "Prefix", "app", &all)
            .service("app", &[backend.addr()]),
        |settings| settings.use_forwarded_headers = true,
    );
    assert_eq!(splitter.problems(), [""; 0]);
    let answer = splitter.get_with("a.test", path, fields);
    assert_eq!(answer.status, 200);
    answer.field("set-cookie").expect("a cookie").to_owned()
}

/// The attributes, as a list.
fn attributes(cookie: &str) -> Vec<&str> {
    cookie.split("; ").skip(1).collect()
}

#[test]
fn by_default_it_is_for_the_locations_path_and_the_browsers_session() {
    let cookie = cookie(&[], "/shop", "");
    let (name, rest) = cookie.split_once('=').unwrap();
    let value = rest.split(';').next().unwrap();
    assert_eq!(name, "INGRESSCOOKIE");
    assert_eq!(value.len(), 32);
    assert!(value.bytes().all(|byte| byte.is_ascii_hexdigit()));
    assert_eq!(attributes(&cookie), ["Path=/shop", "HttpOnly"]);
}

#[test]
fn name_path_domain_and_max_age_are_as_written() {
    let cookie = cookie(
        &[
            ("session-cookie-name", "route"),
            ("session-cookie-path", "/"),
            ("session-cookie-domain", "a.test"),
            ("session-cookie-max-age", "3600"),
            ("session-cookie-samesite", "lax"),
        ],
        "/shop",
        "",
    );
    assert!(cookie.starts_with("route="), "{cookie}");
    assert_eq!(
        attributes(&cookie),
        [
            "Path=/",
            "Domain=a.test",
            "Max-Age=3600",
            "SameSite=Lax",
            "HttpOnly"
        ]
    );
}

#[test]
fn expires_is_a_date_so_many_seconds_from_now() {
    let cookie = cookie(&[("session-cookie-expires", "86400")], "/", "");
    let date = attributes(&cookie)
        .into_iter()
        .find_map(|it| it.strip_prefix("Expires="))
        .expect("a date");
    assert!(date.ends_with(" GMT"), "{date}");
}

#[test]
fn it_is_secure_on_encrypted_connections_and_when_told_to() {
    let secure = |annotations: &[(&str, &str)], fields: &str| {
        attributes(&cookie(annotations, "/", fields)).contains(&"Secure")
    };
    assert!(!secure(&[], ""));
    assert!(!secure(&[("session-cookie-secure", "false")], ""));
    assert!(secure(&[("session-cookie-secure", "true")], ""));
    assert!(secure(&[], "X-Forwarded-Proto: https\r\n"));
    assert!(secure(
        &[("session-cookie-secure", "false")],
        "X-Forwarded-Proto: https\r\n"
    ));
}

#[test]
fn same_site_none_is_left_out_for_browsers_that_misread_it() {
    let old = "User-Agent: Mozilla/5.0 Chrome/60.0 Safari/537.36\r\n";
    let new = "User-Agent: Mozilla/5.0 Chrome/120.0 Safari/537.36\r\n";
    let none = ("session-cookie-samesite", "None");
    let conditional = ("session-cookie-conditional-samesite-none", "true");
    let has = |annotations: &[(&str, &str)], agent| {
        attributes(&cookie(annotations, "/", agent)).contains(&"SameSite=None")
    };
    assert!(has(&[none], old));
    assert!(has(&[none, conditional], new));
    assert!(!has(&[none, conditional], old));
}

#[test]
fn a_client_that_has_it_is_given_none() {
    let backend = Backend::named("main");
    let splitter = before(&backend, &[("affinity", "cookie")]);
    let first = splitter.get("a.test", "/");
    let cookie = first.field("set-cookie").expect("a cookie");
    let pair = cookie.split(';').next().unwrap();
    let fields = format!("Cookie: other=1; {pair}\r\n");
    let second = splitter.get_with("a.test", "/", &fields);
    assert_eq!(second.all("set-cookie"), [""; 0]);
    let fields = format!("Cookie: {}\r\n", pair.to_lowercase());
    let third = splitter.get_with("a.test", "/", &fields);
    assert_eq!(third.all("set-cookie").len(), 1);
}

#[test]
fn the_pods_own_cookies_are_kept() {
    let backend = Backend::scripted(|conversation| {
        while conversation.request().is_some() {
            conversation.send("HTTP/1.1 200 OK\r\nSet-Cookie: own=1\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let splitter = before(&backend, &[("affinity", "cookie")]);
    let answer = splitter.get("a.test", "/");
    let cookies = answer.all("set-cookie");
    assert_eq!(cookies.len(), 2);
    assert_eq!(cookies[0], "own=1");
}

#[test]
fn bad_values_are_reported_and_take_the_safe_side() {
    for (name, value) in [
        ("affinity-mode", "sometimes"),
        ("session-cookie-name", "a b"),
        ("session-cookie-path", "x; Secure"),
        ("session-cookie-domain", "a;b"),
        ("session-cookie-expires", "soon"),
        ("session-cookie-max-age", "1h"),
        ("session-cookie-samesite", "Some"),
        ("session-cookie-secure", "yes"),
        ("session-cookie-conditional-samesite-none", "yes"),
        ("session-cookie-change-on-failure", "yes"),
    ] {
        let backend = Backend::named("main");
        let splitter = before(&backend, &[("affinity", "cookie"), (name, value)]);
        assert_eq!(splitter.problems(), ["web: affinity-invalid"], "{name}");
        let answer = splitter.get("a.test", "/");
        let cookie = answer.field("set-cookie").expect("a cookie");
        assert!(cookie.starts_with("INGRESSCOOKIE="), "{cookie}");
        assert_eq!(attributes(cookie), ["Path=/", "HttpOnly"], "{name}");
    }
    let backend = Backend::named("main");
    let splitter = before(&backend, &[("affinity", "ip")]);
    assert_eq!(splitter.problems(), ["web: affinity-invalid"]);
    assert_eq!(splitter.get("a.test", "/").all("set-cookie"), [""; 0]);
    let splitter = before(&backend, &[("session-cookie-name", "x")]);
    assert_eq!(splitter.problems(), ["web: affinity-missing"]);
}
