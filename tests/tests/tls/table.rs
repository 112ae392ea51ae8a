//! What is agreed on with whom, as a table in docs/tls.md: `UPDATE_DOCS=1` writes it anew.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, SupportedKxGroup, aws_lc_rs};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, SupportedCipherSuite, SupportedProtocolVersion};
use splitter_tests::backend::Backend;
use splitter_tests::instance::Splitter;
use splitter_tests::manifests::Manifests;
use splitter_tests::tls::{Authority, try_connect};

use super::secure;

/// A site with a certificate for ECDSA, and one for RSA.
struct Site {
    authority: Authority,
    splitter: Splitter,
    _backend: Backend,
}

const HOSTS: [(&str, &str); 2] = [("ecdsa.test", "ECDSA"), ("rsa.test", "RSA")];

impl Site {
    fn new() -> Self {
        let (backend, authority) = (Backend::reflecting(), Authority::new("root"));
        let mut manifests = Manifests::new().service("app", &[backend.addr()]);
        for (host, kind) in HOSTS {
            let pair = match kind {
                "RSA" => authority.issue_rsa(&[host]),
                _ => authority.issue(&[host]),
            };
            let name = kind.to_ascii_lowercase();
            manifests = manifests
                .tls(&name, &[host])
                .main(&name, host, "/", "app")
                .raw(&pair.secret(&name));
        }
        Site {
            splitter: Splitter::start_with(&manifests, secure),
            authority,
            _backend: backend,
        }
    }

    /// Whether a client that can do only this agrees on something.
    fn agrees(
        &self,
        host: &str,
        version: &'static SupportedProtocolVersion,
        suites: &[SupportedCipherSuite],
        groups: &[&'static dyn SupportedKxGroup],
    ) -> bool {
        let mut provider = aws_lc_rs::default_provider();
        if !suites.is_empty() {
            provider.cipher_suites = suites.to_vec();
        }
        if !groups.is_empty() {
            provider.kx_groups = groups.to_vec();
        }
        self.try_with(host, version, provider)
    }

    fn try_with(
        &self,
        host: &str,
        version: &'static SupportedProtocolVersion,
        provider: CryptoProvider,
    ) -> bool {
        let config = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&[version])
            .unwrap()
            .with_root_certificates(self.authority.roots())
            .with_no_client_auth();
        try_connect(self.splitter.https(), host, &Arc::new(config)).is_ok()
    }
}

/// What openssl agrees on with these arguments.
fn openssl(addr: SocketAddr, host: &str, args: &[&str]) -> bool {
    let output = Command::new("openssl")
        .args(["s_client", "-servername", host, "-connect"])
        .arg(addr.to_string())
        .args(args)
        .stdin(Stdio::null())
        .output()
        .expect("openssl is there");
    let text = String::from_utf8_lossy(&output.stdout);
    text.contains("Cipher is ") && !text.contains("Cipher is (NONE)")
}

const HEAD: &str = "<!-- Made by a test against a running splitter: UPDATE_DOCS=1 cargo test -p splitter-tests --test tls table -->
# TLS by default

What a client can agree on with splitter where no Ingress and no ConfigMap says anything
(`ssl-protocols`, `ssl-ciphers`). Everything else is refused: other suites of TLS 1.2 (CBC, DHE, static RSA,
CCM, RC4, 3DES, NULL), other groups, compression, renegotiation, early data.
";

fn page(site: &Site) -> String {
    let addr = site.splitter.https();
    let host = HOSTS[0].0;
    let verdict = |agrees: bool| if agrees { "yes" } else { "no" };
    let mut page = format!("{HEAD}\n| version | |\n|---|---|\n");
    for (name, flag) in [("TLS 1.0", "-tls1"), ("TLS 1.1", "-tls1_1")] {
        let agrees = openssl(addr, host, &[flag, "-cipher", "ALL:@SECLEVEL=0"]);
        writeln!(page, "| {name} | {} |", verdict(agrees)).unwrap();
    }
    for (name, version) in [("TLS 1.2", &TLS12), ("TLS 1.3", &TLS13)] {
        let agrees = site.agrees(host, version, &[], &[]);
        writeln!(page, "| {name} | {} |", verdict(agrees)).unwrap();
    }
    page.push_str("\n| suite | ECDSA certificate | RSA certificate |\n|---|---|---|\n");
    for suite in aws_lc_rs::ALL_CIPHER_SUITES {
        let version = match suite.tls13() {
            Some(_) => &TLS13,
            None => &TLS12,
        };
        let of = |host: &str| verdict(site.agrees(host, version, &[*suite], &[]));
        let [ecdsa, rsa] = HOSTS.map(|(host, _)| of(host));
        let name = suite.suite().as_str().unwrap_or_default();
        writeln!(page, "| `{name}` | {ecdsa} | {rsa} |").unwrap();
    }
    page.push_str("\n| group | TLS 1.3 | TLS 1.2 |\n|---|---|---|\n");
    for group in aws_lc_rs::ALL_KX_GROUPS {
        let of = |version| verdict(site.agrees(host, version, &[], &[*group]));
        let name = group.name().as_str().unwrap_or_default();
        writeln!(page, "| `{name}` | {} | {} |", of(&TLS13), of(&TLS12)).unwrap();
    }
    page
}

#[test]
fn the_page_says_what_is_agreed_on() {
    let site = Site::new();
    let page = page(&site);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/tls.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page,
        "docs/tls.md is not what is agreed on; run \
         UPDATE_DOCS=1 cargo test -p splitter-tests --test tls table\n{page}"
    );
}

#[test]
fn nothing_else_is_agreed_on() {
    let site = Site::new();
    let addr = site.splitter.https();
    let good = [
        "ECDHE-ECDSA-AES256-GCM-SHA384",
        "ECDHE-ECDSA-AES128-GCM-SHA256",
        "ECDHE-ECDSA-CHACHA20-POLY1305",
        "ECDHE-RSA-AES256-GCM-SHA384",
        "ECDHE-RSA-AES128-GCM-SHA256",
        "ECDHE-RSA-CHACHA20-POLY1305",
    ];
    let others = good.iter().map(|name| format!(":!{name}"));
    let others = format!(
        "ALL:COMPLEMENTOFALL{}:@SECLEVEL=0",
        others.collect::<String>()
    );
    for (host, kind) in HOSTS {
        let agrees = |args: &[&str]| openssl(addr, host, args);
        for name in good {
            let fits = name.contains(kind);
            assert_eq!(
                agrees(&["-tls1_2", "-cipher", name]),
                fits,
                "{host}: {name}"
            );
        }
        assert!(!agrees(&["-tls1_2", "-cipher", &others]), "{host}");
        for suite in ["TLS_AES_128_CCM_SHA256", "TLS_AES_128_CCM_8_SHA256"] {
            assert!(
                !agrees(&["-tls1_3", "-ciphersuites", suite]),
                "{host}: {suite}"
            );
        }
        for (group, can) in [
            ("X25519", true),
            ("P-256", true),
            ("P-384", true),
            ("P-521", false),
            ("X448", false),
        ] {
            assert_eq!(
                agrees(&["-tls1_3", "-groups", group]),
                can,
                "{host}: {group}"
            );
            // With ECDSA the older version wants the certificate's curve to be in the list, too.
            if kind == "RSA" {
                assert_eq!(agrees(&["-tls1_2", "-groups", group]), can, "{group}");
            }
        }
        assert!(
            !agrees(&["-tls1_3", "-groups", "ffdhe2048:ffdhe3072"]),
            "{host}"
        );
    }
}
