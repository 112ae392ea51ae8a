use serde_json::{Value, json};
use splitter::config::AccessLog;
use splitter_tests::backend::Backend;
use splitter_tests::instance::Splitter;
use splitter_tests::issuer::{Key, bearer, claims, encode, in_seconds, jwks, with};
use splitter_tests::manifests::Manifests;
use splitter_tests::tls::secret;

const ISSUER: (&str, &str) = ("splitter.io/jwt-issuer", "https://id.test");
const AUDIENCES: (&str, &str) = ("splitter.io/jwt-audiences", "shop, other");
const KEYS: (&str, &str) = ("splitter.io/jwt-jwks-secret", "keys");

/// A splitter before `backend` that lets in tokens of `keys`.
fn site(backend: &Backend, keys: &[Value], more: &[(&str, &str)]) -> Splitter {
    let notes = [&[ISSUER, AUDIENCES, KEYS], more].concat();
    let manifests = Manifests::new()
        .ingress("web", "a.test", "/", "Prefix", "app", &notes)
        .service("app", &[backend.addr()])
        .raw(&secret("keys", &[("jwks", &jwks(keys))]));
    Splitter::start(&manifests)
}

fn status(splitter: &Splitter, fields: &str) -> u16 {
    splitter.get_with("a.test", "/", fields).status
}

#[test]
fn tokens_of_every_kind_of_key_let_in() {
    let backend = Backend::named("app");
    let keys = [Key::ec(), Key::rsa(), Key::ed()];
    let set = ["ec", "rsa", "ed"].map(str::to_owned);
    let set: Vec<_> = keys
        .iter()
        .zip(&set)
        .map(|(key, name)| key.jwk(name))
        .collect();
    let splitter = site(&backend, &set, &[]);
    for (key, name, alg) in [
        (&keys[0], "ec", "ES256"),
        (&keys[1], "rsa", "RS256"),
        (&keys[1], "rsa", "PS256"),
        (&keys[2], "ed", "EdDSA"),
    ] {
        let token = key.token(alg, name, &claims());
        for again in 0..2 {
            assert_eq!(status(&splitter, &bearer(&token)), 200, "{alg} {again}");
        }
        assert_eq!(backend.last().field("authorization"), None, "it was for us");
        let other = key.token(alg, "other", &claims());
        assert_eq!(status(&splitter, &bearer(&other)), 401, "{alg}");
    }
    assert_eq!(splitter.faults("token-key-unknown"), 4.0);
}

