//! What `explain` makes of a client's certificate.

use std::fs;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair, SanType,
};

use super::{splitter, stdout};

/// Somebody who vouches for clients, and his certificate.
fn authority(name: &str) -> (Issuer<'static, KeyPair>, String) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, name);
    let key = KeyPair::generate().unwrap();
    let pem = params.self_signed(&key).unwrap().pem();
    (Issuer::new(params, key), pem)
}

/// A certificate of `ann`, a workload of the shop.
fn certificate(by: &Issuer<'static, KeyPair>) -> String {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "ann");
    let uri = "spiffe://demo.test/ns/shop/sa/web".try_into().unwrap();
    params.subject_alt_names = vec![SanType::URI(uri)];
    let key = KeyPair::generate().unwrap();
    params.signed_by(&key, by).unwrap().pem()
}

/// An Ingress that needs a certificate of these authorities, with these annotations beside that.
fn manifests(authorities: &str, notes: &[(&str, &str)]) -> String {
    let guard = ("nginx.ingress.kubernetes.io/auth-tls-secret", "shop/ca");
    let notes = [guard].into_iter().chain(notes.iter().copied());
    let notes: String = notes
        .map(|(name, value)| format!("    {name}: {value}\n"))
        .collect();
    let lines: String = authorities
        .lines()
        .map(|line| format!("    {line}\n"))
        .collect();
    format!(
        "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata:\n  name: web\n  namespace: shop\n\
         \x20 annotations:\n{notes}spec:\n  ingressClassName: nginx\n\
         \x20 defaultBackend: {{service: {{name: app, port: {{number: 80}}}}}}\n\
         ---\napiVersion: v1\nkind: Secret\nmetadata: {{name: ca, namespace: shop}}\n\
         stringData:\n  ca.crt: |\n{lines}"
    )
}

#[test]
fn explain_judges_a_certificate_as_the_location_would() {
    let ((ours, authorities), (others, _)) = (authority("ours"), authority("others"));
    let (good, stranger) = (certificate(&ours), certificate(&others));
    let dir = tempfile::tempdir().unwrap();
    let (objects, shown) = (dir.path().join("objects"), dir.path().join("client.pem"));
    fs::create_dir(&objects).unwrap();
    let named = "splitter.io/auth-tls-allowed-identities";
    let cn = "nginx.ingress.kubernetes.io/auth-tls-match-cn";
    let lax = (
        "nginx.ingress.kubernetes.io/auth-tls-verify-client",
        "optional_no_ca",
    );
    for (notes, pem, says) in [
        (&[][..], &*good, "shop/ca: it lets in"),
        (
            &[(named, "spiffe://demo.test/ns/shop/*")],
            &good,
            "shop/ca: it lets in",
        ),
        (&[(cn, "CN=an+")], &good, "shop/ca: it lets in"),
        (
            &[(named, "spiffe://demo.test/ns/pay/*")],
            &good,
            "has none of the names: answers 403",
        ),
        (
            &[(cn, "CN=bob")],
            &good,
            "it is good, but not for [\"ann\"]: answers 403",
        ),
        (
            &[],
            &stranger,
            "it is not good (unknown-issuer): answers 400",
        ),
        (&[lax], &stranger, "shop/ca: it lets in"),
        (
            &[lax, (cn, "CN=ann")],
            &stranger,
            "it is of nobody who is known: answers 403",
        ),
        (&[], "nonsense", "what is given is none: answers 400"),
    ] {
        fs::write(objects.join("all.yaml"), manifests(&authorities, notes)).unwrap();
        fs::write(&shown, pem).unwrap();
        let line = [
            "explain",
            "--manifests",
            objects.to_str().unwrap(),
            "--path",
            "/",
        ];
        let line = [&line[..], &["--certificate", shown.to_str().unwrap()]].concat();
        let output = splitter(&line, &[]);
        let text = stdout(&output);
        assert!(text.contains(says), "{notes:?} {says}: {text} {output:?}");
        assert!(!text.contains("BEGIN CERTIFICATE"), "{text}");
        // Only who is let in is held up by what is behind it: there is no such Service.
        let behind = text.contains("503: stable is chosen");
        assert_eq!(behind, !says.contains("answers"), "{text}");
    }
}
