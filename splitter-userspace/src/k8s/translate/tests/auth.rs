//! Who may call, by what a client knows or was given: each annotation, and what closes an Ingress.

use std::sync::Arc;

use super::support::{Ing, main, objects, service, show};
use crate::config::{ClassSettings, Defaults};
use crate::k8s::{Translation, translate};
use crate::model::{Algorithm, External, Guarded, Jwt, KeySource, TokenPlace, UserLayout};

const OBJECTS: &str = "---
apiVersion: v1
kind: Secret
metadata: {name: users, namespace: ns}
stringData: {auth: 'ann:{PLAIN}secret'}
---
apiVersion: v1
kind: Secret
metadata: {name: users, namespace: other}
stringData: {auth: 'ann:{PLAIN}secret'}
---
apiVersion: v1
kind: Secret
metadata: {name: map, namespace: ns}
stringData: {ann: '{PLAIN}secret'}
---
apiVersion: v1
kind: Secret
metadata: {name: keys, namespace: ns}
stringData: {jwks: '{}', ca.crt: x}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: keys, namespace: ns}
data: {jwks: '{}'}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: fields, namespace: ns}
data: {X-Key: value}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: bad, namespace: ns}
data: {Host: value}
";

pub(super) fn run(ingress: Ing) -> Translation {
    run_with(ingress, &ClassSettings::default())
}

fn run_with(ingress: Ing, settings: &ClassSettings) -> Translation {
    let yaml = format!("{}{OBJECTS}---\n{}", service("ns", "m"), ingress.yaml());
    translate(&objects(&yaml), settings)
}

/// An Ingress with these annotations.
pub(super) fn noted(notes: &[(&str, &str)]) -> Ing {
    let noted = notes
        .iter()
        .fold(main("i"), |it, (name, value)| match name.contains('/') {
            true => it.raw_note(name, value),
            false => it.note(name, value),
        });
    noted.on("a", "/", "m")
}

/// What its Location asks for; none when nothing.
pub(super) fn guarded(translation: &Translation) -> Option<Guarded> {
    let policy = translation.snapshot.locations[0].policy.as_deref();
    policy.and_then(|it| it.guards.as_deref()).cloned()
}

/// That it is closed, for one reason which names this annotation.
#[track_caller]
pub(super) fn closed(notes: &[(&str, &str)], named: &str) {
    let translation = run(noted(notes));
    assert_eq!(
        show(&translation.snapshot),
        ["a/ (Prefix): m!GuardInvalid=100"],
        "{notes:?}"
    );
    let problems = translation.problems.iter();
    let fields: Vec<_> = problems.map(|it| (it.code, it.field.as_str())).collect();
    let field = match named.contains('/') {
        true => format!("metadata.annotations.{named}"),
        false => format!("metadata.annotations.nginx.ingress.kubernetes.io/{named}"),
    };
    assert_eq!(fields, [("auth-invalid", field.as_str())], "{notes:?}");
    assert_eq!(guarded(&translation), None, "{notes:?}");
}

const BASIC: (&str, &str) = ("auth-type", "basic");

#[test]
fn basic_names_a_secret_in_one_of_two_layouts() {
    for (notes, layout, realm) in [
        (&[BASIC, ("auth-secret", "users")][..], UserLayout::File, ""),
        (
            &[
                BASIC,
                ("auth-secret", "ns/users"),
                ("auth-realm", "Shop \"1\""),
            ],
            UserLayout::File,
            "Shop \"1\"",
        ),
        (
            &[
                BASIC,
                ("auth-secret", "map"),
                ("auth-secret-type", "auth-map"),
            ],
            UserLayout::Map,
            "",
        ),
    ] {
        let translation = run(noted(notes));
        assert_eq!(*translation.problems, [], "{notes:?}");
        let basic = guarded(&translation).unwrap().basic.unwrap();
        assert_eq!((basic.layout, &*basic.realm), (layout, realm));
        assert!(translation.secrets.contains_key(&basic.users), "{notes:?}");
        assert_eq!(translation.secrets.len(), 1, "no other Secret is held");
    }
}