#[test]
fn each_refusal_says_why_and_reaches_no_pod() {
    let backend = Backend::named("app");
    let (key, stranger) = (Key::ec(), Key::ec());
    let splitter = site(
        &backend,
        &[key.jwk("one")],
        &[("splitter.io/jwt-realm", "shop")],
    );
    let none = format!(
        "{}.{}.",
        encode(r#"{"alg":"none"}"#),
        encode(claims().to_string())
    );
    let hs = Key::Secret(key.jwk("one")["x"].as_str().unwrap().into());
    let es = |claims: &Value| key.token("ES256", "one", claims);
    let crit = key.sign(
        &json!({"alg": "ES256", "kid": "one", "crit": ["x"], "x": 1}),
        &claims(),
    );
    let logout = key.sign(
        &json!({"alg": "ES256", "kid": "one", "typ": "logout+jwt"}),
        &claims(),
    );
    for (token, reason) in [
        (none, "token-algorithm"),
        (hs.token("HS256", "one", &claims()), "token-algorithm"),
        (stranger.token("ES256", "one", &claims()), "token-signature"),
        (
            key.token("ES256", "../../x", &claims()),
            "token-key-unknown",
        ),
        (crit, "token-extension"),
        (logout, "token-type"),
        ("x".repeat(9000), "token-too-long"),
        ("a.b.c.d.e".to_owned(), "token-malformed"),
        (es(&with("exp", json!(in_seconds(-120)))), "token-expired"),
        (es(&with("nbf", json!(in_seconds(120)))), "token-not-yet"),
        (es(&with("exp", Value::Null)), "token-claims"),
        (es(&with("exp", json!("9999999999"))), "token-claims"),
        (es(&with("iss", json!("https://evil.test"))), "token-issuer"),
        (es(&with("iss", Value::Null)), "token-claims"),
        (es(&with("aud", json!(["elsewhere"]))), "token-audience"),
        (es(&with("aud", Value::Null)), "token-claims"),
    ] {
        let before = splitter.faults(reason);
        let answer = splitter.get_with("a.test", "/", &bearer(&token));
        answer.assert_own(401);
        let how = answer.field("www-authenticate").unwrap();
        assert!(
            how.starts_with(r#"Bearer realm="shop", error="invalid_token", error_description=""#),
            "{how}"
        );
        assert_eq!(splitter.faults(reason), before + 1.0, "{reason}");
    }
    let answer = splitter.get("a.test", "/");
    answer.assert_own(401);
    assert_eq!(
        answer.field("www-authenticate"),
        Some(r#"Bearer realm="shop""#)
    );
    assert_eq!(splitter.faults("token-missing"), 1.0);
    let good = es(&claims());
    let twice = [bearer(&good), bearer(&good)].concat();
    assert_eq!(status(&splitter, &twice), 401);
    assert_eq!(backend.seen().len(), 0);
    assert_eq!(status(&splitter, &bearer(&good)), 200);
    // Nothing of tokens or keys is told.
    let dump = splitter.dump("/config_dump").to_string();
    assert!(!dump.contains(key.jwk("one")["x"].as_str().unwrap()));
}

#[test]
fn claims_authorise_and_are_told_to_pods_by_us_alone() {
    let backend = Backend::named("app");
    let key = Key::ec();
    let notes = [
        ("splitter.io/jwt-claims", "roles=admin,owner; sub=ann,bob"),
        (
            "splitter.io/jwt-claim-headers",
            "sub=X-User, roles=X-Roles, team=X-Team",
        ),
    ];
    let splitter = site(&backend, &[key.jwk("one")], &notes);
    let es = |claims: &Value| bearer(&key.token("ES256", "one", claims));
    // Nor can a client have what we say taken out as a field of its connection (RFC 9110 7.6.1).
    let spoofed = "X-User: root\r\nX-Team: root\r\nX-Team: ops\r\nX_User: root\r\n\
        Connection: X-User, X-Roles\r\n";
    let answer = splitter.get_with("a.test", "/", &[spoofed, &es(&claims())].concat());
    assert_eq!(answer.status, 200);
    let seen = backend.last();
    assert_eq!(seen.field("x-user"), Some("ann"));
    assert_eq!(seen.field("x-roles"), Some("reader,admin"));
    assert_eq!(seen.field("x-team"), None, "the token says nothing of it");
    assert_eq!(seen.field("x_user"), None);
    for (name, value) in [
        ("roles", json!(["reader"])),
        ("sub", json!("eve")),
        ("roles", Value::Null),
    ] {
        let answer = splitter.get_with("a.test", "/", &es(&with(name, value)));
        answer.assert_own(403);
        let how = answer.field("www-authenticate").unwrap();
        assert!(how.contains(r#"error="insufficient_scope""#), "{how}");
    }
    assert_eq!(splitter.faults("token-denied"), 3.0);
    assert_eq!(backend.seen().len(), 1);
}

#[test]
fn a_token_is_found_where_it_is_said_to_be_and_goes_on_if_it_is_to() {
    let backend = Backend::reflecting();
    let key = Key::ec();
    let token = key.token("ES256", "one", &claims());
    let cookie = format!("Cookie: a=1; tok={token}; b=2\r\n");
    let query = format!("/x?a=1&tok={token}&b");
    let places = [
        ("splitter.io/jwt-cookie", "tok"),
        ("splitter.io/jwt-query", "tok"),
    ];
    let taken = site(&backend, &[key.jwk("one")], &places);
    assert_eq!(taken.get_with("a.test", "/", &bearer(&token)).status, 401);
    assert_eq!(taken.get_with("a.test", "/", &cookie).status, 200);
    assert_eq!(backend.last().field("cookie"), Some("a=1; b=2"));
    assert_eq!(taken.get("a.test", &query).text(), "/x?a=1&b");
    let rewrite = [&places[..], &[("rewrite-target", "/new")]].concat();
    let rewritten = site(&backend, &[key.jwk("one")], &rewrite);
    assert_eq!(rewritten.get("a.test", &query).text(), "/new?a=1&b");
    let forward = [&places[..], &[("splitter.io/jwt-forward", "true")]].concat();
    let left = site(&backend, &[key.jwk("one")], &forward);
    assert_eq!(left.get("a.test", &query).text(), query);
    assert_eq!(left.get_with("a.test", "/", &cookie).status, 200);
    assert!(backend.last().field("cookie").unwrap().contains(&token));
}

#[test]
fn a_token_in_the_query_is_in_no_log() {
    let backend = Backend::named("app");
    let key = Key::ec();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("access.log");
    let query = ("splitter.io/jwt-query", "tok");
    let notes = [ISSUER, AUDIENCES, KEYS, query];
    let denied = [
        ISSUER,
        AUDIENCES,
        KEYS,
        query,
        ("denylist-source-range", "127.0.0.0/8"),
    ];
    let manifests = Manifests::new()
        .ingress("web", "a.test", "/", "Prefix", "app", &notes)
        .ingress("shut", "b.test", "/", "Prefix", "app", &denied)
        .service("app", &[backend.addr()])
        .raw(&secret("keys", &[("jwks", &jwks(&[key.jwk("one")]))]));
    let splitter = Splitter::start_with(&manifests, |settings| {
        settings.access_log = AccessLog::File(path.clone());
    });
    let token = key.token("ES256", "one", &claims());
    for (host, token, status) in [
        ("a.test", token.as_str(), 200),
        ("a.test", "a.b.c", 401),
        // Refused before anybody looks at the token.
        ("b.test", token.as_str(), 403),
    ] {
        let answer = splitter.get(host, &format!("/x?a=1&tok={token}"));
        assert_eq!(answer.status, status);
    }
    splitter.stop();
    let log = std::fs::read_to_string(&path).unwrap();
    assert_eq!(log.matches("/x?a=1 ").count(), 3, "{log}");
    assert!(!log.contains("tok="), "{log}");
}

#[test]
fn a_shared_secret_counts_only_where_it_is_asked_for() {
    let backend = Backend::named("app");
    let key = Key::Secret(vec![7; 32]);
    let token = key.token("HS256", "one", &claims());
    let not_asked = site(&backend, &[key.jwk("one"), Key::ec().jwk("two")], &[]);
    assert_eq!(status(&not_asked, &bearer(&token)), 401);
    let asked = [("splitter.io/jwt-algorithms", "HS256")];
    let asked = site(&backend, &[key.jwk("one")], &asked);
    assert_eq!(status(&asked, &bearer(&token)), 200);
    let other = Key::ec();
    let rsa = site(
        &backend,
        &[other.jwk("one")],
        &[("splitter.io/jwt-algorithms", "RS256")],
    );
    let es = other.token("ES256", "one", &claims());
    assert_eq!(status(&rsa, &bearer(&es)), 401, "it is not listed");
}

#[test]
fn keys_may_be_in_a_config_map_and_change() {
    let backend = Backend::named("app");
    let (old, new) = (Key::ec(), Key::ec());
    let with_keys = |keys: &[Value]| {
        let map = secret("keys", &[("jwks", &jwks(keys))]);
        let map = map
            .replace("kind: Secret", "kind: ConfigMap")
            .replace("stringData", "data");
        let named = ("splitter.io/jwt-jwks-configmap", "keys");
        Manifests::new()
            .ingress(
                "web",
                "a.test",
                "/",
                "Prefix",
                "app",
                &[ISSUER, AUDIENCES, named],
            )
            .service("app", &[backend.addr()])
            .raw(&map)
    };
    let splitter = Splitter::start(&with_keys(&[old.jwk("old")]));
    let token = |key: &Key, name| bearer(&key.token("ES256", name, &claims()));
    let (by_old, by_new) = (token(&old, "old"), token(&new, "new"));
    assert_eq!(
        (status(&splitter, &by_old), status(&splitter, &by_new)),
        (200, 401)
    );
    splitter.apply(&with_keys(&[new.jwk("new")]));
    splitter_tests::eventually("the new key counts", || status(&splitter, &by_new) == 200);
    assert_eq!(
        status(&splitter, &by_old),
        401,
        "what was remembered does not count"
    );
    splitter.apply(&with_keys(&[json!({"kty": "oct", "k": encode([1; 32])})]));
    splitter_tests::eventually("it is told", || {
        splitter.problems() == ["keys: jwks-invalid"]
    });
    assert_eq!(status(&splitter, &by_new), 200, "the last good keys stay");
}

#[test]
fn without_keys_it_is_closed() {
    let backend = Backend::named("app");
    let key = Key::ec();
    let splitter = site(&backend, &[], &[]);
    let token = bearer(&key.token("ES256", "one", &claims()));
    assert_eq!(status(&splitter, &token), 503);
    assert_eq!(splitter.faults("token-keys-missing"), 1.0);
    assert_eq!(splitter.problems(), ["keys: jwks-invalid"]);
}
