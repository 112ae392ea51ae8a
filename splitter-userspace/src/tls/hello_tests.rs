#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::{Arc, LazyLock};

use proptest::prelude::*;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::ServerName;
use rustls::server::Acceptor;
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use super::*;

/// What rustls sends as a client of `name`; with post-quantum keys some 1.5 KiB.
fn hello(name: &str) -> Vec<u8> {
    let mut config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    config.enable_sni = !name.is_empty();
    let name = if name.is_empty() { "nobody.test" } else { name };
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut bytes = Vec::new();
    let mut tls = ClientConnection::new(Arc::new(config), name).unwrap();
    tls.write_tls(&mut bytes).unwrap();
    bytes
}

static HELLO: LazyLock<Vec<u8>> = LazyLock::new(|| hello("shop.a.test"));

fn peek(bytes: &[u8]) -> Peeked {
    Peek::default().push(bytes)
}

fn named(name: &str) -> Peeked {
    Peeked::Named(Some(name.to_owned()))
}

/// The same message in records of this size.
fn in_records(hello: &[u8], size: usize) -> Vec<u8> {
    let fragments = hello[5..].chunks(size);
    fragments
        .flat_map(|it| [&[22, 3, 1, (it.len() >> 8) as u8, it.len() as u8], it].concat())
        .collect()
}

/// A hello with these extensions.
fn with_extensions(extensions: &[(u16, Vec<u8>)]) -> Vec<u8> {
    let vec16 = |content: &[u8]| [&(content.len() as u16).to_be_bytes()[..], content].concat();
    let extensions = extensions.iter();
    let extensions =
        extensions.flat_map(|(kind, content)| [&kind.to_be_bytes()[..], &vec16(content)].concat());
    let extensions: Vec<u8> = extensions.collect();
    let mut body = vec![3, 3];
    body.extend([7; 32]);
    body.extend([0, 0, 2, 0x13, 1, 1, 0]);
    body.extend(vec16(&extensions));
    let length = (body.len() as u32).to_be_bytes();
    let message = [&[1], &length[1..], &body].concat();
    let records = message.chunks(RECORD_MAX);
    records
        .flat_map(|it| [&[22, 3, 1], &vec16(it)[..]].concat())
        .collect()
}

fn sni(names: &[(u8, &str)]) -> Vec<u8> {
    let list: Vec<u8> = names
        .iter()
        .flat_map(|(kind, name)| {
            [
                &[*kind],
                &(name.len() as u16).to_be_bytes()[..],
                name.as_bytes(),
            ]
            .concat()
        })
        .collect();
    [&(list.len() as u16).to_be_bytes()[..], &list].concat()
}

#[test]
fn a_hello_has_its_name_once_it_is_whole() {
    let hello = &*HELLO;
    assert!(hello.len() > 1200, "{} bytes", hello.len());
    assert_eq!(peek(hello), named("shop.a.test"));
    for n in 0..hello.len() {
        assert_eq!(peek(&hello[..n]), Peeked::More, "{n}");
    }
    assert_eq!(peek(&self::hello("")), Peeked::Named(None));
    assert_eq!(peek(&self::hello("UPPER.Test")), named("upper.test"));
    // What comes behind it belongs to whoever goes on.
    let mut peek = Peek::default();
    let more = [hello.as_slice(), b"more"].concat();
    assert_eq!(peek.push(&more), named("shop.a.test"));
    assert_eq!(peek.into_raw(), more);
}

#[test]
fn it_may_come_in_pieces_and_in_records() {
    for size in [1, 2, 3, 5, 100, 1000] {
        let records = in_records(&HELLO, size);
        let mut peek = Peek::default();
        let (last, first) = records.split_last().unwrap();
        for byte in first {
            assert_eq!(peek.push(&[*byte]), Peeked::More, "{size}");
        }
        assert_eq!(peek.push(&[*last]), named("shop.a.test"), "{size}");
        assert_eq!(peek.into_raw(), records);
    }
}

#[test]
fn a_hello_may_be_huge_but_not_endless() {
    let name = (0, sni(&[(0, "a.test")]));
    let key = |n: usize| (51, vec![9; n]);
    for (n, expected) in [
        (1700, named("a.test")),
        (40_000, named("a.test")),
        (65_400, named("a.test")),
    ] {
        let hello = with_extensions(&[key(n), name.clone()]);
        assert_eq!(peek(&hello), expected, "{n}");
    }
    // It says that it is longer than anybody takes.
    assert_eq!(peek(&[22, 3, 1, 0, 4, 1, 1, 0, 0]), Peeked::Garbage);
    let slow = in_records(&with_extensions(&[key(60_000)]), 1);
    assert_eq!(
        peek(&slow),
        Peeked::Garbage,
        "{} bytes of records",
        slow.len()
    );
}