#[test]
fn what_would_be_open_in_ingress_nginx_is_closed() {
    closed(&[("auth-secret", "users")], "auth-secret");
    closed(&[("auth-type", ""), ("auth-secret", "users")], "auth-type");
    closed(
        &[("auth-type", "Basic"), ("auth-secret", "users")],
        "auth-type",
    );
    closed(
        &[("auth-type", "digest"), ("auth-secret", "users")],
        "auth-type",
    );
    closed(&[BASIC], "auth-type");
    closed(&[BASIC, ("auth-secret", "")], "auth-secret");
    closed(&[BASIC, ("auth-secret", "nobody")], "auth-secret");
    closed(&[BASIC, ("auth-secret", "other/users")], "auth-secret");
    closed(&[BASIC, ("auth-secret", "map")], "auth-secret");
    let users = ("auth-secret", "users");
    closed(&[BASIC, users, ("auth-realm", "off")], "auth-realm");
    closed(&[BASIC, users, ("auth-realm", "a\nb")], "auth-realm");
    closed(
        &[BASIC, users, ("auth-secret-type", "auth-list")],
        "auth-secret-type",
    );
}

#[test]
fn one_guard_is_enough_only_where_there_is_one() {
    let users = ("auth-secret", "users");
    let any = |notes: &[_]| guarded(&run(noted(notes))).map(|it| it.any);
    assert_eq!(any(&[BASIC, users, ("satisfy", "any")]), Some(true));
    assert_eq!(any(&[BASIC, users, ("satisfy", "all")]), Some(false));
    assert_eq!(any(&[BASIC, users, ("satisfy", "some")]), Some(false));
    assert_eq!(any(&[("satisfy", "any")]), None);
}

#[test]
fn a_challenge_is_open_and_nothing_that_only_looks_like_one() {
    let users = ("auth-secret", "users");
    let mut ingress = noted(&[BASIC, users]);
    let acme = "/.well-known/acme-challenge/";
    for path in ["token", "a|/admin", ".*"] {
        ingress = ingress.path("b", &format!("{acme}{path}"), "Prefix", "m");
    }
    let translation = run(ingress.path("c", "/x/.well-known/acme-challenge", "Prefix", "m"));
    let locations = translation.snapshot.locations.iter();
    let open = locations.filter(|it| it.policy.as_ref().is_none_or(|it| it.guards.is_none()));
    let open: Vec<_> = open.map(|it| &*it.key.path).collect();
    assert_eq!(open, [format!("{acme}token")]);
}

/// `no-auth-locations` of the ConfigMap.
#[test]
fn what_nobody_guards_is_said_for_all_ingresses() {
    let users = ("auth-secret", "users");
    let open = |value: Option<&str>| {
        let mut ingress = noted(&[BASIC, users]);
        for path in [
            "/.well-known/acme-challenge/x",
            "/health",
            "/healthy/x",
            "/admin",
        ] {
            ingress = ingress.path("b", path, "Prefix", "m");
        }
        let values = value.map(|it| ("no-auth-locations".to_owned(), it.to_owned()));
        let settings = ClassSettings {
            defaults: Arc::new(Defaults {
                values: values.into_iter().collect(),
                ..Defaults::default()
            }),
            ..ClassSettings::default()
        };
        let translation = run_with(ingress, &settings);
        let locations = translation.snapshot.locations.iter();
        let open = locations.filter(|it| it.policy.as_ref().is_none_or(|it| it.guards.is_none()));
        let open = open.map(|it| it.key.path.to_string());
        let codes = translation.problems.iter().map(|it| it.code);
        (open.collect::<Vec<_>>(), codes.collect::<Vec<_>>())
    };
    let acme = "/.well-known/acme-challenge/x";
    let paths = |all: &[&str]| all.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
    assert_eq!(open(None), (paths(&[acme]), vec![]));
    assert_eq!(open(Some("")), (paths(&[]), vec![]));
    let both = paths(&["/health", "/healthy/x"]);
    assert_eq!(open(Some(" /health , /none")), (both, vec![]));
    let bad = (paths(&[acme]), vec!["default-invalid"]);
    assert_eq!(open(Some("/health,admin")), bad);
    let (all, codes) = open(Some("/"));
    assert_eq!((all.len(), codes), (5, vec!["guards-off"]));
}

#[test]
fn authorities_of_a_service_that_proves_nothing_are_told_of() {
    let authorities = ("splitter.io/auth-url-ca-secret", "keys");
    let codes = |url: &str| {
        let translation = run(noted(&[("auth-url", url), authorities]));
        let codes = translation.problems.iter().map(|it| it.code);
        codes.collect::<Vec<_>>()
    };
    assert_eq!(codes("http://10.0.0.9/x"), ["auth-unused"]);
    assert_eq!(codes("https://10.0.0.9/x"), [""; 0]);
}

