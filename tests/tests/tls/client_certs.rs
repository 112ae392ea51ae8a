use std::sync::Arc;

use rcgen::SanType;
use rustls::HandshakeKind;
use splitter_tests::backend::Backend;
use splitter_tests::client::Answer;
use splitter_tests::eventually;
use splitter_tests::instance::Splitter;
use splitter_tests::manifests::Manifests;
use splitter_tests::tls::{Authority, Pair, connect, secret};

use super::secure;

/// A splitter whose `a.test` asks clients for a certificate, beside `b.test`, which does not.
struct Site {
    backend: Backend,
    server: Authority,
    people: Authority,
    splitter: Splitter,
}

fn manifests(
    backend: &Backend,
    pair: &Pair,
    annotations: &[(&str, &str)],
    authorities: &[(&str, &str)],
) -> Manifests {
    let all = [&[("auth-tls-secret", "demo/people")], annotations].concat();
    let in_clear = [("ssl-redirect", "false")];
    Manifests::new()
        .tls("ab", &["a.test", "b.test"])
        .ingress("a", "a.test", "/", "Prefix", "app", &all)
        .ingress("b", "b.test", "/", "Prefix", "app", &in_clear)
        .service("app", &[backend.addr()])
        .raw(&pair.secret("ab"))
        .raw(&secret("people", authorities))
}

impl Site {
    fn new(annotations: &[(&str, &str)]) -> Self {
        Self::with(annotations, |_| String::new())
    }

    /// With a list of what is revoked.
    fn with(annotations: &[(&str, &str)], revoked: impl Fn(&Authority) -> String) -> Self {
        let (server, people) = (Authority::new("servers"), Authority::new("people"));
        let backend = Backend::reflecting();
        let pair = server.issue(&["a.test", "b.test"]);
        let list = revoked(&people);
        let mut authorities = vec![("ca.crt", people.pem())];
        if !list.is_empty() {
            authorities.push(("ca.crl", &list));
        }
        let manifests = manifests(&backend, &pair, annotations, &authorities);
        let splitter = Splitter::start_with(&manifests, secure);
        Site {
            backend,
            server,
            people,
            splitter,
        }
    }

    fn get(&self, pair: Option<&Pair>) -> Answer {
        let config = match pair {
            Some(pair) => self.server.client_as(pair),
            None => self.server.client(),
        };
        let mut client = connect(self.splitter.https(), "a.test", &Arc::new(config));
        client.get("a.test", "/x")
    }

    /// What the last pod was told of the certificate.
    fn told(&self, name: &str) -> Option<String> {
        self.backend.last().field(name).map(str::to_owned)
    }
}

#[test]
fn each_mode_meets_each_client_as_nginx_has_it() {
    for (mode, none, good, untrusted, expired) in [
        ("on", 400, 200, 400, 400),
        ("nonsense", 400, 200, 400, 400),
        ("optional", 200, 200, 400, 400),
        ("optional_no_ca", 200, 200, 200, 400),
        ("off", 200, 200, 200, 200),
    ] {
        let site = Site::new(&[("auth-tls-verify-client", mode)]);
        let old = site.people.person_with("old", |params| {
            params.not_before = rcgen::date_time_ymd(2020, 1, 1);
            params.not_after = rcgen::date_time_ymd(2021, 1, 1);
        });
        let stranger = Authority::new("strangers").person("eve");
        let person = site.people.person("ann");
        for (pair, status) in [
            (None, none),
            (Some(&person), good),
            (Some(&stranger), untrusted),
            (Some(&old), expired),
        ] {
            assert_eq!(site.get(pair).status, status, "{mode}");
        }
    }
}

