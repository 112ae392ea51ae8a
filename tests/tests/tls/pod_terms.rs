//! How TLS with pods is narrowed down: `proxy-ssl-verify-depth`, `-protocols`, `-ciphers`, and
//! `--upstream-tls-verify`.

use rustls::ProtocolVersion;
use splitter_tests::instance::Splitter;
use splitter_tests::manifests::Manifests;
use splitter_tests::tls::{Authority, Pair, secret};
use splitter_tests::tls_backend::TlsBackend;

const HTTPS: (&str, &str) = ("backend-protocol", "HTTPS");
const SECRET: (&str, &str) = ("proxy-ssl-secret", "demo/pods");
const VERIFY: (&str, &str) = ("proxy-ssl-verify", "on");
const NAME: (&str, &str) = ("proxy-ssl-name", "pods.test");

fn before(
    backend: &TlsBackend,
    notes: &[(&str, &str)],
    authority: &Authority,
    strict: bool,
) -> Splitter {
    let manifests = Manifests::new()
        .ingress("web", "a.test", "/", "Prefix", "app", notes)
        .service("app", &[backend.addr()])
        .raw(&secret("pods", &[("ca.crt", authority.pem())]));
    Splitter::start_with(&manifests, |settings| {
        settings.class.upstream_tls_verify = strict;
    })
}

#[test]
fn a_pod_may_be_so_far_from_its_authority_and_no_further() {
    let root = Authority::new("root");
    let near = root.delegate("near");
    let far = near.delegate("far");
    let behind = |mut pair: Pair, chain: &[&Authority]| {
        chain.iter().for_each(|it| pair.chain.push_str(it.pem()));
        TlsBackend::new(&pair)
    };
    let names = ["pods.test"];
    let zero = TlsBackend::new(&root.issue(&names));
    let one = behind(near.issue(&names), &[&near]);
    let two = behind(far.issue(&names), &[&far, &near]);
    for (depth, statuses) in [
        (None, [200, 200, 502]),
        (Some("1"), [200, 200, 502]),
        (Some("2"), [200, 200, 200]),
        (Some("0"), [503; 3]),
        (Some("many"), [503; 3]),
    ] {
        let mut notes = vec![HTTPS, SECRET, VERIFY, NAME];
        notes.extend(depth.map(|depth| ("proxy-ssl-verify-depth", depth)));
        let got = [&zero, &one, &two].map(|backend| {
            let splitter = before(backend, &notes, &root, false);
            splitter.get("a.test", "/").status
        });
        assert_eq!(got, statuses, "{depth:?}");
    }
}

#[test]
fn pods_are_spoken_to_as_it_is_said() {
    let authority = Authority::new("pods");
    let pair = authority.issue(&["pods.test"]);
    let (new, old) = (ProtocolVersion::TLSv1_3, ProtocolVersion::TLSv1_2);
    let protocols = |value| ("proxy-ssl-protocols", value);
    for (backend, note, status, told) in [
        (new, protocols("TLSv1.3"), 200, 0),
        (old, protocols("TLSv1.3"), 502, 0),
        (old, protocols("TLSv1.2"), 200, 0),
        (new, protocols("TLSv1.2"), 502, 0),
        (old, protocols("TLSv1 TLSv1.1 TLSv1.2 TLSv1.3"), 200, 1),
        (new, protocols("SSLv3"), 200, 1),
        (
            old,
            ("proxy-ssl-ciphers", "ECDHE-ECDSA-AES128-GCM-SHA256"),
            200,
            0,
        ),
        // No pod with an ECDSA key speaks that.
        (
            old,
            ("proxy-ssl-ciphers", "ECDHE-RSA-AES128-GCM-SHA256"),
            502,
            0,
        ),
        (
            new,
            ("proxy-ssl-ciphers", "ECDHE-RSA-AES128-GCM-SHA256"),
            200,
            0,
        ),
        (old, ("proxy-ssl-ciphers", "DES-CBC3-SHA"), 200, 1),
    ] {
        let backend = TlsBackend::speaking(&pair, backend);
        let splitter = before(&backend, &[HTTPS, note], &authority, false);
        assert_eq!(splitter.get("a.test", "/").status, status, "{note:?}");
        assert_eq!(splitter.problems().len(), told, "{note:?}");
    }
}

#[test]
fn a_node_can_have_every_pod_prove_who_it_is() {
    let (authority, strangers) = (Authority::new("pods"), Authority::new("strangers"));
    let good = TlsBackend::new(&authority.issue(&["pods.test"]));
    let bad = TlsBackend::new(&strangers.issue(&["pods.test"]));
    let off = ("proxy-ssl-verify", "off");
    for (notes, of_good, of_bad, told) in [
        (&[HTTPS, SECRET, NAME][..], 200, 502, 0),
        (&[HTTPS, SECRET, NAME, off], 200, 502, 0),
        (&[HTTPS, SECRET], 503, 503, 1),
        (&[HTTPS, NAME], 503, 503, 1),
        (&[HTTPS], 503, 503, 1),
    ] {
        for (backend, status) in [(&good, of_good), (&bad, of_bad)] {
            let splitter = before(backend, notes, &authority, true);
            assert_eq!(splitter.get("a.test", "/").status, status, "{notes:?}");
            assert_eq!(splitter.problems().len(), told, "{notes:?}");
        }
    }
}