const ISSUER: (&str, &str) = ("splitter.io/jwt-issuer", "https://id.test");
const AUDIENCES: (&str, &str) = ("splitter.io/jwt-audiences", "shop, other");
const KEYS: (&str, &str) = ("splitter.io/jwt-jwks-secret", "keys");

fn jwt(more: &[(&str, &str)]) -> Jwt {
    let translation = run(noted(&[&[ISSUER, AUDIENCES], more].concat()));
    assert_eq!(*translation.problems, [], "{more:?}");
    guarded(&translation).unwrap().jwt.unwrap()
}

#[test]
fn a_token_has_an_issuer_audiences_and_keys() {
    let plain = jwt(&[KEYS]);
    assert_eq!(&*plain.issuer, "https://id.test");
    assert_eq!(
        plain.audiences.iter().map(|it| &**it).collect::<Vec<_>>(),
        ["shop", "other"]
    );
    assert!(!plain.algorithms.iter().any(Algorithm::is_symmetric));
    let header = TokenPlace::Header(http::header::AUTHORIZATION);
    assert_eq!((plain.places.len(), &plain.places[0]), (1, &header));
    assert!(!plain.forward && plain.leeway.as_secs() == 60);
    let all = jwt(&[
        ("splitter.io/jwt-jwks-url", "https://id.test:8443/keys?x=1"),
        ("splitter.io/jwt-jwks-ca-secret", "keys"),
        ("splitter.io/jwt-algorithms", "RS256, ES256"),
        ("splitter.io/jwt-type", "at+jwt"),
        ("splitter.io/jwt-leeway", "0"),
        ("splitter.io/jwt-header", "X-Token"),
        ("splitter.io/jwt-cookie", "session"),
        ("splitter.io/jwt-query", "access_token"),
        (
            "splitter.io/jwt-claims",
            "realm_access.roles=admin,ops; sub=ann",
        ),
        (
            "splitter.io/jwt-claim-headers",
            "sub=X-User, realm_access.roles=X-Roles",
        ),
        ("splitter.io/jwt-forward", "true"),
        ("splitter.io/jwt-realm", "shop"),
    ]);
    assert_eq!(
        (all.places.len(), all.claims.len(), all.headers.len()),
        (3, 2, 2)
    );
    assert_eq!(all.algorithms.iter().count(), 2);
    assert!(matches!(&all.keys, KeySource::Url(url) if url.authorities.is_some()));
    let map = jwt(&[("splitter.io/jwt-jwks-configmap", "keys")]);
    assert!(matches!(&map.keys, KeySource::Object(_)));
    jwt(&[KEYS, ("splitter.io/jwt-algorithms", "HS256")]);
}

#[test]
fn half_a_token_policy_closes() {
    let (issuer, audiences, keys) = (ISSUER.0, AUDIENCES.0, KEYS.0);
    closed(&[AUDIENCES, KEYS], audiences);
    closed(&[ISSUER, KEYS], issuer);
    closed(&[ISSUER, AUDIENCES], issuer);
    closed(
        &[("splitter.io/jwt-forward", "true")],
        "splitter.io/jwt-forward",
    );
    closed(&[(issuer, ""), AUDIENCES, KEYS], issuer);
    closed(&[ISSUER, (audiences, " , "), KEYS], issuer);
    closed(&[ISSUER, AUDIENCES, (keys, "users")], keys);
    let url = "splitter.io/jwt-jwks-url";
    closed(&[ISSUER, AUDIENCES, KEYS, (url, "https://id.test/")], url);
    for text in [
        "",
        "id.test",
        "ftp://id.test/",
        "https://a@id.test/",
        "https://id.test/#x",
    ] {
        closed(&[ISSUER, AUDIENCES, (url, text)], url);
    }
    let algorithms = "splitter.io/jwt-algorithms";
    let map = ("splitter.io/jwt-jwks-configmap", "keys");
    closed(&[ISSUER, AUDIENCES, map, (algorithms, "HS256")], algorithms);
    for text in ["none", "RS256,none", "", "rs256", "ES512"] {
        closed(&[ISSUER, AUDIENCES, KEYS, (algorithms, text)], algorithms);
    }
    let headers = "splitter.io/jwt-claim-headers";
    for text in [
        "sub",
        "sub=Authorization",
        "sub=X-Forwarded-For",
        "=X",
        "a..b=X-A",
        "sub=X_User",
    ] {
        closed(&[ISSUER, AUDIENCES, KEYS, (headers, text)], headers);
    }
}

fn external(notes: &[(&str, &str)]) -> External {
    let translation = run(noted(notes));
    assert_eq!(*translation.problems, [], "{notes:?}");
    guarded(&translation).unwrap().external.unwrap()
}