#[test]
fn pods_are_told_who_it_is_and_nobody_else_can_say_so() {
    let site = Site::new(&[
        ("auth-tls-verify-client", "optional_no_ca"),
        ("auth-tls-pass-certificate-to-upstream", "true"),
    ]);
    site.get(None);
    assert_eq!(site.told("ssl-client-verify").as_deref(), Some("NONE"));
    assert_eq!(site.told("ssl-client-subject-dn"), None);
    let person = site.people.person("ann");
    site.get(Some(&person));
    assert_eq!(site.told("ssl-client-verify").as_deref(), Some("SUCCESS"));
    let subject = site.told("ssl-client-subject-dn");
    assert_eq!(subject.as_deref(), Some("CN=ann,O=Test"));
    let issuer = site.told("ssl-client-issuer-dn");
    assert!(issuer.unwrap().starts_with("CN=people"));
    let escaped = person.chain.replace("\r\n", "\n");
    let escaped = escaped.replace('+', "%2B").replace('/', "%2F");
    let escaped = escaped
        .replace('=', "%3D")
        .replace(' ', "%20")
        .replace('\n', "%0A");
    assert_eq!(site.told("ssl-client-cert"), Some(escaped));
    site.get(Some(&Authority::new("strangers").person("eve")));
    let verify = site.told("ssl-client-verify");
    assert_eq!(verify.as_deref(), Some("FAILED:unknown-issuer"));

    // Also where nobody is asked, and in clear.
    let claims = "SSL-Client-Verify: SUCCESS\r\nssl-client-subject-dn: CN=ann\r\n\
                  ssl-client-cert: x\r\nssl-client-issuer-dn: x\r\n";
    assert_eq!(site.splitter.get_with("b.test", "/", claims).status, 200);
    for name in ["verify", "subject-dn", "issuer-dn", "cert"] {
        assert_eq!(site.told(&format!("ssl-client-{name}")), None, "{name}");
    }
}

#[test]
fn the_whole_common_name_must_match_and_only_of_a_good_certificate() {
    let site = Site::new(&[
        ("auth-tls-verify-client", "optional_no_ca"),
        ("auth-tls-match-cn", "CN=admin|root"),
    ]);
    for (name, status) in [
        ("admin", 200),
        ("root", 200),
        ("administrator", 403),
        ("x", 403),
    ] {
        assert_eq!(
            site.get(Some(&site.people.person(name))).status,
            status,
            "{name}"
        );
    }
    let stranger = Authority::new("strangers").person("admin");
    assert_eq!(site.get(Some(&stranger)).status, 403);
    assert_eq!(site.get(None).status, 403);
    assert_eq!(site.splitter.faults("client-certificate-denied"), 4.0);
}

#[test]
fn one_of_the_alternative_names_must_be_allowed_and_only_of_a_good_certificate() {
    let site = Site::new(&[
        ("auth-tls-verify-client", "optional_no_ca"),
        (
            "splitter.io/auth-tls-allowed-identities",
            "web.demo, spiffe://td.test/ns/shop/*",
        ),
    ]);
    let named = |of: &Authority, names: &[SanType]| {
        of.person_with("web.demo", |params| {
            params.subject_alt_names = names.to_vec();
        })
    };
    let dns = |name: &str| SanType::DnsName(name.try_into().unwrap());
    let uri = |name: &str| SanType::URI(name.try_into().unwrap());
    let shop = uri("spiffe://td.test/ns/shop/sa/web");
    for (names, status) in [
        (vec![], 403),
        (vec![dns("web.demo")], 200),
        (vec![dns("Web.Demo"), uri("urn:x")], 200),
        (vec![dns("web.demo.evil")], 403),
        (vec![uri("https://web.demo")], 403),
        (vec![shop.clone()], 200),
        (
            vec![
                dns("x"),
                uri("spiffe://td.test/ns/pay/sa/web"),
                shop.clone(),
            ],
            200,
        ),
        (vec![uri("spiffe://td.test/ns/shopping/sa/web")], 403),
        (
            vec![SanType::Rfc822Name("web.demo".try_into().unwrap())],
            403,
        ),
    ] {
        let person = named(&site.people, &names);
        assert_eq!(site.get(Some(&person)).status, status, "{names:?}");
    }
    let stranger = named(&Authority::new("strangers"), &[shop]);
    assert_eq!(site.get(Some(&stranger)).status, 403);
    assert_eq!(site.get(None).status, 403);
    assert_eq!(site.splitter.faults("client-certificate-denied"), 7.0);
    let fields = "X-Forwarded-Proto: https\r\nssl-client-verify: SUCCESS\r\n";
    let redirected = site.splitter.get_with("a.test", "/", fields);
    assert_ne!(redirected.status, 200, "never in clear");
}

#[test]
fn a_certificate_that_is_not_for_clients_is_none() {
    let site = Site::new(&[]);
    for (usage, status) in [
        (rcgen::ExtendedKeyUsagePurpose::ServerAuth, 400),
        (rcgen::ExtendedKeyUsagePurpose::ClientAuth, 200),
    ] {
        let person = site.people.person_with("ann", |params| {
            params.extended_key_usages = vec![usage.clone()];
        });
        assert_eq!(site.get(Some(&person)).status, status, "{usage:?}");
    }
}