#[test]
fn what_two_readers_could_read_in_two_ways_is_garbage() {
    let a = (0, sni(&[(0, "a.test")]));
    for (extensions, expected) in [
        (vec![a.clone()], named("a.test")),
        (
            vec![(16, vec![]), a.clone(), (43, vec![1, 2])],
            named("a.test"),
        ),
        (vec![], Peeked::Named(None)),
        (vec![a.clone(), (0, sni(&[(0, "b.test")]))], Peeked::Garbage),
        (
            vec![(0, sni(&[(0, "a.test"), (0, "b.test")]))],
            Peeked::Garbage,
        ),
        (
            vec![(0, sni(&[(0, "a.test"), (1, "b.test")]))],
            Peeked::Garbage,
        ),
        (vec![(0, sni(&[(1, "a.test")]))], Peeked::Garbage),
        (vec![(0, sni(&[]))], Peeked::Garbage),
        (vec![(0, vec![])], Peeked::Garbage),
        (vec![(0, sni(&[(0, "")]))], Peeked::Garbage),
        (vec![(0, sni(&[(0, ".")]))], Peeked::Garbage),
        (vec![(0, sni(&[(0, "a..test")]))], Peeked::Garbage),
        (vec![(0, sni(&[(0, "a.test.")]))], named("a.test")),
        (vec![(0, sni(&[(0, "a.test/x")]))], Peeked::Garbage),
        (vec![(0, sni(&[(0, "a\0.test")]))], Peeked::Garbage),
        (vec![(0, sni(&[(0, "ä.test")]))], Peeked::Garbage),
        (vec![(0, sni(&[(0, &"a".repeat(254))]))], Peeked::Garbage),
    ] {
        assert_eq!(
            peek(&with_extensions(&extensions)),
            expected,
            "{extensions:?}"
        );
    }
}

#[test]
fn what_is_no_hello_is_garbage_at_once() {
    for bytes in [
        &b"GET / HTTP/1.1\r\n"[..],
        b"\x15\x03\x01\x00\x02\x01\x00",
        b"\x16\x02",
        b"\x16\x03\x01\x00\x00",
        b"\x16\x03\x01\x40\x01",
        b"\x16\x03\x01\xff\xff",
        b"\x16\x03\x01\x00\x01\x02",
        b"\x80\x2e\x01",
        b"\x00",
    ] {
        assert_eq!(peek(bytes), Peeked::Garbage, "{bytes:?}");
    }
    let mut peek = Peek::default();
    assert_eq!(peek.push(b"x"), Peeked::Garbage);
    assert_eq!(peek.push(&HELLO), Peeked::Garbage, "it does not recover");
    assert_eq!(peek.push(b""), Peeked::Garbage);
}

/// What rustls reads of it: none if it refuses it or waits for more.
fn of_rustls(bytes: &[u8]) -> Option<Option<String>> {
    let mut acceptor = Acceptor::default();
    let mut rest = bytes;
    while !rest.is_empty() {
        acceptor.read_tls(&mut rest).ok()?;
        match acceptor.accept() {
            Ok(None) => {}
            Ok(Some(accepted)) => {
                let name = accepted.client_hello().server_name().map(str::to_owned);
                return Some(name.map(|name| name.trim_end_matches('.').to_owned()));
            }
            Err(_) => return None,
        }
    }
    None
}

/// Where both read a whole hello, they read the same name, but for an address, which rustls takes
/// for none.
fn agree(bytes: &[u8]) -> Result<(), TestCaseError> {
    let peeked = peek(bytes);
    if let Some(theirs) = of_rustls(bytes) {
        match peeked {
            Peeked::Named(ours) if theirs.is_none() => {
                let address = |name: &String| name.parse::<std::net::IpAddr>().is_ok();
                prop_assert!(ours.as_ref().is_none_or(address), "{ours:?}");
            }
            Peeked::Named(ours) => prop_assert_eq!(ours, theirs),
            // Stricter than rustls we may be.
            Peeked::Garbage => {}
            Peeked::More => prop_assert!(false, "rustls has it whole"),
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn pieces_make_no_difference(
        cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..20),
        size in 1usize..2000,
    ) {
        let records = in_records(&HELLO, size);
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(records.len())).collect();
        cuts.extend([0, records.len()]);
        cuts.sort_unstable();
        let mut peek = Peek::default();
        let mut last = Peeked::More;
        for pair in cuts.windows(2) {
            prop_assert_eq!(&last, &Peeked::More);
            if pair[0] < pair[1] {
                last = peek.push(&records[pair[0]..pair[1]]);
            }
        }
        prop_assert_eq!(last, named("shop.a.test"));
    }

    #[test]
    fn changed_hellos_are_read_as_rustls_reads_them(
        changes in proptest::collection::vec(
            (any::<proptest::sample::Index>(), any::<u8>()), 1..6),
        near in any::<bool>(),
    ) {
        let mut hello = HELLO.clone();
        let span = if near { 300 } else { hello.len() };
        for (at, byte) in changes {
            let at = at.index(span);
            hello[at] = byte;
        }
        agree(&hello)?;
    }

    #[test]
    fn shuffled_and_cut_hellos_are_read_as_rustls_reads_them(
        from in any::<proptest::sample::Index>(),
        to in any::<proptest::sample::Index>(),
        n in 0usize..200,
        size in 1usize..500,
    ) {
        let mut hello = in_records(&HELLO, size);
        let from = from.index(hello.len());
        let piece: Vec<u8> = hello.drain(from..(from + n).min(hello.len())).collect();
        agree(&hello)?;
        let to = to.index(hello.len() + 1);
        hello.splice(to..to, piece);
        agree(&hello)?;
    }

    #[test]
    fn nothing_panics(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        let framed = [&[22, 3, 1, 2, 0, 1, 0], bytes.as_slice()].concat();
        peek(&bytes);
        peek(&framed);
    }
}