#[test]
fn a_service_is_found_by_its_url() {
    let plain = external(&[("auth-url", "http://auth.test:4180/check?x=$request_uri")]);
    assert_eq!((&*plain.host, &*plain.service.port), ("auth.test", "4180"));
    assert_eq!(
        (plain.tls, plain.method.as_str(), plain.timeout.as_secs()),
        (None, "GET", 10)
    );
    let own = external(&[("auth-url", "https://$host/oauth2/auth")]);
    assert_eq!(&*own.host, "a", "the host of the Location");
    let tls = own.tls.unwrap();
    assert!(tls.verify && tls.server_name && tls.secret.is_none());
    let off = [
        ("auth-url", "https://auth.test/"),
        ("splitter.io/auth-url-verify", "false"),
    ];
    assert!(!external(&off).tls.unwrap().verify);
    let inside = external(&[("auth-url", "http://m.ns.svc.cluster.local/")]);
    assert_eq!(
        (&*inside.service.namespace, &*inside.service.service),
        ("ns", "m")
    );
    let translation = run(noted(&[("auth-url", "http://auth.test/")]));
    let names: Vec<_> = translation.names.iter().map(|it| &**it).collect();
    assert_eq!(names, ["auth.test"], "it is looked up");
}

#[test]
fn the_place_to_come_back_to_is_added_unless_it_is_there() {
    for (page, parameter, expected) in [
        (
            "https://l.test",
            None,
            "https://l.test?rd=$scheme://$http_host$escaped_request_uri",
        ),
        (
            "https://l.test/?a",
            Some("back"),
            "https://l.test/?a&back=$scheme://$http_host$escaped_request_uri",
        ),
        (
            "https://l.test/?rd=$escaped_request_uri",
            None,
            "https://l.test/?rd=$escaped_request_uri",
        ),
    ] {
        let mut notes = vec![("auth-url", "http://auth.test/"), ("auth-signin", page)];
        notes.extend(parameter.map(|it| ("auth-signin-redirect-param", it)));
        assert_eq!(external(&notes).sign_in.unwrap().as_str(), expected);
    }
}

#[test]
fn a_misspelled_claim_closes_as_a_misspelled_secret_does() {
    let keys = ("splitter.io/jwt-jwks-secret", "keys");
    let claim = ("splitter.io/jwt-claim", "role=admin");
    let translation = run(noted(&[ISSUER, AUDIENCES, keys, claim]));
    let shown = show(&translation.snapshot);
    assert!(shown[0].contains("!Guard"), "{shown:?}");
}

#[test]
fn half_a_service_closes() {
    for name in [
        "auth-signin",
        "auth-response-headers",
        "auth-cache-key",
        "splitter.io/auth-url-timeout",
    ] {
        closed(&[(name, "https://x.test/")], name);
    }
    let url = ("auth-url", "http://auth.test/");
    for text in [
        "",
        "auth.test",
        "http://a@b.test/",
        "http://$http_host/",
        "ftp://x/",
        "http://a..b/",
    ] {
        closed(&[("auth-url", text)], "auth-url");
    }
    for (name, value) in [
        ("auth-proxy-set-headers", "nobody"),
        ("auth-proxy-set-headers", "other/fields"),
        ("auth-proxy-set-headers", "bad"),
        ("auth-cache-key", "everybody"),
        ("auth-cache-key", "$unknown"),
        ("auth-cache-duration", "200 5m; 401 1m"),
        ("auth-always-set-cookie", "perhaps"),
        ("auth-request-redirect", "https://a.test/%20$x"),
        ("auth-method", "GET POST"),
        ("auth-response-headers", "X-A, Host"),
        ("splitter.io/auth-url-timeout", "61"),
        ("splitter.io/auth-url-ca-secret", "users"),
    ] {
        closed(&[url, (name, value)], name);
    }
    let sent = external(&[url, ("auth-proxy-set-headers", "ns/fields")]).sent;
    assert_eq!((sent.len(), sent[0].0.as_str()), (1, "x-key"));
}

#[test]
fn a_host_that_clients_name_names_nobody_who_is_asked() {
    let noted = main("i").note("auth-url", "https://$host/auth");
    let translation = run(noted.on("*.a", "/", "m").on("b", "/", "m"));
    assert_eq!(
        show(&translation.snapshot),
        ["b/ (Prefix): m=100", "*.a/ (Prefix): m!GuardInvalid=100"]
    );
}
