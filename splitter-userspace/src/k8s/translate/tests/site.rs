//! What Ingresses say for whole hosts, and about https.

use super::support::{Ing, main, problems_of, run, show};
use crate::k8s::Translation;
use crate::model::{HttpsRedirect, Policy};

/// The policy of the Location that a line of [`show`] begins with.
fn policy<'t>(translation: &'t Translation, key: &str) -> Option<&'t Policy> {
    let mut locations = translation.snapshot.locations.iter();
    let location = locations.find(|it| it.key.to_string() == key);
    location.expect("the Location is there").policy.as_deref()
}

fn target<'t>(translation: &'t Translation, key: &str) -> Option<(&'t str, u16)> {
    let redirect = policy(translation, key)?.redirect.as_ref()?;
    Some((redirect.target.as_str(), redirect.status))
}

fn aliases(translation: &Translation) -> Vec<String> {
    let hosts = translation.snapshot.hosts.iter();
    let shown = hosts.filter(|host| !host.aliases.is_empty()).map(|host| {
        let names: Vec<_> = host.aliases.iter().map(ToString::to_string).collect();
        format!("{}: {}", host.pattern, names.join(" "))
    });
    shown.collect()
}

#[test]
fn further_names_are_the_hosts_own() {
    let translation = run(&[main("m")
        .note("server-alias", "b.test, *.C.test ,, b.test")
        .on("a.test", "/", "m")]);
    assert_eq!(aliases(&translation), ["a.test: b.test *.c.test"]);
    assert_eq!(*translation.problems, []);
}

#[test]
fn a_name_that_is_a_host_or_an_older_alias_loses() {
    let translation = run(&[
        main("m")
            .at(1)
            .note("server-alias", "b.test,c.test")
            .on("a.test", "/", "m"),
        main("m2")
            .at(2)
            .note("server-alias", "c.test,d.test,~^x,e:1")
            .on("b.test", "/", "m2"),
    ]);
    assert_eq!(aliases(&translation), ["a.test: c.test", "b.test: d.test"]);
    let field = "metadata.annotations.server-alias";
    assert_eq!(
        problems_of(&translation, "m"),
        [format!("{field} !alias-taken")]
    );
    assert_eq!(
        problems_of(&translation, "m2"),
        [
            format!("{field} !alias-invalid"),
            format!("{field} !alias-invalid"),
            format!("{field} !alias-taken"),
        ]
    );
}

#[test]
fn an_alias_that_is_taken_is_told_of_once_whatever_the_hosts() {
    let mut many = main("m").at(2).note("server-alias", "x.test,y.test");
    for number in 0..20 {
        many = many.on(&format!("h{number}.test"), "/", "m");
    }
    let translation = run(&[main("first").at(1).on("x.test", "/", "m2"), many]);
    // One is another's host, the other a further name of the first host already.
    let taken = "metadata.annotations.server-alias !alias-taken";
    assert_eq!(problems_of(&translation, "m"), [taken; 2]);
    assert_eq!(aliases(&translation), ["h0.test: y.test"]);
}

#[test]
fn app_root_is_for_the_root_of_the_host_whatever_the_path() {
    let translation = run(&[main("m").note("app-root", "/app").on("a", "/x", "m")]);
    assert_eq!(
        show(&translation.snapshot),
        ["a/ (Exact): m=100", "a/x (Prefix): m=100"]
    );
    let expected = Some(("$scheme://$http_host/app", 302));
    assert_eq!(target(&translation, "a/ (Exact)"), expected);
    assert_eq!(policy(&translation, "a/x (Prefix)"), None);
    assert_eq!(*translation.problems, []);
}

#[test]
fn app_root_takes_the_place_of_a_root_that_is_written() {
    let translation = run(&[
        main("m")
            .at(1)
            .note("app-root", "/app")
            .note("force-ssl-redirect", "true")
            .path("a", "/", "Exact", "m"),
        main("m2")
            .at(2)
            .note("app-root", "/other")
            .on("a", "/", "m2"),
    ]);
    let expected = Some(("$scheme://$http_host/app", 302));
    assert_eq!(target(&translation, "a/ (Exact)"), expected);
    assert_eq!(
        problems_of(&translation, "m2"),
        ["metadata.annotations.app-root app-root-taken"]
    );
}

