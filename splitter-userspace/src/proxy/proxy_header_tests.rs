#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;

use super::*;

/// A whole header of version 2.
fn v2(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
    let mut header = SIGNATURE.to_vec();
    header.extend([command, family]);
    header.extend(u16::try_from(rest.len()).unwrap().to_be_bytes());
    header.extend(rest);
    header
}

/// What a whole header says, after it was found to be incomplete at each earlier byte.
fn whole(header: &[u8]) -> Claim {
    for end in 0..header.len() {
        assert_eq!(parse(&header[..end]), Ok(Progress::Partial), "{end} bytes");
    }
    let followed = [header, b"GET / HTTP/1.1\r\n\r\n"].concat();
    match parse(&followed).unwrap() {
        Progress::Whole(length, claim) => {
            assert_eq!(length, header.len());
            claim
        }
        Progress::Partial => panic!("{header:?} is whole"),
    }
}

fn proxied(source: &str, destination: &str) -> Claim {
    Claim::Proxied {
        source: source.parse().unwrap(),
        destination: destination.parse().unwrap(),
    }
}

#[test]
fn lines_of_version_1() {
    assert_eq!(
        whole(b"PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\n"),
        proxied("192.0.2.1:56324", "198.51.100.1:443")
    );
    assert_eq!(
        whole(b"PROXY TCP6 2001:db8::1 2001:db8::2 0 65535\r\n"),
        proxied("[2001:db8::1]:0", "[2001:db8::2]:65535")
    );
    assert_eq!(whole(b"PROXY UNKNOWN\r\n"), Claim::Own);
    assert_eq!(whole(b"PROXY UNKNOWN ffff:f:f ffff::1 1 2\r\n"), Claim::Own);
}

#[test]
fn headers_of_version_2() {
    let v4 = [192, 0, 2, 1, 198, 51, 100, 1, 0xdc, 0x04, 0x01, 0xbb];
    let says = proxied("192.0.2.1:56324", "198.51.100.1:443");
    assert_eq!(whole(&v2(0x21, 0x11, &v4)), says);
    let extended = [&v4[..], &[0x04, 0x00, 0x02, 0xaa, 0xbb]].concat();
    assert_eq!(whole(&v2(0x21, 0x11, &extended)), says);
    let mut v6 = [0; 36];
    v6[15] = 1;
    v6[31] = 2;
    v6[32..].copy_from_slice(&[0, 80, 1, 0xbb]);
    assert_eq!(
        whole(&v2(0x21, 0x21, &v6)),
        proxied("[::1]:80", "[::2]:443")
    );
}

#[test]
fn what_names_no_client_leaves_the_connections_own_address() {
    for header in [
        v2(0x20, 0x00, b""),
        v2(0x20, 0x11, &[0; 12]),
        v2(0x21, 0x00, &[0; 7]),
        v2(0x21, 0x31, &[0; 216]),
    ] {
        assert_eq!(whole(&header), Claim::Own);
    }
}

#[test]
fn what_is_no_header_is_malformed() {
    let long = format!("PROXY UNKNOWN {}\r\n", "x".repeat(LINE_MAX));
    let lines = [
        "GET / HTTP/1.1\r\n",
        "proxy TCP4 1.1.1.1 2.2.2.2 1 2\r\n",
        "PROXY TCP4 1.1.1.1 2.2.2.2 1\r\n",
        "PROXY TCP4 1.1.1.1 2.2.2.2 1 2 3\r\n",
        "PROXY TCP4  1.1.1.1 2.2.2.2 1 2\r\n",
        "PROXY TCP4 1.1.1.1 2.2.2.2 1 65536\r\n",
        "PROXY TCP4 1.1.1.1 2.2.2.2 +1 2\r\n",
        "PROXY TCP4 1.1.1.1 2.2.2.2 01 2\r\n",
        "PROXY TCP4 ::1 ::2 1 2\r\n",
        "PROXY TCP6 1.1.1.1 2.2.2.2 1 2\r\n",
        "PROXY UDP4 1.1.1.1 2.2.2.2 1 2\r\n",
        "PROXY \r\n",
        "PROXY TCP4 1.1.1.1 2.2.2.2 1 \u{665}\r\n",
        &long,
    ];
    for line in lines {
        assert_eq!(parse(line.as_bytes()), Err(NoHeader::Malformed), "{line:?}");
    }
    for header in [
        v2(0x11, 0x11, &[0; 12]),
        v2(0x22, 0x11, &[0; 12]),
        v2(0x21, 0x11, &[0; 11]),
        v2(0x21, 0x21, &[0; 35]),
        v2(0x21, 0x12, &[0; 12]),
        v2(0x21, 0x41, &[0; 12]),
        v2(0x21, 0x11, &[0; HEADER_MAX]),
    ] {
        assert_eq!(
            parse(&header),
            Err(NoHeader::Malformed),
            "{:?}",
            &header[12..16]
        );
    }
}

proptest! {
    #[test]
    fn no_bytes_can_do_harm(bytes: Vec<u8>, signed: bool) {
        let data = if signed { [&SIGNATURE[..], &bytes].concat() } else { bytes };
        if let Ok(Progress::Whole(length, _)) = parse(&data) {
            prop_assert!(length <= data.len() && length <= HEADER_MAX);
        }
    }

    #[test]
    fn a_verdict_does_not_change_with_more_bytes(tail: Vec<u8>, cut in 0usize..60) {
        let whole = [&b"PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\n"[..], &tail].concat();
        let cut = cut.min(whole.len());
        let early = parse(&whole[..cut]).unwrap();
        if early != Progress::Partial {
            prop_assert_eq!(early, parse(&whole).unwrap());
        }
    }
}