#[test]
fn a_location_that_needs_a_certificate_is_not_served_in_clear() {
    let site = Site::new(&[]);
    assert_eq!(site.splitter.get("a.test", "/").status, 308);
    let site = Site::new(&[("ssl-redirect", "false")]);
    assert_eq!(site.splitter.get("a.test", "/").status, 403);
    assert_eq!(site.splitter.get("b.test", "/").status, 200);
    assert_eq!(site.splitter.faults("client-certificate-needs-tls"), 1.0);
}

#[test]
fn another_hosts_connection_does_not_lead_past_it() {
    let site = Site::new(&[]);
    let config = Arc::new(site.server.client_as(&site.people.person("ann")));
    let mut client = connect(site.splitter.https(), "b.test", &config);
    assert_eq!(client.get("b.test", "/").status, 200);
    assert_eq!(client.get("a.test", "/").status, 421);
    assert_eq!(client.get("A.Test:443", "/").status, 421);
    assert_eq!(client.get("b.test", "/").status, 200);
    // The other way nothing is asked for.
    let mut client = connect(site.splitter.https(), "a.test", &config);
    assert_eq!(client.get("A.Test:443", "/").status, 200);
    assert_eq!(client.get("b.test", "/").status, 200);
}

#[test]
fn hosts_under_one_wildcard_are_hosts_of_their_own() {
    let backend = Backend::reflecting();
    let (server, people) = (Authority::new("servers"), Authority::new("people"));
    let guard = ("auth-tls-secret", "demo/people");
    let manifests = Manifests::new()
        .tls("w", &["*.w.test", "open.w.test"])
        .ingress("w", "*.w.test", "/", "Prefix", "app", &[guard])
        .main("open", "open.w.test", "/", "app")
        .service("app", &[backend.addr()])
        .raw(&server.issue(&["*.w.test"]).secret("w"))
        .raw(&secret("people", &[("ca.crt", people.pem())]));
    let splitter = Splitter::start_with(&manifests, secure);
    let config = Arc::new(server.client_as(&people.person("ann")));
    let mut client = connect(splitter.https(), "X.w.test", &config);
    assert_eq!(client.get("x.W.test", "/").status, 200);
    assert_eq!(client.get("y.w.test", "/").status, 421);
    assert_eq!(client.get("open.w.test", "/").status, 200);
    let mut client = connect(splitter.https(), "open.w.test", &config);
    assert_eq!(client.get("x.w.test", "/").status, 421);
    assert_eq!(client.get("X.W.TEST", "/").status, 421);
}

#[test]
fn whoever_is_revoked_or_too_far_away_is_refused() {
    let site = Site::with(&[], |people| people.revoke(&[7]));
    let numbered = |number: u64| {
        site.people
            .person_with("ann", |params| params.serial_number = Some(number.into()))
    };
    assert_eq!(site.get(Some(&numbered(8))).status, 200);
    assert_eq!(site.get(Some(&numbered(7))).status, 400);

    let site = Site::new(&[]);
    let near = site.people.delegate("near");
    let far = near.delegate("far");
    let behind = |mut pair: Pair, chain: &[&Authority]| {
        chain.iter().for_each(|it| pair.chain.push_str(it.pem()));
        pair
    };
    let one = behind(near.person("ann"), &[&near]);
    let two = behind(far.person("ann"), &[&far, &near]);
    assert_eq!(site.get(Some(&one)).status, 200);
    assert_eq!(site.get(Some(&two)).status, 400);
    let site = Site {
        people: site.people,
        ..Site::new(&[("auth-tls-verify-depth", "2")])
    };
    // The same chain, now of strangers: the depth lets it through, the authority does not.
    assert_eq!(site.get(Some(&two)).status, 400);
}

