//! What each gate costs alone. Of a request: where the caller is, its address, the names in its
//! certificate, and looking up what is known of its password, token or authenticator's answer. Of a token
//! or a password: checking it, once. Of a connection: judging its certificate, finding the name in its
//! hello, and sealing and opening its ticket.

#![allow(clippy::expect_used, reason = "a bench fails by panicking")]

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use divan::{Bencher, black_box};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, SanType};
use rustls::server::ProducesTickets;
use splitter::auth::{Digester, KeySet, Recent, Users, Verified};
use splitter::dataplane::{Classifier, Prefixes, Ranges};
use splitter::model::{
    AddressSet, Algorithms, ClaimPath, ClaimTest, Identities, Jwt, KeySource, KeyUrl, Pattern,
    SecretData, TokenPlace, TrafficClass,
};
use splitter::tls::{Authorities, CertStore, Identity, Peek, read_chain};

fn main() {
    divan::main();
}

/// Addresses from 10.0.0.0 on, one in each /16 after the other.
fn address(index: u32) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from_bits(
        0x0a00_0007 + (index.wrapping_mul(0x9e37_79b9) & 0xff_ff00),
    ))
}

#[divan::bench(args = [16, 4096])]
fn traffic_class(bencher: Bencher<'_, '_>, ranges: u32) {
    let pods = (0..ranges).map(|it| format!("10.{}.{}.0/24", it >> 8, it & 0xff));
    let cluster: Result<Vec<_>, _> = pods.map(|it| it.parse()).collect();
    let ranges = Ranges {
        cluster: cluster.expect("ranges"),
        ..Ranges::default()
    };
    let classifier = Classifier::new(Prefixes::new(&ranges).0);
    let mut next = 0;
    bencher.bench_local(move || {
        next += 1;
        let class = classifier.classify(black_box(address(next)), 0).class;
        TrafficClass::EastWest.admits(class.name() == "east-west")
    });
}

#[divan::bench(args = [1, 100, 10_000])]
fn addresses(bencher: Bencher<'_, '_>, ranges: u32) {
    let list: Vec<_> = (0..ranges)
        .map(|it| format!("{}/32", address(it)))
        .collect();
    let list: AddressSet = list.join(",").parse().expect("a list");
    let mut next = 0;
    bencher.bench_local(move || {
        next += 1;
        list.contains(black_box(address(next)))
    });
}

#[divan::bench(args = [1, 16, 256])]
fn identities(bencher: Bencher<'_, '_>, names: u32) {
    let list: Vec<_> = (0..names)
        .map(|it| format!("spiffe://td.test/ns/n{it}/*"))
        .collect();
    let list = Identities::parse(&list.join(",")).expect("a list");
    let uri = format!("spiffe://td.test/ns/n{}/sa/web", names - 1);
    bencher.bench_local(move || list.admit([], [black_box(uri.as_str())]));
}

#[divan::bench]
fn common_name(bencher: Bencher<'_, '_>) {
    let pattern = Pattern::new("^(?:(admin|root)-[a-z0-9]+)$").expect("a pattern");
    bencher.bench_local(move || pattern.is_match(black_box(b"admin-7f3a")));
}

/// An authority, and a certificate of somebody in PEM.
fn people() -> (String, String) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let authority = params.self_signed(&key).expect("a certificate").pem();
    let issuer = Issuer::new(params, key);
    let mut params = CertificateParams::default();
    let name = "spiffe://td.test/ns/shop/sa/web"
        .try_into()
        .expect("a name");
    params.subject_alt_names = vec![SanType::URI(name)];
    let key = KeyPair::generate().expect("a key");
    let person = params.signed_by(&key, &issuer).expect("a certificate");
    (authority, person.pem())
}

/// Once a connection and Secret; requests after the first ask for the verdict only.
#[divan::bench]
fn certificate_verified(bencher: Bencher<'_, '_>) {
    let (authority, person) = people();
    let data = BTreeMap::from([("ca.crt".to_owned(), authority.into_bytes())]);
    let authorities = Authorities::of(&SecretData::new(data)).expect("authorities");
    let chain = read_chain(person.as_bytes()).expect("a chain");
    bencher.bench_local(move || authorities.verify(black_box(&chain), 1).is_ok());
}

#[divan::bench]
fn certificate_read(bencher: Bencher<'_, '_>) {
    let chain = read_chain(people().1.as_bytes()).expect("a chain");
    bencher.bench_local(move || Identity::read(black_box(&chain[0])).uris.len());
}