#[test]
fn a_root_that_is_no_path_or_itself_is_reported() {
    for root in ["app", "https://b/", "/", "/a b", "/$nobody", "/a$"] {
        let translation = run(&[main("m").note("app-root", root).on("a", "/", "m")]);
        assert_eq!(
            show(&translation.snapshot),
            ["a/ (Prefix): m=100"],
            "{root}"
        );
        assert_eq!(
            problems_of(&translation, "m"),
            ["metadata.annotations.app-root !app-root-invalid"],
            "{root}"
        );
    }
}

fn with_www(host: &str) -> Ing {
    main("m")
        .note("from-to-www-redirect", "true")
        .on(host, "/x", "m")
}

#[test]
fn the_other_name_is_sent_to_the_host() {
    for (host, other) in [("a.test", "www.a.test"), ("www.a.test", "a.test")] {
        let translation = run(&[with_www(host)]);
        let expected = format!("$scheme://{host}$request_uri");
        let found = target(&translation, &format!("{other}/ (Prefix)"));
        assert_eq!(found, Some((expected.as_str(), 308)));
        assert_eq!(*translation.problems, []);
    }
}

#[test]
fn a_name_that_is_taken_or_has_no_www_is_not_redirected() {
    for (host, alias) in [("a.test", ""), ("b.test", "www.b.test"), ("*.a.test", "")] {
        let others = main("m2")
            .note("server-alias", alias)
            .on("www.a.test", "/", "m2");
        let translation = run(&[with_www(host), others]);
        assert_eq!(translation.snapshot.locations.len(), 2, "{host}");
        assert_eq!(
            problems_of(&translation, "m"),
            ["metadata.annotations.from-to-www-redirect www-redirect-taken"],
            "{host}"
        );
    }
}

/// What holds about https at `a.b.test/x` for an Ingress with TLS for `tls` (`-` for none).
fn https(tls: &str, notes: &[(&str, &str)], path: &str) -> Option<HttpsRedirect> {
    let mut ingress = main("m").on("a.b.test", path, "m");
    if tls != "-" {
        ingress = ingress.tls(tls);
    }
    for (name, value) in notes {
        ingress = ingress.note(name, value);
    }
    let translation = run(&[ingress]);
    policy(&translation, &format!("a.b.test{path} (Prefix)"))?.https
}

#[test]
fn hosts_with_tls_are_sent_to_https_unless_told_otherwise() {
    let sent = Some(HttpsRedirect {
        forced: false,
        keep_slash: false,
    });
    for (tls, notes, expected) in [
        ("-", &[][..], None),
        ("a.b.test", &[], sent),
        ("A.b.test", &[], sent),
        ("*.b.test", &[], sent),
        ("", &[], sent),
        ("c.test", &[], None),
        ("a.b.test", &[("ssl-redirect", "false")], None),
        ("a.b.test", &[("ssl-redirect", "no")], sent),
    ] {
        assert_eq!(https(tls, notes, "/x"), expected, "{tls} {notes:?}");
    }
    assert_eq!(
        https("a.b.test", &[], "/.well-known/acme-challenge/t"),
        None
    );
}

#[test]
fn forcing_needs_no_tls_and_slashes_can_stay() {
    let forced = [("force-ssl-redirect", "true"), ("ssl-redirect", "false")];
    let https = |notes: &[(&str, &str)]| https("-", notes, "/x");
    let expected = |keep_slash| {
        let forced = true;
        Some(HttpsRedirect { forced, keep_slash })
    };
    assert_eq!(https(&forced), expected(false));
    let keeping = [forced[0], ("preserve-trailing-slash", "true")];
    assert_eq!(https(&keeping), expected(true));
    assert_eq!(https(&[("force-ssl-redirect", "maybe")]), None);
}

#[test]
fn tls_of_one_ingress_is_for_the_whole_host() {
    let translation = run(&[
        main("m").tls("a.test").on("a.test", "/", "m"),
        main("m2").on("a.test", "/x", "m2"),
        main("c").on("b.test", "/", "c"),
    ]);
    let https = |key| policy(&translation, key).and_then(|it| it.https).is_some();
    assert!(https("a.test/ (Prefix)") && https("a.test/x (Prefix)"));
    assert!(!https("b.test/ (Prefix)"));
}
