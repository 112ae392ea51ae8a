//! 10,000 certificates: what each takes of memory, and that a handshake costs what it costs with one.
//! `cargo test -p splitter-tests --test certificates_alloc -- --nocapture` prints the figures.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "the figures are for people")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, ServerConnection};
use splitter::model::{HostPattern, Kind, ObjectRef, SecretData, TlsHost, TlsSecret};
use splitter::tls::{CertStore, Certificates, Demand, Handshakes};
use splitter_tests::counting::{Counting, allocations, held};
use splitter_tests::tls::Authority;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Hosts `0.test` and on, each with a Secret of its own.
struct Hosts {
    hosts: Vec<TlsHost>,
    secrets: BTreeMap<ObjectRef, SecretData>,
}

impl Hosts {
    fn new(authority: &Authority, count: usize) -> Self {
        let (mut hosts, mut secrets) = (Vec::new(), BTreeMap::new());
        for index in 0..count {
            let name = format!("{index}.test");
            let pair = authority.issue(&[&name]);
            let secret = ObjectRef::new(Kind::Secret, "ns", &name);
            let entries = [("tls.crt", pair.chain), ("tls.key", pair.key)];
            let entries = entries.map(|(key, value)| (key.to_owned(), value.into_bytes()));
            secrets.insert(secret.clone(), SecretData::new(BTreeMap::from(entries)));
            hosts.push(TlsHost {
                host: HostPattern::Exact(name.into()),
                ingress: ObjectRef::new(Kind::Ingress, "ns", "web"),
                listed: true,
                secrets: vec![TlsSecret {
                    secret,
                    field: String::new(),
                }],
                source: String::new(),
            });
        }
        Hosts { hosts, secrets }
    }

    fn load(&self, store: &mut CertStore) -> Arc<Certificates> {
        let (certificates, problems) = store.update(Demand {
            hosts: &self.hosts,
            handshakes: &Handshakes::default(),
            tickets: None,
            authorities: &BTreeSet::new(),
            upstreams: &BTreeSet::new(),
            secrets: &self.secrets,
            default: None,
            now: SystemTime::now(),
        });
        assert!(problems.is_empty());
        certificates
    }
}

/// Memory of the process that is in use, in bytes, the libraries' own C parts among it.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

/// A full handshake in memory with a client of `name`.
fn handshake(certificates: &Certificates, client: &Arc<ClientConfig>, name: &str) {
    let server = certificates.config(name).unwrap().clone();
    let mut server = ServerConnection::new(server).unwrap();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut client = ClientConnection::new(client.clone(), name).unwrap();
    while client.is_handshaking() || server.is_handshaking() {
        let mut bytes = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut bytes).unwrap();
        }
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            server.read_tls(&mut rest).unwrap();
            server.process_new_packets().unwrap();
        }
        let mut bytes = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut bytes).unwrap();
        }
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            client.read_tls(&mut rest).unwrap();
            client.process_new_packets().unwrap();
        }
    }
}

#[test]
fn ten_thousand_take_little_each_and_a_handshake_costs_the_same() {
    const MANY: usize = 10_000;
    let authority = Authority::new("root");
    let mut config = authority.client();
    config.resumption = rustls::client::Resumption::disabled();
    let client = Arc::new(config);
    let mut costs = Vec::new();
    for count in [1, MANY] {
        let hosts = Hosts::new(&authority, count);
        let mut store = CertStore::new(SystemTime::now()).unwrap();
        let (before, resident_before) = (held(), resident());
        let began = Instant::now();
        let certificates = hosts.load(&mut store);
        let (took, taken) = (began.elapsed(), held() - before);
        let whole = resident().saturating_sub(resident_before) / count as u64;
        assert_eq!(store.parsed(), count as u64);
        // Nothing is read again when nothing has changed.
        hosts.load(&mut store);
        assert_eq!(store.parsed(), count as u64);
        let last = format!("{}.test", count - 1);
        handshake(&certificates, &client, &last);
        let cost = allocations(|| handshake(&certificates, &client, &last));
        let began = Instant::now();
        const ROUNDS: u32 = 20;
        (0..ROUNDS).for_each(|_| handshake(&certificates, &client, &last));
        let each = taken / count as i64;
        println!(
            "{count} certificates: {each} bytes each ({whole} with what C holds and its allocator keeps), \
             read in {took:?}; a handshake (both sides): \
             {cost} allocations, {:?}",
            began.elapsed() / ROUNDS
        );
        if count == MANY {
            // The certificate itself has some 400 bytes, its key is in the library's memory.
            assert!((0..8192).contains(&each), "{each} bytes");
        }
        costs.push(cost);
    }
    // Signatures and keys vary by a byte, which can be an allocation more.
    assert!(costs[1].abs_diff(costs[0]) <= 4, "{costs:?}");
}
