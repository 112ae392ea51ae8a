use splitter_tests::backend::Backend;
use splitter_tests::instance::Splitter;
use splitter_tests::manifests::Manifests;
use splitter_tests::tls::{Authority, Pair, shown};

use super::secure;

fn manifests(backend: &Backend) -> Manifests {
    Manifests::new().service("app", &[backend.addr()])
}

#[test]
fn exact_then_wildcard_then_default() {
    let backend = Backend::named("app");
    let ca = Authority::new("root");
    let (exact, wild, default) = (
        ca.issue(&["a.example.test"]),
        ca.issue(&["*.example.test"]),
        ca.issue(&["default.test"]),
    );
    let manifests = manifests(&backend)
        .tls("exact", &["a.example.test"])
        .main("exact", "a.example.test", "/", "app")
        .tls("wild", &["*.example.test"])
        .main("wild", "*.example.test", "/", "app")
        .raw(&exact.secret("exact"))
        .raw(&wild.secret("wild"))
        .raw(&default.secret("default"));
    let splitter = Splitter::start_with(&manifests, |settings| {
        secure(settings);
        settings.default_certificate = Some(splitter::config::NamespacedName {
            namespace: "demo".to_owned(),
            name: "default".to_owned(),
        });
    });
    let shown = |name: Option<&str>| shown(splitter.https(), name);
    assert_eq!(shown(Some("a.example.test")), exact.der());
    assert_eq!(shown(Some("A.Example.TEST")), exact.der());
    assert_eq!(shown(Some("b.example.test")), wild.der());
    // One label only.
    assert_eq!(shown(Some("c.b.example.test")), default.der());
    assert_eq!(shown(Some("example.test")), default.der());
    assert_eq!(shown(Some("unknown.test")), default.der());
    assert_eq!(shown(None), default.der());
    assert_eq!(splitter.problems(), Vec::<String>::new());
}

#[test]
fn a_bad_secret_is_reported_and_the_rest_is_untouched() {
    let backend = Backend::named("app");
    let ca = Authority::new("root");
    let (good, other) = (ca.issue(&["good.test"]), ca.issue(&["other.test"]));
    let mixed = Pair {
        chain: ca.issue(&["mixed.test"]).chain,
        key: other.key.clone(),
    };
    let old = ca.issue_with(&["old.test"], |params| {
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(2021, 1, 1);
    });
    let mut manifests = manifests(&backend);
    for name in ["good", "mixed", "foreign", "old", "missing", "rubbish"] {
        let host = format!("{name}.test");
        manifests = manifests.tls(name, &[&host]).main(name, &host, "/", "app");
    }
    let rubbish = Pair {
        chain: "rubbish".to_owned(),
        key: "rubbish".to_owned(),
    };
    let manifests = manifests
        .raw(&good.secret("good"))
        .raw(&mixed.secret("mixed"))
        .raw(&other.secret("foreign"))
        .raw(&old.secret("old"))
        .raw(&rubbish.secret("rubbish"));
    let splitter = Splitter::start_with(&manifests, secure);
    let mut problems = splitter.problems();
    problems.sort();
    assert_eq!(
        problems,
        [
            "foreign: certificate-not-for-host",
            "missing: secret-not-found",
            "mixed: secret-invalid",
            "old: certificate-expired",
            "rubbish: secret-invalid",
        ]
    );
    let default = shown(splitter.https(), None);
    for host in ["mixed.test", "foreign.test", "missing.test", "rubbish.test"] {
        assert_eq!(shown(splitter.https(), Some(host)), default, "{host}");
    }
    assert_eq!(shown(splitter.https(), Some("good.test")), good.der());
    // Better than one that is for somebody else.
    assert_eq!(shown(splitter.https(), Some("old.test")), old.der());
}

#[test]
fn a_further_name_has_the_certificate_of_its_host() {
    let backend = Backend::named("app");
    let pair = Authority::new("root").issue(&["a.test", "b.test"]);
    let alias = [("server-alias", "b.test,c.test")];
    let manifests = manifests(&backend)
        .tls("ab", &["a.test"])
        .ingress("web", "a.test", "/", "Prefix", "app", &alias)
        .raw(&pair.secret("ab"));
    let splitter = Splitter::start_with(&manifests, secure);
    assert_eq!(shown(splitter.https(), Some("b.test")), pair.der());
    // The certificate is not for this one.
    let default = shown(splitter.https(), None);
    assert_eq!(shown(splitter.https(), Some("c.test")), default);
    assert_eq!(splitter.problems(), ["web: certificate-not-for-host"]);
}

#[test]
fn the_older_ingress_decides() {
    let backend = Backend::named("app");
    let ca = Authority::new("root");
    let (first, second) = (ca.issue(&["a.test"]), ca.issue(&["a.test"]));
    let manifests = manifests(&backend)
        .created(2)
        .tls("second", &["a.test"])
        .main("young", "a.test", "/young", "app")
        .created(1)
        .tls("first", &["a.test"])
        .main("old", "a.test", "/", "app")
        .raw(&first.secret("first"))
        .raw(&second.secret("second"));
    let splitter = Splitter::start_with(&manifests, secure);
    assert_eq!(shown(splitter.https(), Some("a.test")), first.der());
    assert_eq!(splitter.problems(), ["young: tls-host-taken"]);
}

#[test]
fn no_key_is_ever_shown() {
    let backend = Backend::named("app");
    let pair = Authority::new("root").issue(&["a.test"]);
    let manifests = manifests(&backend)
        .tls("a", &["a.test"])
        .main("web", "a.test", "/", "app")
        .raw(&pair.secret("a"));
    let splitter = Splitter::start_with(&manifests, secure);
    let dump = splitter.dump("/config_dump").to_string();
    assert!(dump.contains("a.test"), "{dump}");
    // Any line of the key, or of the certificate, would be a line too many.
    for line in pair
        .key
        .lines()
        .chain(pair.chain.lines())
        .filter(|line| line.len() > 20)
    {
        assert!(!dump.contains(line), "{line}");
    }
}

#[test]
fn metrics_say_when_each_expires() {
    let backend = Backend::named("app");
    let pair = Authority::new("root").issue_with(&["a.test"], |params| {
        params.not_after = rcgen::date_time_ymd(2096, 1, 1);
    });
    let manifests = manifests(&backend)
        .tls("a", &["a.test"])
        .main("web", "a.test", "/", "app")
        .raw(&pair.secret("a"));
    let splitter = Splitter::start_with(&manifests, secure);
    let labels = [
        ("host", "a.test"),
        ("namespace", "demo"),
        ("secret_name", "a"),
        ("class", "k8s.io/ingress-nginx"),
    ];
    let metrics = splitter.metrics();
    let expires = metrics.sum("nginx_ingress_controller_ssl_expire_time_seconds", &labels);
    assert_eq!(expires, 3_976_214_400.0);
    let info = "nginx_ingress_controller_ssl_certificate_info";
    assert_eq!(metrics.sum(info, &labels), 1.0);
    let issuer = [
        ("issuer_common_name", "root"),
        ("public_key_algorithm", "ECDSA"),
    ];
    assert_eq!(metrics.sum(info, &issuer), 1.0);
}
