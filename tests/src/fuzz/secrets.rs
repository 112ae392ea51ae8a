//! Secrets with certificates and authorities: what is taken works, and nobody else's certificate is
//! good because of something that is written in one.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::{PemObject, SectionKind};
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer, ServerName};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConnection, ConnectionCommon, ServerConfig, ServerConnection, SideData};
use splitter::model::{HostPattern, SecretData};
use splitter::tls::{Authorities, Certificate, read_chain};

use super::{edited, parts};
use crate::tls::{Authority, Pair, anybody, key_of};

/// Nobody's key is in a file: they are made of seeds, the same each time.
static WORLD: LazyLock<World> = LazyLock::new(World::new);

struct World {
    /// What a word in the input stands for, before anything is changed in it.
    words: [(&'static str, SectionKind, Vec<u8>); 6],
    good: Vec<CertificateDer<'static>>,
    revoked: Vec<CertificateDer<'static>>,
    /// Of an authority that is in no Secret.
    stranger: Vec<CertificateDer<'static>>,
    /// What nobody may print.
    key: String,
}

impl World {
    fn new() -> Self {
        let authority = Authority::with_key("ours", key_of(&[1; 32]));
        let other = Authority::with_key("ours", key_of(&[2; 32]));
        let person = |authority: &Authority, serial: u64| {
            let key = key_of(&[3; 32]);
            let pair = authority.issue_for(key, &[], |it| it.serial_number = Some(serial.into()));
            vec![pair.der()]
        };
        let site = |seed: u8| {
            let serial = |it: &mut rcgen::CertificateParams| it.serial_number = Some(5.into());
            authority.issue_for(key_of(&[seed; 32]), &["a.test", "*.b.test"], serial)
        };
        let (own, second) = (site(4), site(5));
        let chain = |pair: &Pair| pair.der().to_vec();
        let key = |pair: &Pair| {
            let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).expect("a key");
            key.secret_der().to_vec()
        };
        let list = authority.revoke(&[7]);
        let list = CertificateRevocationListDer::from_pem_slice(list.as_bytes()).expect("a list");
        let ca = CertificateDer::from_pem_slice(authority.pem().as_bytes()).expect("a CA");
        let (certificate, private) = (SectionKind::Certificate, SectionKind::PrivateKey);
        World {
            words: [
                ("<chain>", certificate, chain(&own)),
                ("<other>", certificate, chain(&second)),
                ("<key>", private, key(&own)),
                ("<other-key>", private, key(&second)),
                ("<ca>", certificate, ca.to_vec()),
                ("<crl>", SectionKind::Crl, list.to_vec()),
            ],
            good: person(&authority, 6),
            revoked: person(&authority, 7),
            stranger: person(&other, 6),
            key: own.key.lines().nth(1).expect("a line").to_owned(),
        }
    }

    /// An entry of a Secret.
    fn entry(&self, text: &[u8], edits: &[u8]) -> Vec<u8> {
        let mut text = String::from_utf8_lossy(text).into_owned();
        for (place, (word, kind, der)) in (0..).zip(&self.words) {
            let of_this = edits.chunks_exact(4).filter(|edit| edit[0] % 6 == place);
            let edits: Vec<u8> = of_this.flat_map(|edit| &edit[1..]).copied().collect();
            text = text.replace(word, &pem(*kind, &edited(der.clone(), &edits)));
        }
        text.into_bytes()
    }
}

fn pem(kind: SectionKind, der: &[u8]) -> String {
    use base64::Engine as _;
    let name = match kind {
        SectionKind::Certificate => "CERTIFICATE",
        SectionKind::Crl => "X509 CRL",
        _ => "PRIVATE KEY",
    };
    let base64 = base64::engine::general_purpose::STANDARD.encode(der);
    let lines: Vec<_> = base64.as_bytes().chunks(64).collect();
    let lines: Vec<_> = lines.into_iter().map(String::from_utf8_lossy).collect();
    format!(
        "-----BEGIN {name}-----\n{}\n-----END {name}-----\n",
        lines.join("\n")
    )
}

/// `tls.crt`, `tls.key`, `ca.crt`, `ca.crl` (an empty one is not there), in which words stand for what
/// is made of keys; and what is changed in that: of four bytes the first says which word.
pub fn target(data: &[u8]) {
    let [chain, key, authorities, revoked, edits] = parts(data);
    let names = ["tls.crt", "tls.key", "ca.crt", "ca.crl"];
    let entries = names.into_iter().zip([chain, key, authorities, revoked]);
    let entries = entries.filter(|(_, text)| !text.is_empty());
    let entries = entries.map(|(name, text)| (name.to_owned(), WORLD.entry(text, edits)));
    let entries: BTreeMap<_, _> = entries.collect();
    let secret = SecretData::new(entries);
    assert_eq!(format!("{secret:?}"), "SecretData(..)");
    match Certificate::read(&secret) {
        Ok(certificate) => {
            assert!(!format!("{certificate:?}").contains(&WORLD.key));
            let chain = secret.get("tls.crt").and_then(read_chain);
            assert_eq!(chain.as_ref(), Some(&certificate.key.cert));
            assert!(!certificate.covers(&HostPattern::Any));
            handshake(&certificate.key);
        }
        Err(error) => assert_eq!(Certificate::read(&secret).err(), Some(error)),
    }
    if let Ok(authorities) = Authorities::of(&secret) {
        let verify = |chain: &[CertificateDer<'_>]| authorities.verify(chain, 6);
        assert!(verify(&WORLD.stranger).is_err(), "a stranger's is good");
        assert!(verify(&[]).is_err());
        let listed = secret.get("ca.crl").is_some();
        let revoked = verify(&WORLD.revoked);
        assert!(!listed || revoked.is_err(), "what was revoked is good");
    }
    // It is these that let somebody in.
    if authorities == b"<ca>" && edits.is_empty() && matches!(revoked, b"" | b"<crl>") {
        let authorities = Authorities::of(&secret).expect("authorities");
        assert_eq!(authorities.verify(&WORLD.good, 6), Ok(()));
    }
}

/// A key that was taken for a certificate's signs for it.
fn handshake(key: &Arc<CertifiedKey>) {
    let key = CertifiedKey::clone(key);
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(key)));
    let mut server = ServerConnection::new(Arc::new(config)).expect("a server");
    let name = ServerName::try_from("a.test").expect("a name");
    let mut client = ClientConnection::new(Arc::new(anybody()), name).expect("a client");
    let mut wire = Vec::new();
    // More than any handshake takes.
    for _ in 0..10 {
        if !client.is_handshaking() && !server.is_handshaking() {
            return;
        }
        client.write_tls(&mut wire).expect("bytes");
        hand(&mut wire, &mut server);
        while server.wants_write() {
            server.write_tls(&mut wire).expect("bytes");
        }
        hand(&mut wire, &mut client);
    }
    panic!("the handshake does not end");
}

/// All of what one side has written, of which the other reads some kilobytes at once.
fn hand<D: SideData>(wire: &mut Vec<u8>, to: &mut ConnectionCommon<D>) {
    let mut rest = &wire[..];
    while !rest.is_empty() {
        to.read_tls(&mut rest).expect("bytes");
        to.process_new_packets().expect("the other side's part");
    }
    wire.clear();
}