/// A hello of a browser's size: 1.7 KiB, with post-quantum keys.
#[divan::bench]
fn hello_peeked(bencher: Bencher<'_, '_>) {
    let mut body = vec![3, 3];
    body.extend([7; 32]);
    body.extend([0, 0, 2, 0x13, 1, 1, 0]);
    let mut extensions = vec![0, 51, 6, 0];
    extensions.extend([9; 1536]);
    extensions.extend(b"\x00\x00\x00\x0b\x00\x09\x00\x00\x06a.test");
    body.extend((extensions.len() as u16).to_be_bytes());
    body.extend(extensions);
    let mut hello = vec![22, 3, 1];
    hello.extend((body.len() as u16 + 4).to_be_bytes());
    hello.extend([1, 0]);
    hello.extend((body.len() as u16).to_be_bytes());
    hello.extend(body);
    bencher.bench_local(move || Peek::default().push(black_box(&hello)));
}

fn ticketer() -> Arc<dyn ProducesTickets> {
    let store = CertStore::new(SystemTime::now()).expect("a store");
    let config = store.current().config("").expect("a configuration").clone();
    config.ticketer.clone()
}

#[divan::bench]
fn ticket_sealed(bencher: Bencher<'_, '_>) {
    let (ticketer, session) = (ticketer(), vec![7; 200]);
    bencher.bench_local(move || ticketer.encrypt(black_box(&session)));
}

#[divan::bench]
fn ticket_opened(bencher: Bencher<'_, '_>) {
    let ticketer = ticketer();
    let ticket = ticketer.encrypt(&[7; 200]).expect("a ticket");
    bencher.bench_local(move || ticketer.decrypt(black_box(&ticket)));
}

/// When tokens are looked at, in seconds since 1970.
const NOW: i64 = 1_800_000_000;

/// A signed token, the keys of its issuer, and what a Location asks of it.
fn token() -> (String, KeySet, Jwt) {
    let key = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).expect("a key");
    let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    let point = key.public_key().as_ref();
    let (x, y) = (encode(&point[1..33]), encode(&point[33..]));
    let set =
        format!(r#"{{"keys":[{{"kty":"EC","crv":"P-256","x":"{x}","y":"{y}","kid":"one"}}]}}"#);
    let head = encode(br#"{"alg":"ES256","kid":"one","typ":"at+jwt"}"#);
    let claims = format!(
        r#"{{"iss":"https://id.test","aud":["shop"],"exp":{},"sub":"ann","roles":["reader","admin"],
        "email":"ann@shop.test","scope":"openid profile email"}}"#,
        NOW + 60
    );
    let message = format!("{head}.{}", encode(claims.as_bytes()));
    let signature = key.sign(&SystemRandom::new(), message.as_bytes());
    let token = format!(
        "{message}.{}",
        encode(signature.expect("a signature").as_ref())
    );
    let claim = ClaimPath {
        text: "roles".into(),
        names: ["roles".into()].into(),
    };
    let jwt = Jwt {
        issuer: "https://id.test".into(),
        audiences: ["shop".into()].into(),
        algorithms: Algorithms::asymmetric(),
        keys: KeySource::Url(KeyUrl {
            url: "https://id.test/keys".into(),
            authorities: None,
        }),
        kind: None,
        leeway: Duration::from_secs(60),
        places: [TokenPlace::Header(http::header::AUTHORIZATION)].into(),
        claims: [ClaimTest {
            claim,
            values: ["admin".into()].into(),
        }]
        .into(),
        headers: [].into(),
        forward: false,
        realm: "".into(),
    };
    let keys = KeySet::read(set.as_bytes(), false).expect("keys");
    (token, keys, jwt)
}

/// What each request after the first costs: its token is known by a keyed digest.
#[divan::bench]
fn known_by_digest(bencher: Bencher<'_, '_>) {
    let (token, ..) = token();
    let digester = Digester::new().expect("randomness");
    let mut recent = Recent::new(4096);
    for other in 0..4096_u32 {
        recent.put(digester.digest(&[b"jwt", &other.to_le_bytes()]), other);
    }
    recent.put(digester.digest(&[b"jwt", token.as_bytes()]), 1);
    bencher.bench_local(move || {
        let digest = digester.digest(&[b"jwt", black_box(token.as_bytes())]);
        recent.get(&digest)
    });
}

/// What a checked token says, for each request.
#[divan::bench]
fn token_admitted(bencher: Bencher<'_, '_>) {
    let (token, keys, jwt) = token();
    let verified = Verified::check(&token, &keys, &jwt).expect("a good token");
    bencher.bench_local(move || verified.admit(black_box(&jwt), NOW).is_ok());
}

/// Once for each token.
#[divan::bench]
fn token_checked(bencher: Bencher<'_, '_>) {
    let (token, keys, jwt) = token();
    bencher.bench_local(move || Verified::check(black_box(&token), &keys, &jwt).is_ok());
}

/// Once for each name and password; the slow kinds are checked by threads of their own.
#[divan::bench(args = ["{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=", "$apr1$abcdefgh$h9FWgUz3n9YxylKLlR5SQ/"])]
fn password_checked(bencher: Bencher<'_, '_>, hash: &str) {
    let users = Users::file(format!("ann:{hash}\n").as_bytes());
    bencher.bench_local(move || users.admit("ann", black_box(b"secret")));
}