#[test]
fn no_session_goes_on_past_a_change_of_authorities_or_of_what_they_revoked() {
    let site = Site::new(&[]);
    let person = site
        .people
        .person_with("ann", |params| params.serial_number = Some(7.into()));
    let config = Arc::new(site.server.client_as(&person));
    let ask = || {
        let mut client = connect(site.splitter.https(), "a.test", &config);
        let status = client.get("a.test", "/").status;
        (status, client.stream().conn.handshake_kind())
    };
    let (full, resumed) = (Some(HandshakeKind::Full), Some(HandshakeKind::Resumed));
    assert_eq!(ask(), (200, full));
    assert_eq!(ask(), (200, resumed));
    let pair = site.server.issue(&["a.test", "b.test"]);
    let apply = |authorities: &[(&str, &str)]| {
        let manifests = manifests(&site.backend, &pair, &[], authorities);
        site.splitter.apply(&manifests);
    };
    let others = [site.people.pem(), Authority::new("others").pem()].concat();
    for (authorities, status) in [
        // One more authority: nobody is let in or kept out by it, and yet nobody goes on.
        (vec![("ca.crt", others.as_str())], 200),
        (
            vec![
                ("ca.crt", site.people.pem()),
                ("ca.crl", &site.people.revoke(&[8])),
            ],
            200,
        ),
        (
            vec![
                ("ca.crt", site.people.pem()),
                ("ca.crl", &site.people.revoke(&[7])),
            ],
            400,
        ),
    ] {
        apply(&authorities);
        eventually("a session is made anew", || ask() == (status, full));
        // Only now is there a ticket that this state has given.
        assert_eq!(ask(), (status, resumed));
    }
}

#[test]
fn what_cannot_be_told_is_closed() {
    let authorities = Authority::new("people");
    let broken = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
    for (annotations, entries) in [
        (&[("auth-tls-secret", "demo/missing")][..], &[][..]),
        (&[("auth-tls-secret", "other/people")], &[]),
        (&[("auth-tls-secret", "people")], &[]),
        (&[("auth-tls-secret", "")], &[]),
        (&[("auth-tls-verify-client", "on")], &[]),
        (&[("auth-tls-secret", "demo/people")], &[("x", "no ca.crt")]),
        (&[("auth-tls-secret", "demo/people")], &[("ca.crt", broken)]),
        (
            &[
                ("auth-tls-secret", "demo/people"),
                ("auth-tls-match-cn", "admin"),
            ],
            &[("ca.crt", authorities.pem())],
        ),
        (
            &[("auth-tls-secret", "demo/people")],
            &[("ca.crt", authorities.pem()), ("ca.crl", broken)],
        ),
        (
            &[
                ("auth-tls-secret", "demo/people"),
                ("splitter.io/auth-tls-allowed-identities", "spiffe://*"),
            ],
            &[("ca.crt", authorities.pem())],
        ),
        (
            &[
                ("auth-tls-secret", "demo/people"),
                ("auth-tls-verify-client", "off"),
                ("splitter.io/auth-tls-allowed-identities", "a.test"),
            ],
            &[("ca.crt", authorities.pem())],
        ),
        (
            &[("splitter.io/auth-tls-allowed-identities", "a.test")],
            &[],
        ),
    ] {
        let backend = Backend::reflecting();
        let server = Authority::new("servers");
        let manifests = Manifests::new()
            .tls("a", &["a.test"])
            .ingress("a", "a.test", "/", "Prefix", "app", annotations)
            .service("app", &[backend.addr()])
            .raw(&server.issue(&["a.test"]).secret("a"))
            .raw(&secret("people", entries));
        let splitter = Splitter::start_with(&manifests, secure);
        let config = server.client_as(&authorities.person("ann"));
        let mut client = connect(splitter.https(), "a.test", &Arc::new(config));
        assert_eq!(client.get("a.test", "/").status, 503, "{annotations:?}");
        assert_eq!(splitter.problems().len(), 1, "{:?}", splitter.problems());
        assert_eq!(backend.seen().len(), 0);
    }
}

#[test]
fn whoever_shares_the_host_without_asking_is_told() {
    let backend = Backend::reflecting();
    let (server, people) = (Authority::new("servers"), Authority::new("people"));
    let pair = server.issue(&["a.test", "b.test"]);
    let authorities = [("ca.crt", people.pem())];
    let manifests = manifests(&backend, &pair, &[], &authorities);
    let splitter = Splitter::start_with(&manifests.main("c", "a.test", "/c", "app"), secure);
    let mut problems = splitter.problems();
    problems.retain(|it| it.ends_with("client-cert-not-shared"));
    assert_eq!(problems, ["c: client-cert-not-shared"]);
    let config = Arc::new(server.client());
    let mut client = connect(splitter.https(), "a.test", &config);
    assert_eq!(client.get("a.test", "/c").status, 200);
    assert_eq!(client.get("a.test", "/").status, 400);
}

#[test]
fn a_page_can_explain_it() {
    let site = Site::new(&[("auth-tls-error-page", "https://help.test/cert")]);
    let answer = site.get(None);
    assert_eq!(answer.status, 302);
    assert_eq!(answer.field("location"), Some("https://help.test/cert"));
    assert_eq!(site.backend.seen().len(), 0);
}
