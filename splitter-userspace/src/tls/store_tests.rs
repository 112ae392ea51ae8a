#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use rcgen::{CertificateParams, KeyPair};

use super::*;
use crate::model::Kind;

fn secret(names: &[&str]) -> SecretData {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(names).unwrap().self_signed(&key);
    SecretData::new(BTreeMap::from([
        (
            "tls.crt".to_owned(),
            certificate.unwrap().pem().into_bytes(),
        ),
        ("tls.key".to_owned(), key.serialize_pem().into_bytes()),
    ]))
}

fn object(name: &str) -> ObjectRef {
    ObjectRef::new(Kind::Secret, "ns", name)
}

fn host(name: &str, secrets: &[&str], listed: bool) -> TlsHost {
    let host = match name.strip_prefix("*.") {
        Some(suffix) => HostPattern::Wildcard(suffix.into()),
        None => HostPattern::Exact(name.into()),
    };
    TlsHost {
        host,
        ingress: ObjectRef::new(Kind::Ingress, "ns", "web"),
        listed,
        secrets: secrets
            .iter()
            .map(|name| TlsSecret {
                secret: object(name),
                field: "spec.tls[0].secretName".to_owned(),
            })
            .collect(),
        source: String::new(),
    }
}

/// Code and severity of what is wrong, and the Secret of the first host.
fn told(
    store: &mut CertStore,
    hosts: &[TlsHost],
    secrets: &BTreeMap<ObjectRef, SecretData>,
    now: SystemTime,
) -> (Vec<&'static str>, Option<String>) {
    let (certificates, problems) = store.update(Demand {
        hosts,
        handshakes: &Handshakes::default(),
        tickets: None,
        authorities: &BTreeSet::new(),
        upstreams: &BTreeSet::new(),
        secrets,
        default: None,
        now,
    });
    let secret = certificates.bound[0].secret.as_ref();
    let codes = problems.iter().map(|it| it.code).collect();
    (codes, secret.map(|it| it.name.to_string()))
}

#[test]
fn a_host_that_is_not_listed_takes_the_first_that_covers_it() {
    let mut store = CertStore::new(SystemTime::now()).unwrap();
    let secrets = BTreeMap::from([
        (object("other"), secret(&["other.test"])),
        (object("wild"), secret(&["*.a.test"])),
    ]);
    let now = SystemTime::now();
    let mut ask = |host| told(&mut store, &[host], &secrets, now);
    let wild = Some("wild".to_owned());
    assert_eq!(
        ask(host("x.a.test", &["other", "wild"], false)),
        (vec![], wild.clone())
    );
    assert_eq!(
        ask(host("*.a.test", &["other", "wild"], false)),
        (vec![], wild)
    );
    let uncovered = (vec!["certificate-not-for-host"], None);
    assert_eq!(
        ask(host("y.x.a.test", &["other", "wild"], false)),
        uncovered
    );
    assert_eq!(ask(host("a.test", &["wild"], true)), uncovered);
    // Asked for without a Secret: that is what the default is for.
    assert_eq!(ask(host("a.test", &[], true)), (vec![], None));
}

#[test]
fn expiry_is_told_ten_days_ahead() {
    let mut store = CertStore::new(SystemTime::now()).unwrap();
    let secrets = BTreeMap::from([(object("a"), secret(&["a.test"]))]);
    let hosts = [host("a.test", &["a"], true)];
    // rcgen's default: 1975-01-01 to 4096-01-01.
    let end = UNIX_EPOCH + Duration::from_secs(67_090_118_400);
    let day = Duration::from_secs(24 * 3600);
    for (now, codes) in [
        (end - day * 11, vec![]),
        (end - day * 9, vec!["certificate-expires-soon"]),
        (end + day, vec!["certificate-expired"]),
        (UNIX_EPOCH + day, vec!["certificate-not-valid-yet"]),
    ] {
        let expected = (codes, Some("a".to_owned()));
        assert_eq!(told(&mut store, &hosts, &secrets, now), expected);
    }
    assert_eq!(store.parsed(), 1);
}

#[test]
fn a_content_is_parsed_once_and_a_bad_one_replaces_nothing() {
    let mut store = CertStore::new(SystemTime::now()).unwrap();
    let hosts = [host("a.test", &["a"], true)];
    let now = SystemTime::now();
    let mut ask = |data: &SecretData| {
        let secrets = BTreeMap::from([(object("a"), data.clone())]);
        let told = told(&mut store, &hosts, &secrets, now);
        (
            told.0,
            Arc::as_ptr(&store.current().bound[0].certificate),
            store.parsed(),
        )
    };
    let (first, second) = (secret(&["a.test"]), secret(&["a.test"]));
    let (codes, shown, parsed) = ask(&first);
    assert_eq!((codes, parsed), (vec![], 1));
    assert_eq!(ask(&first), (vec![], shown, 1));
    let bad = SecretData::new(BTreeMap::new());
    assert_eq!(ask(&bad), (vec!["secret-invalid"], shown, 2));
    assert_eq!(ask(&bad), (vec!["secret-invalid"], shown, 2));
    let (codes, other, parsed) = ask(&second);
    assert_eq!((codes, parsed), (vec![], 3));
    assert_ne!(other, shown);
}

#[test]
fn nothing_new_publishes_nothing() {
    let mut store = CertStore::new(SystemTime::now()).unwrap();
    let secrets = BTreeMap::from([(object("a"), secret(&["a.test"]))]);
    let hosts = [host("a.test", &["a"], true)];
    told(&mut store, &hosts, &secrets, SystemTime::now());
    let before = store.current().clone();
    told(&mut store, &hosts, &secrets, SystemTime::now());
    assert!(Arc::ptr_eq(&before, store.current()));
}

#[test]
fn nothing_of_a_key_is_in_debug() {
    let store = CertStore::new(SystemTime::now()).unwrap();
    let text = format!("{store:?}");
    assert!(!text.contains("PRIVATE"), "{text}");
    assert!(text.len() < 20_000, "{} bytes", text.len());
}
